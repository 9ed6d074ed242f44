#!/usr/bin/env bash
# pixels.sh -- a class for each pixel of an image: equal bits for any threads, ranks and after kills; loss and accuracy over the pixels that
# are not ignored, by hand; the losses of the same classes as positions of a sequence; predictions; faults of the arrays.
#
# Parts: arrays
# Deep parts: bits
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

# 200 and 60 images of 6 x 5 pixels: noise, a bright square of class 1 or a grey one of class 2; the frame of a square is 255 where it is
# ignored.  rows: the same pixels as sequences, and their classes with -1.
cat > "$work/arrays.py" <<'END_PY'
import os, random, sys
from npy import save
def make(d, rows, kind="|u1", frame=255):
    draw = random.Random(3)
    os.makedirs(d, exist_ok=True)
    os.makedirs(rows, exist_ok=True)
    for split, n in (("train", 200), ("test", 60)):
        x, y = [], []
        for _ in range(n):
            top, left, size, c = draw.randrange(4), draw.randrange(3), draw.randrange(2, 4), draw.randrange(1, 3)
            for i in range(6):
                for k in range(5):
                    inside = top <= i < top + size and left <= k < left + size
                    near = top - 1 <= i <= top + size and left - 1 <= k <= left + size
                    x.append(draw.randrange(50) + (150 if c == 1 else 70) * inside)
                    y.append(c if inside else frame if near and draw.random() < 0.4 else 0)
        save(f"{d}/{split}_x.npy", "|u1", (n, 1, 6, 5), x)
        save(f"{d}/{split}_y.npy", kind, (n, 6, 5), y)
        save(f"{rows}/{split}_x.npy", "|u1", (n, 30, 1), x)
        save(f"{rows}/{split}_y.npy", "<i4", (n, 30), [-1 if v == frame else v for v in y])
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
arrays 'make("pixels", "rows"); make("wide", "unused", "<i8")'

cat > "$work/pixels.tn" <<'END_TN'
model pixels(image: f32[1, 6, 5]) {
    return conv2d(image, 6, kernel = 3, pad = 1) |> relu |> conv2d(3, kernel = 1)
}
train pixels {
    data      = "./pixels"
    target    = mask: class[6, 5]
    loss      = softmax_cross_entropy(ignore = 255)
    optimizer = adam(lr = 0.08)
    batch     = 16
    shards    = 4
    epochs    = 4
    expect    = test_accuracy >= 0.8
}
END_TN
# One network on images and on sequences: each pixel alone.
cat > "$work/rows.tn" <<'END_TN'
model rows(x: f32[30, 1]) { return dense(x, 4) |> tanh |> dense(3) }
train rows {
    data      = "./rows"
    loss      = softmax_cross_entropy
    init      = constant(0.3)
    optimizer = adam(lr = 0.02)
    batch     = 16
    shards    = 4
    epochs    = 2
}
END_TN
sed 's/rows(x: f32\[30, 1\])/rows(x: f32[1, 6, 5])/; s/dense(x, 4)/conv2d(x, 4, kernel = 1)/; s/dense(3)/conv2d(3, kernel = 1)/; s#"./rows"#"./pixels"#
     s/    loss .*/    target = mask: class[6, 5]; loss = softmax_cross_entropy(ignore = 255)/' "$work/rows.tn" > "$work/images.tn"
cd "$work"

# by_hand PREDICTIONS.npy MASKS.npy LOG [WEIGHTS]: loss and accuracy of the last epoch over the pixels other than 255, from probabilities
# (N, 3, 6, 5); the loss with weights of the classes
by_hand() {
    python3 - "$@" <<'END_PY'
import array, json, math, sys
head = open(sys.argv[1], "rb").read(128)
if b"'shape': (60, 3, 6, 5), }" not in head:
    sys.exit(f"the header of the predictions: {head}")
p = array.array("f", open(sys.argv[1], "rb").read()[128:])
t = open(sys.argv[2], "rb").read()[128:]
w = [float(v) for v in (sys.argv[4] if len(sys.argv) > 4 else "1,1,1").split(",")]
loss = right = count = weight = 0
for i in range(60):
    for k in range(30):
        share = [p[(3 * i + c) * 30 + k] for c in range(3)]
        if abs(sum(share) - 1) > 1e-5:
            sys.exit(f"the probabilities of a pixel: {share}")
        if t[30 * i + k] != 255:
            count += 1
            weight += w[t[30 * i + k]]
            loss -= w[t[30 * i + k]] * math.log(share[t[30 * i + k]])
            right += share.index(max(share)) == t[30 * i + k]
last = [r for r in map(json.loads, open(sys.argv[3])) if r["event"] == "epoch"][-1]
if not 1000 < count < 1790:
    sys.exit(f"{count} pixels count")
if abs(last["test_loss"] - loss / weight) > 1e-5 or abs(last["test_accuracy"] - right / count) > 1e-6:
    sys.exit(f"loss {last['test_loss']} and accuracy {last['test_accuracy']}, by hand {loss / weight} and {right / count}")
END_PY
}

