#!/usr/bin/env bash
# data_changes.sh -- data that change between two runs, or during a run.  A resumed run needs the same bytes.  A mapped file that is
# truncated or overwritten ends the run with a message that names it and with a checkpoint, from which the run continues to the same bits.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cat > "$work/m.tn" <<'END'
model small(image: f32[1, 8, 8], classes: int = 3) {
    h = flatten(image) |> dense(8) |> relu
    return dense(h, classes)
}
train small { data = "none"; loss = softmax_cross_entropy; optimizer = sgd(lr = 0.05, momentum = 0.9); batch = 16; epochs = 4 }
END
cat > "$work/t.tn" <<'END'
model words(text: i32[time], vocab: int, time: int = 16) {
    return embedding(text, vocab, 8) |> flatten |> dense(3)
}
train words { data = synthetic(samples = 320, vocab = 200); loss = softmax_cross_entropy; optimizer = sgd(lr = 0.1); batch = 16; epochs = 4 }
END

# bytes NAME DESCR SHAPE COUNT [FILTER...]: an array of pseudo-random bytes, always the same
bytes() {
    local path=$1 descr=$2 shape=$3 count=$4; shift 4
    npy "$path" "$descr" "$shape" 0
    tail -c +100 "$TENON_ROOT/models/data/mnist/train-images-idx3-ubyte.gz" | "${@:-cat}" | head -c "$count" >> "$path" || true
}
classes() { tr '\0-\377' '\0\1\2\0-\2\0-\2\0-\2\0-\2[\1*]'; }
arrays() { # DIRECTORY
    mkdir -p "$1"
    bytes "$1/train_x.npy" '|u1' '(400, 1, 8, 8)' 25600
    bytes "$1/train_y.npy" '|u1' '(400,)' 400 classes
    bytes "$1/test_x.npy" '|u1' '(400, 1, 8, 8)' 25600
    bytes "$1/test_y.npy" '|u1' '(400,)' 400 classes
}
poke() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; } # FILE AT BYTES

"$TENON" build "$work/m.tn" -o "$work/p" || { bad "tenon build m.tn"; finish; exit 1; }
"$TENON" build "$work/m.tn" -o "$work/mean" --set "average=swa(from = 2)" || bad "tenon build m.tn with swa"
"$TENON" build "$work/t.tn" -o "$work/t" || { bad "tenon build t.tn"; finish; exit 1; }
arrays "$work/d"

# ---- between two runs
for threads in 1 2; do
    succeeds "a run with $threads" "$work/p" --data "$work/d" --threads $threads --checkpoint "$work/c$threads"
done
cp -r "$work/d" "$work/e"
succeeds "resumed with a copy of the data, by another number of threads" "$work/p" --data "$work/e" --threads 2 --checkpoint "$work/c1" --resume --epochs 5
poke "$work/e/train_x.npy" $((128 + 25599)) '\0'; poke "$work/d/train_x.npy" $((128 + 25599)) '\1'
refuses "a byte of the last sample differs" "made with samples whose bytes have the hash [0-9a-f]{16}, this run has samples whose bytes have the hash [0-9a-f]{16}: the training samples have changed" \
    "$work/p" --data "$work/e" --checkpoint "$work/c1" --resume --epochs 6
"$work/p" --data "$work/d" --checkpoint "$work/l" --limit-samples 100 > /dev/null
succeeds "what is beyond --limit-samples may differ" "$work/p" --data "$work/e" --checkpoint "$work/l" --limit-samples 100 --resume --epochs 5

# A checkpoint of a version that did not hash samples: the same text without that piece, with blanks in its place.
old=$(find "$work/c2" -name 'step-*' | sort | tail -n 1)
spaces() { printf '%*s' "$1" ''; }
sed -i "s/, samples whose bytes have the hash [0-9a-f]\{16\}\"/\"$(spaces 52)/" "$old"
cc -std=gnu11 -O1 -I "$TENON_ROOT/runtime" -o "$work/reseal" "$TENON_ROOT/tests/tools/reseal.c" "$(dirname "$TENON")/lib/libtenonrt.a" -lm -lpthread
"$work/reseal" "$old"
succeeds "an old checkpoint" "$work/p" --data "$work/e" --checkpoint "$work/c2" --resume --epochs 5
grep -q "compared labels only: the run goes on" "$work/out" && ok || bad "of an old checkpoint is said: $(cat "$work/out")"

