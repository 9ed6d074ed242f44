#!/usr/bin/env bash
# augment.sh -- normalization and augmentation of the recipe: the same weights for any number of threads and groups and after each stop;
# test and predict do not augment; the mean image is saved with the weights.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

body='avg_pool(image, 8) |> flatten |> dense(8) |> relu'
! deep "augmented images before a convolution" || body='conv2d(image, 4, kernel = 3, stride = 2, pad = 1) |> relu |> global_avg_pool'
cat > "$work/small.tn" <<END
model small(image: f32[3, 32, 32]) {
    h = $body
    return dense(h, 10)
}
train small {
    data      = cifar10
    normalize = per_pixel_mean
    augment   = [random_crop(pad = 4), flip_horizontal, cutout(size = 8), brightness(0.2)]
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.1, momentum = 0.9)
    batch     = 32
    shards    = 4
    epochs    = 3
}
END
small_cifar "$work/data" 20 48
make() { "$TENON" build "$work/small.tn" -o "$work/$1" "${@:2}" || { bad "tenon build small.tn ${*:2}"; finish; exit 1; }; }
run() { rm -f "$work/log"; "$work/$1" --data "$work/data" --log "$work/log" "${@:2}" > /dev/null; hashes "$work/log"; }
# holds FILE TENSOR: whether a file of weights has the tensor
holds() { head -c 4096 "$1" | tr -d '\0' | grep -aq "\"$2\""; }

make p
want=$(run p --threads 1)
[ "$(wc -w <<< "$want")" = 3 ] && ok || bad "three epochs, but hashes '$want'"
loss=$(field "$work/log" epoch test_loss | tr ' ' '\n' | grep . | tail -n 1)
same "2 threads" "$(run p --threads 2)" "$want"
same "3 threads" "$(run p --threads 3)" "$want"
same "2 groups" "$(run p --threads 2 --groups 2)" "$want"
same "4 groups" "$(run p --threads 1 --groups 4)" "$want"
[ "$(run p --seed 5)" != "$want" ] && ok || bad "another seed gives the same weights"

# A run stopped after two epochs, and in the middle of an epoch of four steps, then resumed.
run p --epochs 2 --checkpoint "$work/c" > /dev/null
same "gone on after an epoch" "$(run p --checkpoint "$work/c" --resume)" "${want#* * }"
"$work/p" --data "$work/data" --checkpoint "$work/m" --checkpoint-every 2 > /dev/null
rm "$(find "$work/m" -name 'step-*.safetensors' | sort | tail -n 1)"
left=$(find "$work/m" -name 'step-*.safetensors' | sed 's/.*step-0*\([0-9]*\).*/\1/')
[ -n "$left" ] && [ $((left % 4)) != 0 ] && ok || bad "the older checkpoint is of step '$left', not inside an epoch"
same "gone on in the middle of an epoch" "$(run p --checkpoint "$work/m" --resume | tr ' ' '\n' | grep . | tail -n 1)" \
     "$(tr ' ' '\n' <<< "$want" | grep . | tail -n 1)"

# The weights are saved with the mean, and tested without augmentation.
run p --save "$work/w.safetensors" > /dev/null
holds "$work/w.safetensors" image.mean && ok || bad "no mean image in the weights"
"$work/p" test --weights "$work/w.safetensors" --data "$work/data" --log "$work/t" > /dev/null
same "test loss of the weights" "$(field "$work/t" test test_loss)" "$loss "
make bare --set 'augment=[]'
bare=$(run bare)
[ "$bare" != "$want" ] && ok || bad "augmentation changes nothing"
"$work/bare" test --weights "$work/w.safetensors" --data "$work/data" --log "$work/tb" > /dev/null
same "test loss of the program without augmentation" "$(field "$work/tb" test test_loss)" "$loss "
refuses "a checkpoint of another augmentation" "checkpoint|recipe|network" "$work/bare" --data "$work/data" --checkpoint "$work/c" --resume
deep "each augmentation of places and colours" || true
rare=('rotate(10)')
[ "$CHECK_DEEP" = 1 ] && rare+=(flip_vertical 'scale(0.2)' random_resized_crop erase 'contrast(0.3)' 'saturation(0.3)' 'hue(0.1)')
for one in 'shift(pixels = 3)' flip_horizontal 'cutout(size = 8)' 'brightness(0.5)' "${rare[@]}"; do
    make one --set "augment=$one"
    [ "$(run one)" != "$bare" ] && ok || bad "augment = $one changes nothing"
done

# per_channel: mean 0 and std 1 do not change samples; other values do.
make raw --set normalize=per_channel'(mean=[0],std=[1])' --set 'augment=[]'
make none --set normalize=per_channel'(mean=[0,0,0],std=[1,1,1])' --set 'augment=[]'
make shifted --set normalize=per_channel'(mean=[0.4,0.5,0.6],std=[0.2,0.2,0.3])' --set 'augment=[]'
sed '/normalize/d; /augment/d' "$work/small.tn" > "$work/plain.tn"
"$TENON" build "$work/plain.tn" -o "$work/asis"
want=$(run asis)
same "one mean of 0 for all channels" "$(run raw)" "$want"
same "a mean of 0 for each channel" "$(run none)" "$want"
[ "$(run shifted)" != "$want" ] && ok || bad "mean and std change nothing"

# Images are stretched to the input's size; if they have this size, they do not change.
make own --set resize=bilinear --set normalize=per_channel'(mean=[0],std=[1])' --set 'augment=[]'
same "images resized to their own size" "$(run own)" "$want"
sed 's/f32\[3, 32, 32\]/f32[3, 45, 20]/; /normalize/d' "$work/small.tn" > "$work/large.tn"
"$TENON" build "$work/large.tn" -o "$work/large"
refuses "images of another size" "shape 3 x 32 x 32, but small takes 3 x 45 x 20" "$work/large" --data "$work/data"
"$TENON" build "$work/large.tn" -o "$work/large" --set resize=bilinear
first=$(run large --threads 1)
[ "$(wc -w <<< "$first")" = 3 ] && ok || bad "resized images: hashes '$first'"
same "resized images, 3 threads" "$(run large --threads 3)" "$first"
refuses "resize with a mean image" "resize cannot be combined with normalize = per_pixel_mean" "$TENON" build "$work/small.tn" -o "$work/x" --set resize=bilinear

# Gradients of augmented samples with smoothed labels; tanh, because relu has its kink at the zeros of cutout.
sed 's/relu/tanh/; s/= softmax_cross_entropy/&(smoothing = 0.1)/' "$work/small.tn" > "$work/smooth.tn"
"$TENON" build "$work/smooth.tn" -o "$work/g" --dtype f64
succeeds "gradients of augmented samples" "$work/g" gradcheck --data "$work/data" --threads 2 --samples 20
succeeds "training on smoothed labels" "$work/g" --data "$work/data" --log "$work/fast"
witness_level=-O0 witness "$work/smooth.tn" "$work/g" --dtype f64
succeeds "the same by the textbook's loops" "$work/g" --data "$work/data" --log "$work/slow"
for part in train test; do
    same "$part loss of both" "$(field "$work/fast" epoch ${part}_loss)" "$(field "$work/slow" epoch ${part}_loss)"
done

# Synthetic samples.
make made --set 'data=synthetic(samples=200,test_samples=40)'
rm -f "$work/log"; "$work/made" --threads 1 --log "$work/log" > /dev/null; want=$(hashes "$work/log")
rm -f "$work/log"; "$work/made" --threads 3 --log "$work/log" > /dev/null
same "synthetic samples, augmented" "$(hashes "$work/log")" "$want"
finish
