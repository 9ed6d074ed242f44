#!/usr/bin/env bash
# regression.sh -- targets that are numbers, and autoencoders: equal bits for any threads, ranks and after kills; metrics against a
# calculation by hand; predictions; faults of the arrays; programs without accuracy in options, sweeps and tables.
#
# Parts: arrays practice
# Deep parts: images bits
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

# table DIR ROWS: y = 3 a - 2 b + c^2 + 10, of three columns; the second target is its half
cat > "$work/arrays.py" <<'END_PY'
import os, random, sys
from npy import save
def table(d, rows, descr="<f4", targets=1):
    os.makedirs(d, exist_ok=True)
    random.seed(rows)
    for split, n in (("train", rows), ("test", rows // 4)):
        x = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(n)]
        y = [3 * a - 2 * b + c * c + 10 for a, b, c in x]
        save(f"{d}/{split}_x.npy", "<f4", (n, 3), [v for row in x for v in row])
        flat = [v / (k + 1) for v in y for k in range(targets)]
        shape = (n,) if targets == 1 else (n, targets)
        save(f"{d}/{split}_y.npy", descr, shape, [round(v) for v in flat] if descr[1] == "i" else flat)
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
arrays 'table("table", 400); table("f64", 400, "<f8"); table("i8", 400, "<i8"); table("pair", 400, "<f4", 2)'

cat > "$work/table.tn" <<'END_TN'
model table(row: f32[3], width: int = 16) {
    return dense(row, width) |> tanh |> dense(1)
}
train table {
    data      = "./table"
    target    = price: f32[1]
    loss      = mse
    optimizer = adam(lr = 0.03)
    batch     = 32
    shards    = 4
    epochs    = 6
    expect    = test_r2 >= 0.5
}
END_TN
cd "$work"
make() { "$TENON" build "$work/table.tn" -o "$@" > "$work/out" 2>&1 || { bad "tenon build table.tn $*"; cat "$work/out"; finish; exit 1; }; }

# same_metrics PREDICTIONS TARGETS LOG: mae, rmse and r2 of the last epoch, by hand
same_metrics() {
    python3 - "$@" <<'END_PY'
import array, json, sys
p = [[float(v) for v in line.split(",")] for line in open(sys.argv[1])]
t = array.array("f", open(sys.argv[2], "rb").read()[128:])
k = len(t) // len(p)
t = [list(t[i * k:i * k + k]) for i in range(len(p))]
n = len(p) * k
d = [a - b for x, y in zip(p, t) for a, b in zip(x, y)]
mean = [sum(row[j] for row in t) / len(t) for j in range(k)]
far = sum((v - m) ** 2 for row in t for v, m in zip(row, mean))
want = {"mae": sum(map(abs, d)) / n, "rmse": (sum(v * v for v in d) / n) ** 0.5, "r2": 1 - sum(v * v for v in d) / far}
last = [json.loads(line) for line in open(sys.argv[3])]
last = [r for r in last if r["event"] == "epoch"][-1]
for name, v in want.items():
    got = last["test_" + name]
    if abs(got - v) > 2e-5 * max(1, abs(v)):
        sys.exit(f"test_{name} is {got}, and by hand {v}")
if any("accuracy" in key for key in last):
    sys.exit("the log has an accuracy")
END_PY
}

if part bits; then
    make table-cpu
    # Another number of one target is other data.
    cp -r f64 other; printf '\x01' | dd of=other/train_y.npy bs=1 seek=140 conv=notrunc status=none
    equal_bits table 6 r2 other
    grep -q "expected test_r2 >= 0.5: .*, met" one.out && ok || bad "the expectation: $(cat one.out)"
    grep -q "^test rmse [0-9.]*, r2 [0-9.]*, 6 epochs" one.out && ok || bad "the last line: $(tail -n 1 one.out)"
    ./table-cpu predict --weights one.safetensors --input table/test_x.npy > predicted.csv
    same "a row for each sample" 100 "$(wc -l < predicted.csv)"
    succeeds "metrics by hand" same_metrics predicted.csv table/test_y.npy one.log
    ./table-cpu predict --weights one.safetensors --input table/test_x.npy --output predicted.npy
    same "an array of predictions" $((128 + 400)) "$(stat -c %s predicted.npy)"
    ./table-cpu test --weights one.safetensors --log test.log > out
    same "test prints the metrics of the last epoch" "$(field one.log epoch test_rmse | awk '{ print $6 }')" "$(field test.log test test_rmse | tr -d ' ')"
    # Targets in other types have the same values, where an f32 has them.
    ./table-cpu train --data ./f64 --log f64.log > out 2>&1 || bad "targets in f64: $(cat out)"
    same "targets in f64" "$(hashes one.log)" "$(hashes f64.log)"
    ./table-cpu train --data ./i8 --log i8.log > out 2>&1 || bad "targets in i64: $(cat out)"
    # The same function without any optional pass, and with two numbers a sample.
    make plain --plain
    succeeds "plain" ./plain train --log plain.log
    same "plain: the loss" "$(field one.log epoch test_loss | awk '{ printf "%.4f", $6 }')" "$(field plain.log epoch test_loss | awk '{ printf "%.4f", $6 }')"
    sed 's/dense(1)/dense(2)/; s/f32\[1\]/f32[2]/; s/loss      = mse/loss      = huber(delta = 0.5)/; s/"table"/"pair"/' table.tn > pair.tn
    succeeds "two numbers: build" "$TENON" build pair.tn -o pair-cpu
    refuses "one number a sample" "train_y.npy holds one number for each sample, but the target 'price' of table is 2: save rows" ./pair-cpu train --data ./table
    succeeds "two numbers" ./pair-cpu train --data ./pair --threads 3 --log pair.log --save pair.safetensors
    ./pair-cpu predict --weights pair.safetensors --input pair/test_x.npy > predicted.csv
    succeeds "two numbers: metrics by hand" same_metrics predicted.csv pair/test_y.npy pair.log
    make double --dtype f64 --set "loss=mean(abs(output - price) ** 1.5, axes = [0])"
    succeeds "gradcheck of a formula" ./double gradcheck
    # A loss of named terms is their sum, and each one is reported.
    sed 's/test_r2 >= 0.5/train_loss_small <= 1/; s/loss      = mse/loss      = terms(fit = mse, far = 0.5 * huber(output, price), small = 0.001 * l2(output))/' table.tn > terms.tn
    sed 's/expect.*//; s/loss      = mse/loss      = mse(output, price) + 0.5 * huber(output, price) + 0.001 * l2(output)/' table.tn > sum.tn
    make_of() { "$TENON" build "$1.tn" -o "$1-cpu" > out 2>&1 || bad "tenon build $1.tn: $(cat out)"; }
    make_of terms; make_of sum
    succeeds "terms" ./terms-cpu train --threads 1 --log terms.log --log-steps 1
    grep -q "expected train_loss_small <= 1: [0-9.]*, met" out && ok || bad "a term in an expectation: $(tail -n 2 out)"
    succeeds "sum" ./sum-cpu train --threads 2 --log sum.log
    same "terms: weights of the sum" "$(hashes sum.log)" "$(hashes terms.log)"
    for log in "epoch test_" "epoch train_" "step train_"; do
        paste <(field terms.log ${log}loss | tr ' ' '\n') <(field terms.log ${log}loss_fit | tr ' ' '\n') <(field terms.log ${log}loss_far | tr ' ' '\n') <(field terms.log ${log}loss_small | tr ' ' '\n') |
            awk 'NF { d = $1 - $2 - $3 - $4; if (d < 0) d = -d; if (NF != 4 || !(d <= 1e-5 * $1)) exit 1; n++ } END { exit !n }' && ok || bad "terms: $log is not their sum"
    done
    ./terms-cpu train --epochs 3 --checkpoint ct --log stopped.log > out 2>&1
    ./terms-cpu train --epochs 6 --checkpoint ct --resume --log stopped.log > out 2>&1 || bad "terms: resume: $(cat out)"
    same "terms: resumed" "$(field terms.log epoch train_loss_far | awk '{ print $6 }')" "$(field stopped.log epoch train_loss_far | awk '{ print $NF }')"
    # Such a term can read the output through a second state only.
    cat > states.tn <<'END_TN'
block last(x) {
    h = zeros([4])
    c = zeros([4])
    scan t in x {
        h = tanh(h + c)
        c = c + t
    }
    return h
}
model m(row: f32[5, 4]) { return dense(row, 4) }
train m {
    data      = synthetic(samples = 64)
    target    = y: f32[5, 4]
    loss      = terms(fit = mse, end = mean(last(output), axes = [0]))
    optimizer = sgd(lr = 0.1)
}
END_TN
    succeeds "terms: a term through two states" "$TENON" check states.tn
    # As many metrics as a program can have: the loss, eight terms, mae, rmse and r2.
    part_of() { printf '%s = 0.%s * mse(output, price), ' "$1" "$2"; }
    eight=$(part_of a 1; part_of b 2; part_of c 3; part_of d 4; part_of e 5; part_of f 6; part_of g 7)
    sed "s/test_r2 >= 0.5/test_loss_h > 0/; s/loss      = mse/loss      = terms(${eight}h = huber)/" table.tn > eight.tn
    make_of eight
    for threads in 1 3; do
        succeeds "eight terms, $threads threads" ./eight-cpu train --epochs 2 --threads $threads --log eight$threads.log
    done
    same "eight terms: threads" "$(hashes eight1.log)" "$(hashes eight3.log)"
    for name in a b c d e f g h; do field eight1.log epoch test_loss_$name | tr ' ' '\n'; done | awk 'NF { s += $1; n++ } END { printf "%d %.5f\n", n, s }' > eight.sum
    same "eight terms: their sum" "16 $(field eight1.log epoch test_loss | awk '{ printf "%.5f", $1 + $2 }')" "$(cat eight.sum)"
    for kernels in own persistent; do
        succeeds "eight terms: CUDA, $kernels" "$TENON" emit eight.tn --target cuda --kernels $kernels -o eight-cuda
    done
    # Stopped in the middle of an epoch: each metric has its own sum, whatever the names of the terms are.
    for name in terms sum; do
        ./$name-cpu train --epochs 1 --checkpoint middle-$name --checkpoint-every 2 > out 2>&1 || bad "$name: checkpoints: $(cat out)"
        rm "$(ls middle-$name/* | tail -n 1)"
        cp -r middle-$name middle
        ./$name-cpu train --epochs 1 --checkpoint middle --resume --log middle.log > out 2>&1 || bad "$name: resumed in an epoch: $(cat out)"
        grep -q "resumed from .* epoch 1, step" out && ok || bad "$name: no step in an epoch to resume from: $(cat out)"
        same "$name: a metric of the epoch" "$(field $name.log epoch train_mae | awk '{ print $1 }')" "$(field middle.log epoch train_mae | awk '{ print $1 }')"
        rm -r middle middle.log
    done
    cp -r middle-terms middle
    ./sum-cpu train --epochs 1 --checkpoint middle --resume --log others.log > out 2>&1 || bad "the sum resumes its terms: $(cat out)"
    same "the sum resumes its terms: a metric of the epoch" "$(field sum.log epoch train_mae | awk '{ print $1 }')" "$(field others.log epoch train_mae | awk '{ print $1 }')"
    refuses "terms resume their sum" "middle of an epoch and has no sum of loss_fit, because its loss had other terms [(]it has loss mae rmse r2[)]: finish the epoch with" \
        ./terms-cpu train --epochs 1 --checkpoint middle-sum --resume
    if deep "gradients of each loss, and bf16"; then
        for loss in mse l1 huber; do
            make double --dtype f64 --set "loss=$loss"
            succeeds "gradcheck of $loss" ./double gradcheck
        done
        make half --dtype bf16
        succeeds "bf16" ./half train --log half.log
        awk -v r="$(field half.log epoch test_r2 | awk '{ print $6 }')" 'BEGIN { exit !(r > 0.5) }' && ok || bad "bf16: r2 is $(field half.log epoch test_r2)"
    fi
fi

if part arrays; then
    make table-cpu
    wrong() { wrong_arrays table "$@"; }
    wrong "no targets" "d/train_x.npy has no targets beside it: ./d/train_y.npy is missing" 'os.remove("d/train_y.npy")'
    wrong "no arrays" "holds no numbers for the target 'price' of table: test_x.npy and test_y.npy are missing" 'os.remove("d/test_x.npy")'
    wrong "fewer targets" "train_x.npy holds 400 samples, but ./d/train_y.npy 399 targets" 'save("d/train_y.npy", "<f4", (399,), [0] * 399)'
    wrong "two numbers a sample" "train_y.npy holds targets of shape 2, but the target 'price' of table is 1: save rows of this shape, or change" 'save("d/train_y.npy", "<f4", (400, 2), [0] * 800)'
    wrong "bytes" "train_y.npy holds u8: targets are f32, f64, i32 or i64; save it with" 'save("d/train_y.npy", "|u1", (400,), [0] * 400)'
    wrong "a NaN" "train_y.npy: number 0 of the target of sample 7 is nan, not a finite number" 'save("d/train_y.npy", "<f4", (400,), [0] * 7 + [float("nan")] + [0] * 392)'
    wrong "an infinity in the test split" "test_y.npy: number 0 of the target of sample 99 is inf" 'save("d/test_y.npy", "<f8", (100,), [0] * 99 + [float("inf")])'
    wrong "too large for f32" "train_y.npy: number 0 of the target of sample 1 is 1e\\+300, too large for f32: build with --dtype f64" 'save("d/train_y.npy", "<f8", (400,), [0, 1e300] + [0] * 398)'
    wrong "a NaN among the samples" "not finite.*row|the loss is not finite" 'save("d/train_x.npy", "<f4", (400, 3), [float("nan")] + [0] * 1199)'
    wrong "a second array in the file" "train_y.npy is longer than its array: it holds 1728 bytes of data where its shape needs 1600: save" \
        'open("d/train_y.npy", "ab").write(open("d/test_y.npy", "rb").read(128))'
    wrong "a huge size" "train_x.npy has a shape that cannot be used: \\(99999999999999999999, 3\\): an array has at most" 'save("d/train_x.npy", "<f4", "(99999999999999999999, 3)", [0] * 6)'
    wrong "a long shape" "train_x.npy has a shape that cannot be used: \\((2, ){19}2,\\.\\.\\.: an array" 'save("d/train_x.npy", "<f4", "(" + "2, " * 21 + "2)", [0] * 6)'
    wrong "more bytes than 2^63" "train_x.npy is truncated: it holds 24 bytes of data where its shape needs more than 2\\^63" 'save("d/train_x.npy", "<f4", "(4611686018427387904, 1)", [0] * 6)'
    refuses "a shape from --set" "the second input is \\(N, 2\\), the recipe's target price in --set" "$TENON" check table.tn --set "target=price: f32[2]"
    refuses "a reserved word from --set" "set:1:8: error: 'if' is a reserved word" "$TENON" check table.tn --set "target=if: f32[1]"
    refuses "classes instead of numbers" "holds no numbers for the target 'price' of table: train_x.npy and train_y.npy|test_x.npy" ./table-cpu train --data "$TENON_ROOT/models/data/mnist"
    rm -rf d; cp -r table d; arrays 'save("d/train_y.npy", "<f4", (400, 1), [1.5] * 400); save("d/test_y.npy", "<f4", (100, 1), [1.5] * 100)'
    succeeds "equal targets, as a column" ./table-cpu train --data ./d --epochs 1 --log equal.log
    same "equal targets: r2" "0 " "$(field equal.log epoch test_r2)"
    refuses "--stop-at" "stop-at is for programs that report an accuracy" ./table-cpu train --stop-at 0.9
    ./table-cpu info > out
    grep -qx "target: price 1" out && ! grep -q "^classes" out && ok || bad "info: $(cat out)"
    for to in keras mxnet; do
        refuses "--to $to" "table.tn:6:17: error: --to $to writes scripts that learn classes, and the target 'price' is numbers" "$TENON" emit table.tn --to $to -o "$work/scripts"
    done
    [ ! -e "$work/scripts" ] || [ -z "$(ls "$work/scripts")" ] && ok || bad "a refused script leaves files"
fi

if part images; then
    # The shipped models reach what their recipes expect.
    build diabetes diabetes
    succeeds "diabetes" ./diabetes train --data "$TENON_ROOT/models/data/diabetes" --strict
    grep -q "expected test_r2 >= 0.45: .*, met" out && ok || bad "diabetes: $(tail -n 2 out)"
    (cd "$TENON_ROOT/models/data/diabetes" && sha256sum -c --quiet SHA256SUMS) && ok || bad "models/data/diabetes has another table than SHA256SUMS says"
    if deep "an autoencoder of MNIST"; then
        build autoencoder autoencoder
        succeeds "autoencoder" ./autoencoder train --data "$TENON_ROOT/models/data/mnist" --strict
    fi
    # An autoencoder of images whose channels are innermost in memory, and an image as a declared target.
    cat > images.tn <<'END_TN'
model images(image: f32[3, 8, 8]) {
    return conv2d(image, 8, kernel = 3, pad = 1) |> relu |> conv2d(3, kernel = 3, pad = 1)
}
train images {
    data      = synthetic(samples = 96, test_samples = 40)
    target    = image
    loss      = mse
    normalize = per_channel(mean = [0.5], std = [0.25])
    augment   = [flip_horizontal]
    optimizer = adam(lr = 0.01)
    batch     = 16
    shards    = 2
    epochs    = 2
}
END_TN
    targets=(image)
    if deep "an image as a declared target"; then targets+=("clean: f32[3, 8, 8]"); fi
    for target in "${targets[@]}"; do
        succeeds "$target: build" "$TENON" build images.tn -o images-cpu --set "target=$target" --dtype f64
        succeeds "$target: build plain" "$TENON" build images.tn -o images-plain --set "target=$target" --dtype f64 --plain
        succeeds "$target: train" ./images-cpu train --log fast.log --threads 1
        succeeds "$target: threads" ./images-cpu train --log threads.log --threads 4
        succeeds "$target: plain" ./images-plain train --log plain.log
        same "$target: threads" "$(hashes fast.log)" "$(hashes threads.log)"
        for name in test_loss test_mae test_rmse train_loss; do
            same "$target: plain $name" "$(field fast.log epoch $name | awk '{ printf "%.9f", $2 }')" "$(field plain.log epoch $name | awk '{ printf "%.9f", $2 }')"
        done
        grep -q 'accuracy\|test_r2' fast.log && bad "$target: the log has accuracy or r2" || ok
    done
    # A sample that is its own target needs no train_y.npy.
    arrays 'os.makedirs("own", exist_ok=True); [save(f"own/{s}_x.npy", "<f4", (20, 3, 8, 8), [0.01 * (i % 97) for i in range(20 * 192)]) for s in ("train", "test")]'
    succeeds "samples alone: build" "$TENON" build images.tn -o images-cpu
    succeeds "samples alone" ./images-cpu train --data ./own --epochs 1 --save own.safetensors
    ./images-cpu predict --weights own.safetensors --input own/test_x.npy > predicted.csv
    same "numbers of an image" "20 192" "$(wc -l < predicted.csv) $(head -n 1 predicted.csv | tr , '\n' | wc -l)"
fi

if part practice; then
    # Sweeps, tables, the report and curves of runs without accuracy; r2 and rmse in the events for TensorBoard.
    succeeds "sweep" "$TENON" sweep table.tn --set optimizer.lr=0.01,0.03 --repeat 1 --retries 0 --epochs 2 --threads 1 --store runs.db
    grep -q "test loss [0-9.]*" out && ! grep -q "accuracy" out && ok || bad "what a sweep says of a run: $(cat out)"
    for command in list table best "export --csv" "show 1"; do
        succeeds "results $command" "$TENON" results $command --store runs.db
    done
    succeeds "results best" "$TENON" results best --store runs.db
    awk '$1 == "-" { loss[++n] = $2 } END { exit !(n == 2 && loss[1] <= loss[2]) }' out && ok || bad "the best run is not the one with the smallest loss: $(cat out)"
    succeeds "report" "$TENON" results report --store runs.db -o report.html
    grep -q ">test loss<\|test loss" report.html && ok || bad "the report has no curve of the test loss"
    make table-cpu
    ./table-cpu train --log run.log > out
    succeeds "watch" "$TENON" watch run.log --once --tensorboard events
    grep -q "test loss [0-9.]*, test mae" out && ! grep -q accuracy out && ok || bad "what watch draws: $(head -n 3 out)"
    cat events/run/test/* | grep -qa "r2" && cat events/run/test/* | grep -qa "rmse" && ok || bad "the events have no r2"
fi
finish
