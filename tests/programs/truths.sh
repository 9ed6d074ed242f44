#!/usr/bin/env bash
# truths.sh -- targets that are truths from 0 to 1: masks and several labels of a sample.  Equal bits for any threads, ranks and after
# kills; accuracy, iou and dice against a calculation by hand; predictions; faults of the arrays.
#
# Parts: arrays
# Deep parts: bits
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

# make DIR TYPE: 200 and 60 images of noise with a bright square; the mask is 1 on the square.  labels: whether a quadrant has a part of it.
cat > "$work/arrays.py" <<'END_PY'
import os, random, sys
from npy import save
def make(d, kind="|u1"):
    os.makedirs(d, exist_ok=True)
    draw = random.Random(7)
    for split, n in (("train", 200), ("test", 60)):
        x, y, labels = [], [], []
        for _ in range(n):
            top, left, size = draw.randrange(4), draw.randrange(4), draw.randrange(2, 4)
            inside = [int(top <= r < top + size and left <= c < left + size) for r in range(6) for c in range(6)]
            x += [draw.randrange(90) + 150 * v - 60 * v * (draw.random() < 0.2) for v in inside]
            y += inside
            labels += [int(any(inside[6 * r + c] for r in range(a, a + 3) for c in range(b, b + 3))) for a in (0, 3) for b in (0, 3)]
        save(f"{d}/{split}_x.npy", "|u1", (n, 1, 6, 6), x)
        save(f"{d}/{split}_y.npy", kind, (n, 1, 6, 6), y)
        save(f"{d}/{split}_mask.npy", kind, (n, 1, 6, 6), y)
        save(f"{d}/{split}_quadrants.npy", kind, (n, 4), labels)
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
arrays 'make("masks"); make("reals", "<f4")'

cat > "$work/masks.tn" <<'END_TN'
model masks(image: f32[1, 6, 6]) {
    return conv2d(image, 4, kernel = 3, pad = 1) |> relu |> conv2d(1, kernel = 1)
}
train masks {
    data      = "./masks"
    target    = mask: f32[1, 6, 6]
    loss      = sigmoid_cross_entropy(positive_weight = 1.5)
    optimizer = adam(lr = 0.03)
    batch     = 16
    shards    = 4
    epochs    = 4
    expect    = test_iou >= 0.5
}
END_TN
# A mask and labels of one sample; the input is a target of truths, too.
cat > "$work/both.tn" <<'END_TN'
model both(image: f32[1, 6, 6]) {
    h = conv2d(image, 4, kernel = 3, pad = 1) |> relu
    return pixels = conv2d(h, 1, kernel = 1), parts = flatten(h) |> dense(4), again = flatten(h) |> dense(36) |> reshape([1, 6, 6])
}
train both {
    data      = "./masks"
    target    = (mask: f32[1, 6, 6], quadrants: f32[4], image)
    loss      = terms(mask = sigmoid_cross_entropy(pixels, mask), parts = sigmoid_cross_entropy(parts, quadrants),
                      again = 0.1 * sigmoid_cross_entropy(again, image))
    optimizer = adam(lr = 0.02)
    batch     = 16
    shards    = 4
    epochs    = 3
}
END_TN
cd "$work"

# by_hand PREDICTIONS.npy MASKS.npy LOG: accuracy, iou and dice of the last epoch, from probabilities (N, 1, 6, 6)
by_hand() {
    python3 - "$@" <<'END_PY'
import array, json, sys
head = open(sys.argv[1], "rb").read(128)
if b"'shape': (60, 1, 6, 6), }" not in head:
    sys.exit(f"the header of the predictions: {head}")
p = array.array("f", open(sys.argv[1], "rb").read()[128:])
t = open(sys.argv[2], "rb").read()[128:]
if not all(0 <= v <= 1 for v in p) or len(p) != len(t):
    sys.exit("the predictions are no probabilities")
said = [v > 0.5 for v in p]
overlap, union = sum(a and b == 1 for a, b in zip(said, t)), sum(a or b == 1 for a, b in zip(said, t))
want = {"accuracy": sum(a == (b == 1) for a, b in zip(said, t)) / len(t), "iou": overlap / union, "dice": 2 * overlap / (overlap + union)}
last = [r for r in map(json.loads, open(sys.argv[3])) if r["event"] == "epoch"][-1]
for name, v in want.items():
    got = last["test_" + name]
    if abs(got - v) > (1e-6 if name == "accuracy" else 1e-11):      # a log has 12 digits
        sys.exit(f"test_{name} is {got}, and by hand {v}")
if not 0.5 < want["iou"] < want["dice"] < 1:
    sys.exit(f"these predictions test little: {want}")
if any("mae" in key or "rmse" in key for key in last):
    sys.exit("the log has errors of logits")
END_PY
}

