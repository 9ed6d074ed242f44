#!/usr/bin/env bash
# report.sh -- the further metrics of `test` and of the end of a training, and the files of `test --report`: each number against a
# calculation in Python from the outputs of `predict`; equal bytes for any threads and ranks; faults of directories.
#
# Parts: class several pixels table nan
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/../npy.sh"
command -v python3 > /dev/null || { skip "no python3 that writes arrays"; finish; exit; }
cd "$work"

cat > arrays.py <<'END_PY'
import csv, json, math, os, random, struct, sys, zlib
import xml.dom.minidom
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
    found = [json.loads(line) for line in open(log) if '"event":"test"' in line or '"event":"metrics"' in line]
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
def cells(path): return list(csv.reader(open(path)))
def lines(path):
    """The rows of a table with a head, as dictionaries."""
    head, *rest = cells(path)
    return [dict(zip(head, row)) for row in rest]
def check_metrics(d, log):
    """metrics.json and metrics.csv have the values of the record, and the list of the files."""
    got = {k: v for k, v in record(log).items() if k.startswith("test_")}
    whole = json.load(open(d + "/metrics.json"))
    assert whole["metrics"] == got, whole
    assert {row["metric"]: float(row["value"]) for row in lines(d + "/metrics.csv")} == got
    assert sorted(whole["files"]) == sorted(os.listdir(d)), whole["files"]
    for name in whole["files"]:
        if name.endswith(".svg"):
            xml.dom.minidom.parse(d + "/" + name)
    return whole
def check_classes(path, of_json, counts):
    """The rows of classes.csv, and the classes of metrics.json; counts: of each class."""
    rest = lines(path)
    assert len(rest) == len(of_json) == len(counts)
    for row, other, c in zip(rest, of_json, counts):
        for name, value in {"right": c[0], "predicted": c[1], "support": c[2], "precision": precision(*c), "recall": recall(*c), "f1": f1(*c), "iou": iou(*c)}.items():
            close("%s of class %s" % (name, row["class"]), float(row[name]), value)
            close("%s of class %s, json" % (name, row["class"]), other[name], value)
        assert row["name"] == other["name"] and int(row["class"]) == other["class"]
def check_confusion(d, prefix, truth, found, names):
    """confusion.csv; each count that is not 0 stands in the SVG."""
    got = cells(f"{d}/{prefix}confusion.csv")
    n = len(names)
    want = [[sum(t == i and f == k for t, f in zip(truth, found)) for k in range(n)] for i in range(n)]
    assert got == [["true \\ predicted"] + names] + [[names[i]] + [str(v) for v in want[i]] for i in range(n)], got
    titles = [t.split("<")[0] for t in open(f"{d}/{prefix}confusion.svg").read().split("<title>")[1:]]
    assert titles == ["true %s, predicted %s: %d of %d" % (names[i], names[k], want[i][k], sum(want[i])) for i in range(n) for k in range(n) if want[i][k]], titles
def check_worst(path, loss, columns):
    """The 20 samples with the highest loss; columns: for each name the value of a sample."""
    got = lines(path)
    order = sorted(range(len(loss)), key=lambda i: -loss[i])[:20]
    assert [int(row["rank"]) for row in got] == list(range(1, 21))
    for row, i in zip(got, order):
        k = int(row["sample"])
        close("the loss of rank %s" % row["rank"], float(row["loss"]), loss[i])
        close("the loss of sample %d" % k, float(row["loss"]), loss[k])
        for name, of in columns.items():
            if isinstance(of(k), str):
                assert row[name] == of(k), (row, name, of(k))
            else:
                close("%s of rank %s" % (name, row["rank"]), float(row[name]), of(k))
    assert set(got[0]) == {"rank", "sample", "row", "file", "loss"} | set(columns), got[0]
    return [int(row["sample"]) for row in got]
