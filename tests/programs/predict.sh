#!/usr/bin/env bash
# predict.sh -- `predict` of a compiled program: real digits get their classes, probabilities add up to 1, every form of output has the same
# rows, any number of rows works; --save and --output never replace a path that is not a file.
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
    same "$model: .npy holds f32 rows after its header" $((rows * 10 * 4)) $(($(stat -c %s "$work/out.npy") - 128))
done

# A word that is not a number, or of another type, is refused with its place.
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
# Rows as other tools write them: each sample counts, and only a row of names is skipped.
csv() { "$work/tiny" predict --weights "$work/tiny.safetensors" --input "$1"; }
printf '1,2,3,4\n5,6,7,8\n' > "$work/rows.csv"
csv "$work/rows.csv" > "$work/rows.out" || bad "two rows of numbers"
same "two rows" 2 "$(wc -l < "$work/rows.out")"
while IFS='|' read -r text rows; do
    printf "$rows" > "$work/form.csv"
    csv "$work/form.csv" > "$work/form.out" 2> "$work/err" || bad "$text: $(cat "$work/err")"
    same "$text" "$(cat "$work/rows.out")" "$(cat "$work/form.out")"
done << 'END'
a byte order mark|\xef\xbb\xbf1,2,3,4\n5,6,7,8\n
numbers in quotes|"1","2","3","4"\n"5","6","7","8"\n
some of them|"1",2,3,4\n5,6,7,"8"\n
a mark and quotes|\xef\xbb\xbf"1","2","3","4"\n5,6,7,8\n
names|a,b,c,d\n1,2,3,4\n5,6,7,8\n
a mark and names|\xef\xbb\xbfa,b,c,d\n1,2,3,4\n5,6,7,8\n
names in quotes|"a, ""b""","b; c",c,d\n1,2,3,4\n5,6,7,8\n
names with CR LF|a,b,c,d\r\n1,2,3,4\r\n5,6,7,8\r\n
a note in front|# by numpy.savetxt\n1,2,3,4\n5,6,7,8\n
CR LF|1,2,3,4\r\n5,6,7,8\r\n
no newline at the end|1,2,3,4\n5,6,7,8
CR LF and none at the end|1,2,3,4\r\n5,6,7,8\r
semicolons|1;2;3;4\n5;6;7;8\n
tabs|1\t2\t3\t4\n5\t6\t7\t8\n
blanks and empty rows|\n  1 , 2,\t3 ,4 \n\n \t\n5,6 ,7,8\n\n
other forms of numbers|1.0,+2,.3e1,0x4\n5.,6e0,7,8\n
END
while IFS='|' read -r text pattern rows; do
    printf "$rows" > "$work/form.csv"
    predicts "$text" "$pattern" --input "$work/form.csv"
done << 'END'
a first sample with a hole|form.csv:1: column 2 is empty, not a number|1,,3,4\n5,6,7,8\n
a first sample of holes|form.csv:1: column 1 is empty, not a number|,,,\n5,6,7,8\n
a first sample that is missing|form.csv:1: column 1 is 'NA', not a number|NA,NA,NA,NA\n5,6,7,8\n
a first sample with a slip|form.csv:1: column 3 is '3x', not a number|1,2,3x,4\n5,6,7,8\n
a first sample of slips|form.csv:1: column 1 is '1.2.3', not a number|1.2.3,2-,3x,4a\n5,6,7,8\n
names and numbers|form.csv:1: column 1 is 'a', not a number|a,2,3,4\n5,6,7,8\n
names further down|form.csv:2: column 1 is 'a', not a number|1,2,3,4\na,b,c,d\n
two rows of names|form.csv:2: column 1 is 'x', not a number|a,b,c,d\nx,y,z,w\n1,2,3,4\n
a word in row 3|form.csv:3: column 4 is 'eight', not a number|a,b,c,d\n1,2,3,4\n5,6,7,eight\n
a comma in a number|form.csv:1: column 2 is '2,5', not a number: write it with a point|1;2,5;3;4\n
an open quote|form.csv:2: the quote in column 2 is not closed|1,2,3,4\n5,"6,7,8\n
text behind a quote|form.csv:1: column 1 has text after its closing quote|"1"2,2,3,4\n
too few|form.csv:2: 3 numbers where a sample of tiny has 4|1,2,3,4\n5,6,7\n
a comma too many|form.csv:1: column 5 is empty|1,2,3,4,\n
UTF-16|form.csv is in UTF-16: save it as UTF-8|\xff\xfe1\x00\n\x00
zeros|form.csv:2: the row holds a byte of 0|1,2,3,4\n5,\x00,7,8\n
names alone|form.csv holds no sample|a,b,c,d\n
END

npy() { # FILE TYPE SHAPE: writes the header of an array
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
predicts "a text for numbers" "--text is for programs that predict from texts: build with data = tsv" --text ""
refuses "generate of classes" "generate is for networks that say which token comes next: build with data = text.*" "$work/tiny" generate --weights "$work/tiny.safetensors"

if mknod "$work/device" c 1 3 2> /dev/null; then
    refuses "--save to a device" "is a device or a pipe, not a file" "$work/p" --epochs 1 --limit-samples 128 --save "$work/device"
    same "the device is still one" "character special file" "$(stat -c %F "$work/device")"
else
    skip "no device nodes can be made here"
fi
refuses "--save to a directory" "is a directory, not a file" "$work/p" --epochs 1 --limit-samples 128 --save "$work"
finish
