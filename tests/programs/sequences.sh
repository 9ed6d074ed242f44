#!/usr/bin/env bash
# sequences.sh -- scans: gradients against differences, optimised equals plain, the same bits for any threads, ranks and resumes, and a
# program whose text does not grow with the number of steps.
# Parts: net loop
# Deep parts: layers
set -euo pipefail
. "$(dirname "$0")/../common.sh"

witness_level=-O0                                     # the programs compute one epoch of 256 samples at most
cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
if part net; then
    # A cell, its reverse over two sequences, states that are exchanged, a learned and an outer value in the body, weights
    # used twice.
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
    recipe net 256 2; } > "$work/net.tn"

    succeeds "check every pass" "$TENON" show "$work/net.tn" --verify
    succeeds "build" "$TENON" build "$work/net.tn" -o "$work/f64" --dtype f64
    succeeds "build --plain" witness "$work/net.tn" "$work/f64--plain" --dtype f64
    for how in "" --plain; do
        succeeds "gradients $how" "$work/f64$how" gradcheck --threads 2
        "$work/f64$how" grads --output "$work/grads$how" > /dev/null
    done
    succeeds "optimised = plain" "$work/compare" "$work/grads" "$work/grads--plain" 1e-11

    program=$work/f64
    if deep "scans in f32, with and without vectors"; then
        succeeds "build" "$TENON" build "$work/net.tn" -o "$work/p"
        succeeds "build without vectors" "$TENON" build "$work/net.tn" -o "$work/g" --cpu generic
        succeeds "trains without vectors" "$work/g" train --epochs 1
        program=$work/p
    fi
    train() { rm -f "$work/log"; "$program" train "$@" --log "$work/log" > /dev/null; hashes "$work/log"; }
    want=$(train)
    for how in "--threads 2" "--threads 4" "--groups 2" "--groups 4 --threads 2"; do
        same "the same bits with $how" "$(train $how)" "$want"
    done
    train --epochs 1 --checkpoint "$work/c" > /dev/null
    same "the same bits after a resume" "$(train --checkpoint "$work/c" --resume 2> /dev/null | awk '{ print $NF }')" "$(awk '{ print $NF }' <<< "$want")"
fi

if part layers; then
    cc -std=gnu11 -O1 -I "$TENON_ROOT/runtime" -o "$work/reseal" "$TENON_ROOT/tests/tools/reseal.c" "$(dirname "$TENON")/lib/libtenonrt.a" -lm -lpthread
    # lstm, gru and rnn equal their cells written as a scan.  The names of both have equal lengths, so that a file of
    # weights can be renamed.
    layer() { # NAME, the call, the scan, the lines before the call: compares the layer with the scan, with equal weights
        printf 'model layer(x: f32[6, 5]) {\n    %s\n    return dense(%s, 3)\n}\n' "${4:-}" "$2" > "$work/layer.tn"
        printf 'model layer(x: f32[6, 5]) {\n%s\n    return dense(h, 3)\n}\n' "$3" > "$work/cell.tn"
        recipe layer 256 2 | tee -a "$work/layer.tn" >> "$work/cell.tn"
        succeeds "$1: build layer" "$TENON" build "$work/layer.tn" -o "$work/layer" --dtype f64
        if [ "$CHECK_DEEP" = 1 ]; then succeeds "$1: build cell" "$TENON" build "$work/cell.tn" -o "$work/cell" --dtype f64
        else succeeds "$1: build cell" witness "$work/cell.tn" "$work/cell" --dtype f64; fi
        "$work/layer" train --epochs 1 --save "$work/weights" > /dev/null
        rename() { LC_ALL=C sed 's/lstm1[.]recurrent/recurren.weight/g;s/[rg][nr][nu]1[.]recurrent/recurre.weight/g
                             s/gru1[.]candidate_bias/candidate_bias.bias/g;s/gru1[.]candidate/candida.weight/g
                             s/lstm2[.]layer2[.]reverse[.]recurrent/layer2_reverse_recurren.weight/g
                             s/lstm2[.]layer2[.]reverse[.]/layer2_reverse_input./g;s/lstm2[.]layer2[.]recurrent/layer2_recurren.weight/g
                             s/lstm2[.]layer2[.]/layer2_input./g;s/lstm2[.]reverse[.]recurrent/reverse_recurren.weight/g
                             s/lstm2[.]reverse[.]/reverse_input./g;s/lstm2[.]recurrent/recurren.weight/g' "$1" > "$1.renamed"; "$work/reseal" "$1.renamed"; }
        rename "$work/weights"
        "$work/layer" grads --weights "$work/weights" --output "$work/grads.layer" > /dev/null
        rename "$work/grads.layer"
        succeeds "$1: takes the layer's weights" "$work/cell" grads --weights "$work/weights.renamed" --output "$work/grads.cell"
        succeeds "$1 = its scan" "$work/compare" "$work/grads.layer.renamed" "$work/grads.cell" 1e-11
    }
    layer lstm1 'lstm(x, 4)' '    h = zeros(4)
    c = zeros(4)
    scan step in x {
        lstm1 = dense(step, 16)
        recurren = dense(h, 16, bias = false)
        gates = split(lstm1 + recurren, 4)
        c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2])
        h = sigmoid(gates[3]) * tanh(c)
    }'
    layer rnn1 'rnn(x, 4, activation = "relu", all = true) |> flatten' '    h = zeros(4)
    scan step in x {
        rnn1 = dense(step, 4)
        recurre = dense(h, 4, bias = false)
        h = relu(rnn1 + recurre)
        yield hs = h
    }
    h = flatten(hs)'
    layer gru1 'gru(x, 4)' '    h = zeros(4)
    candidate_bias = bias(zeros(4))
    scan step in x {
        gru1 = dense(step, 12)
        recurre = dense(h, 12, bias = false)
        a = split(gru1, 3)
        b = split(recurre, 3)
        r = sigmoid(a[0] + b[0])
        z = sigmoid(a[1] + b[1])
        n = tanh(a[2] + r * (b[2] + candidate_bias))
        h = (1 - z) * n + z * h
    }'
    way() { # SEQUENCE, names of the products, of the states' sequence, "reversed": one direction of one layer
    cat << END
    h = zeros(3)
    c = zeros(3)
    scan step in $1 ${5:-} {
        $2 = dense(step, 12)
        $3 = dense(h, 12, bias = false)
        gates = split($2 + $3, 4)
        c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2])
        h = sigmoid(gates[3]) * tanh(c)
        yield $4 = h
    }
