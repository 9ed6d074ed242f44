#!/usr/bin/env bash
# shipped_bits.sh -- the U-Net and the network of dates have the same weights with 1, 2 and 16 threads, with 2 and 4 groups and MPI ranks, and
# after a run that kill -9 ends is resumed.
#
# Parts: unet dates
# Deep: compiles two large networks twice.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
command -v python3 > /dev/null || { skip "no python3 that writes arrays"; finish; exit; }
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

# bits NETWORK ARRAYS SAMPLES
bits() {
    local name=$1 way ranks job
    local options=(--data "./$2" --limit-samples "$3" --epochs 2)
    python3 "$TENON_ROOT/models/data/$2/make.py" "$2"
    build "$name" "$work/p" --shards 4
    succeeds "$name: one thread" ./p "${options[@]}" --threads 1 --save one.safetensors
    for way in "--threads 2" "--threads 16" "--groups 2" "--groups 4"; do
        # shellcheck disable=SC2086
        succeeds "$name: $way" ./p "${options[@]}" $way --save way.safetensors
        cmp -s one.safetensors way.safetensors && ok || bad "$name, $way: other weights"
    done

    # The run is killed after its first checkpoint; a run that was faster is an error of this test.
    rm -rf c
    ./p "${options[@]}" --checkpoint c --checkpoint-every 2 > out 2>&1 & job=$!
    for _ in $(seq 2000); do compgen -G "c/*.safetensors" > /dev/null && break; sleep 0.01; done
    kill -9 $job && ok || bad "$name: the run ended before it was killed"
    wait $job 2> /dev/null || true
    succeeds "$name: resumed" ./p "${options[@]}" --checkpoint c --resume --save way.safetensors
    cmp -s one.safetensors way.safetensors && ok || bad "$name, killed and resumed: other weights"

    if command -v mpicc > /dev/null && command -v mpirun > /dev/null; then
        build "$name" "$work/ranks" --comm mpi --shards 4
        for ranks in 1 2 4; do
            succeeds "$name: $ranks ranks" timeout -k 5 300 mpirun -n $ranks --bind-to none ./ranks "${options[@]}" --threads 1 --save way.safetensors
            cmp -s one.safetensors way.safetensors && ok || bad "$name, $ranks ranks: other weights"
        done
    else
        skip "$name in ranks: no mpicc and mpirun"
    fi
}
if part dates; then bits dates dates 1280; fi
if part unet; then bits unet masks 160; fi
finish
