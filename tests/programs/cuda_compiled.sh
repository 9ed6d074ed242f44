#!/usr/bin/env bash
# cuda_compiled.sh -- nvcc compiles the shipped models' programs for a GPU without spills and stack, and with registers and shared memory
# within limits (tests/cuda/gate.sh).
#
# All models, for sm_80, sm_90a and sm_100.
#
# Deep: nvcc takes a quarter of an hour.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
command -v nvcc > /dev/null || { skip "nvcc is not there: no model was compiled for a GPU"; finish; exit; }
. tests/cuda/gate.sh
least=9                                               # launches of the MLP

for model in models/*.tn; do
    name=$(basename "$model" .tn)
    succeeds "$name: emit" "$TENON" emit "$model" --to cuda --kernels=own -o "$work/emitted"
    for arch in 80 90a 100; do gate "$work/emitted/$name.cu" $arch; done
done
finish
