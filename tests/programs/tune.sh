#!/usr/bin/env bash
# tune.sh -- tenon build --tune: what it measures, what it stores, and how programs with other algorithms compare themselves.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
export TENON_CACHE=$work/cache
tuned=tests/programs/cost/tune.tn

# --tune measures once and stores the result; the program is built as the file says.
tune() { "$TENON" build $tuned --tune -o "$work/$1" > "$work/out" 2> "$work/err" || { bad "tenon build --tune: $(cat "$work/err")"; return; }; }
tune a
lines=$(grep -vc '^#' "$TENON_CACHE/tuned" || true)
[ "$lines" -ge 3 ] && ok || bad "--tune keeps $lines answers, not at least 3"
awk -F'\t' '/^#/ { next } NF != 5 || $4 !~ /^(direct|winograd-2x2)$/ || $5 !~ /predicted/ || $5 !~ /peak [0-9]/ { bad = 1 } END { exit bad }' "$TENON_CACHE/tuned" &&
    ok || bad "a line of the file does not say shape, processor, kernels, way and times"
cp "$TENON_CACHE/tuned" "$work/tuned"
tune b
cmp -s "$TENON_CACHE/tuned" "$work/tuned" && ok || bad "a second --tune measures again"
cmp -s "$work/a" "$work/b" && ok || bad "a second --tune makes another program"
info() { "$work/$1" info | sed -n '/^algorithms/,/^phases/p'; }
for way in direct winograd-2x2; do
    sed -i "/^#/!s/\t[a-z0-9-]*\t\([^\t]*\)\$/\t$way\t\1/" "$TENON_CACHE/tuned"
    tune $way
done
info direct | grep -q Winograd && bad "the file says direct, the program does not" || ok
info winograd-2x2 | grep -q 'Winograd F(2x2' && ok || bad "the file says Winograd, the program does not"
[ "$(info direct | head -n 1)" != "$(info winograd-2x2 | head -n 1)" ] && ok || bad "other algorithms, the same identity"
"$work/direct" --epochs 1 --checkpoint "$work/run" > /dev/null 2>&1
succeeds "resume with other algorithms" "$work/winograd-2x2" --epochs 2 --checkpoint "$work/run" --resume
grep -q 'another build .*last bits will differ' "$work/out" && ok || bad "resuming with other algorithms says nothing"
succeeds "resume with the same" "$work/direct" --epochs 1 --checkpoint "$work/run2"
succeeds "resume with the same" "$work/direct" --epochs 2 --checkpoint "$work/run2" --resume
grep -q 'another build' "$work/out" && bad "the same program is called another build" || ok
printf 'nonsense\n\t\t\t\t\n%s\tdirect' "$(cut -f 1-3 "$work/tuned" | tail -n 1)" > "$TENON_CACHE/tuned"
tune c
[ "$(grep -c predicted "$TENON_CACHE/tuned")" = "$lines" ] && ok || bad "after a damaged file not everything was measured again"
printf '# kernels\n' > "$TENON_CACHE/tuned"; chmod 444 "$TENON_CACHE/tuned"
succeeds "--tune in emit" "$TENON" emit $tuned --tune -o "$work/emitted"
refuses "--tune with --plain" "nothing to choose" "$TENON" build $tuned --tune --plain -o "$work/d"
refuses "--tune with --kernels=blas" "nothing to choose" "$TENON" build $tuned --tune --kernels=blas -o "$work/d"
printf '#!/bin/sh\ncase $1 in --version) echo fake 1 ;; *) echo "fake: it hurts" >&2; exit 3 ;; esac\n' > "$work/fakecc"
chmod +x "$work/fakecc"
refuses "--tune with a C compiler that fails" "it hurts" env CC="$work/fakecc" TMPDIR="$work" "$TENON" build $tuned --tune -o "$work/d"
if deep "--tune without a cache directory"; then
    succeeds "--tune without a cache directory" env -u TENON_CACHE -u XDG_CACHE_HOME -u HOME "$TENON" build $tuned --tune -o "$work/d"
    grep -q 'not kept' "$work/out" && ok || bad "--tune without a cache directory does not say that nothing is kept"
fi
[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'tenon-tune-*' -newer "$work/a" 2> /dev/null)" ] && ok || bad "--tune leaves a directory behind"
finish
