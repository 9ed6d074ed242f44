#!/usr/bin/env bash
# Deep: ten minutes, where Debian's cross compiler and qemu are.
#
# armv8.sh -- NEON without an ARM machine: Debian's cross compiler compiles the tests of the kernels and LeNet, and qemu runs them.
#
# Needs aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user); ./check --deep
# installs them.  Skipped without them.  On one processor, the bits are the same for any number of threads.  Between processors,
# numbers differ by rounding, because vectors have other lengths and so sums have another order.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
cc=aarch64-linux-gnu-gcc qemu=qemu-aarch64
for tool in $cc $qemu; do
    command -v $tool > /dev/null || { skip "$tool is not installed (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"; finish; exit; }
done
cd "$TENON_ROOT"
flags=(-std=gnu11 -march=armv8-a -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -fno-trapping-math -Iruntime)

# The kernels, in f32 and with a seventh of their rounds; with ./check --deep all of them.
types="f32 f64"
[ "$CHECK_DEEP" = 1 ] || { types=f32; export CHECK_EVERY=7; }
for source in tests/kernels/test_*.c; do
    for type in $types; do
        name=$(basename "$source" .c)_$type define=
        [ $type = f32 ] || define=-DRT_F64
        succeeds "$name compiles" $cc "${flags[@]}" $define -O0 -static -Itests -Itests/tools/cross -o "$work/$name" "$source" runtime/base/team.c -lm -lpthread || continue
        succeeds "$name" $qemu "$work/$name"
        checks=$(sed -n 's/.*Checks: \([0-9]*\), Failures: 0, Errors: 0$/\1/p' "$work/out")
        [ "${checks:-0}" -gt 0 ] && ok || bad "$name made no checks"
    done
done
# That header must be able to fail.
printf '#include <check.h>\nSTART_TEST(t) { ck_assert_int_eq(_i, 0); } END_TEST\nint main(void) { TCase *c = tcase_create(""); tcase_add_loop_test(c, t, 0, 2);\nSRunner *r = srunner_create(suite_create("")); srunner_run_all(r, CK_NORMAL); return srunner_ntests_failed(r); }\n' > "$work/fails.c"
gcc -Itests/tools/cross -o "$work/fails" "$work/fails.c" -lm
rc=0; env -u CHECK_EVERY "$work/fails" > "$work/out" || rc=$?
same "a failing check" "$rc $(tail -n 1 "$work/out")" "1 50%: Checks: 2, Failures: 1, Errors: 0"

# A build tree for that processor, with the compiler of this machine.  The data are not compressed, so zlib has
# nothing to do.
tree=$work/tree
mkdir -p "$tree/lib" "$work/o" "$work/include"
cp "$TENON" "$tree/tenon"
printf 'source=%s\ncflags=-static -L%s\n' "$(realpath --relative-to="$tree" "$TENON_ROOT")" "$tree/lib" > "$tree/tenon.paths"
cp "$(echo '#include <zlib.h>' | gcc -E - | sed -n 's/^# 1 "\(.*zlib.h\)".*/\1/p' | head -n 1)" \
   "$(echo '#include <zlib.h>' | gcc -E - | sed -n 's/^# 1 "\(.*zconf.h\)".*/\1/p' | head -n 1)" "$work/include"
cat > "$work/zlib.c" <<'END'
#include <zlib.h>
int inflateInit2_(z_streamp z, int bits, const char *version, int size) { (void)z, (void)bits, (void)version, (void)size; return Z_MEM_ERROR; }
int inflate(z_streamp z, int flush) { (void)z, (void)flush; return Z_MEM_ERROR; }
int inflateReset(z_streamp z) { (void)z; return Z_MEM_ERROR; }
int inflateEnd(z_streamp z) { (void)z; return Z_OK; }
END
for source in runtime/*.c runtime/*/*.c "$work/zlib.c"; do
    case $source in runtime/cuda/* | runtime/data/xz.c | runtime/comm/mpi.c) continue ;; esac      # needed only by programs for .xz data, for GPUs or for several ranks
    succeeds "$(basename "$source") compiles" $cc "${flags[@]}" -O1 -I"$work/include" -c -o "$work/o/$(basename "$source" .c).o" "$source"
done
ar rc "$tree/lib/libz.a" "$work/o/zlib.o"
rm "$work/o/zlib.o"
ar rc "$tree/lib/libtenonrt.a" "$work"/o/*.o

# LeNet.
small_mnist "$work/mnist" 256 64 || true
for type in $types; do
    succeeds "lenet --cpu armv8-a --dtype $type" env CC=$cc TENON_CACHE="$work/cache" \
        "$tree/tenon" build models/lenet.tn -o "$work/lenet_$type" --cpu armv8-a --batch 32 --dtype $type
    "$TENON" build models/lenet.tn -o "$work/here_$type" --cpu generic --batch 32 --dtype $type
done
train() { local log=$1; shift; rm -f "$log"; "$@" --data "$work/mnist" --epochs 1 --log "$log" > /dev/null; }
for type in $types; do
    train "$work/log1" $qemu "$work/lenet_$type" --threads 1
    train "$work/log2" $qemu "$work/lenet_$type" --threads 2
    train "$work/log3" "$work/here_$type" --threads 2
    same "$type: threads" "$(hashes "$work/log1")" "$(hashes "$work/log2")"
    there=$(field "$work/log1" epoch train_loss) here=$(field "$work/log3" epoch train_loss)
    awk -v a="$there" -v b="$here" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (1e-4 * b) ^ 2) }' && ok ||
        bad "$type: the loss of eight steps is $there on armv8-a, $here on this machine"
done
finish