END
}
layer lstm2 'flatten(lstm2)' "$(way x lstm2 recurren ahead; way x reverse_input reverse_recurren back reversed
    echo '    both = concat([ahead, back], axis = -1)'; way both layer2_input layer2_recurren ahead2
    way both layer2_reverse_input layer2_reverse_recurren back2 reversed; echo '    h = flatten(concat([ahead2, back2], axis = -1))')" \
    'lstm2 = lstm(x, 3, layers = 2, bidirectional = true, all = true)'
layer gru1 'gru1' '    first = dense(flatten(x), 4) |> tanh
        h = first
        scan step in x {
            gru1 = dense(step, 12)
            recurre = dense(h, 8, bias = false)
            a = split(gru1, 3)
            b = split(recurre, 2)
            r = sigmoid(a[0] + b[0])
            z = sigmoid(a[1] + b[1])
            candida = dense(r * h, 4, bias = false)
            h = (1 - z) * tanh(a[2] + candida) + z * h
        }' 'first = dense(flatten(x), 4) |> tanh; gru1 = gru(x, 4, reset = "before", h = first)'
fi

if part loop; then
    # The loop stays a loop: with 100 times the steps, the text differs only in the digits of sizes.
    { echo 'model long(x: f32[steps, 5], steps: int = 40) {
    h = zeros(8)
    scan step in x { h = tanh(dense(step, 8) + dense(h, 8)) }
    return dense(h, 3)
}'; recipe long 256 2; } > "$work/long.tn"
    for steps in 40 4000; do
        succeeds "emit $steps steps" "$TENON" emit "$work/long.tn" --to c -o "$work/c$steps" --set "model.steps=$steps"
        sed -E 's/[0-9.]+e?[+-]?[0-9]*|[kM]?(FLOP|B)//g; s/ +/ /g' "$work/c$steps/long.c" > "$work/text$steps"
    done
    lines40=$(wc -l < "$work/text40") lines4000=$(wc -l < "$work/text4000")
    same "lines of 40 and of 4000 steps" "$lines40" "$lines4000"
    for steps in 40 4000; do
        succeeds "build $steps steps" "$TENON" build "$work/long.tn" -o "$work/p$steps" --set "model.steps=$steps"
        size=$(stat -c %s "$work/p$steps")
        awk -v a="${first:=$size}" -v b="$size" 'BEGIN { exit !(b < 1.02 * a) }' && ok || bad "a program of $first bytes grows to $size with the steps"
    done
    [ "$(grep -c 'for (int step = ' "$work/c4000/long.c")" -ge 2 ] && ok || bad "no loop over the steps"
fi
finish
