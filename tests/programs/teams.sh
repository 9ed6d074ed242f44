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
    name=$(basename "$model" .tn) more=() counts="1 2 3 5 7 11 16 33 64 128"
    case $name in
    *cifar10* | densenet*) more=(--set 'data=synthetic(samples=512,test_samples=8)') ;; # this repository has no CIFAR-10
    resnet50 | inception_v3 | vgg11 | mobilenet_v2) counts="1 3 16 33 128" ;;           # a step takes seconds
    esac
    build "$name" "$work/p" "${more[@]}" || continue
    for threads in $counts; do
        if ! TENON_MACHINE=$work/large "$work/p" grads --threads $threads --output "$work/grads.$threads" > "$work/out" 2> "$work/err"; then
            if grep -q 'no data set' "$work/err"; then skip "$name: its data are not here"; else bad "$name, $threads threads: $(cat "$work/err")"; fi
            break
        fi
        cmp -s "$work/grads.1" "$work/grads.$threads" && ok || bad "$name: gradients of $threads threads have other bits than those of one"
    done
    rm -f "$work"/grads.*
done
finish
