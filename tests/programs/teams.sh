#!/usr/bin/env bash
# teams.sh -- the gradients of every shipped model are the same bits for any number of threads: on whole slices, on teams of one size
# and of several sizes, and with slices that teams compute after whole rounds.
#
# The threads take turns on one processor (TENON_TURNS): each runs up to its next barrier.  So a missing barrier shows in the bits, and
# 128 threads take as long as one.  Some numbers of threads run from the last thread to the first.  threads.sh and tests/sanitize/threads.sh run real threads.
#
# Deep: compiles all shipped models, and runs each with ten numbers of threads: half an hour.
# Parts: inception layers sequences others
set -euo pipefail
. "$(dirname "$0")/../common.sh"
. "$TENON_ROOT/tests/tools/machine.sh"

# family NAME: the part of a model: what takes long, in parts of similar length
family() {
    case $1 in
    inception*) echo inception ;;
    resnet50* | densenet* | mobilenet* | vgg*) echo layers ;;
    gpt* | lstm* | gru* | char* | text*) echo sequences ;;
    *) echo others ;;
    esac
}

# arrays NAME: makes the arrays of models/data/NAME
arrays() {
    data=(--data "$work/$1")
    command -v python3 > /dev/null || { skip "$name: no python3 that makes its arrays"; return 1; }
    succeeds "the arrays of $name" "$TENON_ROOT/models/data/$1/make.py" "$work/$1"
}

machine "$work/large" 2 8 8 # 128 cores
for model in $(shipped_models); do
    name=$(basename "$model" .tn) more=() data=()
    part "$(family "$name")" || continue
    case $name in
    *cifar10* | densenet*) more=(--set 'data=synthetic(samples=512,test_samples=8)') ;; # this repository has no CIFAR-10
    siamese) arrays pairs || continue ;;
    two_heads) arrays heads || continue ;;
    forecast) arrays series || continue ;;
    dates) arrays dates || continue ;;
    esac
    build "$name" "$work/p" "${more[@]}" || continue
    for threads in 1 2 3 5 7 11 16 33 64 128; do
        if ! TENON_TURNS=$(turns $threads) TENON_MACHINE=$work/large "$work/p" grads "${data[@]}" --threads $threads --output "$work/grads.$threads" > "$work/out" 2> "$work/err"; then
            if grep -q 'no data set' "$work/err"; then skip "$name: its data are not here"; else bad "$name, $threads threads: $(cat "$work/err")"; fi
            break
        fi
        cmp -s "$work/grads.1" "$work/grads.$threads" && ok || bad "$name: gradients of $threads threads have other bits than those of one"
    done
    rm -f "$work"/grads.*
done
finish
