#!/usr/bin/env bash
# blas.sh -- --kernels=blas computes the same as Tenon's own kernels: loss and every gradient of the first batch within 1e-11 (f64), for
# dense layers and convolutions of all forms; the same bits for any number of threads.
# Deep: part blas of attention.sh compares products of the library.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$TENON_ROOT/tests/packages.sh"

if ! have "$openblas"; then
    skip "OpenBLAS is not installed (Debian: libopenblas-dev)"
    finish
    exit
fi
succeeds "the comparer compiles" cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm

cat > "$work/forms.tn" <<'M'
model forms(image: f32[4, 13, 11]) {
    h = conv2d(image, 6, kernel = [3, 2], stride = [2, 1], pad = [1, 0]) |> tanh
    h = conv2d(h, 8, kernel = 3, pad = "same", groups = 2) |> relu
    h = conv2d(h, 4, kernel = 3, pad = 2, dilation = 2) |> tanh |> max_pool(2)
    return flatten(h) |> dense(7) |> relu |> dense(5)
}
train forms {
    data = synthetic(samples = 96, test_samples = 32), loss = softmax_cross_entropy
    optimizer = sgd(lr = 0.05, momentum = 0.9), batch = 24
}
M
sed -i 's/, loss = /\n    loss = /; s/, batch = /\n    batch = /' "$work/forms.tn"
models=("$work/forms.tn")
! deep "LeNet and the MLP by the library" || models+=("$TENON_ROOT/models/lenet.tn" "$TENON_ROOT/models/mlp.tn")
for model in "${models[@]}"; do
    name=$(basename "$model" .tn)
    for kernels in own blas; do
        succeeds "$name: build with $kernels" "$TENON" build "$model" -o "$work/$kernels" --dtype f64 --kernels "$kernels"
        succeeds "$name: gradients with $kernels" "$work/$kernels" grads --threads 2 --output "$work/$kernels.safetensors"
    done
    succeeds "$name: the library = own kernels" "$work/compare" "$work/own.safetensors" "$work/blas.safetensors" 1e-11
    rm -f "$work"/*.safetensors
done
succeeds "build in f32" "$TENON" build "$work/forms.tn" -o "$work/blas" --kernels blas
for t in 1 2 3; do
    "$work/blas" --epochs 2 --threads $t --log "$work/$t.jsonl" > /dev/null
    hashes=$(grep -o '"weights_hash":"[0-9a-f]*"' "$work/$t.jsonl" | tr '\n' ' ')
    [ $t = 1 ] && first=$hashes
    same "$t threads, the same bits" "$first" "$hashes"
done
refuses "--plain with a library" "exclude each other" "$TENON" build "$work/forms.tn" -o "$work/x" --plain --kernels blas
finish
