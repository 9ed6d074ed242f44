#!/usr/bin/env bash
# cifar.sh -- CIFAR-10's binary batches: plain, .gz and .xz files give the same run; messages about damaged files name file and reason.
#
# The script makes small files; with TENON_TEST_DATA=DIR it also reads all of DIR/cifar10.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cat > "$work/small.tn" <<'END'
model small(image: f32[3, 32, 32], classes: int = 10) {
    h = avg_pool(image, 4) |> flatten |> dense(8) |> relu
    return dense(h, classes)
}
train small {
    data      = cifar10
    loss      = softmax_cross_entropy
    optimizer = sgd(lr = 0.1)
    batch     = 32
    epochs    = 2
}
END
small_cifar "$work/plain" 20 32
"$TENON" build "$work/small.tn" -o "$work/p" || { bad "tenon build small.tn"; finish; exit 1; }
run=("$work/p" --threads 2)
fresh() { rm -rf "$work/d"; cp -r "$work/plain" "$work/d"; }

succeeds "plain batches" "${run[@]}" --data "$work/plain" --log "$work/plain.log"
same "five batches in all" "$(field "$work/plain.log" epoch samples)" "100 100 "
mkdir "$work/named"; cp -r "$work/plain" "$work/named/cifar10"
TENON_DATA=$work/named succeeds "batches found by name" "${run[@]}" --log "$work/named.log"
same "the weights of both" "$(hashes "$work/plain.log")" "$(hashes "$work/named.log")"
fresh; gzip "$work"/d/*.bin
succeeds "batches packed with gzip" "${run[@]}" --data "$work/d" --log "$work/gz.log"
same "the weights after .gz" "$(hashes "$work/plain.log")" "$(hashes "$work/gz.log")"
succeeds "the first of the samples" "${run[@]}" --data "$work/plain" --limit-samples 50 --log "$work/limit.log"
same "fewer samples" "$(field "$work/limit.log" epoch samples)" "50 50 "

ldd "$work/p" > "$work/libraries"                     # a file, because SIGPIPE could end ldd in a pipe to grep -q, and the library would count as missing
if ! command -v xz > /dev/null || ! grep -q lzma "$work/libraries"; then
    skip "batches packed with xz: there is no xz, or no liblzma"
else
    fresh; xz "$work"/d/*.bin
    succeeds "batches packed with xz" "${run[@]}" --data "$work/d" --log "$work/xz.log"
    same "the weights after .xz" "$(hashes "$work/plain.log")" "$(hashes "$work/xz.log")"
    cc -shared -fPIC -O1 -o "$work/faults.so" "$TENON_ROOT/tests/tools/faults.c" -ldl
    parts=(env LD_PRELOAD="$work/faults.so" FAULT_SHORT=1)  # each read transfers a part of its bytes
    succeeds "batches packed with xz, read in parts" "${parts[@]}" "${run[@]}" --data "$work/d"
    fresh; gzip "$work"/d/*.bin
    succeeds "batches packed with gzip, read in parts" "${parts[@]}" "${run[@]}" --data "$work/d"
    fresh; xz --block-size=4096 "$work"/d/*.bin
    succeeds "batches packed with xz in many blocks" "${run[@]}" --data "$work/d"
    truncate -s -100 "$work/d/data_batch_2.bin.xz"
    refuses "an .xz cut off" "data_batch_2.bin.xz is truncated or damaged" "${run[@]}" --data "$work/d"
    fresh; xz "$work"/d/*.bin
    printf '\1\2\3\4\5\6' | dd of="$work/d/data_batch_4.bin.xz" bs=1 seek=3000 conv=notrunc status=none
    refuses "an .xz with damaged bytes" "data_batch_4.bin.xz is damaged" "${run[@]}" --data "$work/d"
    "$TENON" build "$TENON_ROOT/models/mlp.tn" -o "$work/mlp"
    ldd "$work/mlp" > "$work/libraries"
    if grep -q lzma "$work/libraries"; then bad "a program for MNIST is linked with liblzma"; else ok; fi
    mkdir "$work/m"; cp "$TENON_ROOT"/models/data/mnist/*.gz "$work/m"; gunzip "$work/m/train-labels-idx1-ubyte.gz"; xz "$work/m/train-labels-idx1-ubyte"
    refuses "an .xz without its library" "train-labels-idx1-ubyte.xz is packed with xz.*xz -d" "$work/mlp" --data "$work/m"
fi

fresh; rm "$work/d/data_batch_3.bin"
refuses "a batch that is missing" "data_batch_3.bin is missing" "${run[@]}" --data "$work/d"
succeeds "a batch that nobody asked for" "${run[@]}" --data "$work/d" --limit-samples 40
fresh; rm "$work/d/data_batch_1.bin"
refuses "no first batch" "no train data.*data_batch_1.bin" "${run[@]}" --data "$work/d"
fresh; rm "$work/d/test_batch.bin"
refuses "no test batch" "no test data.*test_batch.bin" "${run[@]}" --data "$work/d"
fresh; truncate -s -1 "$work/d/data_batch_5.bin"
refuses "a batch of a wrong size" "data_batch_5.bin holds 61459 bytes.*3073" "${run[@]}" --data "$work/d"
fresh; : > "$work/d/data_batch_2.bin"
refuses "an empty batch" "data_batch_2.bin holds 0 bytes" "${run[@]}" --data "$work/d"
fresh; printf '\012' | dd of="$work/d/data_batch_2.bin" bs=1 seek=$((3 * 3073)) conv=notrunc status=none
refuses "a label that is no class" "data_batch_2.bin: label 10 of image 3.*0 to 9" "${run[@]}" --data "$work/d"
"$TENON" build "$work/small.tn" -o "$work/seven" --set model.classes=7
refuses "seven classes" "data_batch_1.bin: CIFAR-10 has 10 classes, but small has 7.*model.classes=10" "$work/seven" --data "$work/plain"
printf 'model formula(image: f32[3, 32, 32]) { return flatten(image) |> dense(4) }
train formula { data = cifar10; loss = mean((output - one_hot(label, 4)) ** 2, axes = [0]); optimizer = sgd(lr = 0.01) }
' > "$work/formula.tn"
"$TENON" build "$work/formula.tn" -o "$work/formula"
refuses "a formula over four classes" "data_batch_1.bin: CIFAR-10 has 10 classes, but formula has 4" "$work/formula" --data "$work/plain"
build lenet "$work/lenet"
refuses "images of another size" "data_batch_1.bin holds samples of shape 3 x 32 x 32, but lenet takes 1 x 28 x 28" "$work/lenet" --data "$work/plain"

full=$TENON_TEST_DATA/cifar10
if [ -d "$full" ]; then
    succeeds "all of CIFAR-10" "${run[@]}" --epochs 1 --data "$full" --log "$work/full.log"
    same "its samples" "$(field "$work/full.log" epoch samples)" "50000 "
else
    skip "all of CIFAR-10: TENON_TEST_DATA names no directory with cifar10/"
fi
finish
