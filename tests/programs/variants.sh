#!/usr/bin/env bash
# variants.sh -- the file of a convolution names each variant of its kernel that the sizes need, also for the widest vectors.
set -eu
. "$(dirname "$0")/../common.sh"
[ "$(uname -m)" = x86_64 ] || { skip "vectors of x86-64-v4: this is no x86-64"; finish; exit; }

# Two taps of 16 channels fill a panel, but the gradient by taps has half a panel for each tap.
cat > "$work/halves.tn" <<'TN'
model halves(image: f32[16, 8, 8]) { return conv2d(image, 32, kernel = 2, stride = 2) |> global_avg_pool |> dense(3) }
train halves { data = synthetic(samples = 16, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 8; epochs = 1 }
TN
succeeds "16 channels, two taps, x86-64-v4" "$TENON" build "$work/halves.tn" --cpu x86-64-v4 -o "$work/halves"

# Whole vectors of channels and little padding: no gradient by taps, which gcc has to find out from the number of taps.
cat > "$work/large.tn" <<'TN'
model large(image: f32[16, 96, 96]) {
    a = conv2d(image, 16, kernel = 4, stride = 2, pad = 1) |> relu
    b = conv2d(a, 16, kernel = 11) |> relu
    return global_avg_pool(b) |> dense(3)
}
train large { data = synthetic(samples = 16, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 8; epochs = 1 }
TN
succeeds "kernels of 4 x 4 and 11 x 11" "$TENON" build "$work/large.tn" --cpu x86-64-v4 -o "$work/large"
finish
