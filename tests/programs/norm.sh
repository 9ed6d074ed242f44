#!/usr/bin/env bash
# norm.sh -- batch_norm: evaluation folds it into convolutions, training fuses it with the following operations; both compute the same.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
witness_level=-O0                                     # the plain program computes few samples

side=12 data='synthetic(samples = 60, test_samples = 20)' given=()
if deep "images of CIFAR-10"; then
    side=32 data=cifar10 given=(--data "$work/data")
    small_cifar "$work/data" 12 20
fi
cat > "$work/net.tn" <<END
model net(image: f32[3, $side, $side], classes: int = 10) {
    h = conv2d(image, 16, kernel = 3, pad = 1, bias = false) |> batch_norm |> relu
    y = conv2d(h, 16, kernel = 3, pad = 1) |> batch_norm(epsilon = 1e-3, scale = false)
    h = relu(h + y)
    h = conv2d(h, 16, kernel = 3, stride = 2, groups = 16) |> batch_norm |> relu
    h = conv2d(h, 24, kernel = 1, bias = false) |> batch_norm(shift = false)
    h = flatten(avg_pool(h, 5)) |> dense(20, bias = false) |> batch_norm |> tanh
    return dense(h, classes)
}
train net {
    data      = $data
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.05, momentum = 0.9)
    batch     = 12
    epochs    = 3
}
END

# ---- folded into convolutions
types=f64
! deep "batch_norm folded into convolutions in f32" || types="f32 f64"
for dtype in $types; do
    "$TENON" build "$work/net.tn" -o "$work/net" --dtype $dtype --keep "$work/kept" --verify
    witness "$work/net.tn" "$work/plain" --dtype $dtype
    succeeds "training, $dtype" "$work/net" "${given[@]}" --save "$work/w"
    for program in net plain; do
        succeeds "test of $program, $dtype" "$work/$program" test "${given[@]}" --weights "$work/w" --log "$work/$program.log"
    done
    if awk -v a="$(field "$work/net.log" test test_loss)" -v b="$(field "$work/plain.log" test test_loss)" -v most=$([ $dtype = f32 ] && echo 2e-6 || echo 1e-12) \
        'BEGIN { d = a - b; exit !(a > 0 && b > 0 && d < most && -d < most) }'; then ok
    else bad "$dtype: test losses folded and plain: $(cat "$work/net.log" "$work/plain.log")"; fi
    same "batch_norm calls left in evaluation, $dtype" "$(sed -n '/^static .*void test_slice/,/^}/p' "$work/kept/net.c" | grep -c 'batch_norm_test')" 1
    rm -f "$work"/*.log
done

# ---- residuals and activations inside of the normalising loop: three epochs equal those of plain loops
for program in net plain; do
    succeeds "training of $program in f64" "$work/$program" "${given[@]}" --limit-samples 24 --threads 2 --log "$work/$program.log"
done
if paste <(field "$work/net.log" epoch train_loss | tr ' ' '\n') <(field "$work/plain.log" epoch train_loss | tr ' ' '\n') |
    awk '$1 > 0 { d = $1 - $2; n += d < 1e-9 && -d < 1e-9 } END { exit n != 3 }'; then ok
else bad "losses of three epochs in f64: $(field "$work/net.log" epoch train_loss) and plain $(field "$work/plain.log" epoch train_loss)"; fi

deep "gradients where slices have several chunks" || { finish; exit; }
# ---- slices of several chunks: each chunk reads the shard's statistics and sums, which are computed once before
sed 's/relu/tanh/g; s/data .*/data = synthetic(samples = 256, test_samples = 16)/' "$work/net.tn" > "$work/smooth.tn"
"$TENON" build "$work/smooth.tn" -o "$work/smooth" --dtype f64 --batch 256
"$work/smooth" info > "$work/info"
awk -F': ' '/^slices:/ { s = $2 } /^chunk:/ { c = $2 } END { exit !(s * c < 256) }' "$work/info" && ok || bad "a slice is one chunk: $(grep -E '^(slices|chunk)' "$work/info")"
succeeds "gradients where slices have several chunks" "$work/smooth" gradcheck --samples 1
finish
