#!/usr/bin/env bash
# cuda_compiled.sh -- what nvcc makes of the shipped models' programs for a GPU: nothing spilled, no stack, registers and shared memory
# within limits (tests/cuda/gate.sh).
#
# By default the MLP, LeNet, ResNet-20 and an LSTM for sm_90a; all models for sm_80, sm_90a and sm_100 with ./check --cuda.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
command -v nvcc > /dev/null || { skip "nvcc is not there: no model was compiled for a GPU"; finish; exit; }
. tests/cuda/gate.sh
least=9                                               # launches of the MLP

if [ "$CHECK_ALL" = 1 ] || [ "${CHECK_CUDA:-0}" = 1 ]; then archs="80 90a 100"; else archs=90a; fi
for model in models/*.tn; do
    name=$(basename "$model" .tn)
    case "$archs $name" in
    80* | *" mlp" | *" lenet" | *" resnet20_cifar10" | *" lstm_text") ;;
    *) continue ;;
    esac
    succeeds "$name: emit" "$TENON" emit "$model" --to cuda --kernels=own -o "$work/emitted"
    for arch in $archs; do gate "$work/emitted/$name.cu" $arch; done
done
[ "$archs" != 90a ] || skip "all models for sm_80, sm_90a and sm_100: CHECK_ALL=1 or ./check --cuda"
finish
