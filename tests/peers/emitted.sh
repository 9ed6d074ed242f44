#!/usr/bin/env bash
# emitted.sh -- scripts of `tenon emit --to pytorch`: those of all models are Python; from the same weights and batches theirs are our
# losses, step by step, in f64.
#
#   TENON_TORCH=PYTHON   an interpreter that has torch and numpy (default: python3); without one the losses are skipped
set -euo pipefail
. "$(dirname "$0")/../common.sh"
python=${TENON_TORCH:-python3}
export PYTHONDONTWRITEBYTECODE=1

for model in "$TENON_ROOT"/models/*.tn; do
    name=$(basename "$model" .tn)
    if ! "$TENON" emit "$model" --to pytorch -o "$work" > /dev/null 2> "$work/err"; then
        grep -q "error: --to pytorch" "$work/err" && ok || bad "$name: $(head -n 1 "$work/err")"
    elif ! command -v python3 > /dev/null; then skip "$name: no python3"
    elif python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$work/$name.py" 2> "$work/err"; then ok
    else bad "$name.py is no Python: $(tail -n 1 "$work/err")"; fi
done
for name in lenet resnet56_cifar10 inception_v3; do
    [ -s "$work/$name.py" ] && ok || bad "$name has no PyTorch script"
done

# Formulas, reductions, crops, pads, sharing, a nest of blocks, factors, clipping, a loss of its own.
cat > "$work/odd.tn" <<'TN'
block inner(x, width: int) {
    y = conv2d(x, width, kernel = [3, 1], stride = 2, pad = "same") |> batch_norm(momentum = 0.8, epsilon = 1e-3, scale = false) |> gelu
    return concat(y, amax(y, axes = [0], keep = true), max(y, 0.1 * y) - y ** 2 / (1 + abs(y)))
}
block outer(x) {
    a = inner(x, 3)
    b = inner(x, 3) + a
    return inner(crop(pad(b, 1, [2, 1]), [10, 12]), 4) * mean(b, axes = [0, 1, 2]) / 2
}
model odd(image: f32[1, 28, 28]) {
    h = outer(image)
    part = slice(h, axis = 0, start = 2, size = 4)
    fc = dense(7)
    h = transpose(part, [1, 2, 0]) |> flatten |> dense(7) |> tanh
    return fc(relu(fc(h) - -h)) |> layer_norm |> dense(10)
}
train odd {
    data      = mnist
    normalize = per_channel(mean = [0.13], std = [0.3])
    loss      = softmax_cross_entropy(output, label, smoothing = 0.1) + 0.001 * l2(output)
    optimizer = adamw(lr = 0.002, weight_decay = 0.01)
    schedule  = cosine(end = 0.1, warmup = 1)
    factors   = [lr("dense1.*", 3), decay("fc.bias", 1)]
    clip      = norm(0.5)
    init      = orthogonal
    batch     = 16
    epochs    = 2
}
TN
if ! "$python" -c 'import torch, numpy' 2> /dev/null; then
    for name in lenet mlp odd; do skip "$name: $python has no torch (TENON_TORCH names an interpreter that has)"; done
    finish; exit
fi
small_mnist "$work/mnist" 80 40 || true

# steps LOG: its losses, a line each
steps() { sed -n 's/.*"event": *"step".*"train_loss": *\([-0-9.e]*\).*/\1/p' "$1"; }
for model in "$TENON_ROOT/models/lenet.tn" "$TENON_ROOT/models/mlp.tn" "$work/odd.tn"; do
    name=$(basename "$model" .tn)
    settings=(--dtype f64 --batch 16 --shards 1)
    "$TENON" build "$model" "${settings[@]}" -o "$work/$name"
    "$TENON" emit "$model" "${settings[@]}" --to pytorch -o "$work"
    "$work/$name" --data "$work/mnist" --epochs 0 --save "$work/w" > /dev/null
    run=(--data "$work/mnist" --weights "$work/w" --epochs 2 --shuffle off --limit-samples 72 --log-steps 1)
    rm -f "$work/ours" "$work/theirs"
    "$work/$name" "${run[@]}" --log "$work/ours" > /dev/null
    succeeds "$name.py runs" "$python" "$work/$name.py" "${run[@]}" --log "$work/theirs"
    apart=$(paste <(steps "$work/ours") <(steps "$work/theirs") | awk '{ d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > m) m = d } END { print NR == 10 && m < 1e-8 ? "close" : NR " steps, " m }')
    same "$name: the losses of ten steps, apart by at most 1e-8" "$apart" close
done
finish
