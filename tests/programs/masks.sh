#!/usr/bin/env bash
# masks.sh -- padded texts: if lstm, gru and rnn get a mask of the steps that count, a text with padding before, after or inside of it
# gives the same result as without padding; a padded position has no weight in attention.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
layers=1                                              # sequences.sh has two
! deep "two layers of masked LSTMs" || layers=2
# model FILE MASK SCORES: a model with a mask m of the steps that count, or without
model() {
    cat > "$1" << END
model net(text: i32[time], vocab: int, time: int = 6) {
    m = mask(text)
    e = embedding(text, vocab, 6, padding = 0)
    h = lstm(e, 5, all = true, bidirectional = true, layers = $layers$2)
    h = concat([rnn(h, 5, all = true, activation = "relu"$2), gru(h, 4, all = true, recompute = 4$2)], axis = -1)
    p = dense(h, 24) |> split(3, axis = -1)
    scores = matmul(p[0], p[1], transpose_b = true)
    h = h + dense(matmul(softmax(scores$3), p[2]), 9)
    mean = sum(h * reshape(m, [time, 1]), axes = [0]) / reshape(sum(m, axes = [0]), [1])
    return dense(mean, 3) + dense(lstm(h, 6, h = gru(e, 6$2), c = tanh(mean |> dense(6))$2), 3)
}
train net {
    data      = synthetic(samples = 96, test_samples = 32, vocab = 20, classes = 3)
    loss      = softmax_cross_entropy
    optimizer = adam(lr = 0.01)
    batch     = 2
    shards    = 2
    epochs    = 3
}
END
}
# tokens FILE SHAPE NUMBER...: an array of int32; classes DIR: a class for each of two samples
tokens() {
    local file=$1 shape=$2 bytes=
    shift 2
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': $shape, }" > "$file"
    for number; do bytes+=$(printf '\\x%02x\\x00\\x00\\x00' "$number"); done
    printf "$bytes" >> "$file"
}
texts() { # DIR SHAPE NUMBER...
    mkdir "$1"
    for split in train test; do
        tokens "$1/${split}_x.npy" "${@:2}"
        tokens "$1/${split}_y.npy" '(2,)' 0 2
    done
}
texts "$work/short" '(2, 6)'  3 1 4 1 5 9   2 6 5 3 5 8
texts "$work/front" '(2, 10)' 0 0 0 0 3 1 4 1 5 9   0 0 0 0 2 6 5 3 5 8
texts "$work/behind" '(2, 10)' 3 1 4 1 5 9 0 0 0 0   2 6 5 3 5 8 0 0 0 0
texts "$work/inside" '(2, 10)' 3 0 1 4 0 0 1 5 0 9   0 2 6 0 5 3 5 0 0 8

# The program without padding and the one without masks are references: plain ones compile in a fifth of the time.
witness_level=-O0                                     # they compute a few samples
reference() { # MODEL PROGRAM OPTIONS...
    local model=$1 program=$2; shift 2
    if [ "$CHECK_DEEP" = 1 ]; then "$TENON" build "$model" -o "$program" "$@"; else witness "$model" "$program" "$@"; fi
}
deep "programs without padding and without masks, optimised" || true
model "$work/net.tn" ', mask = m' ' + (reshape(m, [1, time]) - 1) * 1e9'
succeeds "check every pass" "$TENON" show "$work/net.tn" --verify
succeeds "short: build" reference "$work/net.tn" "$work/p6" --dtype f64
succeeds "long: build" "$TENON" build "$work/net.tn" -o "$work/p10" --dtype f64 --set model.time=10
succeeds "plain: build" witness "$work/net.tn" "$work/plain" --dtype f64 --set model.time=10
of() { "$1" grads --data "$work/$2" --output "$work/grads.$2" "${@:3}" > "$work/loss.$2"; }
"$work/p6" train --epochs 1 --data "$work/short" --save "$work/weights" > /dev/null
of "$work/p6" short --weights "$work/weights"
for where in front behind inside; do
    of "$work/p10" $where --weights "$work/weights"
    succeeds "padding, $where: the same gradients as without" "$work/compare" "$work/grads.$where" "$work/grads.short" 1e-11
done
of "$work/plain" inside --weights "$work/weights"
succeeds "the plain program too" "$work/compare" "$work/grads.inside" "$work/grads.short" 1e-11
few="--samples 6"
if deep "gradients of more elements"; then few=; fi
# shellcheck disable=SC2086
succeeds "gradients" "$work/p10" gradcheck --data "$work/inside" --threads 2 $few
# The opposite: without masks, padding changes the gradients.
model "$work/none.tn" '' ''
succeeds "unmasked: build" reference "$work/none.tn" "$work/none" --dtype f64 --set model.time=10
of "$work/none" behind --weights "$work/weights"
"$work/compare" "$work/grads.behind" "$work/grads.short" 1e-3 > /dev/null && bad "padding does not count without a mask either" || ok

deep "masked texts in f32, by threads and groups" || { finish; exit; }
succeeds "f32: build" "$TENON" build "$work/net.tn" -o "$work/p" --set model.time=10 --batch 32 --set shards=4
train() { rm -f "$work/log"; "$work/p" train "$@" --log "$work/log" > /dev/null; hashes "$work/log"; }
want=$(train)
for how in "--threads 2" "--groups 2" "--groups 4 --threads 2"; do same "the same bits with $how" "$(train $how)" "$want"; done
finish
