#!/usr/bin/env bash
# broken_data.sh -- damaged data: the message names file and reason, the exit code is 1, and no incomplete file stays.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

mnist=$TENON_ROOT/models/data/mnist
build mlp "$work/p"
run=("$work/p" --epochs 1 --limit-samples 256 --threads 2)

# fresh: makes a directory with the four files of MNIST, one of which a test will damage
fresh() { rm -rf "$work/d"; mkdir "$work/d"; cp "$mnist"/*.gz "$work/d"; }
plain() { gzip -dc "$mnist/$1.gz" > "$work/d/$1"; rm "$work/d/$1.gz"; }
poke() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }

fresh
succeeds "a copy of MNIST" "${run[@]}" --data "$work/d"
for f in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do plain $f; done
succeeds "MNIST without gzip" "${run[@]}" --data "$work/d"

refuses "no such directory" "nowhere" "${run[@]}" --data "$work/nowhere"
mkdir "$work/empty"
refuses "an empty directory" "empty" "${run[@]}" --data "$work/empty"
refuses "an unknown name lists the places" "models/data" "${run[@]}" --data no_such_set

for f in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
    fresh; head -c 3000 "$mnist/$f.gz" > "$work/d/$f.gz"
    refuses "$f.gz cut off" "$f" "${run[@]}" --data "$work/d"
    fresh; rm "$work/d/$f.gz"
    refuses "$f.gz missing" "$f|t10k|train" "${run[@]}" --data "$work/d"
    fresh; plain $f; poke "$work/d/$f" 0 '\377\377\377\377'
    refuses "$f with a wrong magic number" "$f" "${run[@]}" --data "$work/d"
    fresh; plain $f; truncate -s -5 "$work/d/$f"
    refuses "$f too short" "$f" "${run[@]}" --data "$work/d"
    fresh; poke "$work/d/$f.gz" 4000 '\001\002\003\004\005\006'
    refuses "$f.gz with damaged bytes" "$f" "${run[@]}" --data "$work/d"
    fresh; rm "$work/d/$f.gz"; mkdir "$work/d/$f.gz"
    refuses "$f.gz is a directory" "$f" "${run[@]}" --data "$work/d"
done
fresh; plain train-images-idx3-ubyte; poke "$work/d/train-images-idx3-ubyte" 4 '\000\011\351\271\000\001\152\101\011\037\377\267' # 2^63 - 1
refuses "sizes whose product is the largest number" "train-images-idx3-ubyte is truncated: its header promises" "${run[@]}" --data "$work/d"
fresh; plain train-labels-idx1-ubyte; poke "$work/d/train-labels-idx1-ubyte" 20 '\013'
refuses "a label that is no class" "11|label" "${run[@]}" --data "$work/d"
refuses "a label that is no class, with checkpoints" "11|label" "${run[@]}" --data "$work/d" --checkpoint "$work/none"
[ ! -e "$work/none" ] && ok || bad "an error in the data leaves a directory for checkpoints: $(ls -A "$work/none")"
mkdir "$work/none"
refuses "the same, in a directory that exists" "11|label" "${run[@]}" --data "$work/d" --checkpoint "$work/none"
[ -d "$work/none" ] && ok || bad "the user's directory was removed"
fresh; plain train-labels-idx1-ubyte; poke "$work/d/train-labels-idx1-ubyte" 6 '\001'
refuses "fewer labels than images" "train-" "${run[@]}" --data "$work/d"
fresh; cp "$mnist/SHA256SUMS" "$work/d"
succeeds "checksums that fit" "${run[@]}" --data "$work/d"
cp "$mnist/t10k-labels-idx1-ubyte.gz" "$work/d/train-labels-idx1-ubyte.gz"
refuses "a checksum that does not fit" "train-labels-idx1-ubyte" "${run[@]}" --data "$work/d"
fresh; mkdir "$work/d/SHA256SUMS"
refuses "checksums that cannot be read" "SHA256SUMS cannot be read: Is a directory" "${run[@]}" --data "$work/d"
if [ "$(id -u)" != 0 ]; then
    fresh; chmod 000 "$work/d/train-images-idx3-ubyte.gz"
    refuses "a file that may not be read" "train-images-idx3-ubyte.gz" "${run[@]}" --data "$work/d"
else
    skip "a file that may not be read: root reads everything"
fi

# Files that unpack to a thousand times their size end the run before they take the memory.
head -c 20000000 /dev/zero | gzip -9 > "$work/zeros.gz"
fresh; for _ in $(seq 10); do cat "$work/zeros.gz"; done > "$work/d/zeros.txt.gz"
cat > "$work/chars.tn" <<'END'
model chars(text: i32[time], vocab: int, time: int = 8) { return embedding(text, vocab, 4) |> flatten |> dense(vocab) }
train chars { data = text("none", unit = "byte"); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 8; epochs = 1 }
END
"$TENON" build "$work/chars.tn" -o "$work/chars" || bad "tenon build chars.tn"
refuses "a text of zeros in ten pieces" "zeros.txt.gz is damaged: it holds at least [0-9]+ bytes, more than 100 times its own [0-9]+ bytes plus 67108864; .*unpack the file with gzip -d" \
    timeout 60 "$work/chars" --data "$work/d/zeros.txt"
fresh; { printf '\x00\x00\x08\x03\x00\x09\x27\xc0\x00\x00\x00\x1c\x00\x00\x00\x1c' | gzip; for _ in $(seq 24); do cat "$work/zeros.gz"; done; } > "$work/d/train-images-idx3-ubyte.gz"
{ printf '\x00\x00\x08\x01\x00\x09\x27\xc0'; head -c 600000 /dev/zero; } | gzip > "$work/d/train-labels-idx1-ubyte.gz"
refuses "600000 black images" "train-images.* promises 470400016 bytes, more than the [0-9]+ that a file of its size can hold" "${run[@]}" --data "$work/d"
fresh; { gzip -dc "$mnist/train-labels-idx1-ubyte.gz"; head -c 1000000 /dev/zero; } | gzip > "$work/d/train-labels-idx1-ubyte.gz"
refuses "more labels than the header says" "train-labels-idx1-ubyte.gz holds more than the 60000 samples" "${run[@]}" --data "$work/d"
arrays() { rm -rf "$work/d"; mkdir "$work/d"
    npy "$work/d/train_x.npy" '|u1' '(256, 1, 28, 28)' $((256 * 784)); npy "$work/d/train_y.npy" '<i8' '(256,)' $((256 * 8))
    npy "$work/d/test_x.npy" '<f4' '(64, 1, 28, 28)' $((64 * 784 * 4)); npy "$work/d/test_y.npy" '|u1' '(64,)' 64; }
arrays; npy "$work/d/test_x.npy" '|u1' '(64, 1, 28, 28)' $((64 * 784))
succeeds "arrays of one's own" "${run[@]}" --data "$work/d"
arrays; npy "$work/d/train_x.npy" '|u1' '(256, 1, 28, 27)' $((256 * 28 * 27))
refuses "arrays of another shape" "train_x.npy" "${run[@]}" --data "$work/d"
arrays; npy "$work/d/train_y.npy" '<i8' '(255,)' $((255 * 8))
refuses "arrays of different length" "train_y.npy|train_x.npy" "${run[@]}" --data "$work/d"
arrays; npy "$work/d/train_y.npy" '<f4' '(256,)' $((256 * 4))
refuses "labels that are no integers" "train_y.npy" "${run[@]}" --data "$work/d"
arrays; npy "$work/d/train_x.npy" '<c16' '(256, 1, 28, 28)' $((256 * 784 * 16))
refuses "numbers of an unknown kind" "train_x.npy" "${run[@]}" --data "$work/d"
arrays; npy "$work/d/train_x.npy" '<f4' '(256, 1, 28, 28)' $((256 * 784 * 4)); printf '\0\0\300\177' |
    dd of="$work/d/train_x.npy" bs=1 seek=$((128 + 4 * 1000)) conv=notrunc status=none
refuses "a sample that is not a number" "the samples hold numbers that are not finite: in epoch 1, step" "${run[@]}" --data "$work/d"
arrays; npy "$work/d/test_x.npy" '<f4' '(64, 1, 28, 28)' $((64 * 784 * 4)); printf '\0\0\200\177' |
    dd of="$work/d/test_x.npy" bs=1 seek=$((128 + 4 * 1000)) conv=notrunc status=none
refuses "a sample of the test split that is infinite" "test_x.npy: number 216 of sample 1 is inf, not a finite number" "${run[@]}" --data "$work/d"
arrays; truncate -s -1 "$work/d/train_x.npy"
refuses "an array cut off" "train_x.npy" "${run[@]}" --data "$work/d"
arrays; echo hello > "$work/d/train_x.npy"
refuses "an array that is a text" "train_x.npy" "${run[@]}" --data "$work/d"

# The disk is full when a checkpoint is written: the earlier checkpoint stays complete.
"${run[@]}" --checkpoint "$work/c" > /dev/null
before=$(cd "$work/c" && sha256sum ./*)
refuses "a full disk" "checkpoint|step-" bash -c 'ulimit -f 100; exec "$@"' bash "$work/p" --epochs 3 --limit-samples 256 --checkpoint "$work/c" --resume
same "the earlier checkpoint after a full disk" "$(cd "$work/c" && sha256sum ./*)" "$before"
succeeds "resumed after a full disk" "$work/p" --epochs 3 --limit-samples 256 --checkpoint "$work/c" --resume
refuses "weights that are none" "SHA256SUMS" "$work/p" test --weights "$mnist/SHA256SUMS"
refuses "bf16 between no ranks" "--wire is for programs built with --comm mpi" "$work/p" --wire bf16
finish