def png(path):
    """The width, the height and the rows of an RGB image without filters."""
    data, at, packed = open(path, "rb").read(), 8, b""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        part = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + part)
        if kind == b"IHDR": width, height, form = struct.unpack(">II5s", part)
        if kind == b"IDAT": packed += part
        at += size + 12
    raw = zlib.decompress(packed)
    assert form == bytes([8, 2, 0, 0, 0]) and len(raw) == height * (3 * width + 1)
    return width, height, [raw[i * (3 * width + 1) + 1:(i + 1) * (3 * width + 1)] for i in range(height)]
if __name__ == "__main__":
    exec(sys.argv[1])
END_PY
ranks=
# 90 test samples: the last batch is filled up.  Reports are the same work for all kernels, and plain ones compile in less time.
options=(--batch 14 --shards 2 --plain --cpu generic)
if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
    options+=(--comm mpi) ranks=yes
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
else
    skip "two ranks: no mpicc and mpirun"
fi
# same_record TEXT TEST TRAINING: the record `metrics` of the training has the further metrics of the test of its weights, and no others
same_record() {
    succeeds "$1: the record of the training" arrays "after, = [json.loads(line) for line in open('$3') if '\"event\":\"metrics\"' in line]
test, epoch = record('$2'), [json.loads(line) for line in open('$3') if '\"event\":\"epoch\"' in line][-1]
assert after.pop('event') == 'metrics' and after == {k: v for k, v in test.items() if k.startswith('test_') and k not in epoch}, after
assert len(after) >= 4 and all(test[k] == epoch[k] for k in test if k.startswith('test_') and k in epoch)"
}
# trained NAME: builds NAME, trains it, and tests and predicts with its weights
trained() {
    make "$1" "$1-cpu" "${options[@]}"
    succeeds "$1: train" "./$1-cpu" --save "$1.safetensors" --log "$1.train"
    succeeds "$1: test" "./$1-cpu" test --weights "$1.safetensors" --log "$1.log" --report "$1.report"
    cp out "$1.out"
    for way in 1 2 7; do
        succeeds "$1: $way threads" "./$1-cpu" test --weights "$1.safetensors" --threads $way --report "$1.ways"
        diff -r "$1.report" "$1.ways" && ok || bad "$1: another report with $way threads"
    done
    if [ -n "$ranks" ]; then
        succeeds "$1: two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none "./$1-cpu" test --threads 1 --weights "$1.safetensors" --report "$1.ways"
        diff -r "$1.report" "$1.ways" && ok || bad "$1: another report with two ranks"
    fi
    succeeds "$1: predict" "./$1-cpu" predict --weights "$1.safetensors" --input "$1/test_x.npy" --output "$1.csv"
    same_record "$1" "$1.log" "$1.train"
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
    succeeds "kinds: the report" arrays '
p, truth, x = rows("kinds.csv"), numbers("kinds/test_y.npy")[1], numbers("kinds/test_x.npy")[1]
found = [best(row) for row in p]
whole = check_metrics("kinds.report", "kinds.log")
assert (whole["model"], whole["samples"], [t["kind"] for t in whole["targets"]]) == ("kinds", 90, ["class"]), whole
check_classes("kinds.report/classes.csv", whole["targets"][0]["classes"], [count(truth, found, k) for k in range(12)])
check_confusion("kinds.report", "", truth, found, [str(k) for k in range(12)])
samples = check_worst("kinds.report/worst.csv", [-math.log(row[t]) for row, t in zip(p, truth)], {"true": lambda i: truth[i], "predicted": lambda i: found[i],
    "probability": lambda i: p[i][found[i]], "probability_of_true": lambda i: p[i][truth[i]]})
width, height, image = png("kinds.report/worst.png")
for rank, i in enumerate(samples):               # a pixel of the sample is a square of 18 x 18
    top, left = 8 + rank // 5 * (108 + 26), 8 + rank % 5 * 116
    for y in range(6):
        for k in range(6):
            at = 3 * (left + 18 * k + 9)
            assert image[top + 18 * y + 9][at:at + 3] == bytes([x[36 * i + 6 * y + k]]) * 3, (rank, y, k)'
    arrays 'got = open("kinds.out").read().split("\n"); want = cells("kinds.report/confusion.csv")
at = [i for i, line in enumerate(got) if line.startswith("confusion matrix")][0]
assert [line.split() for line in got[at + 1:at + 14]] == [want[0][1:]] + want[1:], got' && ok || bad "the printed matrix: $(cat kinds.out)"
    grep -Eqx "test top5 0\.[0-9]{4}, precision 0\.[0-9]{4}, recall 0\.[0-9]{4}, f1 0\.[0-9]{4}" kinds.out && ok || bad "what test prints: $(cat kinds.out)"
    mkdir alone && cp kinds/train_* alone
    refuses "no test split" "alone does not hold all test arrays|alone .*test_x.npy" ./kinds-cpu test --weights kinds.safetensors --data ./alone --report none
    # A run that ends before its last epoch reports the weights that it leaves.
    succeeds "stopped early" ./kinds-cpu --stop-at 0.05 --epochs 9 --log early.train --save early.safetensors
    succeeds "stopped early: test" ./kinds-cpu test --weights early.safetensors --log early.log
    same_record "stopped early" early.log early.train
    if deep "equal outputs"; then                    # the first class is predicted, and the first five are the top
        sed 's/return \(.*\) }/return (\1) * 0 }/' kinds.tn > equal.tn
        make equal equal-cpu --batch 14 --shards 2 --plain --cpu generic
        succeeds "equal: train" ./equal-cpu --epochs 1 --log equal.log
        succeeds "equal: the metrics" arrays 'truth = numbers("kinds/test_y.npy")[1]
compare("equal.log", "top5", {"top5": sum(t < 5 for t in truth) / 90})
compare("equal.log", "prec", {"precision": mean_of(precision, [count(truth, [0] * 90, k) for k in set(truth) | {0}])})'
    fi
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
    succeeds "tags: the report" arrays '
p, high, tags, sizes = rows("tags.csv", True), *(numbers("tags/test_%s.npy" % name)[1] for name in ("high", "tags", "sizes"))
found, d = [best(row[6:]) for row in p], "tags.report/"
whole = check_metrics("tags.report", "tags.log")
kinds = {t["name"]: t for t in whole["targets"]}
assert [(name, t["kind"], len(t["classes"])) for name, t in kinds.items()] == [("high", "class", 2), ("tags", "truths", 4), ("sizes", "numbers", 0)], whole
check_classes(d + "high_classes.csv", kinds["high"]["classes"], [count(high, found, k) for k in range(2)])
check_confusion("tags.report", "high_", high, found, ["0", "1"])
check_worst(d + "high_worst.csv", [-math.log(row[6 + t]) for row, t in zip(p, high)], {"true": lambda i: high[i], "predicted": lambda i: found[i],
    "probability": lambda i: p[i][6 + found[i]], "probability_of_true": lambda i: p[i][6 + high[i]]})
labels = [[int(row[k] > 0.5) for row in p] for k in range(4)]
check_classes(d + "tags_classes.csv", kinds["tags"]["classes"], [count(tags[k::4], labels[k], 1) for k in range(4)])
check_worst(d + "tags_worst.csv", [-sum(math.log(v if t else 1 - v) for v, t in zip(row, tags[4 * i:])) / 4 for i, row in enumerate(p) for row in [row[:4]]],
    {"labels": lambda i: 4, "right": lambda i: sum(labels[k][i] == tags[4 * i + k] for k in range(4))})
error = [[row[4 + k] - sizes[2 * i + k] for k in range(2)] for i, row in enumerate(p)]
check_worst(d + "sizes_worst.csv", [(a * a + b * b) / 2 for a, b in error], {"mean_residual": lambda i: sum(error[i]) / 2, "mean_absolute": lambda i: sum(map(abs, error[i])) / 2,
    "largest_absolute": lambda i: max(map(abs, error[i])), "target_sizes_0": lambda i: sizes[2 * i], "prediction_sizes_0": lambda i: p[i][4],
    "target_sizes_1": lambda i: sizes[2 * i + 1], "prediction_sizes_1": lambda i: p[i][5]})
for k, row in enumerate(lines(d + "sizes_residuals.csv")):
    e, t = sorted(pair[k] for pair in error), sizes[k::2]
    mean, square = sum(t) / 90, sum(v * v for v in e)
    at = lambda share: e[int(share * 89)] + (share * 89 % 1) * (e[min(int(share * 89) + 1, 89)] - e[int(share * 89)])
    assert row["number"] == "sizes_%d" % k and row["samples"] == "90", row
    for name, v in {"mean_target": mean, "mean_residual": sum(e) / 90, "mae": sum(map(abs, e)) / 90, "rmse": math.sqrt(square / 90), "r2": 1 - square / sum((v - mean) ** 2 for v in t),
            "least": e[0], "quantile_5": at(0.05), "quantile_25": at(0.25), "median": (e[44] + e[45]) / 2, "quantile_75": at(0.75), "quantile_95": at(0.95), "largest": e[-1]}.items():
        close(name, float(row[name]), v)
svg = open(d + "sizes_scatter.svg").read()
circles = [tuple(float(v.split("\"")[1]) for v in c.split(" ")[1:3]) for c in svg.split("<circle")[1:]]
diagonals = [[float(v) for v in line.split("\"")[0].replace("L", " ").split()] for line in svg.split("<path d=\"M") if "dasharray" in line]
assert len(circles) == 180 and len(diagonals) == 2
for k in range(2):                               # a point lies on a line in its target and in its prediction, with one scale
    drawn, ends = circles[90 * k:90 * k + 90], sorted(range(90), key=lambda i: sizes[2 * i + k])
    scale = (drawn[ends[-1]][0] - drawn[ends[0]][0]) / (sizes[2 * ends[-1] + k] - sizes[2 * ends[0] + k])
    left, below, _, _ = diagonals[k]
    for i, (a, b) in enumerate(drawn):
        assert abs((a - left) - (below - b) - scale * (sizes[2 * i + k] - p[i][4 + k])) < 0.03, (k, i)
        assert abs(a - drawn[0][0] - scale * (sizes[2 * i + k] - sizes[k])) < 0.03 and abs(b - drawn[0][1] + scale * (p[i][4 + k] - p[0][4 + k])) < 0.03, (k, i)'
    if deep "a report of a GPU program"; then
        . "$TENON_ROOT/tests/cuda/shim.sh"
        shim_runtime
        shim_gpu tags-gpu tags.tn --batch 14 && [ -x tags-gpu/gpu ] && ok || bad "tags: no program over the stand-in"
        succeeds "tags: test on a GPU" tags-gpu/gpu test --weights tags.safetensors --report gpu.report
        for name in high_classes tags_classes high_confusion; do cmp gpu.report/$name.csv tags.report/$name.csv && ok || bad "a GPU's $name.csv"; done
        for name in tags_worst sizes_worst sizes_residuals metrics; do
            succeeds "a GPU's $name.csv" arrays "a, b = (cells(d + '/$name.csv') for d in ('gpu.report', 'tags.report'))
assert len(a) == len(b) and a[0] == b[0]
for x, y in zip(a[1:], b[1:]): assert all(u == v or abs(float(u) - float(v)) < 1e-4 * (1 + abs(float(v))) for u, v in zip(x, y)), (x, y)"
        done
    fi
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
    succeeds "pixels: the report" arrays '
p, truth = rows("pixels.csv"), numbers("pixels/test_y.npy")[1]
image = [[(truth[36 * i + k], row[k::36]) for k in range(36) if truth[36 * i + k] != 255] for i, row in enumerate(p)]
pairs = [(t, best(v)) for one in image for t, v in one]
whole = check_metrics("pixels.report", "pixels.log")
assert whole["targets"][0]["kind"] == "class of each pixel"
check_classes("pixels.report/classes.csv", whole["targets"][0]["classes"], [count(*zip(*pairs), k) for k in range(4)])
check_confusion("pixels.report", "", *zip(*pairs), [str(k) for k in range(4)])
check_worst("pixels.report/worst.csv", [-sum(math.log(v[t]) for t, v in one) / len(one) for one in image],
    {"labels": lambda i: len(image[i]), "right": lambda i: sum(best(v) == t for t, v in image[i])})'
    # An image without a pixel that counts is not among the worst.
    arrays 'os.makedirs("few"); save("few/test_x.npy", "|u1", (5, 1, 6, 6), range(180)); save("few/test_y.npy", "<i4", (5, 6, 6), [255 if 36 <= i < 72 else 1 for i in range(180)])'
    succeeds "few: test" ./pixels-cpu test --weights pixels.safetensors --data ./few --report few.report
    same "few: the samples" "0 2 3 4" "$(tail -n +2 few.report/worst.csv | cut -d , -f 2 | sort | xargs)"
    # No pixel of a split counts: no metrics, and no images, but a sentence that says so.  A training goes on.
    arrays 'os.makedirs("none"); save("none/test_x.npy", "|u1", (5, 1, 6, 6), range(180)); save("none/test_y.npy", "<i4", (5, 6, 6), [255] * 180)'
    cp pixels/train_*.npy none
    succeeds "none: test" ./pixels-cpu test --weights pixels.safetensors --data ./none --report none.report --log none.log
    same "none: what test prints" "no label of the test split counts, so there are no metrics" "$(grep -i 'metrics\|accuracy\|iou' out | grep -v '^report in')"
    grep -Eq "images of|nan|most frequent" out && bad "none: $(cat out)" || ok
    succeeds "none: the report" arrays 'whole = json.load(open("none.report/metrics.json"))
assert whole["metrics"] == {"test_loss": None, "test_accuracy": None} == {k: v for k, v in record("none.log").items() if k.startswith("test_")}, whole
assert cells("none.report/metrics.csv")[1:] == [["test_loss", "nan"], ["test_accuracy", "nan"]] and len(cells("none.report/worst.csv")) == 1'
    succeeds "none: train" ./pixels-cpu --data ./none --epochs 1
    grep -q "^epoch 1/1 .*, accuracy 0\.[0-9]*, no test label counts$" <(sed 's/ *1\/1/ 1\/1/' out) && grep -q "^no label of the test split counts, 1 epoch, " out && ok || bad "none: $(cat out)"
fi

# A table whose test split is a share: names of classes and of the file, with the line.
if part table; then
    arrays 'draw = random.Random(5)
with open("homes.csv", "w") as f:
    print("area,kind", file=f)
    for i in range(400):
        k = draw.randrange(3)
        print("%.3f,%s" % (draw.gauss(k, 0.6), ["<flat>", "house & garden", "\"hut, \"\"small\"\"\""][k]), file=f)'
    cat > homes.tn <<'END_TN'
model homes(row: f32[1]) { return dense(row, 8) |> tanh |> dense(3) }
train homes {
    data      = csv("homes.csv", test = 0.25)
    target    = kind: class
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.05)
    epochs    = 3
}
END_TN
    make homes homes-cpu --batch 20 --shards 2 --plain --cpu generic
    succeeds "homes: train" ./homes-cpu --save homes.safetensors
    succeeds "homes: test" ./homes-cpu test --weights homes.safetensors --report homes.report
    succeeds "homes: predict" ./homes-cpu predict --weights homes.safetensors --input homes.csv --output all.csv
    succeeds "homes: the report" arrays '
