#!/usr/bin/env bash
# generated.sh -- generated/ holds what the compiler writes today; what it writes compiles without a warning, for every model,
# processor and type.  After a change that is meant: tests/programs/generated.sh --update
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"

emit() { "$TENON" emit models/lenet.tn --to c --cpu x86-64-v3 -o "$1"; }
if [ "${1:-}" = --update ]; then emit generated/lenet; exit; fi

emit "$work/lenet"
if diff -u generated/lenet/lenet.c "$work/lenet/lenet.c" > "$work/diff"; then ok
else bad "generated/lenet/lenet.c is not what the compiler writes; tests/programs/generated.sh --update rewrites it"; head -n 30 "$work/diff"; fi

processors="x86-64-v4 x86-64-v3 generic"
[ "$(uname -m)" = x86_64 ] || processors="armv8-a generic"
compilers=cc
if command -v clang > /dev/null; then compilers="cc clang"; fi
for compiler in $compilers; do
    for model in models/*.tn; do
        for cpu in $processors; do
            for flags in "" "--plain" "--dtype f64"; do
                [ "$CHECK_ALL" = 1 ] || [ -z "$flags" ] || [ "$cpu" = x86-64-v3 ] || [ "$cpu" = armv8-a ] || continue
                # shellcheck disable=SC2086
                succeeds "$model $cpu $flags with $compiler, no warning" \
                    env CC=$compiler TENON_CFLAGS="-Wall -Wextra -Werror" "$TENON" build "$model" -o "$work/p" --cpu $cpu $flags
            done
        done
    done
done
finish
