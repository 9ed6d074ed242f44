#!/usr/bin/env bash
# gather.sh -- indices that each sample has: tokens, class numbers and computed numbers, inside and after a scan.  gather equals the same
# formula with matmul and one_hot, or softmax_cross_entropy; optimised programs equal plain ones; any way to run gives the same bits.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
# model FILE SCORES LOSS: a model with a memory that each step of a scan reads, the last step selected, and a score
# for each token
model() {
    cat > "$1" << END
model net(text: i32[time], vocab: int, time: int = 13) {
    e = embedding(text, vocab, 6)
    memory = dense(e, 8) |> tanh
    scores = dense(e, time) |> tanh
    h = zeros(8)
    scan x in e {
        z = dense(x, 8) + dense(h, 8) + gather(memory, 6 + 20 * sum(x, axes = [0]))
        h = tanh(z + gather(z, reshape(sum(x * x, axes = [0]), [1]) * 30))
        yield hs = h
    }
    kept = gather(hs, sum(one_hot(text, vocab), axes = [0]) |> gather([2]))
    return dense(flatten($2), 5) + dense(h, 5) + dense(flatten(kept), 5)
}
train net {
    data      = synthetic(samples = 256, test_samples = 64, vocab = 13, classes = 5)
    loss      = $3
    optimizer = adam(lr = 0.01)
    batch     = 32
    shards    = 4
    epochs    = 2
}
END
}
model "$work/net.tn" 'gather(scores, text)' 'log(sum(exp(output), axes = [0])) - gather(output, label)'
model "$work/hand.tn" 'matmul(one_hot(text, time), scores)' softmax_cross_entropy
succeeds "check every pass" "$TENON" show "$work/net.tn" --verify
succeeds "build" "$TENON" build "$work/net.tn" -o "$work/f64" --dtype f64
succeeds "build --plain" witness "$work/net.tn" "$work/f64--plain" --dtype f64
for how in "" --plain; do
    succeeds "gradients $how" "$work/f64$how" gradcheck --threads 2
    "$work/f64$how" grads --output "$work/grads$how" > /dev/null
done
succeeds "optimised = plain" "$work/compare" "$work/grads" "$work/grads--plain" 1e-11
succeeds "by hand: build" "$TENON" build "$work/hand.tn" -o "$work/hand" --dtype f64
"$work/hand" grads --output "$work/grads.hand" > /dev/null
succeeds "gather = products with one_hot, the class's loss = softmax_cross_entropy" "$work/compare" "$work/grads" "$work/grads.hand" 1e-11

program=$work/f64
if deep "places of each sample in f32 with all instruction sets"; then
    for cpu in x86-64-v3 generic native; do
        [ $cpu != x86-64-v3 ] || [ "$(uname -m)" = x86_64 ] || continue
        succeeds "build for $cpu" "$TENON" build "$work/net.tn" -o "$work/p" --cpu $cpu
        succeeds "trains on $cpu" "$work/p" train --epochs 1
    done
    program=$work/p
fi
train() { rm -f "$work/log"; "$program" train "$@" --log "$work/log" > /dev/null; hashes "$work/log"; }
want=$(train)
for how in "--threads 2" "--groups 2" "--groups 4 --threads 2"; do same "the same bits with $how" "$(train $how)" "$want"; done
train --epochs 1 --checkpoint "$work/c" > /dev/null
same "the same bits after a resume" "$(train --checkpoint "$work/c" --resume 2> /dev/null | awk '{ print $NF }')" "$(awk '{ print $NF }' <<< "$want")"
cat > "$work/script.tn" << 'END'
model script(text: i32[6]) { h = embedding(text, 6, 8); return gather(h, text, axis = 0) |> flatten |> dense(3) }
train script { data = synthetic(samples = 16, test_samples = 8, vocab = 6); loss = softmax_cross_entropy; optimizer = adam; batch = 8; epochs = 1 }
END
refuses "in a script" "--to pytorch cannot write gather$" "$TENON" emit "$work/script.tn" --to pytorch -o "$work/script"
succeeds "on a GPU" "$TENON" emit "$work/net.tn" --to cuda -o "$work/cuda"     # cuda.sh runs it: tests/cuda/places.tn
finish