names, table, p = ["<flat>", "house & garden", "hut, \"small\""], cells("homes.csv"), cells("all.csv")
assert cells("homes.report/confusion.csv")[0][1:] == names
xml.dom.minidom.parse("homes.report/confusion.svg")
assert all("predicted " + name in open("homes.report/confusion.svg").read() for name in ("&lt;flat&gt;", "house &amp; garden", "hut, &quot;small&quot;"))
got = lines("homes.report/worst.csv")
for row in got:
    line = int(row["file"].split(":")[1])
    assert row["file"].startswith("./homes.csv:") and row["true"] == table[line - 1][1], row
    assert row["predicted"] == p[line - 1][0], row
    close("the loss of line %d" % line, float(row["loss"]), -math.log(float(p[line - 1][1 + names.index(row["true"])])))
assert len(got) == 20 and not os.path.exists("homes.report/worst.png")'
    # An earlier report is replaced: no file of it stays.
    cp homes.report/worst.csv homes.report/confusion.svg . && echo more > homes.report/mine
    sed -i 's/"confusion.svg"/"..\/homes.csv", "confusion.svg", "old.csv"/' homes.report/metrics.json
    echo old > homes.report/old.csv
    succeeds "homes: test again" ./homes-cpu test --weights homes.safetensors --report homes.report
    [ ! -e homes.report/old.csv ] && [ -e homes.csv ] && cmp -s worst.csv homes.report/worst.csv && [ -e homes.report/mine ] && ok || bad "the second report: $(ls homes.report)"
    # Faults of the directory are found before the test.
    mkdir -p other && echo text > other/file
    refuses "a directory with other files" "the directory other holds files that are no report: name an empty or a new one" ./homes-cpu test --weights homes.safetensors --report other
    refuses "a file" "--report: homes.csv is not a directory" ./homes-cpu test --weights homes.safetensors --report homes.csv
    refuses "no place" "the directory nowhere/report cannot be made: No such file" ./homes-cpu test --weights homes.safetensors --report nowhere/report
    refuses "an empty name" "--report" ./homes-cpu test --weights homes.safetensors --report ""
    # Faults of data, of weights and of the disk leave neither a new directory nor a part of a report.
    refuses "no data" "gone" ./homes-cpu test --weights homes.safetensors --data ./gone.csv --report none.report
    refuses "no weights" "gone" ./homes-cpu test --weights gone.safetensors --report none.report
    full() { (ulimit -f 4; trap '' XFSZ; "$@"); }
    sed 's/model homes/model large/; s/train homes/train large/; s/homes.csv/large.csv/' homes.tn > large.tn
    arrays 'print("area,kind", file=open("large.csv", "w")); print("\n".join("%d,class %d" % (i, i % 60) for i in range(2000)), file=open("large.csv", "a"))'
    sed -i 's/dense(3)/dense(60)/' large.tn
    make large large-cpu --batch 20 --shards 2 --plain --cpu generic
    succeeds "large: train" ./large-cpu --epochs 1 --save large.safetensors
    refuses "a full disk" "none.report/confusion.* cannot be written" full ./large-cpu test --weights large.safetensors --report none.report
    [ ! -e none.report ] && ok || bad "what a fault leaves: $(ls none.report)"
    cp -r homes.report before.report
    refuses "a full disk and an earlier report" "homes.report/confusion.* cannot be written" full ./large-cpu test --weights large.safetensors --report homes.report
    diff -r before.report homes.report && ok || bad "what a fault leaves of an earlier report: $(ls homes.report)"
    # A signal removes what is not complete.  What a killed run leaves is no reason to refuse the directory.
    cc -shared -fPIC -O1 -o faults.so "$TENON_ROOT/tests/tools/faults.c" -ldl
    for signal in TERM KILL; do
        rm -rf waits
        env LD_PRELOAD="$work/faults.so" FAULT_FSYNC="$work/waits" ./homes-cpu test --weights homes.safetensors --report killed.report > /dev/null 2>&1 & one=$!
        for ((i = 0; i < 200; i++)); do [ -e waits ] && break; sleep 0.05; done
        kill -$signal $one
        wait $one 2> /dev/null || true
        [ $signal = KILL ] || { [ ! -e killed.report ] && ok || bad "what SIGTERM leaves of a report: $(ls killed.report)"; }
    done
    [ "$(find killed.report -name '*.tmp-*' | wc -l)" = 1 ] && ok || bad "kill -9 left nothing to test with"
    succeeds "after kill -9" ./homes-cpu test --weights homes.safetensors --report killed.report
    diff -r -x mine before.report killed.report && ok || bad "the report after kill -9: $(ls -A killed.report)"
    if [ "$(id -u)" != 0 ]; then
        mkdir -p locked && chmod 555 locked
        refuses "no right to write" "locked" ./homes-cpu test --weights homes.safetensors --report locked
    fi
    refuses "another command" "--report is not an option of .* train" ./homes-cpu train --report x
