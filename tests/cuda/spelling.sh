#!/usr/bin/env bash
# spelling.sh -- no decision about a GPU program depends on how its text is spelt.
#
# The emitters are compiled with other names for the macros of generated CUDA; each name keeps its length, so lines break at the same
# places.  With the old names put back, calls and text must be those of the compiler: a pass that read a macro in printed text would now
# find none, and make other calls (layers.sh forbids such code by its look; this test by its effect).
set -euo pipefail
. "$(dirname "$0")/../common.sh"

core=$(dirname "$TENON")/libtenoncore.a main=$(dirname "$TENON")/CMakeFiles/tenon.dir/compiler/main.c.o
[ -e "$core" ] && [ -e "$main" ] || { skip "a compiler that was not built here"; finish; exit; }
! grep -q __asan_init "$core" || { skip "a compiler with sanitizers"; finish; exit; }

macros=(LOCAL BATCH FIXED PARTIAL APART FOR_EACH LAUNCH WORKSPACE SAMPLES)
there='' back=''
for m in "${macros[@]}"; do there+="s/\\b$m\\b/${m%?}Q/g;" back+="s/\\b${m%?}Q\\b/$m/g;"; done

# The names stand in strings.  A string that code compares with printed text keeps the old name.
cd "$TENON_ROOT"
for file in compiler/emit/*.c compiler/cuda/*.c; do
    copy=$work/$(basename "${file%/*}")_$(basename "$file")
    sed "/\"/{/\bstr[a-z]*(/!{$there}}" "$file" > "$copy"
    cmp -s "$file" "$copy" || echo "cc -std=gnu11 -O0 -w -I compiler -I . -c $copy -o ${copy%.c}.o"
done > "$work/commands"
[ "$(wc -l < "$work/commands")" -ge 8 ] && ok || bad "only $(wc -l < "$work/commands") emitters print these macros"
succeeds "the emitters compile with other names" xargs -P 2 -d '\n' -I{} sh -c '{}' < "$work/commands"
succeeds "the compiler links" cc -o "$work/tenon" "$main" "$work"/*.o "$core" -lm

# Lines of a dump: "# train, phase 1: slice", "    4  launch 3    dense ...".
calls='^# \|^ *[0-9][0-9]*  '
export TENON_CUDNN=/nowhere/libcudnn.so.9

# equal MODEL OPTIONS...: the same calls, and the same text, but for the names
equal() {
    "$work/tenon" emit "$@" --to cuda > "$work/spelt" 2> /dev/null
    "$TENON" emit "$@" --to cuda > "$work/text" 2> /dev/null
    ! cmp -s "$work/text" "$work/spelt" && sed "$back" "$work/spelt" | cmp -s - "$work/text" && ok || bad "the text of $*"
    "$work/tenon" show "$@" --target cuda --dump=calls 2>&1 > /dev/null | sed "$back" | grep "$calls" > "$work/spelt"
    "$TENON" show "$@" --target cuda --dump=calls 2>&1 > /dev/null | grep "$calls" > "$work/text"
    [ "$(wc -l < "$work/text")" -gt 20 ] && cmp -s "$work/text" "$work/spelt" && ok || bad "the calls of $*"
}
equal models/lenet.tn --kernels=own
equal models/lenet.tn --kernels=persistent
equal models/lenet.tn --kernels=cudnn --dtype bf16
equal models/lstm_text.tn --kernels=own
equal models/gpt_char.tn --kernels=own
finish
