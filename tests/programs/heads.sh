#!/usr/bin/env bash
# heads.sh -- models with several outputs, recipes with several targets: equal bits for any threads, ranks and after kills; the
# losses of the same network with one target; predictions of each output; faults of the arrays.
#
# Parts: bits arrays
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

# heads: a class in i64, numbers in f64, a yes or no; joined: the numbers of two targets in one array
cat > "$work/arrays.py" <<'END_PY'
import os, random, sys
from npy import save
def make(d, joined):
    random.seed(1)
    os.makedirs(d, exist_ok=True), os.makedirs(joined, exist_ok=True)
    for split, n in ("train", 200), ("test", 60):
        x = [[random.randrange(256) for _ in range(36)] for _ in range(n)]
        sizes = [[sum(a[:18]) / 4590, sum(a[18:]) / 4590 - 0.5] for a in x]
        height = [[max(a) / 255 - sum(a) / 9180] for a in x]
        digit = [max(range(4), key=lambda k: sum(a[9 * k:9 * k + 9])) for a in x]
        maybe = [int(sum(a[::2]) > sum(a[1::2])) for a in x]
        def flat(rows): return [v for row in rows for v in row]
        for place in d, joined:
            save(f"{place}/{split}_x.npy", "|u1", (n, 1, 6, 6), flat(x))
        save(f"{d}/{split}_digit.npy", "<i8", (n,), digit)
        save(f"{d}/{split}_sizes.npy", "<f8", (n, 2), flat(sizes))
        save(f"{d}/{split}_height.npy", "<f8", (n,), flat(height))
        save(f"{d}/{split}_maybe.npy", "|u1", (n, 1), maybe)
        save(f"{joined}/{split}_y.npy", "<f8", (n, 3), flat([a + b for a, b in zip(sizes, height)]))
    save("some.npy", "|u1", (60, 1, 6, 6), flat(x))
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
arrays 'make("heads", "joined")'

cat > "$work/heads.tn" <<'END_TN'
model heads(image: f32[1, 6, 6]) {
    h = conv2d(image, 4, kernel = 3) |> relu |> flatten |> dense(16) |> tanh
    return logits = dense(h, 4), size = dense(h, 2), yes = dense(h, 1), again = dense(h, 36) |> reshape([1, 6, 6])
}
train heads {
    data      = "./heads"
    target    = (digit: class, sizes: f32[2], maybe: class, image)
    loss      = terms(digit = softmax_cross_entropy(logits, digit), sizes = mse(size, sizes),
                      maybe = sigmoid_cross_entropy(yes, maybe), image = 0.1 * mse(again, image))
    optimizer = adam(lr = 0.01)
    batch     = 16
    shards    = 4
    epochs    = 4
}
END_TN
# Two targets of numbers and one that holds both.
cat > "$work/apart.tn" <<'END_TN'
model apart(x: f32[1, 6, 6]) {
    h = flatten(x) |> dense(8) |> tanh |> dense(3)
    return size = slice(h, 0, 0, 2), tall = slice(h, 0, 2, 1)
}
train apart {
    data      = "./heads"
    target    = (sizes: f32[2], height: f32[1])
    loss      = 2 * mse(size, sizes) + mse(tall, height)
    optimizer = adam(lr = 0.01)
    batch     = 16
    shards    = 4
    epochs    = 4
}
END_TN
sed 's/ apart/ joined/; s/^    return .*/    return h/; s#"./heads"#"./joined"#; s/= (sizes.*/= all: f32[3]/
     s/= 2 .*/= 2 * mse(slice(output, 0, 0, 2), slice(all, 0, 0, 2)) + mse(slice(output, 0, 2, 1), slice(all, 0, 2, 1))/' "$work/apart.tn" > "$work/joined.tn"
cd "$work"

