#!/usr/bin/env bash
# generated.sh -- generated/ has the current output of the compiler; the output compiles without a warning for every model, processor and
# type (assembly.sh does the same with the files that `tenon build` compiles in f32).  After an intended change:
# tests/programs/generated.sh --update
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"

emit() {
    "$TENON" emit models/lenet.tn --to c --cpu x86-64-v3 -o "$1/lenet"; "$TENON" emit models/lenet.tn --to cuda -o "$1/lenet"
    "$TENON" emit models/mlp.tn --to cuda --kernels=persistent -o "$1/mlp"
}
if [ "${1:-}" = --update ]; then emit generated; exit; fi

emit "$work"
for file in lenet/lenet.c lenet/lenet.cu mlp/mlp.cu; do
    if diff -u generated/$file "$work/$file" > "$work/diff"; then ok
    else bad "generated/$file is not what the compiler writes; tests/programs/generated.sh --update rewrites it"; head -n 30 "$work/diff"; fi
done

# clean MODEL CPU COMPILER OPTIONS...: the one file of a program compiles without a warning; level "" only parses it
clean() {
    local model=$1 cpu=$2 compiler=$3; shift 3
    rm -rf "$work/one"
    "$TENON" emit "$model" --to c --cpu "$cpu" -o "$work/one" "$@" || { bad "tenon emit $model --cpu $cpu $*"; return; }
    # shellcheck disable=SC2046
    succeeds "$model --cpu $cpu $* with $compiler, no warning" \
        "$compiler" ${level:--fsyntax-only} -DRT_KERNELS $(one_file "$work/one"/*.c --cpu "$cpu" "$@") -Wall -Wextra -Werror -c -o "$work/one.o"
}
# units MODEL CPU COMPILER OPTIONS...: the same for the files that `tenon build` compiles
units() {
    local model=$1 cpu=$2 compiler=$3; shift 3
    succeeds "$model --cpu $cpu $* with $compiler, no warning in its units" \
        env CC="$compiler" TENON_CFLAGS="-Wall -Wextra -Werror" "$TENON" build "$model" -o "$work/p" --cpu "$cpu" "$@"
}

processors="x86-64-v4 x86-64-v3 generic" middle=x86-64-v3
[ "$(uname -m)" = x86_64 ] || processors="armv8-a generic" middle=armv8-a
compilers=cc
[ "$CHECK_DEEP" = 1 ] || processors=$middle
if command -v clang > /dev/null; then compilers="cc clang"; fi
# In f32 the units of all models are compiled here or, on x86-64, by assembly.sh.  Kernels in f64 have the same
# source.
every=models/lenet.tn
! deep "programs of all models without a warning" || every=$(shipped_models)
for model in $every; do
    [ "$(uname -m)" = x86_64 ] || units "$model" $middle cc
    level=-O1 clean "$model" $middle cc --plain
    if [ "$CHECK_DEEP" = 1 ]; then units "$model" $middle cc --dtype f64; else level='' clean "$model" $middle cc --dtype f64; fi
done
# level_of COMPILER CPU MODEL: the level of optimisation; "" only parses the file.  clang warns while it parses.
# Large networks have the kernels of the others with other sizes, so gcc optimises their files for one processor.  f64
# is optimised above.
small=$(CHECK_DEEP=0 shipped_models)
level_of() {
    if [ "$CHECK_DEEP" = 1 ] && [ "$1" = cc ] && { [ "$2" = $middle ] || grep -qxF "$3" <<< "$small"; }; then echo -O2; fi
}
for compiler in $compilers; do
    [ "$CHECK_DEEP" = 0 ] || units models/lenet.tn $middle "$compiler" --dtype f64
    for cpu in $processors; do
        for model in $every; do
            level=$(level_of "$compiler" "$cpu" "$model") clean "$model" "$cpu" "$compiler"
            level='' clean "$model" "$cpu" "$compiler" --dtype f64
        done
    done
done
finish
