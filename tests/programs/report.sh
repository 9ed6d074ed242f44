#!/usr/bin/env bash
# report.sh -- the further metrics of `test` and of the end of a training, and the files of `test --report`: each number against a
# calculation in Python from the outputs of `predict`; equal bytes for any threads and ranks; faults of directories.
#
# Parts: class several pixels
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
command -v python3 > /dev/null || { skip "no python3 that writes arrays"; finish; exit; }
cd "$work"

cat > arrays.py <<'END_PY'
import csv, json, math, os, random, struct, sys
from npy import save
N, TEST = 160, 90
def images(d, classes, label):
    """Images of noise with a bright pixel at the place of the label; label(draw): what the data hold for it."""
    os.makedirs(d, exist_ok=True)
    draw = random.Random(11)
    for split, n in (("train", N), ("test", TEST)):
        x, y = [], []
        for _ in range(n):
            k = draw.randrange(classes)
            x += [draw.randrange(200) + 55 * (i == 3 * k) for i in range(36)]
            y += label(draw, k)
        yield split, n, x, y
def kinds():
    for split, n, x, y in images("kinds", 12, lambda draw, k: [k]):
        save(f"kinds/{split}_x.npy", "|u1", (n, 1, 6, 6), x)
        save(f"kinds/{split}_y.npy", "<i4", (n,), y)
def tags():
    for split, n, x, y in images("tags", 9, lambda draw, k: [[int(k > 3), [int(k % 3 == 0), k / 9 > 0.5, 0, draw.randrange(2)], [k + draw.gauss(0, 1), 3 - k]]]):
        save(f"tags/{split}_x.npy", "|u1", (n, 1, 6, 6), x)
        save(f"tags/{split}_high.npy", "<i4", (n,), [row[0] for row in y])
        save(f"tags/{split}_tags.npy", "|u1", (n, 4), [int(v) for row in y for v in row[1]])
        save(f"tags/{split}_sizes.npy", "<f4", (n, 2), [v for row in y for v in row[2]])
def pixels():
    for split, n, x, y in images("pixels", 9, lambda draw, k: [255 if draw.random() < 0.1 else (i % 6 > k % 4) + (i == 3 * k) for i in range(36)]):
        save(f"pixels/{split}_x.npy", "|u1", (n, 1, 6, 6), x)
        save(f"pixels/{split}_y.npy", "<i4", (n, 6, 6), y)
