#!/usr/bin/env bash
# generated.sh -- generated/ holds what the compiler writes today; what it writes compiles without a warning, for every model,
# processor and type.  After a change that is meant: tests/programs/generated.sh --update
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"

emit() { "$TENON" emit models/lenet.tn --to c --cpu x86-64-v3 -o "$1"; "$TENON" emit models/lenet.tn --to cuda -o "$1"; }
if [ "${1:-}" = --update ]; then emit generated/lenet; exit; fi

emit "$work/lenet"
for file in lenet.c lenet.cu; do
    if diff -u generated/lenet/$file "$work/lenet/$file" > "$work/diff"; then ok
    else bad "generated/lenet/$file is not what the compiler writes; tests/programs/generated.sh --update rewrites it"; head -n 30 "$work/diff"; fi
done

# clean MODEL CPU COMPILER FLAGS...: compiles without a warning
clean() {
    local model=$1 cpu=$2 compiler=$3; shift 3
    succeeds "$model --cpu $cpu $* with $compiler, no warning" \
        env CC="$compiler" TENON_CFLAGS="-Wall -Wextra -Werror" "$TENON" build "$model" -o "$work/p" --cpu "$cpu" "$@"
}

processors="x86-64-v4 x86-64-v3 generic" middle=x86-64-v3
[ "$(uname -m)" = x86_64 ] || processors="armv8-a generic" middle=armv8-a
compilers=cc
if command -v clang > /dev/null; then compilers="cc clang"; fi
for model in $(shipped_models); do
    clean "$model" $middle cc
    clean "$model" $middle cc --plain
    clean "$model" $middle cc --dtype f64
done
for compiler in $compilers; do
    for cpu in $processors; do
        for model in $(shipped_models); do
            [ "$CHECK_ALL" = 1 ] || [ "$(basename "$model")" = lenet.tn ] || continue
            clean "$model" "$cpu" "$compiler"
            clean "$model" "$cpu" "$compiler" --dtype f64
        done
    done
done
finish
