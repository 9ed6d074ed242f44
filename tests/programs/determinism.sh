#!/usr/bin/env bash
# determinism.sh -- one program and one seed give the same weights after each epoch, for any number of threads and any division of the
# shards into groups (which simulate ranks).  Hashes are compared with each other, not with stored ones.
#
# Parts: mlp mlp_wide sum_squares
# Deep parts: lenet
set -euo pipefail
. "$(dirname "$0")/../common.sh"

small_mnist "$work/mnist" 700 300 || true
run() { local log=$1; shift; rm -f "$log"; "$@" "${data[@]}" --epochs 2 --limit-samples 700 --log "$log" > /dev/null; hashes "$log"; }

cases="lenet/8 mlp/1 mlp/4 ../tests/passes/sum_squares/2"  # model/shards
! deep "four networks of 1, 2, 4 and 8 shards" || cases=$(printf '%s\n' {lenet,mlp,mlp_wide,../tests/passes/sum_squares}/{1,2,4,8})
for model in lenet mlp mlp_wide ../tests/passes/sum_squares; do
    part "${model##*/}" || continue
    data=(--data "$work/mnist") more=()
    [ $model != mlp_wide ] || { data=(); more=(--set data.test_samples=300); }
    [ $model != ../tests/passes/sum_squares ] || data=() # gradients of filters by conv2d_dw_update, in squares
    want=
    for shards in 1 2 4 8; do
        grep -qwF "$model/$shards" <<< "$cases" || continue
        build $model "$work/p" --shards $shards "${more[@]}"
        want=$(run "$work/log" "$work/p" --threads 1)
        [ "$(wc -w <<< "$want")" = 2 ] && ok || bad "$model: two epochs, but hashes '$want'"
        for threads in 2 3; do
            same "$model shards $shards threads $threads" "$(run "$work/log" "$work/p" --threads $threads)" "$want"
        done
        [ $shards -ge 4 ] || continue
        for groups in 1 2 4; do
            for threads in 1 2 3; do
                same "$model shards $shards groups $groups threads $threads" \
                     "$(run "$work/log" "$work/p" --groups $groups --threads $threads)" "$want"
            done
        done
    done
    [ -n "$want" ] || continue
    other=$(run "$work/log" "$work/p" --threads 2 --seed 4711)
    [ "$other" != "$want" ] && ok || bad "$model: another seed gives the same weights"
done
finish
