#!/usr/bin/env bash
# names.sh -- any name that the language takes gives a program that the C compiler takes: names that differ in case or in a dot
# only, names of the generated file's own constants, and every word in capitals of the headers that it includes.
set -euo pipefail
. "$(dirname "$0")/../common.sh"

recipe='train m { data = synthetic(samples = 16, test_samples = 8); loss = softmax_cross_entropy; optimizer = adam; batch = 8; epochs = 1 }'
trains() {
    printf '%s\n%s\n' "$2" "$recipe" > "$work/m.tn"
    rm -f "$work/p"
    succeeds "$1: build" "$TENON" build "$work/m.tn" -o "$work/p"
    succeeds "$1: train" "$work/p"
}
trains "case" 'model m(x: f32[4]) { fc = dense(x, 5); FC = dense(fc, 5); Fc = dense(FC, 5); return dense(Fc, 3) }'
trains "a dot" 'block part(x) { b = dense(x, 4); return b } model m(x: f32[4]) { a_b = dense(x, 5); a = part(a_b); return dense(a, 3) }'
trains "states" 'model m(x: f32[4]) { a = dense(x, 5); a_weight_state0 = dense(a, 5); da = dense(a_weight_state0, 5); return dense(da, 3) }'
trains "attention's names" 'model m(x: f32[4]) { q = dense(x, 4); k = dense(x, 4); v = dense(x, 4); p = q * k; return dense(p * v, 3) }'
trains "Tenon's words" 'model m(slice: f32[4]) { chunk = dense(slice, 4); shard = tanh(dense(chunk, 4)); return dense(shard + chunk, 3) }'

# the file that emit writes, for all words at once
runtime=$TENON_ROOT/runtime
printf '#include "rt.h"\n' > "$work/w.c"
{ cc -std=gnu11 -DRT_KERNELS -I "$runtime" -E "$work/w.c" | grep -v '^#'
  cc -std=gnu11 -DRT_KERNELS -I "$runtime" -E -dM "$work/w.c" | awk '{ print $2 }'; } |
    { grep -oE '\b[A-Z][A-Z0-9_]*\b' || true; } | sort -u | tr 'A-Z' 'a-z' | grep -vxE 'h|x' > "$work/words"
[ "$(wc -l < "$work/words")" -gt 200 ] && ok || bad "the headers have hardly any words: $(wc -l < "$work/words")"
{ echo 'model m(x: f32[4]) {'; echo 'h = x'; sed 's/.*/& = dense(h, 4); h = tanh(&)/' "$work/words"; echo 'return dense(h, 3)'; echo '}'; echo "$recipe"; } > "$work/m.tn"
succeeds "emit all words" "$TENON" emit "$work/m.tn" -o "$work/c"
succeeds "C takes all words" cc -std=gnu11 -DRT_KERNELS -I "$runtime" -fsyntax-only "$work/c/m.c"
finish
