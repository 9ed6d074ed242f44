#!/usr/bin/env bash
# gradcheck.sh -- every operation's example, built in f64: the gradients agree with central differences to 1e-6, and those of the
# optimised program with those of the plain one to 1e-11.
#
# Parts: images norms sequences tables numbers two zero
# Deep parts: kink
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
witness_level=-O0                                     # the programs compute a few samples of a few numbers
names=$("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p')
[ "$(wc -w <<< "$names")" -ge 30 ] && ok || bad "tenon ops lists $(wc -w <<< "$names") operations, fewer than 30"

# family TEXT: the part to which an example belongs, by its kernels
family() {
    if [[ $1 =~ _norm|dropout ]]; then echo norms
    elif [[ $1 =~ lstm|gru|rnn|scan ]]; then echo sequences
    elif [[ $1 =~ attention|embedding|gather|rotary|sinusoidal|matmul ]]; then echo tables
    elif [[ $1 =~ conv2d|_pool ]]; then echo images
    else echo numbers; fi
}

case ${CHECK_PART:-} in kink | two | zero) names= ;; esac
for op in $names; do
    "$TENON" ops "$op" --example > "$work/$op.tn"
    part "$(family "$(< "$work/$op.tn")")" || continue
    [ -s "$work/$op.tn" ] || { bad "$op has no example"; continue; }
    case $op in                                       # measured with a loss, without a name in the example
    accuracy) used=softmax_cross_entropy ;;
    binary_accuracy) used=sigmoid_cross_entropy ;;
    *) used=$op ;;
    esac
    grep -qE "\b$used\b|[-+*/]" "$work/$op.tn" && ok || bad "$op: its example does not use it"
    # differences see what stop_gradient keeps away from gradients: tests/unit/test_passes.c tests it
    succeeds "$op: build --plain" witness "$work/$op.tn" "$work/q" --dtype f64
    if [ "$CHECK_DEEP" = 0 ]; then                    # the plain program has all gradient rules; kernels have other tests
        [ $op = stop_gradient ] || succeeds "$op: gradients" "$work/q" gradcheck --threads 1 --samples 8
        continue
    fi
    succeeds "$op: build" "$TENON" build "$work/$op.tn" -o "$work/p" --dtype f64
    [ $op = stop_gradient ] || succeeds "$op: gradients" "$work/p" gradcheck --threads 2
    if "$work/p" grads --output "$work/p.s" > /dev/null && "$work/q" grads --output "$work/q.s" > /dev/null; then
        succeeds "$op: optimised = plain" "$work/compare" "$work/p.s" "$work/q.s" 1e-11
    else
        bad "$op: grads"
    fi
done

! part numbers || deep "gradients of all operations as optimised programs, beside the plain ones" || true

program() { # NAME DIMENSIONS INIT BODY...
    printf 'model %s(x: f32[%s]) {\n%s\n}\n' "$1" "$2" "$4"
    printf 'train %s { data = synthetic(samples = 48, test_samples = 20, classes = 3); loss = mse; optimizer = sgd(lr = 0.05); batch = 16; epochs = 1%s }\n' "$1" "$3"
}

