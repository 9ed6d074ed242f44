#!/usr/bin/env bash
# sequences.sh -- scans: gradients against differences, optimised = plain, the same bits for any threads, ranks and resumes,
# and a program whose text does not grow with the number of steps.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
recipe() {
    cat << END
train $1 {
    data      = synthetic(samples = 256, test_samples = 64, classes = 3)
    loss      = softmax_cross_entropy
    optimizer = rmsprop(lr = 0.01)
    batch     = 32
    shards    = 4
    epochs    = 2
}
END
}
# A cell, its reverse over two sequences, states that change places, a learned and an outer value in the body, weights used twice.
{ cat << 'END'
block lstm_cell(x, width: int) {
    h = zeros(width)
    c = zeros(width)
    scan step in x {
        z = dense(step, 4 * width) + dense(h, 4 * width, bias = false)
        i = slice(z, axis = 0, start = 0, size = width)
        f = slice(z, axis = 0, start = width, size = width)
        g = slice(z, axis = 0, start = 2 * width, size = width)
        o = slice(z, axis = 0, start = 3 * width, size = width)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        yield hs = h
    }
    return hs
}
model net(x: f32[7, 5], width: int = 6) {
    hs = lstm_cell(x, width)
    b = tanh(bias(zeros(width)))
    last = dense(flatten(x), width)
    older = last
    fc = dense(width)
    scan h in hs, step in x reversed {
        old = b
        b = tanh(dense(h, width) + older * 0.1 + dense(step, width) + fc(b) * last + fc(old))
        older = layer_norm(old)
        yield bs = b * h + last
        yield same = last
    }
    return dense(flatten(bs), 3) + dense(b - older, 3) + dense(flatten(same), 3)
}
END
recipe net; } > "$work/net.tn"

succeeds "check every pass" "$TENON" show "$work/net.tn" --verify
for how in "" --plain; do
    succeeds "build $how" "$TENON" build "$work/net.tn" -o "$work/f64$how" --dtype f64 $how
    succeeds "gradients $how" "$work/f64$how" gradcheck --threads 2
    "$work/f64$how" grads --output "$work/grads$how" > /dev/null
done
succeeds "optimised = plain" "$work/compare" "$work/grads" "$work/grads--plain" 1e-11

succeeds "build" "$TENON" build "$work/net.tn" -o "$work/p"
train() { rm -f "$work/log"; "$work/p" train "$@" --log "$work/log" > /dev/null; hashes "$work/log"; }
want=$(train)
for how in "--threads 2" "--threads 4" "--groups 2" "--groups 4 --threads 2"; do
    same "the same bits with $how" "$(train $how)" "$want"
done
train --epochs 1 --checkpoint "$work/c" > /dev/null
same "the same bits after a resume" "$(train --checkpoint "$work/c" --resume 2> /dev/null | awk '{ print $NF }')" "$(awk '{ print $NF }' <<< "$want")"
succeeds "build without vectors" "$TENON" build "$work/net.tn" -o "$work/g" --cpu generic
succeeds "trains without vectors" "$work/g" train --epochs 1

# The loop stays a loop: 100 times the steps, the same text but for the digits of its sizes.
{ echo 'model long(x: f32[steps, 5], steps: int = 40) {
    h = zeros(8)
    scan step in x { h = tanh(dense(step, 8) + dense(h, 8)) }
    return dense(h, 3)
}'; recipe long; } > "$work/long.tn"
for steps in 40 4000; do
    succeeds "emit $steps steps" "$TENON" emit "$work/long.tn" --to c -o "$work/c$steps" --set "model.steps=$steps"
    sed -E 's/[0-9.]+e?[+-]?[0-9]*|[kM]?(FLOP|B)//g; s/ +/ /g' "$work/c$steps/long.c" > "$work/text$steps"
done
lines40=$(wc -l < "$work/text40") lines4000=$(wc -l < "$work/text4000")
same "lines of 40 and of 4000 steps" "$lines40" "$lines4000"
[ "$(grep -c 'for (int step = ' "$work/c4000/long.c")" -ge 2 ] && ok || bad "no loop over the steps"
finish
