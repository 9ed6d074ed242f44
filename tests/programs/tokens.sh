#!/usr/bin/env bash
# tokens.sh -- models with tokens as input: synthetic ones, or arrays of any integers; a vocabulary that does not fit is refused.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cat > "$work/m.tn" <<'END'
model words(text: i32[time], vocab: int, time: int = 12) {
    return one_hot(text, vocab) |> flatten |> dense(16) |> tanh |> dense(3)
}
train words {
    data      = synthetic(samples = 600, test_samples = 100, vocab = 20)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 32
    epochs    = 4
}
END
succeeds "build" "$TENON" build "$work/m.tn" -o "$work/m"
"$work/m" --threads 1 --log "$work/1.jsonl" > "$work/out"
grep -q 'test accuracy 1.0000' "$work/out" && ok || bad "made-up tokens are not learned: $(tail -1 "$work/out")"
"$work/m" --threads 2 --log "$work/2.jsonl" > /dev/null
same "two threads" "$(grep -o 'weights_hash":"[^"]*' "$work/1.jsonl" | tail -1)" "$(grep -o 'weights_hash":"[^"]*' "$work/2.jsonl" | tail -1)"
succeeds "bench" "$work/m" bench --steps 3
succeeds "f64" "$TENON" build "$work/m.tn" -o "$work/m64" --dtype f64
succeeds "gradients" "$work/m64" gradcheck

# A class for each position, and a binary label.
sed 's/|> flatten |> dense(16) |> tanh//' "$work/m.tn" > "$work/each.tn"
sed 's/dense(3)/dense(1)/; s/softmax_cross/sigmoid_cross/; s/epochs    = 4/epochs    = 12/' "$work/m.tn" > "$work/yes.tn"
for kind in each yes; do
    succeeds "$kind: build" "$TENON" build "$work/$kind.tn" -o "$work/$kind"
    "$work/$kind" --epochs 12 > "$work/fast"
    grep -Eq 'test accuracy (1.0000|0.99)' "$work/fast" && ok || bad "$kind: not learned: $(tail -1 "$work/fast")"
    succeeds "$kind: plain" witness "$work/$kind.tn" "$work/plain"
    "$work/plain" --epochs 12 > "$work/slow"
    same "$kind: optimised and plain" "$(tail -n 1 "$work/fast" | cut -d, -f1)" "$(tail -n 1 "$work/slow" | cut -d, -f1)"
    succeeds "$kind: f64" "$TENON" build "$work/$kind.tn" -o "$work/m64" --dtype f64
    succeeds "$kind: gradients" "$work/m64" gradcheck
done

# array FILE DESCR SHAPE NUMBER...: an array in NumPy's format; each number has one byte, which is extended by its
# sign
array() {
    local file=$1 size=${2:2} descr=$2 shape=$3 bytes=
    shift 3
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$descr', 'fortran_order': False, 'shape': $shape, }" > "$file"
    for number; do
        bytes+=$(printf '\\x%02x' $((number & 255)))
        for ((i = 1; i < size; i++)); do bytes+=$( ((number < 0)) && echo '\xff' || echo '\x00'); done
    done
    printf "$bytes" >> "$file"
}

# A position with label -1 is ignored: a text of which 6 of 12 positions are scored has the loss of a text of 6
# positions, to the last bit.
mkdir "$work/long" "$work/short"
for split in train test; do
    array "$work/long/${split}_x.npy" '<i4' '(2, 12)' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 0 1 2 3 4
    array "$work/long/${split}_y.npy" '<i4' '(2, 12)' -1 0 -1 1 -1 2 -1 1 -1 0 -1 1 2 -1 1 -1 0 -1 0 -1 -1 1 -1 2
    array "$work/short/${split}_x.npy" '<i4' '(2, 6)' 2 4 6 8 10 12 13 15 17 19 2 4
    array "$work/short/${split}_y.npy" '<i4' '(2, 6)' 0 1 2 1 0 1 2 1 0 0 1 2
done
of_data() { # DIRECTORY OPTION...: losses and accuracies of a step of two samples, and of the test before it
    "$TENON" build "$work/each.tn" -o "$work/of_$1" --dtype f64 --batch 2 --set shards=2 "${@:2}" > /dev/null
    rm -f "$work/of.jsonl"
    "$work/of_$1" --data "$work/$1" --epochs 1 --shuffle off --log-steps 1 --log "$work/of.jsonl" --threads 2 --save "$work/of_$1.safetensors" > /dev/null
    echo "$(field "$work/of.jsonl" step train_loss) $(field "$work/of.jsonl" step train_accuracy) $("$work/of_$1" test --data "$work/$1" --weights "$work/of_short.safetensors" | tail -n 1)"
}
want=$(of_data short --set model.time=6)
same "positions that are not scored" "$want" "$(of_data long)"
"$work/of_long" --data "$work/long" --epochs 1 --groups 2 --save "$work/groups.safetensors" > /dev/null
cmp -s "$work/of_long.safetensors" "$work/groups.safetensors" && ok || bad "positions that are not scored: other weights in two groups"
succeeds "gradients beside positions that are not scored" "$work/of_long" gradcheck --data "$work/long"

mkdir "$work/d"
run=("$work/m" --data "$work/d" --epochs 1)
for split in train test; do array "$work/d/${split}_y.npy" '<i8' '(2,)' 0 2; done
first=
for type in '|u1' '<u2' '<i4' '<i8'; do
    for split in train test; do
        array "$work/d/${split}_x.npy" "$type" '(2, 12)' 1 2 3 4 5 6 7 8 9 10 11 19 0 0 0 0 4 4 4 4 4 4 4 4
    done
    "${run[@]}" > "$work/out"
    line=$(sed 's/.*samples\/s//' "$work/out" | head -1)
    same "tokens as $type" "${first:=$line}" "$line"
done
array "$work/d/train_x.npy" '<i4' '(2, 12)' -1 -1 3 4 5 6 7 8 9 10 11 19 -1 -1 -1 -1 4 4 4 4 4 4 4 4
succeeds "padding" "${run[@]}"
array "$work/d/train_x.npy" '<i4' '(2, 12)' 1 2 3 4 5 6 7 8 9 10 11 19 0 0 0 20 4 4 4 4 4 4 4 4
refuses "a token outside the vocabulary" "train_x.npy: token 20 of sample 1 is out of range: the vocabulary is 0 to 19" "${run[@]}"
array "$work/d/train_x.npy" '<f4' '(2, 12)' 1 2 3 4 5 6 7 8 9 10 11 19 0 0 0 0 4 4 4 4 4 4 4 4
refuses "tokens that are no integers" "train_x.npy holds f32: tokens are u8, u16, i32 or i64" "${run[@]}"
array "$work/d/train_x.npy" '<i4' '(2, 11)' 1 2 3 4 5 6 7 8 9 10 11 19 0 0 0 0 4 4 4 4 4 4
refuses "texts of another length" "train_x.npy holds samples of shape 11, but words takes 12" "${run[@]}"
finish