if part bits; then
    make pixels pixels-cpu
    cp -r pixels other; printf '\x02' | dd of=other/train_y.npy bs=1 seek=$((128 + 199 * 30)) conv=notrunc status=none
    equal_bits pixels 4 accuracy other
    grep -q "expected test_accuracy >= 0.8: .*, met" one.out && ok || bad "the expectation: $(cat one.out)"
    ./pixels-cpu predict --weights one.safetensors --input pixels/test_x.npy --output predicted.npy
    succeeds "loss and accuracy by hand" by_hand predicted.npy pixels/test_y.npy one.log
    succeeds "classes in i64" ./pixels-cpu train --data ./wide --log wide.log
    same "classes in i64" "$(hashes one.log)" "$(hashes wide.log)"
    # Weights of classes: a weighted mean, with a divisor of the whole batch.
    sed 's/model pixels/model weights/; s/train pixels/train weights/; s/ignore = 255/ignore = 255, class_weights = [0.25, 2, 3.5]/; /expect/d' pixels.tn > weights.tn
    make weights weights-cpu
    rm -rf c
    if deep "equal bits with weights of classes"; then equal_bits weights 4 loss other
    else succeeds "weights of classes" ./weights-cpu train --log one.log --save one.safetensors; fi
    ./weights-cpu predict --weights one.safetensors --input pixels/test_x.npy --output predicted.npy
    succeeds "a weighted loss by hand" by_hand predicted.npy pixels/test_y.npy one.log 0.25,2,3.5
    ./pixels-cpu train --log one.log > out
    # Of a sum, only the part of the pixels is divided by the number of pixels that count.
    sed 's/loss      = .*/loss = terms(fit = softmax_cross_entropy(output, mask, ignore = 255), one = exp(1e-9 * l2(output)))/' pixels.tn > sum.tn
    make sum sum-cpu
    succeeds "a loss of two terms" ./sum-cpu train --log sum.log
    same "a term that is near 1" "1.000 1.000" "$(printf '%.3f %.3f' $(field sum.log epoch train_loss_one | awk '{ print $4 }') $(field sum.log epoch test_loss_one | awk '{ print $4 }'))"
    same "the term of the pixels" "$(field one.log epoch test_loss | awk '{ printf "%.5f", $4 }')" "$(field sum.log epoch test_loss_fit | awk '{ printf "%.5f", $4 }')"
    # Pixels are positions: one network has the losses of the other.
    make rows rows-cpu --dtype f64
    make images images-cpu --dtype f64
    succeeds "positions" ./rows-cpu train --log rows.log --log-steps 1
    succeeds "pixels" ./images-cpu train --log images.log --log-steps 1
    same_values "positions and pixels" step rows.log images.log train_loss
    same "test accuracies of both" "$(field rows.log epoch test_accuracy)" "$(field images.log epoch test_accuracy)"
    same "steps" 26 "$(field images.log step train_loss | wc -w)"
    succeeds "gradcheck" ./images-cpu gradcheck --data ./pixels
    if deep "plain and bf16 pixels, two outputs with a class for each pixel"; then
        like_plain pixels train_loss test_loss test_accuracy
        like_plain weights test_loss
        succeeds "gradcheck of weights" ./double gradcheck --data ./pixels
        # One class a sample, of synthetic data: equal weights change nothing but the last bits.
        cat > vector.tn <<'END_TN'
