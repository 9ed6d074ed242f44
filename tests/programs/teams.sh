#!/usr/bin/env bash
# teams.sh -- the gradients of every shipped model are the same bits for any number of threads: on whole slices, on teams of one size
# and of several sizes, and with slices that teams compute after whole rounds.
#
# Deep: compiles all shipped models, and runs each with up to 128 threads on this machine's processors.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$TENON_ROOT/tests/tools/machine.sh"

machine "$work/large" 2 8 8 # 128 cores
for model in $(shipped_models); do
    name=$(basename "$model" .tn)
    build "$name" "$work/p" || continue
    for threads in 1 2 3 5 7 11 16 33 64 128; do
        succeeds "$name grads --threads $threads" env TENON_MACHINE="$work/large" "$work/p" grads --threads $threads --output "$work/grads.$threads"
        cmp -s "$work/grads.1" "$work/grads.$threads" && ok || bad "$name: gradients of $threads threads have other bits than those of one"
    done
    rm -f "$work"/grads.*
done
finish
