#!/usr/bin/env bash
# plain.sh -- the optimised program computes what the plain one does: loss and every gradient of the first batch, in file
# layout, within 1e-11 (f64) and 1e-4 (f32) of each other, relative L2; the same passes and kernel sources run in both types.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

succeeds "the comparer compiles" cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
bound() { [ "$1" = f64 ] && echo 1e-11 || echo 1e-4; }

for model in lenet lenet_relu lenet_tanh mlp mlp_wide; do
    for dtype in f64 f32; do
        build $model "$work/fast" --dtype $dtype
        build $model "$work/plain" --dtype $dtype --plain
        for p in fast plain; do
            succeeds "$model $dtype $p: gradients" "$work/$p" grads --threads 2 --output "$work/$p.safetensors"
        done
        succeeds "$model $dtype: optimised = plain" "$work/compare" "$work/fast.safetensors" "$work/plain.safetensors" "$(bound $dtype)"
        echo "$model $dtype: $(tail -n 1 "$work/out")"
    done
    # a difference must be seen: gradients of other weights are far away
    "$work/fast" grads --seed 12345 --output "$work/other.safetensors" > /dev/null
    ! "$work/compare" "$work/other.safetensors" "$work/plain.safetensors" 1e-4 > /dev/null && ok || bad "$model: another seed, but the same gradients"
    rm -f "$work"/*.safetensors
done
finish