# ---- during a run
# broken TEXT PATTERN PROGRAM DIRECTORY COMMAND...: COMMAND damages a file when the run is in its third epoch or later.
# If the damage meets a step that is already computing, nothing is saved, and the run says so.  The test is about the other
# case, so it is repeated.  Where other programs share the processors, a step waits for them, and is met more often.
broken() {
    local text=$1 pattern=$2 program=$3 directory=$4 job rc try; shift 4
    for try in $(seq 30); do
        rc=0
        rm -rf "$work/whole" "$work/c" "$work/log"; cp -r "$directory" "$work/whole"
        "$program" --data "$directory" --threads 2 --epochs 1000000 --checkpoint "$work/c" --checkpoint-every 1000000 --log "$work/log" > /dev/null 2> "$work/err" & job=$!
        for _ in $(seq 400); do [ -e "$work/log" ] && [ "$(grep -c '"event":"epoch"' "$work/log")" -ge 3 ] && break; sleep 0.02; done
        "$@"
        for _ in $(seq 400); do kill -0 $job 2> /dev/null || break; sleep 0.02; done
        kill -9 $job 2> /dev/null && bad "$text: the run goes on as if nothing had happened"
        wait $job || rc=$?
        rm -rf "$directory"; mv "$work/whole" "$directory"
        [ $try -lt 30 ] && grep -q "the last step may have used wrong samples, and the last checkpoint" "$work/err" || break
    done
    same "$text: exit code" 1 $rc
    grep -Eq -e "$pattern" "$work/err" && ok || bad "$text: $(cat "$work/err")"
}
# as_if_whole TEXT PROGRAM DIRECTORY: from the checkpoint of such a run, a resumed run reaches the weights of an
# undisturbed run
as_if_whole() {
    local text=$1 program=$2 directory=$3 epochs
    epochs=$(grep -o 'in epoch [0-9]*' "$work/err" | cut -d ' ' -f 3)
    grep -q "saved in $work/c" "$work/err" && ok || bad "$text: nothing is saved: $(cat "$work/err")"
    "$program" --data "$directory" --threads 2 --epochs "$epochs" --checkpoint "$work/c" --resume --save "$work/again.safetensors" > "$work/out" 2>&1 || bad "$text: --resume: $(cat "$work/out")"
    "$program" --data "$directory" --threads 1 --epochs "$epochs" --save "$work/once.safetensors" > "$work/out" 2>&1 || bad "$text: $(cat "$work/out")"
    cmp -s "$work/again.safetensors" "$work/once.safetensors" && ok || bad "$text: other weights than those of a run that nobody disturbed"
}

broken "a mapped file cut short" "train_x.npy holds 4096 bytes now, and held 25728 when it was opened.*in epoch [0-9]+ after" "$work/p" "$work/d" truncate -s 4096 "$work/d/train_x.npy"
as_if_whole "a mapped file cut short" "$work/p" "$work/d"
broken "one cut to nothing" "train_x.npy holds 0 bytes now" "$work/p" "$work/d" truncate -s 0 "$work/d/train_x.npy"
as_if_whole "one cut to nothing" "$work/p" "$work/d"
broken "test samples cut short" "test_x.npy holds 4096 bytes now" "$work/p" "$work/d" truncate -s 4096 "$work/d/test_x.npy"
as_if_whole "test samples cut short" "$work/p" "$work/d"
broken "test samples cut short, averaged weights" "test_x.npy holds 4096 bytes now" "$work/mean" "$work/d" truncate -s 4096 "$work/d/test_x.npy"
as_if_whole "test samples cut short, averaged weights" "$work/mean" "$work/d" # the mean has the epoch once

tokens() { # DESCR BYTES: the type and size of a token; its low byte is below 200
    mkdir -p "$work/w"
    for split in train test; do
        npy "$work/w/${split}_x.npy" "$1" '(320, 16)' 0
        head -c 5120 "$TENON_ROOT/models/data/mnist/train-images-idx3-ubyte.gz" | od -An -v -w1 -tu1 |
            awk -v b="$2" '{ printf "\\x%02x", $1 % 200; for (i = 1; i < b; i++) printf "\\x00" }' > "$work/hex"
        printf "$(cat "$work/hex")" >> "$work/w/${split}_x.npy"
        bytes "$work/w/${split}_y.npy" '|u1' '(320,)' 320 classes
    done
}
kinds="u1=1 i4=4"
[ "${CHECK_DEEP:-0}" = 1 ] && kinds="u1=1 u2=2 i4=4 i8=8"
for kind in $kinds; do
    rm -rf "$work/w"; tokens "$([ $kind = u1=1 ] && echo '|' || echo '<')${kind%=*}" ${kind#*=}
    if [ $kind = u1=1 ]; then spoil() { head -c 5120 /dev/zero | tr '\0' '\311' | dd of="$work/w/train_x.npy" bs=65536 seek=128 oflag=seek_bytes conv=notrunc status=none; }
    else spoil() { head -c $((5120 * ${kind#*=})) /dev/zero | tr '\0' '\177' | dd of="$work/w/train_x.npy" bs=65536 seek=128 oflag=seek_bytes conv=notrunc status=none; }; fi
    broken "tokens written over, ${kind%=*}" "train_x.npy has changed while it was read: it holds a token that is not one of the 200" "$work/t" "$work/w" spoil
    as_if_whole "tokens written over" "$work/t" "$work/w"
done
finish