fi

# Outputs of NaN, here of a root of -4, predict no class, and nothing of them is right.  Half of the samples have class 0, for which a NaN was once taken.
if part nan; then
    arrays 'for d, bad in (("good", ()), ("bad", (0, 1, 5))):
    os.makedirs(d)
    for split, n in (("train", 40), ("test", 28)):
        y = [i % 2 * (1 + i % 3 % 2) for i in range(n)]
        x = [[float(y[i] == k) + i / 100 for k in range(3)] for i in range(n)]
        for i in bad:
            x[i][1] = -5.0
        save(f"{d}/{split}_x.npy", "<f4", (n, 3), [v for row in x for v in row])
        for name, kind, shape, of in (("kind", "<i4", (n,), lambda i: [y[i]]), ("tags", "|u1", (n, 2), lambda i: [int(y[i] > 0), 0]), ("size", "<f4", (n, 1), lambda i: [y[i] + i / 10])):
            save(f"{d}/{split}_{name}.npy", kind, shape, [v for i in range(n) for v in of(i)])'
    cat > nans.tn <<'END_TN'
model nans(row: f32[3]) {
    h = dense(row + 0.001 * sqrt(row + 1), 4) |> tanh
    return kinds = dense(h, 3), labels = dense(h, 2), sizes = dense(h, 1)
}
train nans {
    data      = "./good"
    target    = (kind: class, tags: f32[2], size: f32[1])
    loss      = softmax_cross_entropy(kinds, kind) + sigmoid_cross_entropy(labels, tags) + mse(sizes, size)
    optimizer = adam(lr = 0.05)
    epochs    = 30
}
END_TN
    make nans nans-cpu "${options[@]}"
    succeeds "nan: train" ./nans-cpu --save nans.safetensors
    succeeds "nan: test without NaN" ./nans-cpu test --weights nans.safetensors --log good.log --report good.report
    grep -q NaN out && bad "a warning without NaN: $(cat out)" || ok
    succeeds "nan: test" ./nans-cpu test --weights nans.safetensors --data ./bad --log bad.log --report bad.report
    cp out bad.out
    same "the warning" 1 "$(grep -c 'warning: the output of 3 of 28 samples has a NaN: such an output predicts no class, and counts as wrong' bad.out)"
    if [ -n "$ranks" ]; then
        succeeds "nan: two ranks" timeout -k 5 120 mpirun -n 2 --bind-to none ./nans-cpu test --threads 1 --weights nans.safetensors --data ./bad --report ranks.report
        diff -r bad.report ranks.report && ok || bad "nan: another report with two ranks"
        same "the warning of two ranks" 1 "$(grep -c 'warning: the output of 3 of 28' out)"
    fi
    succeeds "nan: the report" arrays '
