#!/usr/bin/env bash
# models.sh -- every cuDNN graph of the shipped models has an engine: in exact f32, without a GPU or a driver, a few seconds for each
# model.  With CHECK_DEEP=1 (./check --deep) also the large networks, and bf16, whose fused graphs are compiled (minutes for each
# network); small models also in tf32 and f16, and for other GPUs.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

export TENON_CACHE=$work/cache
"$(dirname "$TENON")/tenon-plan" --version > /dev/null 2>&1 || { skip "tenon-plan or cuDNN is not here: engines of the models"; finish; exit; }

# plans MODEL OPTIONS...: each graph of the model has an engine, and each row of cuDNN names its engine
plans() {
    local model=$1; shift
    if ! "$TENON" show "$TENON_ROOT/models/$model.tn" --target cuda "$@" > "$work/table" 2> "$work/err"; then bad "$model $*: $(head -3 "$work/err")"
    elif grep -q "not planned" "$work/table"; then bad "$model $*: not planned"
    else ok; fi
}
for file in $(shipped_models); do
    model=$(basename "$file" .tn)
    plans "$model"
    grep -q 'tensor-cores\|rounded-inputs' "$work/table" && bad "$model: exact f32 on tensor cores" || ok
    [ "$CHECK_DEEP" = 0 ] || plans "$model" --dtype bf16
done
if [ "$CHECK_DEEP" = 1 ]; then
    for model in lenet lenet_relu resnet56_cifar10; do
        plans $model --dtype tf32
        plans $model --dtype f16
        for arch in sm_80 sm_100; do plans $model --dtype bf16 --arch $arch; done
    done
else
    skip "large networks, and fused graphs of all models: ./check --deep"
fi
finish
