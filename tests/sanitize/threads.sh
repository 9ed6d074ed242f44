#!/usr/bin/env bash
# threads.sh -- LeNet, an MLP, an LSTM, a ResNet and gpt_char under ThreadSanitizer: no data race in the pool, the loader, the units of
# phases or the members of teams.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export TENON=$root/build/tsan/tenon TENON_ROOT=$root TSAN_OPTIONS=exitcode=99:halt_on_error=1
cd "$root"
{ cmake -S . -B build/tsan -DCMAKE_BUILD_TYPE=Debug -DTENON_SANITIZE=thread -DTENON_TESTS=OFF && cmake --build build/tsan; } > build/tsan.log 2>&1 ||
    { tail -n 20 build/tsan.log; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
. tests/common.sh
. tests/tools/machine.sh
export TENON_CACHE=$work/cache

machine "$work/machine" 2 2 3 # 12 cores: threads start along a tree, however many processors there are
for model in lenet mlp; do
    build $model "$work/p"
    succeeds "$model trains" "$work/p" --epochs 2 --limit-samples 384 --threads 3 --checkpoint "$work/c-$model" --checkpoint-every 2
    succeeds "$model groups" "$work/p" --epochs 1 --limit-samples 384 --threads 2 --groups 4
    for threads in 5 11; do
        TENON_MACHINE=$work/machine succeeds "$model along a tree, $threads threads" "$work/p" --epochs 1 --limit-samples 256 --threads $threads
    done
done
for model in lstm_synthetic resnet20_cifar10; do
    more=(--batch 16 --set 'data=synthetic(samples=32,test_samples=16)')
    [ $model = resnet20_cifar10 ] || more=(--batch 32 --set 'data=synthetic(samples=64,test_samples=32,classes=7)' --set model.width=24 --set model.time=10 --set model.features=7)
    build $model "$work/p" "${more[@]}"
    succeeds "$model, 3 threads" "$work/p" --epochs 1 --threads 3
    for threads in 6 11; do # with 11, teams of several sizes
        TENON_MACHINE=$work/machine succeeds "$model along a tree, $threads threads" "$work/p" --epochs 1 --threads $threads
    done
done
build gpt_char "$work/p" --batch 8 --set model.width=32 --set model.time=24 --set model.layers=1 --set model.heads=2
for threads in 3 6 11; do
    TENON_MACHINE=$work/machine succeeds "gpt_char along a tree, $threads threads" "$work/p" grads --threads $threads --output "$work/grads"
done
finish
