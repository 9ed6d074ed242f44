#!/usr/bin/env bash
# predict.sh -- a compiled program's `predict`: real digits get their classes, probabilities add up, every output form holds
# the same rows, any number of rows works; --save and --output never replace what is no file.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

mnist=$TENON_ROOT/models/data/mnist
rows=300
zcat "$mnist/t10k-images-idx3-ubyte.gz" > "$work/images"
zcat "$mnist/t10k-labels-idx1-ubyte.gz" > "$work/labels"
od -An -v -tu1 -w784 -j16 -N$((rows * 784)) "$work/images" |
    awk '{ for (i = 1; i <= NF; i++) printf "%s%.6g", (i > 1 ? "," : ""), $i / 255; print "" }' > "$work/x.csv"
od -An -v -tu1 -w1 -j8 -N$rows "$work/labels" | tr -d ' ' > "$work/y"

for model in mlp lenet; do
    build $model "$work/p"
    succeeds "$model: train a little" "$work/p" --epochs 1 --limit-samples 6400 --save "$work/w.safetensors"
    succeeds "$model: predict" "$work/p" predict --weights "$work/w.safetensors" --input "$work/x.csv" --output "$work/out.csv"
    same "$model: a row a sample" $rows "$(wc -l < "$work/out.csv")"
    right=$(paste -d, "$work/y" "$work/out.csv" | awk -F, '{ best = 2; for (i = 3; i <= NF; i++) if ($i > $best) best = i; n += best - 2 == $1 } END { print n }')
    if [ "$right" -ge $((rows * 80 / 100)) ]; then ok; else bad "$model: only $right of $rows digits are right"; fi
    off=$(awk -F, '{ s = 0; for (i = 1; i <= NF; i++) s += $i; if (s < 0.99999 || s > 1.00001) n++ } END { print n + 0 }' "$work/out.csv")
    same "$model: probabilities add up to 1" 0 "$off"
    "$work/p" predict --weights "$work/w.safetensors" --input "$work/x.csv" --threads 3 > "$work/stdout.csv"
    same "$model: the same rows on stdout, with other threads" "$(cksum < "$work/out.csv")" "$(cksum < "$work/stdout.csv")"
    for n in 1 127 129; do
        head -n $n "$work/x.csv" > "$work/few.csv"
        "$work/p" predict --weights "$work/w.safetensors" --input "$work/few.csv" > "$work/few.out"
        same "$model: $n rows are the first of all" "$(head -n $n "$work/out.csv" | cksum)" "$(cksum < "$work/few.out")"
    done
    succeeds "$model: .npy" "$work/p" predict --weights "$work/w.safetensors" --input "$work/x.csv" --output "$work/out.npy"
    same "$model: .npy holds f32 rows behind its header" $((rows * 10 * 4)) $(($(stat -c %s "$work/out.npy") - 128))
done

# what is no number, or of another type, is refused with its place
cat > "$work/tiny.tn" << 'END'
model tiny(x: f32[4]) {
    for i in 0..7 { x = dense(x, 4) }
    return dense(x, 3)
}
train tiny { data = synthetic(samples = 40, test_samples = 10, classes = 3); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 8; epochs = 1 }
END
succeeds "tiny: build" "$TENON" build "$work/tiny.tn" -o "$work/tiny"
succeeds "tiny: train" "$work/tiny" --save "$work/tiny.safetensors"
grep -q 'accuracy [0-9.]*, 1 epoch, ' "$work/out" && ok || bad "one epoch: $(tail -n 1 "$work/out")"
predicts() { local text=$1 pattern=$2; shift 2; refuses "$text" "$pattern" "$work/tiny" predict --weights "$work/tiny.safetensors" "$@"; }
for bad in nan -inf 1e39; do
    printf '1,2,3,4\n5,%s,6,7\n' $bad > "$work/bad.csv"
    predicts "$bad in a .csv" "bad.csv: number 1 of sample 1 is (nan, not a|-inf, not a|1e\+39, too large)" --input "$work/bad.csv"
done
npy() { # FILE TYPE SHAPE: the head of an array
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': $2, 'fortran_order': False, 'shape': $3, }"; } > "$work/$1"
}
npy bad.npy "'<f4'" "(2, 4)"
{ head -c 28 /dev/zero; printf '\x00\x00\x80\x7f'; } >> "$work/bad.npy"
predicts "an infinity in a .npy" "bad.npy: number 3 of sample 1 is inf, not a finite number" --input "$work/bad.npy"
npy good.npy "'<f4'" "(2, 4)"
head -c 32 /dev/zero >> "$work/good.npy"
succeeds "zeros in a .npy" "$work/tiny" predict --weights "$work/tiny.safetensors" --input "$work/good.npy"
npy bad.npy "'<c16'" "(2, 4)"
predicts "complex numbers" "bad.npy holds elements of type '<c16', which cannot be used here" --input "$work/bad.npy"
npy bad.npy "[('a', '<f4')]" "(2, 4)"
predicts "records" "bad.npy holds records of several fields" --input "$work/bad.npy"
refuses "weights of another model" "does not hold the weights of tiny, but of lenet: 20 tensors differ" "$work/tiny" predict --weights "$work/w.safetensors" --input "$work/good.npy"
same "ten of them are named" "12 and 10 more" "$(wc -l < "$work/err")$(tail -n 1 "$work/err" | sed 's/^ *//; s/^/ /')"
predicts "an empty text" "--text is empty" --text ""
refuses "generate of classes" "does not read data = text.*predict. says the class" "$work/tiny" generate --weights "$work/tiny.safetensors"

if mknod "$work/device" c 1 3 2> /dev/null; then
    refuses "--save to a device" "is a device or a pipe, not a file" "$work/p" --epochs 1 --limit-samples 128 --save "$work/device"
    same "the device is still one" "character special file" "$(stat -c %F "$work/device")"
else
    skip "no device nodes can be made here"
fi
refuses "--save to a directory" "is a directory, not a file" "$work/p" --epochs 1 --limit-samples 128 --save "$work"
finish