if part bits; then
    make masks masks-cpu
    # Another pixel of one mask is other data.
    cp -r masks other; printf '\x01' | dd of=other/train_y.npy bs=1 seek=$((128 + 199 * 36 + 35)) conv=notrunc status=none
    equal_bits masks 4 iou other
    grep -q "expected test_iou >= 0.5: .*, met" one.out && ok || bad "the expectation: $(cat one.out)"
    grep -q "^test iou 0.[0-9]*, dice 0.[0-9]*, 4 epochs" one.out && ok || bad "the last line: $(tail -n 1 one.out)"
    ./masks-cpu predict --weights one.safetensors --input masks/test_x.npy --output predicted.npy
    succeeds "metrics by hand" by_hand predicted.npy masks/test_y.npy one.log
    ./masks-cpu predict --weights one.safetensors --input masks/test_x.npy --output predicted.csv
    same "a row of 36 numbers for each image" "60 36" "$(awk -F, 'END { print NR, NF }' predicted.csv)"
    ./masks-cpu test --weights one.safetensors --log test.log > out
    for name in loss accuracy iou dice; do
        same "test prints the last epoch's $name" "$(field one.log epoch test_$name | awk '{ print $4 }')" "$(field test.log test test_$name | tr -d ' ')"
    done
    succeeds "--stop-at watches iou" ./masks-cpu train --stop-at 0.5
    refuses "--stop-at" "the test iou stayed below 0.999" ./masks-cpu train --stop-at 0.999 --epochs 1
    # Masks in other types have the same values.
    succeeds "masks of f32" ./masks-cpu train --data ./reals --log reals.log
    same "masks of f32" "$(hashes one.log)" "$(hashes reals.log)"
    cp -r masks bools; for f in bools/*_y.npy; do LC_ALL=C sed -i "1s/'|u1'/'|b1'/" $f; done
    succeeds "masks of bool" ./masks-cpu train --data ./bools --log bools.log
    same "masks of bool" "$(hashes one.log)" "$(hashes bools.log)"
    # The same function without any optional pass; its gradient is that of differences.
    like_plain masks train_loss test_loss test_accuracy test_iou test_dice
    succeeds "gradcheck" ./double gradcheck --data ./masks
    if deep "masks and labels of one sample, bf16, a soft target"; then
        make both both-cpu
        cp -r masks more; printf '\1\0\0\1' | dd of=more/train_quadrants.npy bs=1 seek=128 conv=notrunc status=none
        rm -rf c
        equal_bits both 3 iou_mask more
        same "metrics" "loss loss_mask loss_parts loss_again accuracy_mask iou_mask dice_mask accuracy_quadrants" \
            "$(sed -n '/"event":"epoch"/{s/"train_/\n"train_/g; p; q}' one.log | sed -n 's/^"train_\([a-z0-9_]*\)".*/\1/p' | tr '\n' ' ' | sed 's/ $//')"
        grep -q "^test loss 0.[0-9]*, accuracy_mask 0.[0-9]*, iou_mask 0.[0-9]*, accuracy_quadrants 0.[0-9]*, 3 epochs" one.out && ok || bad "the last line: $(tail -n 1 one.out)"
        ./both-cpu predict --weights one.safetensors --input masks/test_x.npy --output out.npy
        for shape in "pixels:60, 1, 6, 6" "parts:60, 4" "again:60, 1, 6, 6"; do
            grep -aqF "'shape': (${shape#*:}), }" "out_${shape%%:*}.npy" && ok || bad "the shape of ${shape%%:*}: $(head -c 120 "out_${shape%%:*}.npy")"
        done
        equal_bf16_bits both
        # A target that is a value of the network has a gradient.
        sed 's/loss      = .*/loss      = 0.5 * sigmoid_cross_entropy(mask, sigmoid(output), positive_weight = 3)/; /expect/d' masks.tn > soft.tn
        make soft soft --dtype f64
        succeeds "gradcheck of a soft target" ./soft gradcheck --data ./reals
    fi
fi

if part arrays; then
    make masks masks-cpu
    wrong() { wrong_arrays masks "$@"; }
    wrong "pixels of 255" "d/train_y.npy: number 2 of the target of sample 1 is 255, and sigmoid_cross_entropy compares with numbers from 0 to 1: save a mask as 0 and 1" \
        'save("d/train_y.npy", "|u1", (200, 1, 6, 6), [0] * 38 + [255] + [0] * (200 * 36 - 39))'
    wrong "a negative number" "d/test_y.npy: number 0 of the target of sample 2 is -0.5, and" 'save("d/test_y.npy", "<f4", (60, 1, 6, 6), [0] * 72 + [-0.5] + [0] * (60 * 36 - 73))'
    wrong "a NaN" "d/train_y.npy: number 0 of the target of sample 0 is nan, not a finite number" 'save("d/train_y.npy", "<f4", (200, 1, 6, 6), [float("nan")] + [0] * 7199)'
    wrong "masks of another size" "d/train_y.npy holds targets of shape 4 x 9, but the target 'mask' of masks is 1 x 6 x 6" 'save("d/train_y.npy", "|u1", (200, 4, 9), [0] * 7200)'
    # Without truths, a network learns to predict none.  Then masks and predictions agree.
    arrays 'make("none"); [save(f"none/{s}_y.npy", "|u1", (n, 1, 6, 6), [0] * 36 * n) for s, n in (("train", 200), ("test", 60))]'
    succeeds "masks without truths" ./masks-cpu train --data ./none --log none.log
    same "no truths, no predictions" "1 1" "$(field none.log epoch test_iou | awk '{ print $4 }') $(field none.log epoch test_dice | awk '{ print $4 }')"
    if deep "the data of unet, and unet trained"; then
        "$TENON_ROOT/models/data/masks/make.py" digits
        (cd digits && sha256sum -c --quiet "$TENON_ROOT/models/data/masks/SHA256SUMS") && ok || bad "make.py makes other arrays than SHA256SUMS says"
        build unet unet
        succeeds "unet" ./unet --data ./digits --strict --log unet.log
    fi
fi
finish