def numbers(path):
    """The shape and the numbers of an array."""
    data = open(path, "rb").read()
    size, = struct.unpack("<H", data[8:10])
    head = eval(data[10:10 + size])
    code = {"<f4": "f", "<i4": "i", "|u1": "B"}[head["descr"]]
    return head["shape"], struct.unpack("<%d%s" % ((len(data) - 10 - size) // struct.calcsize(code), code), data[10 + size:])
def rows(path, header=False):
    return [[float(v) for v in row] for row in list(csv.reader(open(path)))[header:]]
def record(log):
    found = [json.loads(line) for line in open(log) if '"event":"test"' in line]
    assert len(found) == 1, found
    return found[0]
def divide(a, b): return a / b if b else 0.0
def count(truth, found, k):
    """right, found and there of class k."""
    return (sum(t == k == f for t, f in zip(truth, found)), sum(f == k for f in found), sum(t == k for t in truth))
def precision(r, f, t): return divide(r, f)
def recall(r, f, t): return divide(r, t)
def f1(r, f, t): return divide(2 * r, f + t)
def iou(r, f, t): return divide(r, f + t - r)
def mean_of(metric, counts):
    values = [metric(*c) for c in counts]
    return sum(values) / len(values)
def area(score, truth):
    """The share of the pairs of both classes in which the score of class 1 is larger."""
    pairs = [(a > b) + (a == b) / 2 for a, s in zip(score, truth) if s for b, u in zip(score, truth) if not u]
    return sum(pairs) / len(pairs)
def best(p): return p.index(max(p))
def close(text, a, b):
    if not abs(a - b) <= 2e-6 * max(1, abs(b)):
        sys.exit("%s is %r, not %r" % (text, a, b))
def compare(log, prefix, want):
    """Whether the record `test` has these metrics, and no others with such names."""
    got = record(log)
    for name, value in want.items():
        close(name, got["test_" + name], value)
    if [k for k in got if k.startswith("test_" + prefix) and k[5:] not in want]:
        sys.exit("other metrics: %s" % got)
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
options=(--batch 14 --shards 2)                       # 90 test samples: the last batch is filled up
if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
    options+=(--comm mpi)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
else
    skip "two ranks: no mpicc and mpirun"
fi
# trained NAME: builds NAME, trains it, and tests and predicts with its weights
trained() {
    make "$1" "$1-cpu" "${options[@]}"
    succeeds "$1: train" "./$1-cpu" --save "$1.safetensors" --log "$1.train"
    succeeds "$1: test" "./$1-cpu" test --weights "$1.safetensors" --log "$1.log"
    cp out "$1.out"
    succeeds "$1: predict" "./$1-cpu" predict --weights "$1.safetensors" --input "$1/test_x.npy" --output "$1.csv"
    same "$1: the record of the training" "$(sed 's/"seconds":[^,]*,//' "$1.log")" "$(grep '"event":"test"' "$1.train" | sed 's/"seconds":[^,]*,//')"
}

if part class; then
    arrays 'kinds()'
    cat > kinds.tn <<'END_TN'
model kinds(image: f32[1, 6, 6]) { return flatten(image) |> dense(12) }
train kinds {
    data      = "./kinds"
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    epochs    = 6
}
END_TN
    trained kinds
    succeeds "kinds: the metrics" arrays '
p, truth = rows("kinds.csv"), numbers("kinds/test_y.npy")[1]
found = [best(row) for row in p]
counts = [c for c in (count(truth, found, k) for k in range(12)) if c[1] + c[2]]
top = sum(sum(v > row[t] for v in row) < 5 for row, t in zip(p, truth)) / len(truth)
assert 0.3 < top < 1 and any(c[1] and 0 < c[0] < c[1] for c in counts), (top, counts)
compare("kinds.log", "", {"loss": record("kinds.log")["test_loss"], "accuracy": sum(f == t for f, t in zip(found, truth)) / len(truth), "top5": top,
    "precision": mean_of(precision, counts), "recall": mean_of(recall, counts), "f1": mean_of(f1, counts)})'
    grep -Eqx "test top5 0\.[0-9]{4}, precision 0\.[0-9]{4}, recall 0\.[0-9]{4}, f1 0\.[0-9]{4}" kinds.out && ok || bad "what test prints: $(cat kinds.out)"
    # A run that ends before its last epoch reports the weights that it leaves.
    succeeds "stopped early" ./kinds-cpu --stop-at 0.05 --epochs 9 --log early.train --save early.safetensors
    succeeds "stopped early: test" ./kinds-cpu test --weights early.safetensors --log early.log
    same "stopped early: the record" "$(sed 's/"seconds":[^,]*,//' early.log)" "$(grep '"event":"test"' early.train | sed 's/"seconds":[^,]*,//')"
fi

if part several; then
    arrays 'tags()'
    cat > tags.tn <<'END_TN'
model tags(image: f32[1, 6, 6]) {
    h = flatten(image) |> dense(16) |> tanh
    return labels = dense(h, 4), size = dense(h, 2), side = dense(h, 2)
}
train tags {
    data      = "./tags"
    target    = (high: class, tags: f32[4], sizes: f32[2])
    loss      = softmax_cross_entropy(side, high) + sigmoid_cross_entropy(labels, tags) + 0.1 * mse(size, sizes)
    optimizer = adam(lr = 0.01)
    epochs    = 6
}
END_TN
    trained tags
    succeeds "tags: the metrics" arrays '
p, high, tags = rows("tags.csv", True), numbers("tags/test_high.npy")[1], numbers("tags/test_tags.npy")[1]
found = [best(row[6:]) for row in p]
one = count(high, found, 1)
want = {"accuracy_high": sum(f == t for f, t in zip(found, high)) / 90, "precision_high": precision(*one), "recall_high": recall(*one), "f1_high": f1(*one),
    "auc_high": area([row[7] for row in p], high)}
labels = [([int(row[k] > 0.5) for row in p], tags[k::4]) for k in range(4)]
counts = [count(t, f, 1) for f, t in labels]
assert counts[2][2] == 0, counts
want |= {"accuracy_tags": sum(f == t for found, there in labels for f, t in zip(found, there)) / 360, "precision_tags": mean_of(precision, counts),
    "recall_tags": mean_of(recall, counts), "f1_tags": mean_of(f1, counts),
    "auc_tags": sum(area([row[k] for row in p], tags[k::4]) for k in (0, 1, 3)) / 3}
got = record("tags.log")
compare("tags.log", "", want | {k[5:]: got[k] for k in got if k in ("test_loss", "test_mae_sizes", "test_rmse_sizes", "test_r2_sizes")})'
fi

if part pixels; then
    arrays 'pixels()'
    cat > pixels.tn <<'END_TN'
model pixels(image: f32[1, 6, 6]) { return conv2d(image, 4, kernel = 3, pad = 1) |> tanh |> conv2d(4, kernel = 3, pad = 1) }
train pixels {
    data      = "./pixels"
    target    = mask: class[6, 6]
    loss      = softmax_cross_entropy(ignore = 255)
    optimizer = adam(lr = 0.02)
    epochs    = 6
}
END_TN
    trained pixels
    succeeds "pixels: the metrics" arrays '
p, truth = rows("pixels.csv"), numbers("pixels/test_y.npy")[1]
pairs = [(truth[36 * i + k], best(row[k::36])) for i, row in enumerate(p) for k in range(36) if truth[36 * i + k] != 255]
counts = {k: count(*zip(*pairs), k) for k in range(4)}
counts = {k: c for k, c in counts.items() if c[1] + c[2]}
assert list(counts) == [0, 1, 2] and 0 < iou(*counts[1]) < 1, counts
compare("pixels.log", "", {"loss": record("pixels.log")["test_loss"], "accuracy": sum(t == f for t, f in pairs) / len(pairs),
    "iou": mean_of(iou, counts.values()), "dice": mean_of(f1, counts.values())} | {f"iou_{k}": iou(*c) for k, c in counts.items()})'
fi
finish
