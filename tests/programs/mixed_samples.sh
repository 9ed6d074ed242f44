#!/usr/bin/env bash
# mixed_samples.sh -- mixup and cutmix: each step's loss is that of a definition in Python, with its own random numbers, mixtures and losses;
# equal bits for any threads, ranks and after kills; what cannot be mixed is an error.
#
# Parts: definition bits errors
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"

# 40 and 16 images of 4 x 5 pixels: a class, and beside it three numbers from 0 to 1.
cat > "$work/arrays.py" <<'END_PY'
import os, random, sys
from npy import save
N, H, W, SEED = 40, 4, 5, 7
draw = random.Random(5)
pixels = {s: [draw.randrange(256) for _ in range(n * H * W)] for s, n in (("train", N), ("test", 16))}
kinds = {s: [draw.randrange(3) for _ in range(n)] for s, n in (("train", N), ("test", 16))}
shares = {s: [draw.randrange(1025) / 1024 for _ in range(n * 3)] for s, n in (("train", N), ("test", 16))}
def make():
    for s, n in (("train", N), ("test", 16)):
        for d, name, kind, shape, values in (("classes", "y", "|u1", (n,), kinds[s]), ("numbers", "y", "<f4", (n, 3), shares[s]),
                                             ("both", "kind", "|u1", (n,), kinds[s]), ("both", "share", "<f4", (n, 3), shares[s])):
            os.makedirs(d, exist_ok=True)
            save(f"{d}/{s}_x.npy", "|u1", (n, 1, H, W), pixels[s])
            save(f"{d}/{s}_{name}.npy", kind, shape, values)
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
# The definition: expected(forms, epochs, batch, loss) has the loss of each step and the accuracy of each epoch, without shuffling.
cat > "$work/definition.py" <<'END_PY'
import json, math, sys
from arrays import *
from itertools import pairwise
def philox(c0, c1, c2, c3, key):
    c, k0, k1 = [c0, c1, c2, c3], key & 0xffffffff, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xffffffff, (a >> 32) ^ c[3] ^ k1, a & 0xffffffff]
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return c
def beta(u, v, alpha):
    """By Student's t with 2 alpha degrees of freedom."""
    u, v = (u + 0.5) / 2 ** 32, (v + 0.5) / 2 ** 32
    freedom = 2 * alpha
    t = math.sqrt(freedom * (u ** (-2 / freedom) - 1)) * math.cos(2 * math.pi * v)
    return (1 + t / math.sqrt(freedom + t * t)) / 2
def mixture(sample, epoch, batch, forms):
    """The place of the other sample, and the weight of the own one at each pixel."""
    pair, more = philox(24, 4, sample, epoch, SEED), philox(25, 4, sample, epoch, SEED)
    names = list(forms)
    name = names[pair[1] >> 31] if len(names) == 2 else names[0]
    alpha, p = forms[name]
    other, applies = pair[0] * batch >> 32, pair[2] / 2 ** 32 < p
    weight = beta(more[0], more[1], alpha) if applies else 1
    if name == "mixup":
        return other, [[weight] * W for _ in range(H)]
    rows, columns = int(H * math.sqrt(1 - weight) + 0.5), int(W * math.sqrt(1 - weight) + 0.5)
    top, left = (more[2] * H >> 32) - rows // 2, (more[3] * W >> 32) - columns // 2
    return other, [[0 if top <= i < top + rows and left <= j < left + columns else 1 for j in range(W)] for i in range(H)]
def logits(image):
    """Three weighted sums of parts of the image."""
    return [sum(image[a:b]) / (b - a) * f for (a, b), f in zip(pairwise((0, 7, 13, 20)), (8, 6, 7))]
def entropy(x, k):
    return math.log(sum(math.exp(v) for v in x)) - x[k]
def truths(x, t):
    return sum(max(v, 0) - v * u + math.log(1 + math.exp(-abs(v))) for v, u in zip(x, t)) / len(x)
def distances(x, t):
    return sum(abs(v - u) for v, u in zip(x, t)) / len(x)