if part bits; then
    make heads heads-cpu
    # Another number of the last sample of one of the targets is other data.
    cp -r heads other; printf '\x3f' | dd of=other/train_sizes.npy bs=1 seek=$((128 + 200 * 16 - 2)) conv=notrunc status=none
    equal_bits heads 4 r2_sizes other
    ./heads-cpu info > out
    grep -qx "outputs: logits 4, size 2, yes 1, again 1 6 6" out && ok || bad "info: $(grep outputs out)"
    grep -qx "targets: digit 4 classes, sizes 2, maybe 2 classes, image the input" out && ok || bad "info: $(grep targets out)"
    same "metrics" "loss loss_digit loss_sizes loss_maybe loss_image accuracy_digit mae_sizes rmse_sizes r2_sizes accuracy_maybe mae_image rmse_image" \
        "$(sed -n '/"event":"epoch"/{s/"train_/\n"train_/g; p; q}' one.log | sed -n 's/^"train_\([a-z0-9_]*\)".*/\1/p' | tr '\n' ' ' | sed 's/ $//')"
    ./heads-cpu test --weights one.safetensors --log test.log > out
    for metric in accuracy_digit r2_sizes accuracy_maybe rmse_image; do
        same "test prints the last epoch's $metric" "$(field one.log epoch test_$metric | awk '{ print $4 }')" "$(field test.log test test_$metric | tr -d ' ')"
    done
    # The sum of the terms is the loss, and rmse and r2 follow from the same errors: r2 = 1 - rmse^2 / variance.
    paste -d ' ' <(field one.log epoch test_loss_digit | tr ' ' '\n') <(field one.log epoch test_loss_sizes | tr ' ' '\n') <(field one.log epoch test_loss_maybe | tr ' ' '\n') \
        <(field one.log epoch test_loss_image | tr ' ' '\n') <(field one.log epoch test_loss | tr ' ' '\n') |
        awk 'NF == 5 { n++; d = $1 + $2 + $3 + $4 - $5; if (d > 1e-5 || d < -1e-5) exit 1 } END { exit n != 4 }' && ok || bad "the terms are not the loss"
    awk -v a="$(field one.log epoch train_accuracy_digit)" -v r="$(field one.log epoch train_r2_sizes)" 'BEGIN { split(a, x); split(r, y); exit !(x[4] > 0.5 && y[4] > y[1] + 1) }' && ok ||
        bad "the network learns nothing: $(field one.log epoch train_accuracy_digit), $(field one.log epoch train_r2_sizes)"

    # Two targets of numbers have the losses of one target that holds them all.
    make apart apart-cpu --dtype f64
    make joined joined-cpu --dtype f64
    succeeds "two targets" ./apart-cpu train --log apart.log --log-steps 1
    succeeds "one target" ./joined-cpu train --log joined.log --log-steps 1
    same_values "two targets and one" step apart.log joined.log train_loss
    same "steps" $((4 * 13)) "$(field apart.log step train_loss | wc -w)"
    like_plain heads train_loss test_loss train_accuracy_digit test_mae_sizes
    succeeds "gradcheck" ./double gradcheck --data ./heads

    if deep "synthetic samples of one target of two outputs"; then
        # Synthetic numbers of one target of two outputs: such a sample has one class.
        cat > both.tn <<'END_TN'
model both(x: f32[36]) { return a = dense(x, 36), b = dense(x, 36) }
train both {
    data      = synthetic(samples = 64)
    target    = y: f32[36]
    loss      = mse(a, y) + mse(b, y)
    optimizer = adam
    epochs    = 1
}
END_TN
        make both both-cpu
        succeeds "synthetic samples of one target of numbers" ./both-cpu
    fi

    # predict: columns with a header, or a .npy file for each output.
    ./heads-cpu predict --weights one.safetensors --input some.npy > some.csv
    same "header" "logits_0,logits_1,logits_2,logits_3,size_0,size_1,yes,again_0" "$(head -n 1 some.csv | cut -d , -f 1-8)"
    same "a row for each sample" 61 "$(wc -l < some.csv)"
    awk -F, 'NR > 1 { d = $1 + $2 + $3 + $4 - 1; if (NF != 43 || d > 1e-6 || d < -1e-6 || $7 < 0 || $7 > 1) exit 1 }' some.csv && ok || bad "probabilities: $(sed -n 2p some.csv)"
    ./heads-cpu predict --weights one.safetensors --input some.npy --output rows.csv
    same "the same in a file" "$(cat some.csv)" "$(cat rows.csv)"
    ./heads-cpu predict --weights one.safetensors --input some.npy --output rows.npy
    python3 - > from_npy.csv <<'END_PY'
import array
def rows(name, n):
    a = array.array("f", open(f"rows_{name}.npy", "rb").read()[128:])
    return [a[i:i + n] for i in range(0, len(a), n)]
for row in zip(rows("logits", 4), rows("size", 2), rows("yes", 1), rows("again", 36)):
    print(",".join("%.9g" % v for part in row for v in part))
END_PY
    sed 1d some.csv | paste -d, - from_npy.csv | awk -F, '{ for (i = 1; i <= 43; i++) { d = $i - $(i + 43); if (NF != 86 || d > 1e-6 || d < -1e-6) exit 1 } } END { exit NR != 60 }' && ok || bad "other numbers in .npy files"
    cp some.npy in_size.npy
    refuses "an output over the input" "is the file that is read" ./heads-cpu predict --weights one.safetensors --input in_size.npy --output in.npy
    if deep "one label, one output, bf16"; then
        # One label for two outputs keeps its name, and one output for two targets is called `output`.
        cat > two.tn <<'END_TN'