good, got = record("good.log"), record("bad.log")
assert "nan_samples" not in good and got["nan_samples"] == 3 and json.load(open("good.report/metrics.json"))["nan_samples"] == 0
whole = json.load(open("bad.report/metrics.json"))
assert whole["nan_samples"] == 3 and whole["metrics"] == {k: v for k, v in got.items() if k.startswith("test_")} and whole["metrics"]["test_loss"] is None
table = {row["metric"]: row["value"] for row in lines("bad.report/metrics.csv")}
assert all(table[k] == "nan" if v is None else float(table[k]) == v for k, v in whole["metrics"].items()), table
assert good["test_accuracy_kind"] == good["test_accuracy_tags"] == 1, good
close("accuracy", got["test_accuracy_kind"], 25 / 28)
close("accuracy of labels", got["test_accuracy_tags"], 25 / 28)
truth = numbers("bad/test_kind.npy")[1]
found = [-1 if i in (0, 1, 5) else t for i, t in enumerate(truth)]
counts = [count(truth, found, k) for k in range(3)]
close("recall", got["test_recall_kind"], mean_of(recall, counts))
close("precision", got["test_precision_kind"], 1)
check_classes("bad.report/kind_classes.csv", whole["targets"][0]["classes"], counts)
confusion = cells("bad.report/kind_confusion.csv")
assert confusion[0] == ["true \\ predicted", "0", "1", "2", "nan"] and cells("good.report/kind_confusion.csv")[0][-1] == "2"
assert [[int(v) for v in row[1:]] for row in confusion[1:]] == [[sum(t == i and f == k for t, f in zip(truth, found)) for k in (0, 1, 2, -1)] for i in range(3)]
worst = lines("bad.report/kind_worst.csv")
assert [(row["sample"], row["loss"], row["predicted"], row["probability"]) for row in worst[:3]] == [(i, "nan", "nan", "nan") for i in "015"] and worst[3]["predicted"] != "nan"
assert [row["right"] for row in lines("bad.report/tags_worst.csv")[:3]] == ["0"] * 3
sizes = lines("bad.report/size_worst.csv")
assert sizes[0]["sample"] == "0" and all(sizes[0][k] == "nan" for k in ("loss", "mean_residual", "largest_absolute", "prediction_size"))
row, = lines("bad.report/size_residuals.csv")
assert all(row[k] == "nan" for k in ("mean_residual", "mae", "median", "least", "largest")) and row["mean_target"] != "nan", row
for name in os.listdir("bad.report"):
    text = open("bad.report/" + name, "rb").read()
    assert b"-nan" not in text
    if name.endswith(".svg"):
        xml.dom.minidom.parseString(text)'
    arrays 'got = open("bad.out").read().split("\n"); want = cells("bad.report/kind_confusion.csv")
