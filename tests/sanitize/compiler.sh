#!/usr/bin/env bash
# compiler.sh -- the compiler and the programs that it builds, under AddressSanitizer and UndefinedBehaviorSanitizer: every model, every
# faulty file of tests/errors, every example of tests/language, and a few steps of LeNet.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export TENON=$root/build/asan/tenon TENON_ROOT=$root
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:exitcode=99 LSAN_OPTIONS=print_suppressions=0 UBSAN_OPTIONS=print_stacktrace=1:exitcode=99
cd "$root"
{ cmake -S . -B build/asan -DCMAKE_BUILD_TYPE=Debug -DTENON_SANITIZE=address,undefined -DTENON_TESTS=ON && cmake --build build/asan --target tenon tenonrt tests_quick; } > build/asan.log 2>&1 ||
    { tail -n 20 build/asan.log; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
. tests/common.sh
export TENON_CACHE=$work/cache

for model in models/*.tn; do
    succeeds "$model check" "$TENON" check "$model"
    succeeds "$model show" "$TENON" show "$model" --cost
    for flags in "" "--plain" "--dtype f64" "--cpu generic"; do
        # shellcheck disable=SC2086
        succeeds "$model emit $flags" "$TENON" emit "$model" -o "$work/emit" $flags
    done
done
for op in $("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p'); do
    "$TENON" ops "$op" --example > "$work/op.tn"
    succeeds "$op emit" "$TENON" emit "$work/op.tn" -o "$work/emit"
done
for suite in errors language; do
    succeeds "tests/$suite" "tests/$suite/run" "$TENON"
done
for test in build/asan/tests/unit_* build/asan/tests/runtime_*; do
    [ ! -x "$test" ] || succeeds "$(basename "$test")" "$test"
done

for model in lenet mlp; do
    build $model "$work/p"
    succeeds "$model trains" "$work/p" --epochs 1 --limit-samples 512 --threads 2 --checkpoint "$work/c-$model" --save "$work/w"
    succeeds "$model resumes" "$work/p" --epochs 2 --limit-samples 512 --threads 2 --checkpoint "$work/c-$model" --resume
    succeeds "$model tests" "$work/p" test --weights "$work/w"
    succeeds "$model groups" "$work/p" --epochs 1 --limit-samples 512 --groups 2
done
finish