model two(x: f32[36]) {
    h = dense(x, 8) |> tanh
    early = dense(h, 3)
    return early, late = dense(h, 8) |> tanh |> dense(3)
}
train two {
    data      = synthetic(samples = 640)
    loss      = softmax_cross_entropy(late, label) + 0.3 * softmax_cross_entropy(early, label)
    optimizer = adam(lr = 0.02)
    batch     = 32
    expect    = test_accuracy >= 0.9
}
END_TN
        make two two-cpu
        succeeds "two outputs, one label" ./two-cpu train --epochs 4 --strict --stop-at 0.95
        cat > one.tn <<'END_TN'
model one(x: f32[36]) { return dense(x, 8) |> tanh |> dense(5) }
train one {
    data      = synthetic(samples = 640)
    target    = (digit: class, price: f32[1])
    loss      = softmax_cross_entropy(slice(output, 0, 0, 4), digit) + mse(slice(output, 0, 4, 1), price)
    optimizer = adam(lr = 0.02)
    batch     = 32
    epochs    = 2
}
END_TN
        make one one-cpu
        succeeds "one output, two targets" ./one-cpu train --save o.safetensors
        equal_bf16_bits heads
    fi
fi

if part arrays; then
    make heads heads-cpu
    wrong() { wrong_arrays heads "$@"; }
    wrong "a missing target" "d does not hold all train arrays of the targets of heads: missing train_digit.npy, train_maybe.npy" 'os.remove("d/train_digit.npy"); os.remove("d/train_maybe.npy")'
    wrong "a missing target of the test" "d does not hold all test arrays of the targets of heads: missing test_sizes.npy" 'os.remove("d/test_sizes.npy")'
    wrong "no samples" "d holds no arrays for the 4 targets of heads: train_x.npy is missing" 'os.remove("d/train_x.npy")'
    wrong "fewer targets" "d/train_x.npy holds 200 samples, but ./d/train_maybe.npy 199 targets" 'save("d/train_maybe.npy", "|u1", (199,), [0] * 199)'
    wrong "another shape" "d/train_sizes.npy holds targets of shape 3, but the target 'sizes' of heads is 2" 'save("d/train_sizes.npy", "<f4", (200, 3), [0] * 600)'
    wrong "numbers as classes" "d/train_digit.npy should be a list of integer classes, 1 for each sample" 'save("d/train_digit.npy", "<f4", (200,), [0] * 200)'
    wrong "bytes as numbers" "d/train_sizes.npy holds u8: targets are f32, f64, i32 or i64" 'save("d/train_sizes.npy", "|u1", (200, 2), [0] * 400)'
    wrong "a class too large" "d/train_maybe.npy: label 2 of sample 3 is out of range: the classes are 0 to 1" 'save("d/train_maybe.npy", "|u1", (200,), [0] * 3 + [2] + [0] * 196)'
    wrong "a NaN" "d/train_sizes.npy: number 1 of the target of sample 0 is nan, not a finite number" 'save("d/train_sizes.npy", "<f4", (200, 2), [0, float("nan")] + [0] * 398)'
    refuses "data of one target" "does not hold all train arrays of the targets of heads: missing train_digit.npy, train_sizes.npy, train_maybe.npy" ./heads-cpu train --data ./joined
    succeeds "fewer samples" ./heads-cpu train --epochs 1 --limit-samples 40 --log few.log
    same "40 samples" "40 " "$(field few.log epoch samples)"
    succeeds "bench" ./heads-cpu bench --steps 2
    for to in keras mxnet; do
        refuses "--to $to" "heads.tn:3:34: error: --to $to writes scripts of one output, and 'heads' has 4" "$TENON" emit heads.tn --to $to -o "$work/scripts"
    done
    refuses "--to pytorch with an input as a target" "heads.tn:7:61: error: --to pytorch writes no scripts of several inputs or targets with an input as a target" "$TENON" emit heads.tn --to pytorch -o "$work/scripts"
    [ ! -e "$work/scripts" ] || [ -z "$(ls "$work/scripts")" ] && ok || bad "a refused script leaves files"
    "$TENON" emit apart.tn --to pytorch > script.py
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' script.py && grep -qF 'for name in ("sizes", "height")' script.py && ok || bad "the script for PyTorch"
    # The shipped network and its data.
    "$TENON_ROOT/models/data/heads/make.py" mnist
    (cd mnist && sha256sum -c --quiet "$TENON_ROOT/models/data/heads/SHA256SUMS") && ok || bad "make.py makes other arrays than SHA256SUMS says"
    refuses "make.py: a directory that cannot be made" "^make.py: .*arrays.py/x'; it reads .*/mnist, and .make.py DIR. writes to another" "$TENON_ROOT/models/data/heads/make.py" arrays.py/x
    if deep "two heads"; then
        build two_heads two_heads
        succeeds "two_heads" ./two_heads train --data ./mnist --strict --log heads.log
        awk -v r="$(field heads.log epoch test_r2_brightness | awk '{ print $NF }')" 'BEGIN { exit !(r >= 0.95) }' && ok || bad "two_heads: R2 $(field heads.log epoch test_r2_brightness)"
    fi
fi
finish