def expected(forms, epochs, batch, loss, linear):
    target = kinds["train"] if loss is entropy else [shares["train"][3 * i:3 * i + 3] for i in range(N)]
    image = [[v / 255 for v in pixels["train"][i * H * W:(i + 1) * H * W]] for i in range(N)]
    steps, hits, shared = [], [], 0
    for epoch in range(epochs):
        right = 0
        for first in range(0, N, batch):
            total = 0
            for own in range(first, first + batch):
                at, weights = mixture(own, epoch, batch, forms)
                at += first
                flat = sum(weights, [])
                x = logits([w * a + (1 - w) * b for w, a, b in zip(flat, image[own], image[at])])
                w = sum(flat) / (H * W)
                shared += 0.05 < w < 0.95 and own != at
                if linear: # the target is mixed instead of the loss
                    total += loss(x, [w * a + (1 - w) * b for a, b in zip(target[own], target[at])])
                else:
                    total += w * loss(x, target[own]) + (1 - w) * loss(x, target[at])
                if loss is entropy:
                    right += x.index(max(x)) == target[own if w >= 0.5 else at]
            steps.append(total / batch)
        hits.append(right / N)
    assert shared > N * epochs / 8, "too few mixtures to test"
    return steps, hits
def compare(log, *given):
    records = [json.loads(line) for line in open(log)]
    steps, hits = expected(*given)
    got = [r["train_loss"] for r in records if r["event"] == "step"]
    epochs = [r for r in records if r["event"] == "epoch"]
    wrong = [f"step {i + 1}: {a} and {b}" for i, (a, b) in enumerate(zip(got, steps)) if abs(a - b) > 2e-5 * (1 + abs(b))]
    if given[3] is entropy:
        wrong += [f"epoch {i + 1}: accuracy {r['train_accuracy']} and {h}" for i, (r, h) in enumerate(zip(epochs, hits)) if abs(r["train_accuracy"] - h) > 1e-6]
    if len({r["test_loss"] for r in epochs}) != 1:
        wrong.append("evaluations differ")
    if len(got) != len(steps) or wrong:
        sys.exit(f"{len(got)} steps of {len(steps)}; {'; '.join(wrong[:4])}")
exec(sys.argv[1])
END_PY
arrays 'make()'
cd "$work"

# Logits that depend on the place of a pixel, and on no weight that changes.
network() {
    cat <<END_TN
model $1(image: f32[1, 4, 5]) {
    h = conv2d(image, 1, kernel = 1, bias = false) |> flatten
    a = mean(slice(h, -1, 0, 7), axes = [0]) * 8
    b = mean(slice(h, -1, 7, 6), axes = [0]) * 6
    c = mean(slice(h, -1, 13, 7), axes = [0]) * 7
    return concat([reshape(a, [1]), reshape(b, [1]), reshape(c, [1])])
}
train $1 {
    data      = "./$2"
    augment   = mixup(1)
    loss      = $3
    optimizer = sgd(lr = 0)
    init      = constant(1)
    batch     = 8
    shards    = 2
    epochs    = 2
    seed      = 7
}
END_TN
}
network classes classes softmax_cross_entropy > classes.tn
network numbers numbers sigmoid_cross_entropy | sed 's/    loss/    target    = share: f32[3]\n    loss/' > numbers.tn

# defined NAME AUGMENT DEFINITION LOSS LINEAR OPTIONS...: the losses of a program with these augmentations are those of the definition
defined() {
    make "$1" "$1-cpu" --set "augment=$2" "${@:6}"
    succeeds "$2" "./$1-cpu" train --shuffle off --log-steps 1 --log defined.log
    succeeds "$2: the definition's losses" env PYTHONPATH="$work:$TENON_ROOT/tests" python3 -B definition.py "compare('defined.log', $3, 2, 8, $4, $5)"
    rm defined.log
}
if part definition; then
    defined classes '[mixup(alpha=0.4,p=0.8),cutmix(1)]' '{"mixup": (0.4, 0.8), "cutmix": (1, 1)}' entropy False
    defined classes 'cutmix(alpha=2,p=0.9)' '{"cutmix": (2, 0.9)}' entropy False --plain
    if deep "losses of numbers, and an optimised program of mixup alone"; then
        defined classes 'mixup(3)' '{"mixup": (3, 1)}' entropy False
        defined classes '[mixup(0.05),cutmix(1)]' '{"mixup": (0.05, 1), "cutmix": (1, 1)}' entropy False
        make classes least --set 'augment=mixup(0.001)'
        succeeds "the least alpha: no number is infinite" ./least train --epochs 20
        defined numbers 'mixup(1)' '{"mixup": (1, 1)}' truths True
        defined numbers 'cutmix(1)' '{"cutmix": (1, 1)}' distances False --set loss=l1
    fi
