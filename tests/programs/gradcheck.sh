#!/usr/bin/env bash
# gradcheck.sh -- every operation's example, built in f64: its gradients agree with central differences to 1e-6, and the
# optimised program's with the plain one's to 1e-11.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

cc -std=gnu11 -O1 -o "$work/compare" "$TENON_ROOT/tests/tools/compare.c" -lm
witness_level=-O0                                     # of a few samples of a few numbers
names=$("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p')
[ "$(wc -w <<< "$names")" -ge 30 ] && ok || bad "tenon ops lists $(wc -w <<< "$names") operations, fewer than 30"

for op in $names; do
    "$TENON" ops "$op" --example > "$work/$op.tn"
    [ -s "$work/$op.tn" ] || { bad "$op has no example"; continue; }
    case $op in                                       # measured beside a loss, without being named
    accuracy) used=softmax_cross_entropy ;;
    binary_accuracy) used=sigmoid_cross_entropy ;;
    *) used=$op ;;
    esac
    grep -qE "\b$used\b|[-+*/]" "$work/$op.tn" && ok || bad "$op: its example does not use it"
    succeeds "$op: build" "$TENON" build "$work/$op.tn" -o "$work/p" --dtype f64
    succeeds "$op: build --plain" witness "$work/$op.tn" "$work/q" --dtype f64
    succeeds "$op: gradients" "$work/p" gradcheck --threads 2
    if "$work/p" grads --output "$work/p.s" > /dev/null && "$work/q" grads --output "$work/q.s" > /dev/null; then
        succeeds "$op: optimised = plain" "$work/compare" "$work/p.s" "$work/q.s" 1e-11
    else
        bad "$op: grads"
    fi
done
finish