if part kink; then
    # Biases of zeros over padding put relu6 at its kink, where no difference is right; a wrong gradient must still be
    # found.
    program kink "1, 12, 12" "" '    h = conv2d(x, 8, kernel = 3) |> max_pool(2) |> relu
    h = conv2d(h, 8, kernel = 3, pad = 1, groups = 8) |> relu6
    return flatten(h) |> dense(3)' > "$work/kink.tn"
    succeeds "a kink: build" witness "$work/kink.tn" "$work/p" --dtype f64
    succeeds "a kink: gradients" "$work/p" gradcheck
    grep -q 'conv2.bias .*of its elements at a kink, not compared' "$work/out" && ok || bad "no kink is named: $(cat "$work/out")"
    succeeds "a kink: emit" "$TENON" emit "$work/kink.tn" --to c -o "$work/kink" --plain --cpu generic --dtype f64
    sed -i 's/s_select_gt((real)6, b\[i\], a\[i\], (real)0), (real)0)/s_select_gt((real)6, b[i], (real)1.01 * a[i], (real)0), (real)0)/' "$work"/kink/*.c
    grep -q '1.01 \* a' "$work"/kink/*.c || bad "relu6 has no gradient to make wrong"
    # shellcheck disable=SC2046
    succeeds "a wrong relu6: compile" cc -O1 $(one_file "$work"/kink/*.c --dtype f64) -o "$work/p" "$(dirname "$TENON")/lib/libtenonrt.a" -lz -lm -lpthread
    refuses "a wrong relu6 at a kink" "further than 1e-06" "$work/p" gradcheck
    same "each parameter behind it is wrong" 4 "$(grep -c '^conv.*WRONG' "$work/out")"
fi

if part two; then
    # batch_norm over two close numbers bends the loss within thousandths and multiplies its rounding errors: this
    # must not fail, and a gradient that is wrong by a ten-thousandth must still be found.
    program two 8 "; shards = 1" '    h = dense(x, 4) |> batch_norm |> tanh
    return dense(h, 6) |> batch_norm |> tanh |> dense(3)' | sed 's/batch = 16/batch = 2/; s/loss = mse/loss = softmax_cross_entropy/' > "$work/two.tn"
    succeeds "two numbers: emit" "$TENON" emit "$work/two.tn" --to c -o "$work/two" --plain --cpu generic --dtype f64
    lib=$(dirname "$TENON")/lib/libtenonrt.a
    # shellcheck disable=SC2046
    succeeds "two numbers: compile" cc -O1 $(one_file "$work"/two/*.c --dtype f64) -o "$work/p" "$lib" -lz -lm -lpthread
    for seed in 13 100 134 158; do succeeds "two numbers: gradients of seed $seed" "$work/p" gradcheck --seed $seed; done
    sed -i 's/a\[i\] \* (1 - b\[i\] \* b\[i\])/a[i] * ((real)1.0001 - b[i] * b[i])/' "$work"/two/*.c
    grep -q '1.0001 - b' "$work"/two/*.c || bad "tanh has no gradient to make wrong"
    # shellcheck disable=SC2046
    succeeds "two numbers, a wrong tanh: compile" cc -O1 $(one_file "$work"/two/*.c --dtype f64) -o "$work/p" "$lib" -lz -lm -lpthread
    refuses "two numbers, a wrong tanh" "further than 1e-06" "$work/p" gradcheck --seed 13
fi

if part zero; then
    # Gradients that are zero for every value of the parameter are right; those of weights that only begin at zero are
    # not compared.
    program once "1, 4" "" '    return gru(x, 3) |> dense(3)' > "$work/once.tn"
    succeeds "one step: build" witness "$work/once.tn" "$work/p" --dtype f64
    succeeds "one step: gradients" "$work/p" gradcheck
    grep -q 'recurrent .*(all zero, and the loss does not depend on it)' "$work/out" && ok || bad "recurrent weights of one step: $(cat "$work/out")"
    program stopped 4 "" '    return dense(x, 3) + stop_gradient(dense(x, 3))' > "$work/stopped.tn"
    succeeds "stopped: build" witness "$work/stopped.tn" "$work/p" --dtype f64
    refuses "stopped" "or zero throughout" "$work/p" gradcheck
    same "stopped: weights without a gradient" 2 "$(grep -c 'WRONG  (no gradient, and the loss depends on it: right only behind stop_gradient' "$work/out")"
    program zero 4 "; init = constant(0)" '    return dense(x, 5) |> tanh |> dense(3)' > "$work/zero.tn"
    succeeds "zeros: build" witness "$work/zero.tn" "$work/p" --dtype f64
    refuses "zeros" "or zero throughout" "$work/p" gradcheck
    same "zeros: not compared" 3 "$(grep -c 'all zero: nothing was compared' "$work/out")"
fi
finish
