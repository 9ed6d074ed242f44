#!/usr/bin/env bash
# plain.sh -- the optimised program computes the same as the plain one: loss and every gradient of the first batch, in file layout, differ
# by at most 1e-11 (f64) and 1e-4 (f32), relative L2.  Both types have the same passes and kernel sources.
#
# Parts: lenet sum_squares evaluation
# Deep parts: others
set -euo pipefail
. "$(dirname "$0")/../common.sh"

succeeds "the comparer compiles" cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
bound() { [ "$1" = f64 ] && echo 1e-11 || echo 1e-4; }

cases=(lenet ../tests/passes/sum_squares)
! part others || ! deep "five networks more" || cases+=(lenet_relu lenet_tanh mlp mlp_wide "resnet56_cifar10 --set model.depth=8 --set augment=[] --set data=synthetic(samples=64)")
for case in "${cases[@]}"; do
    read -r -a options <<< "$case"
    model=${options[0]} options=("${options[@]:1}")
    case $case in lenet | */sum_squares) part "${case##*/}" ;; *) part others ;; esac || continue
    for dtype in f64 f32; do
        case "$model $dtype" in "lenet f64" | */sum_squares" f32") deep "${model##*/} in $dtype" || continue ;; esac
        build "$model" "$work/fast" --dtype $dtype "${options[@]}"
        witness "$TENON_ROOT/models/$model.tn" "$work/plain" --dtype $dtype "${options[@]}"
        for p in fast plain; do
            succeeds "$model $dtype $p: gradients" "$work/$p" grads --threads 2 --output "$work/$p.safetensors"
        done
        succeeds "$model $dtype: optimised = plain" "$work/compare" "$work/fast.safetensors" "$work/plain.safetensors" "$(bound $dtype)"
        echo "$model $dtype: $(tail -n 1 "$work/out")"
    done
    # A difference must be detected: gradients of other weights differ by more.
    "$work/fast" grads --seed 12345 --output "$work/other.safetensors" > /dev/null
    ! "$work/compare" "$work/other.safetensors" "$work/plain.safetensors" 1e-4 > /dev/null && ok || bad "$model: another seed, but the same gradients"
    rm -f "$work"/*.safetensors
done

if part evaluation; then
    small_mnist "$work/mnist" 640 500 || true
    # Evaluation has no dropout, so its passes see another graph; it must still find the weights where training keeps
    # them.
    evaluates() {
        local text=$1 p
        printf 'model m(image: f32[1, 28, 28]) {\n    h = conv2d(image, 8, kernel = 3)\n    %s\n}\n' "$2" > "$work/m.tn"
        printf 'train m {\n    data = mnist\n    loss = softmax_cross_entropy\n    optimizer = adam\n    batch = 64\n}\n' >> "$work/m.tn"
        succeeds "$text: build" "$TENON" build "$work/m.tn" -o "$work/fast"
        succeeds "$text: build --plain" witness "$work/m.tn" "$work/plain"
        succeeds "$text: train" "$work/fast" --data "$work/mnist" --epochs 1 --log "$work/fast.log" --save "$work/w.safetensors"
        succeeds "$text: test the plain way" "$work/plain" test --data "$work/mnist" --weights "$work/w.safetensors" --log "$work/plain.log"
        awk -v a="$(field "$work/fast.log" epoch test_loss)" -v b="$(field "$work/plain.log" test test_loss)" \
            'BEGIN { exit !(a > 0 && a - b < 1e-4 * b && b - a < 1e-4 * b) }' && ok || bad "$text: the test loss is another than the plain one"
        rm "$work"/*.log
    }
    if deep "dropout of an image"; then
        evaluates "dropout of an image" "return dropout(h, 0.3) |> flatten |> dense(10)"
        evaluates "dropout of a flattened image" "return max_pool(h, 2) |> flatten |> dropout(0.3) |> dense(10)"
    fi
    evaluates "one layer before and behind dropout" \
        "fc = dense(10); f = max_pool(h, 4) |> flatten; return fc(dropout(f, 0.3)) + fc(f)"
fi
finish
