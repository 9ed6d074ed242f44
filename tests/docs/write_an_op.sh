#!/usr/bin/env bash
# write_an_op.sh -- does what docs/how-to/write-an-op.md says, in a copy of the sources: adds the files and lines that the page shows, runs
# its commands, and compares what they print with the page.
#
# Deep: it builds the compiler, and a kernel test, in a copy.
set -uo pipefail
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/page"
page=$TENON_ROOT/docs/how-to/write-an-op.md
{ grep -qw avx2 /proc/cpuinfo && command -v g++; } > /dev/null || { skip "write-an-op.md: it needs AVX2 and g++"; finish; exit; }
unset TENON_CFLAGS TENON_STEP_CFLAGS                      # as for a reader
export -n TENON TENON_ROOT                                # the copy has its own
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL

tree=$work/tree shown=$work/shown
mkdir -p "$tree" "$shown"
tar -C "$TENON_ROOT" --exclude='./build*' --exclude=./.git --exclude='./bench/.venv*' -cf - . | tar -C "$tree" -xf -

# The blocks of the page, one file each.
awk -v dir="$shown" '
    /^```[a-z]/ { file = sprintf("%s/%02d.%s", dir, ++n, substr($0, 4)); next }
    /^```$/     { close(file); file = ""; next }
    file != ""  { print > file }' "$page"

# block TEXT: the file with the block whose first line begins with TEXT
block() {
    local file
    for file in "$shown"/*; do
        if [[ $(head -n 1 "$file") == "$1"* ]]; then echo "$file"; return; fi
    done
    bad "write-an-op.md has no block that begins with: $1"
    finish
    exit 1
}

# after FILE TEXT LINE: puts LINE after the first line of FILE that contains TEXT
after() {
    awk -v text="$2" -v line="$3" '{ print } !done && index($0, text) { print line; done = 1 } END { exit !done }' "$tree/$1" > "$work/edited" ||
        bad "$1 has no line with $2"
    cat "$work/edited" > "$tree/$1"
}

# ---- sections 2, 3, 6 and 7: files and lines
cp "$(block '/* unit_norm.c ')" "$tree/compiler/ops/unit_norm.c"
cp "$(block '/* unit_norm.h ')" "$tree/runtime/cpu/unit_norm.h"
cp "$(block 'model digits')" "$tree/digits.tn"
after compiler/ops/ops.def 'OP(layer_norm)' "$(tail -n 1 "$(block 'OP(layer_norm)')")"
after runtime/cpu/kernels.h '"cpu/layer_norm.h"' "$(cat "$(block '#include "cpu/unit_norm.h"')")"
after compiler/cpu/unit.c '{"layer_norm",' "$(cat "$(block '{"unit_norm"')")"
after tests/kernels/test_norm.c '"cpu/layer_norm.h"' '#include "cpu/unit_norm.h"'
awk -v test="$(block '/* unit_norm: less')" '/^int main/ { while ((getline line < test) > 0) print line; print "" } { print }' \
    "$tree/tests/kernels/test_norm.c" > "$work/edited"
cat "$work/edited" > "$tree/tests/kernels/test_norm.c"
after tests/kernels/test_norm.c 'tcase_create("norm")' "$(cat "$(block '    tcase_add_loop_test(t, unit_norms')")"
run_in "$tree" "$page" '^[4-7][.] '

# ---- section 5: a fault, which the check of the gradient must find
sed -i 's/(dot \* r \* r)/(dot * r)/' "$tree/runtime/cpu/unit_norm.h"
(cd "$tree" && build/tenon build example.tn --dtype f64 --plain -o plain && ! ./plain gradcheck) > "$work/printed" 2>&1 && ok || bad "gradcheck accepts a fault"
wrong=$(grep -l WRONG "$shown"/*.text)
awk -f "$here/compare.awk" "$wrong" "$work/printed" && ok || bad "another output of gradcheck, with a fault"
cp "$(block '/* unit_norm.h ')" "$tree/runtime/cpu/unit_norm.h"

# ---- section 8: a GPU
refuses "no GPU kernel yet" "unit_norm has no CUDA form yet" "$tree/build/tenon" emit "$tree/example.tn" --to cuda
cp "$(block '/* unit_norm.cuh ')" "$tree/runtime/cuda/unit_norm.cuh"
after runtime/cuda/kernels.cuh '"cuda/layer_norm.cuh"' '#include "cuda/unit_norm.cuh"'
after compiler/cuda/lower.c 'const char *const form[]' '    "unit_norm", "unit_norm_dx",'
run_in "$tree" "$page" '^(8|10)[.] '
finish
