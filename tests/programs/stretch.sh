#!/usr/bin/env bash
# stretch.sh -- scans with `recompute = every k`: the same bits as without it, in less planned memory, for any k, in both directions, and in
# lstm, gru and rnn; the same bits in groups and on two threads.
#
# Parts: twice
# Deep parts: layers cell
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# A cell, its reverse over two sequences, states that are exchanged, dropout, a learned and an outer value in the
# body, weights used twice.
{ cat << 'END'
model net(x: f32[23, 5], width: int = 16, every: int = 4) {
    h = zeros(width)
    c = zeros(width)
    scan step in x recompute = every every {
        z = dense(step, 4 * width) + dense(h, 4 * width, bias = false)
        g = split(z, 4)
        c = sigmoid(g[1]) * c + sigmoid(g[0]) * tanh(g[2])
        h = sigmoid(g[3]) * tanh(c)
        yield hs = h
    }
    b = tanh(bias(zeros(width)))
    last = dense(h, width)
    older = last
    fc = dense(width)
    scan up in hs, step in x reversed recompute = every (every + 1) {
        old = b
        b = tanh(dense(up, width) + older * 0.1 + dense(step, width) + fc(b) * last + fc(dropout(old, 0.2)))
        older = layer_norm(old)
        yield bs = b * up + last
    }
    return dense(flatten(bs), 3) + dense(b - older, 3)
}
END
recipe net 192 1; } > "$work/cell.tn"
{ cat << 'END'
model net(x: f32[23, 5], every: int = 4) {
    h = lstm(x, 16, all = true, bidirectional = true, recompute = every) + dense(x, 32)
    h = concat(gru(h, 16, recompute = every), gru(h, 16, reset = "before", recurrent_dropout = 0.3, recompute = every))
    return dense(h + rnn(x, 32, recompute = every), 3)
}
END
recipe net 192 1; } > "$work/layers.tn"

# A sequence that existed twice before equal values were merged.
{ cat << 'END'
model net(x: f32[23, 5], every: int = 4) {
    h = zeros(16)
    c = zeros(16)
    scan s in x recompute = every every {
        z = rms_norm(dense(s, 16) + dense(h, 16))
        c = sigmoid(z) * c + (1 - sigmoid(z)) * tanh(dense(concat(s, h), 16))
        h = tanh(c)
    }
    return dense(h, 3)
}
END
recipe net 192 1; } > "$work/twice.tn"

train() { rm -f "$work/log"; "$1" train "${@:2}" --log "$work/log" > /dev/null; hashes "$work/log"; }
planned() { "$1" info | sed -n 's/^planned bytes: \([0-9]*\) .*/\1/p'; }
for net in cell layers twice; do
    part $net || continue
    sed -E 's/ recompute = every (every|[(]every [+] 1[)])//; s/, recompute = every//g' "$work/$net.tn" > "$work/whole.tn"
    succeeds "$net: build" "$TENON" build "$work/whole.tn" -o "$work/whole"
    want=$(train "$work/whole")
    for every in $([ $net = cell ] && { [ "$CHECK_DEEP" = 1 ] && echo 1 4 100 || echo 4; } || echo 4); do
        succeeds "$net: build, every $every" "$TENON" build "$work/$net.tn" -o "$work/p$every" --set "model.every=$every" --verify
        same "$net: the same bits, every $every" "$(train "$work/p$every" --threads 2)" "$want"
    done
    same "$net: the same bits in two groups" "$(train "$work/p4" --groups 2)" "$want"
    all=$(planned "$work/whole") some=$(planned "$work/p4")
    [ "$some" -lt $((all * 9 / 10)) ] && ok || bad "$net: $some bytes planned, and $all without"
    same "$net: no more textbook operations" "$("$work/p4" info | grep flops)" "$("$work/whole" info | grep flops)"
done
if part twice; then
    # An operation of ten inputs is computed again.
    { cat << 'END'
model net(x: f32[12, 4]) {
    h = zeros(6)
    scan step in x recompute = every 4 {
        z = dense(h, 4) + step
        c = concat(z, z * 2.0, z * 3.0, z * 4.0, z * 5.0, z * 6.0, z * 7.0, z * 8.0, z * 9.0, tanh(z))
        h = tanh(dense(tanh(c) * 2.0, 6))
    }
    return dense(h, 3)
}
END
    recipe net 192 1; } > "$work/ten.tn"
    sed 's/ recompute = every 4//' "$work/ten.tn" > "$work/whole.tn"
    succeeds "ten inputs: build" "$TENON" build "$work/whole.tn" -o "$work/whole"
    succeeds "ten inputs: build, every 4" "$TENON" build "$work/ten.tn" -o "$work/p4" --verify
    want=$(train "$work/whole")
    same "ten inputs: the same bits" "$(train "$work/p4")" "$want"
fi
part cell || { finish; exit; }
deep "scans run again every 1 and 100 steps, and their gradients in f64" || { finish; exit; }
succeeds "f64" "$TENON" build "$work/cell.tn" -o "$work/f64" --dtype f64
succeeds "gradients" "$work/f64" gradcheck
finish