at = [i for i, line in enumerate(got) if line.startswith("confusion matrix of kind")][0]
assert [line.split() for line in got[at + 1:at + 5]] == [want[0][1:]] + want[1:], got' && ok || bad "the printed matrix with NaN: $(cat bad.out)"
    # predict names no class for an output of NaN.
    arrays 'print("area,kind\n" + "\n".join("%d,%s" % (i, "ab"[i % 2]) for i in range(40)), file=open("areas.csv", "w")); print("area\n30\n-900", file=open("far.csv", "w"))'
    for last in "2:softmax" "1:sigmoid"; do
        cat > roots.tn <<END_TN
model roots(row: f32[1]) { return dense(sqrt(row + 9), ${last%:*}) }
train roots {
    data      = csv("areas.csv", test = 0.2)
    target    = kind: class
    loss      = ${last#*:}_cross_entropy
    optimizer = adam
}
END_TN
        make roots roots-cpu --batch 14 --shards 2 --plain --cpu generic
        succeeds "nan: weights of ${last#*:}" ./roots-cpu --epochs 0 --save roots.safetensors
        ./roots-cpu predict --weights roots.safetensors --input far.csv > far.out
        same "nan: predict with ${last#*:}" "nan,nan,nan" "$(sed -n 3p far.out)"
        grep -Eq "^[ab],0[.]" <(sed -n 2p far.out) && ok || bad "predict of a number: $(cat far.out)"
    done
    if deep "NaN in a GPU program"; then
        . "$TENON_ROOT/tests/cuda/shim.sh"
        shim_runtime
        shim_gpu nans-gpu nans.tn --batch 14 && [ -x nans-gpu/gpu ] && ok || bad "nan: no program over the stand-in"
        succeeds "nan: test on a GPU" nans-gpu/gpu test --weights nans.safetensors --data ./bad --log gpu.log --report gpu.report
        for name in kind_classes tags_classes kind_confusion; do cmp gpu.report/$name.csv bad.report/$name.csv && ok || bad "a GPU's $name.csv with NaN"; done
        same "nan: accuracies of a GPU" "$(field bad.log test 'test_accuracy_[a-z]*')" "$(field gpu.log test 'test_accuracy_[a-z]*')"
    fi
fi
finish