fi

# A network that learns, with all kinds of augmentation, two targets, and a sum of terms.
if part bits; then
    cat > both.tn <<'END_TN'
model both(image: f32[1, 4, 5]) {
    h = conv2d(image, 4, kernel = 3, pad = 1) |> relu |> flatten
    return of = dense(h, 3), size = dense(h, 3)
}
train both {
    data      = "./both"
    target    = (kind: class, share: f32[3])
    normalize = per_channel(mean = [0.4], std = [0.3])
    augment   = [random_crop(1), flip_horizontal, rotate(20), contrast(0.3), erase, mixup(0.4), cutmix(1, p = 0.9)]
    loss      = terms(kind = softmax_cross_entropy(of, kind, smoothing = 0.1), share = huber(size, share))
    optimizer = sgd(lr = 0.05, momentum = 0.9)
    init      = he
    batch     = 8
    shards    = 2
    epochs    = 4
}
END_TN
    cp -r both other; printf '\x02' | dd of=other/train_kind.npy bs=1 seek=$((128 + 20)) conv=notrunc status=none
    make both both-cpu
    equal_bits both 4 loss_kind other
    succeeds "seven threads" ./both-cpu train --threads 7 --log many.log
    same_epochs "seven threads" many.log loss_share
    # The newest checkpoint is removed, as if the run had been killed in an epoch.
    rm -rf c; ./both-cpu train --checkpoint c --checkpoint-every 3 --epochs 2 > out; rm "$(find c -name 'step-*' | sort | tail -n 1)"
    succeeds "resumed in an epoch" ./both-cpu train --checkpoint c --resume --save resumed.safetensors
    grep -q "epoch 2, step [1-9]" out && ok || bad "not resumed in an epoch: $(cat out)"
    cmp -s one.safetensors resumed.safetensors && ok || bad "resumed in an epoch: other weights"
    if deep "mixtures in f64, plain, in bf16, of synthetic samples over ranks"; then
        like_plain both train_loss train_loss_kind train_loss_share train_accuracy_kind
        succeeds "gradcheck" ./double gradcheck --data ./both
        equal_bf16_bits both
        sed 's#"./both"#synthetic(samples = 40, test_samples = 16)#' both.tn > made.tn
        sed -i 's/ both/ made/' made.tn
        make made made-cpu
        succeeds "synthetic samples" ./made-cpu train --log one.log
        if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
            make made made-ranks --comm mpi
            succeeds "synthetic samples, two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none ./made-ranks train --threads 1 --log ranks.log
            same_epochs "synthetic samples, two ranks" ranks.log loss_kind
        fi
    fi
fi

# refused TEXT PATTERN SED: classes.tn after a change is refused
refused() {
    sed "$3" classes.tn > wrong.tn
    refuses "$1" "$2" "$TENON" check wrong.tn
}
if part errors; then
    refused "one sample" "mixup mixes two samples of a batch, and batch = 1" 's/batch .*/batch = 1/; s/shards .*//'
    refused "weights of classes" "cannot be combined with class_weights, which the loss has for 'label'" 's/softmax_cross_entropy/softmax_cross_entropy(class_weights = [1, 2, 1])/'
    refused "alpha 0" "'alpha' is between 0.001 and 1000, this is 0" 's/mixup(1)/mixup(0)/'
    refused "no image" "augment is for images" 's/f32\[1, 4, 5\]/f32[20]/; s/conv2d(.*flatten/dense(image, 20)/'
    refuses "a script for Keras" "to keras writes no scripts with mixup" "$TENON" emit classes.tn --to keras
    succeeds "a script for PyTorch" "$TENON" emit classes.tn --to pytorch --set 'augment=[flip_horizontal,mixup(0.2),cutmix(1)]' -o script
    succeeds "its Python" python3 -m py_compile script/classes.py
fi
finish
