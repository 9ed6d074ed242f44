#!/usr/bin/env bash
# metrics.sh -- metrics that the recipe writes as expressions: their values from the numbers that predict prints; the same bits for any
# number of threads, ranks and groups, and after a resume; the weights do not depend on them; keep, stop, plateau and expect take them.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$work"

cat > arrays.py <<'END'
import os, random
from npy import save
random.seed(3)
os.makedirs("d", exist_ok=True)
for split, n in ("train", 64), ("test", 39), ("validation", 21):
    x = [random.uniform(-2, 2) for _ in range(4 * n)]
    y = [v for i in range(n) for v in (x[4 * i] - x[4 * i + 1] + 0.3, x[4 * i + 2] * x[4 * i + 3])]
    w = [random.uniform(0, 1) for _ in range(n)]
    save(f"d/{split}_x.npy", "<f4", (n, 4), x)
    save(f"d/{split}_w.npy", "<f4", (n, 1), w)
    save(f"d/{split}_y.npy", "<f4", (n, 2), y)
    if split == "test":
        open("rows.csv", "w").write("".join(",".join("%.9g" % v for v in x[4 * i:4 * i + 4] + w[i:i + 1]) + "\n" for i in range(n)))
        open("truth.csv", "w").write("".join("%.9g,%.9g,%.9g\n" % (*y[2 * i:2 * i + 2], w[i]) for i in range(n)))
END
PYTHONPATH=$TENON_ROOT/tests python3 -B arrays.py

cat > own.tn <<'END'
block tail(a, b, limit: float) { return mean(abs(a - b) < limit, axes = [0]) }
model own(x: f32[4], w: f32[1]) { return dense(x, 8) + dense(w, 8) |> tanh |> dense(2) }
train own {
    data      = "d"
    target    = y: f32[2]
    loss      = mse(output, y)
    metrics   = [larger(near = tail(output, y, 0.5)),
                 smaller(weighted = mean(w * square(output - y), axes = [0]), first = mean(abs(slice(output - y, 0, start = 0, size = 1)), axes = [0])),
                 report(bias = mean(output - y, axes = [0]))]
    optimizer = adam(lr = 0.01)
    batch     = 16
    shards    = 4
    epochs    = 6
    seed      = 5
}
END
build() { "$TENON" build "$1" -o "$2" "${@:3}" > out 2>&1 || { bad "tenon build $*"; cat out; finish; exit 1; }; }
build own.tn own
./own --save w.safetensors --log own.log > screen || bad "training"

# ---- values

./own test --weights w.safetensors --log test.log --report rep > tested
./own predict --weights w.safetensors --input rows.csv > p.csv
paste -d , p.csv truth.csv > all.csv
expected() { awk -F, "function abs(v) { return v < 0 ? -v : v } { a = \$1 - \$3; b = \$2 - \$4; w = \$5; sum += $1 } END { printf \"%.4f\", sum / NR }" all.csv; }
value() { field test.log test "test_$1" | awk '{ printf "%.4f", $1 }'; }
same "near" "$(expected '((abs(a) < 0.5) + (abs(b) < 0.5)) / 2')" "$(value near)"
same "weighted, with an input" "$(expected 'w * (a * a + b * b) / 2')" "$(value weighted)"
same "first" "$(expected 'abs(a)')" "$(value first)"
same "bias" "$(expected '(a + b) / 2')" "$(value bias)"
grep -q "test near $(value near), test weighted $(value weighted), test first" tested && ok || bad "test does not print the metrics"
for name in near weighted first bias; do
    same "the last epoch and test: $name" "$(field test.log test test_$name)" "$(field own.log epoch test_$name | awk '{ print $6 " " }')"
    grep -q "^test_$name," rep/metrics.csv && grep -q "\"test_$name\": " rep/metrics.json && ok || bad "the report has no test_$name"
    [ -n "$(field own.log epoch validation_$name)" ] && ok || bad "no validation_$name"
    [ -z "$(field own.log epoch train_$name)" ] && ok || bad "there is a train_$name"
done
grep -q "epoch  1/6 .*r2 [-0-9.]*, validation loss .*, validation near [0-9.]*, .*, test near [0-9.]*" screen && ok || bad "the line of an epoch"

# ---- the training step does not compute them

