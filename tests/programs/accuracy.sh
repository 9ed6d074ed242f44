#!/usr/bin/env bash
# accuracy.sh -- networks learn: a short run by default; with CHECK_DEEP=1 the whole recipes of the models.
#
# Parts: lenet mlp
set -euo pipefail
. "$(dirname "$0")/../common.sh"

# reaches MODEL LEAST ARGUMENTS...: the test accuracy of the last epoch is at least LEAST
reaches() {
    local model=$1 least=$2 got; shift 2
    rm -f "$work/log"
    build "$model" "$work/p"
    "$work/p" "$@" --log "$work/log" > "$work/out" 2>&1 || bad "$model: exit code $?"
    got=$(field "$work/log" epoch test_accuracy | awk '{ print $NF }')
    echo "$model $*: test accuracy $got"
    awk -v a="${got:-0}" -v b="$least" 'BEGIN { exit !(a >= b) }' && ok || bad "$model $*: test accuracy $got is below $least"
}

if part lenet && deep "the whole recipes of three LeNets (docs/tutorial.sh trains LeNet for two epochs)"; then
    reaches lenet 0.990 --strict
    reaches lenet_relu 0.988 --strict
    reaches lenet_tanh 0.988 --strict
fi
if part mlp; then
    reaches mlp 0.940 --epochs 1
    if deep "the whole recipe of the MLP"; then reaches mlp 0.975 --strict; fi
fi
finish
