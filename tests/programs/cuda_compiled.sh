#!/usr/bin/env bash
# cuda_compiled.sh -- nvcc compiles the shipped models' programs for a GPU without spills and stack, and with registers and shared memory
# within limits (tests/cuda/gate.sh).
#
# All models, for sm_80, sm_90a and sm_100.  Where cuobjdump is, the inner loops of products and updates are counted in the machine code.
#
# Deep: nvcc takes a quarter of an hour.
set -eu
. "$(dirname "$0")/../common.sh"
cd "$TENON_ROOT"
command -v nvcc > /dev/null || { skip "nvcc is not there: no model was compiled for a GPU"; finish; exit; }
. tests/cuda/gate.sh
least=9                                               # launches of the MLP

for model in models/*.tn; do
    name=$(basename "$model" .tn)
    succeeds "$name: emit" "$TENON" emit "$model" --to cuda --kernels=own -o "$work/emitted"
    for arch in 80 90a 100; do gate "$work/emitted/$name.cu" $arch; done
done

# Inner loops: model, batch, kernel; for each multiply-add, the most instructions and the most bytes read from shared memory, on any of
# the three architectures.  A tile of 64 x 128 sums reads 1.55 bytes, one of 16 x 16 reads 8.2 (bench/GPU.md);
# a convolution also reads parts of addresses.
limits="lenet 4096 dense_1 1.4 1.6
lenet 4096 conv2d_2 1.5 1.7
lenet 4096 conv2d_1 1.8 2.3
mlp 4096 dense_1 2.7 4.2
resnet20_cifar10 128 conv2d_2 2.1 2.6
resnet20_cifar10 128 conv2d_dx_conv2d_dw_parts_relu_d_1 2.5 2.2
lstm_synthetic 128 dense_bias_scan_copy_1 1.7 1.6
lstm_synthetic 128 recurrence_1 2.0 3.6
lstm_synthetic 128 recurrence_2 1.9 4.0
gpt_char 64 dense_gelu_1 1.2 1.0"

# loops MODEL BATCH ARCH: $work/loops: the loops of all kernels
loops() {
    "$TENON" emit "models/$1.tn" --to cuda --kernels=own --batch "$2" -o "$work/loops.d" > /dev/null 2>&1
    nvcc -std=c++20 -O2 -fmad=false -arch=sm_"$3" -I runtime -cubin -o "$work/loops.cubin" "$work/loops.d/$1.cu" > "$work/out" 2>&1 &&
        cuobjdump -sass "$work/loops.cubin" | awk -f tests/tools/sass_loops.awk > "$work/loops" || { bad "$1 for sm_$3: $(head -n 3 "$work/out")"; : > "$work/loops"; }
}

# within KERNEL INSTRUCTIONS BYTES
within() { awk -v k="$1" -v i="$2" -v b="$3" '$1 == k { seen = $3 > 0 && $2 <= i * $3 && $5 <= b * $3 } END { exit !seen }' "$work/loops"; }

if command -v cuobjdump > /dev/null; then
    for program in $(cut -d' ' -f1,2 <<< "$limits" | sort -u | tr ' ' ,); do
        for arch in 80 90a 100; do
            loops "${program%,*}" "${program#*,}" $arch
            awk '$8 > 0 || $3 >= 64 && $4 > 0 && ($2 > 8 * $3 || $5 > 9.5 * $3) { exit 1 } END { exit NR < 9 }' "$work/loops" && ok ||
                bad "$program for sm_$arch: local memory, or a loop with more than 8 instructions for a multiply-add: $(awk '$8 > 0 || $4 > 0 && $2 > 8 * $3' "$work/loops")"
            awk '$1 ~ /^update_[0-9]+$/ && $7 < 8 * $6 { exit 1 }' "$work/loops" && ok || bad "$program for sm_$arch: updates load less than 8 bytes at a time"
            while read -r kernel instructions bytes; do
                within "$kernel" "$instructions" "$bytes" && ok || bad "$kernel of $program for sm_$arch, not $instructions and $bytes: $(grep "^$kernel " "$work/loops")"
            done < <(sed -n "s/^${program/,/ } //p" <<< "$limits")
        done
    done
    # A limit must be able to fail.
    ! within "$kernel" 1 "$bytes" && ! within "$kernel" "$instructions" 1 && ! within nothing 9 9 && ok || bad "limits of loops do not count"
else skip "cuobjdump is not here: the loops of kernels are not counted"; fi
finish