build own.tn none --set "metrics=[]"
./none --save none.safetensors > out
cmp -s w.safetensors none.safetensors && ok || bad "other weights with metrics"
step() { "$TENON" emit own.tn -o emitted "$@" > out; cat emitted/*.c | sed -n '/train_[a-z0-9_]*(/,/^}/p' | grep -v "^/\*\|emitted"; }
same "the functions of a training step" "$(step | cksum)" "$(step --set "metrics=[]" | cksum)"

# ---- bits

splits() { grep -o '"\(test\|validation\)_\(near\|weighted\|first\|bias\)":[-0-9.e]*' "$1" | grep -v best; }
for threads in 1 3; do
    ./own --threads $threads --log threads.log > out 2>&1
    same "$threads threads" "$(splits own.log)" "$(splits threads.log)"
done
./own --groups 4 --log groups.log > out
same "four groups" "$(splits own.log)" "$(splits groups.log)"
rm -rf c; ./own --epochs 3 --checkpoint c > out
./own --checkpoint c --resume --log rest.log --save rest.safetensors > out 2>&1
same "resumed" "$(splits own.log | tail -n 24)" "$(splits rest.log)"
rm -rf c; ./none --epochs 3 --checkpoint c > out
succeeds "a program with metrics resumes a run without" ./own --checkpoint c --resume --save rest.safetensors
cmp -s w.safetensors rest.safetensors && ok || bad "resumed with metrics: other weights"
if ! deep "ranks"; then
    :
elif command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
    build own.tn ranks --comm mpi
    succeeds "two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none ./ranks --threads 1 --log ranks.log
    same "two ranks: the metrics" "$(splits own.log)" "$(splits ranks.log)"
else
    skip "two ranks: no mpicc and mpirun"
fi

# ---- keys that take a metric

build own.tn kept --set "keep=best(validation_near)" --set "stop=patience(2, validation_weighted)" --set "schedule=plateau(test_first, patience=0)" --set "expect=test_bias<=5"
./kept --epochs 6 --log kept.log > out || bad "training with keys that watch metrics"
best=$(field kept.log epoch validation_near | tr ' ' '\n' | grep . | sort -g | tail -n 1)
same "keep = best: the largest" "$best " "$(field kept.log best validation_near)"
./kept > out
grep -q "^expected test_bias <= 5: .*, met" out && ok || bad "expect"
build own.tn least --set "keep=best(validation_weighted)"
./least --log least.log > out
best=$(field least.log epoch validation_weighted | tr ' ' '\n' | grep . | sort -g | head -n 1)
same "keep = best: the smallest" "$best " "$(field least.log best validation_weighted)"
# The best value of another metric with the same name is none, in a resumed run; that of the same metric beside another one is.
sed 's/larger(near = /larger(far = tail(output, y, 2.0)), smaller(near = /' own.tn > other.tn
build other.tn other --set "keep=best(validation_near)"
build own.tn near --set "keep=best(validation_near)"
sed 's/larger(near = /larger(far = tail(output, y, 2.0), near = /' own.tn > beside.tn
build beside.tn beside --set "keep=best(validation_near)"
rm -rf c; ./near --epochs 2 --checkpoint c > out; cp -r c d
./other --checkpoint c --resume > out 2>&1
grep -q "has no best validation_near: 'keep' counts from epoch 3 on" out && ok || bad "a resume takes the best value of another metric: $(cat out)"
succeeds "beside another metric" ./beside --checkpoint d --resume
! grep -q "has no best" out && ok || bad "a resume forgets the best value: $(cat out)"
build other.tn other --set "schedule=plateau(test_near)"
build own.tn near --set "schedule=plateau(test_near)"
rm -rf c; ./near --epochs 2 --checkpoint c > out
refuses "plateau of another metric" "was made by another program" ./other --checkpoint c --resume
refuses "scripts" "own.tn:7:.*--to pytorch writes no scripts with metrics of the recipe" "$TENON" emit own.tn --to pytorch -o script
refuses "the way out" "help: leave out metrics, and keep, stop, plateau and expect where they name one" "$TENON" emit own.tn --to pytorch -o script
refuses "plateau of a metric without an order" "'schedule' does not know whether larger values of 'bias' are better" "$TENON" check own.tn --set "schedule=plateau(test_bias)"

grep -q "^metrics of the recipe, in evaluations only: near (larger is better), weighted (smaller is better), first .*, bias$" <<< "$("$TENON" show own.tn)" && ok || bad "show"
grep -q "^metrics of the recipe: near, weighted, first, bias$" <<< "$(./own info)" && ok || bad "info"
"$TENON" watch own.log --once > out
grep -q "test near $(field own.log epoch test_near | awk '{ printf "%.4g", $6 }')," out && ok || bad "watch"

# ---- several outputs and targets; classes; truths

cat > heads.tn <<'END'
model heads(img: f32[1, 6, 6]) {
    h = flatten(img) |> dense(8) |> relu
    return a = dense(h, 3), b = dense(h, 2)
}
train heads {
    data      = synthetic(samples = 64, test_samples = 20)
    target    = (kind: class, size: f32[2])
    loss      = terms(kind = softmax_cross_entropy(a, kind), size = mse(b, size))
    metrics   = [smaller(again = softmax_cross_entropy(a, kind)), report(large = mean(b > size, axes = [0]), hit = accuracy(a, kind))]
    optimizer = adam
    batch     = 16
    epochs    = 2
    expect    = test_again < 100
}
END
build heads.tn heads
./heads --log heads.log > out
same "a metric that is a term of the loss" "$(field heads.log epoch test_loss_kind)" "$(field heads.log epoch test_again)"
same "the accuracy of a class, as an expression" "$(field heads.log epoch test_accuracy_kind)" "$(field heads.log epoch test_hit)"
grep -q "test loss [0-9.]*, accuracy_kind [0-9.]*, r2_size [-0-9.]*, again [0-9.]*, large [0-9.]*, hit [0-9.]*$" out && ok || bad "the line of an epoch, several targets"
grep -q "^expected test_again < 100: .*, met" out && ok || bad "expect, several targets"

if deep "a GPU over the stand-in"; then
    . "$TENON_ROOT/tests/cuda/shim.sh"
    shim_runtime
    shim_gpu gpu "$work/own.tn" || { bad "no program over the stand-in"; finish; exit 1; }
    succeeds "a GPU" ./gpu/gpu test --weights w.safetensors --log gpu.log
    for name in near weighted first bias; do
        same "a GPU: $name" "$(value $name)" "$(field gpu.log test test_$name | awk '{ printf "%.4f", $1 }')"
    done
    shim_gpu chip "$work/own.tn" --kernels=persistent || { bad "no persistent program over the stand-in"; finish; exit 1; }
    succeeds "a GPU, one launch for a step" ./chip/gpu --log chip.log
    succeeds "a GPU, a training" ./gpu/gpu --log gpu.log
    near_of() { splits "$1" | grep near | head -n 4; }
    same "a GPU, one launch for a step: the metrics" "$(near_of own.log)" "$(near_of chip.log)"
    same "a GPU, a training: the metrics" "$(near_of own.log)" "$(near_of gpu.log)"
fi
finish