model vector(x: f32[12]) { return dense(x, 8) |> tanh |> dense(4) }
train vector {
    data      = synthetic(samples = 160, test_samples = 50)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 16
    epochs    = 2
}
END_TN
        make vector vector-cpu --dtype f64
        succeeds "one class a sample" ./vector-cpu train --log vector.log
        sed -i 's/softmax_cross_entropy/softmax_cross_entropy(class_weights = [3, 3, 3, 3])/' vector.tn
        make vector vector-cpu --dtype f64
        succeeds "one class a sample, with weights" ./vector-cpu train --log equal.log
        same_values "equal weights" epoch vector.log equal.log train_loss test_loss test_accuracy
        equal_bf16_bits pixels
        sed 's/^    return .*/    h = conv2d(image, 6, kernel = 3, pad = 1) |> relu\n    return early = conv2d(h, 3, kernel = 1), late = conv2d(relu(conv2d(h, 6, kernel = 3, pad = 1)), 3, kernel = 1)/
             s/loss      = .*/loss = softmax_cross_entropy(late, mask, ignore = 255) + 0.3 * softmax_cross_entropy(early, mask, smoothing = 0.1)/' pixels.tn > two.tn
        make two two-cpu
        succeeds "two outputs" ./two-cpu train --save two.safetensors --log two.log
        ./two-cpu predict --weights two.safetensors --input pixels/test_x.npy --output out.npy
        succeeds "shares of each pixel" python3 - <<'END_PY'
import array, sys
for name in "early", "late":
    data = open(f"out_{name}.npy", "rb").read()
    p = array.array("f", data[128:])
    if b"(60, 3, 6, 5)" not in data[:128] or any(abs(sum(p[(3 * i + c) * 30 + k] for c in range(3)) - 1) > 1e-5 for i in range(60) for k in range(30)):
        sys.exit(name)
END_PY
    fi
fi

if part arrays; then
    make pixels pixels-cpu
    wrong() { wrong_arrays pixels "$@"; }
    wrong "a class too large" "d/train_y.npy: label 3 of sample 1 is out of range: the classes are 0 to 2" 'save("d/train_y.npy", "|u1", (200, 6, 5), [0] * 31 + [3] + [0] * 5968)'
    wrong "masks of another size" "d/test_y.npy holds classes of shape 5 x 6, but the target of pixels has a class for each of 6 x 5 pixels: save masks" 'save("d/test_y.npy", "|u1", (60, 5, 6), [0] * 1800)'
    wrong "one class a sample" "d/train_y.npy holds one class for each sample, but the target of pixels has a class for each of 6 x 5 pixels" 'save("d/train_y.npy", "|u1", (200,), [0] * 200)'
    wrong "numbers as classes" "d/train_y.npy should be integers, a class for each pixel" 'save("d/train_y.npy", "<f4", (200, 6, 5), [0] * 6000)'
    refuses "MNIST" "models/data/mnist holds no class for each pixel, which pixels learns: train_x.npy and train_y.npy are missing" \
        ./pixels-cpu train --data "$TENON_ROOT/models/data/mnist"
    # Pixels that are all ignored have no loss; a test split of them has no metrics.
    arrays 'make("none", "unused"); [save(f"none/{s}_y.npy", "|u1", (n, 6, 5), [255] * 30 * n) for s, n in (("train", 200), ("test", 60))]'
    succeeds "no pixel counts" ./pixels-cpu train --data ./none --epochs 1 --log none.log
    same "no pixel counts" "0 null " "$(field none.log epoch train_loss)$(field none.log epoch test_loss)"
    sed 's/softmax_cross_entropy/softmax_cross_entropy(class_weights = [1, 2, 3])/' rows.tn > ignored.tn
    refuses "weights of positions for PyTorch" "ignored.tn:4:17: error: --to pytorch writes no scripts with weights of classes of positions" "$TENON" emit ignored.tn --to pytorch
    for to in keras mxnet; do
        refuses "--to $to" "pixels.tn:6:17: error: --to $to writes no scripts with a class for each pixel" "$TENON" emit pixels.tn --to $to
    done
    "$TENON" emit pixels.tn --to pytorch > script.py
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' script.py && grep -qF 'y.masked_fill(y == 255, -1)' script.py && ok || bad "the script for PyTorch"
    sed 's#    loss .*#    target = label: class[30]; loss = softmax_cross_entropy(ignore = 2)#' rows.tn > ignored.tn
    refuses "a class that is ignored at positions" "ignored.tn:4:14: error: --to pytorch writes no scripts with a class that is ignored at positions" \
        "$TENON" emit ignored.tn --to pytorch
fi
finish
