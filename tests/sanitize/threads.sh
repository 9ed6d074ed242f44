#!/usr/bin/env bash
# threads.sh -- LeNet and an MLP under ThreadSanitizer: no race in the pool, the loader, the kernels' partitions.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export TENON=$root/build/tsan/tenon TENON_ROOT=$root TSAN_OPTIONS=exitcode=99:halt_on_error=1
cd "$root"
{ cmake -S . -B build/tsan -DCMAKE_BUILD_TYPE=Debug -DTENON_SANITIZE=thread -DTENON_TESTS=OFF && cmake --build build/tsan; } > build/tsan.log 2>&1 ||
    { tail -n 20 build/tsan.log; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
. tests/common.sh
export TENON_CACHE=$work/cache

for model in lenet mlp; do
    build $model "$work/p"
    succeeds "$model trains" "$work/p" --epochs 2 --limit-samples 384 --threads 3 --checkpoint "$work/c-$model" --checkpoint-every 2
    succeeds "$model groups" "$work/p" --epochs 1 --limit-samples 384 --threads 2 --groups 4
done
finish
