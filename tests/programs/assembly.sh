#!/usr/bin/env bash
# assembly.sh -- checks the machine code of every kernel of the shipped models: an innermost loop with multiply-adds keeps its values
# in registers.  gcc 12 can spill whole tiles of accumulators, three times slower, without a warning.
#
# The known spills are listed in `known` below.  tests/programs/assembly.sh --list prints all kernels with their counts.
#
# Deep: every kernel of the shipped models is compiled for two processors.
set -euo pipefail
. "$(dirname "$0")/../common.sh"
[ "$(uname -m)" = x86_64 ] || { skip "the assembly of x86-64 is looked at on x86-64"; finish; exit; }
look() { awk -f "$TENON_ROOT/tests/tools/inner_loops.awk" "$@"; }

# kernel, by its function; processor; largest number of operands on the stack in its inner loops, of vector and of other
# instructions; why they are accepted
known=$(sed 's/ *#.*//' <<'END'
wino_pack             x86-64-v3  29  0   # 36 values of a transform in 16 registers; once a step
wino_pack             x86-64-v4   6  0   # the same in 32
conv2d_winograd_pool  x86-64-v3 235  0   # 36 values of two transforms in 16 registers, beside 112 multiply-adds; 149 before teams, whose bounds cost 2 %
conv2d_winograd_pool  x86-64-v4 182  0   # the same in 32, once more for the last few channels; 110 before teams, 1 %
conv2d_winograd       x86-64-v3 124  0   # the same for Inception's 5 x 5, beside 72; 131 before teams.  Else constants of gelu
conv2d_winograd       x86-64-v4  41  0   # the same; 35 before teams, no time
conv2d_winograd_dx    x86-64-v3 122  0   # the same
conv2d_winograd_dx    x86-64-v4  47  0   # the same
conv2d_winograd_dw    x86-64-v3  80  2   # the same, once a filter, beside 66 (5 x 5: 162); a member's vectors in a loop of 14
conv2d_winograd_dw    x86-64-v4  28  3   # the same
batch_moments         x86-64-v3   0  1   # the end of a loop over vectors, which a member's rows enclose
batch_moments         x86-64-v4   0  2   # the same
batch_norm            x86-64-v3   1  0   # a scale of 16 channels, which a loop over rows keeps in registers, beside 4
batch_norm_dw         x86-64-v3   0  2   # an address where a team's blocks are added, one multiply-add each
batch_norm_dw         x86-64-v4   0  2   # the same
softmax_cross_entropy x86-64-v3   5  2   # coefficients of exp, beside 18 multiply-adds; a member's samples
softmax_cross_entropy x86-64-v4   2  2   # the same, beside 9
softmax_cross_entropy_smooth  x86-64-v3 3 0   # the same, beside 18 and 9
softmax_cross_entropy_smooth  x86-64-v4 2 0
softmax_cross_entropy_each    x86-64-v3 7 1   # the same for the ten classes of a sample of dates
softmax_cross_entropy_each    x86-64-v4 4 6   # the same, beside 9, and addresses
sigmoid_cross_entropy_numbers x86-64-v3 3 0   # integer constants of exp and log, beside 20
sigmoid_cross_entropy_numbers x86-64-v4 3 0   # the same
softmax_cross_entropy_dx      x86-64-v3 2 0   # the same, beside 18
softmax_cross_entropy_dx_each x86-64-v3 1 0   # the same, beside 9
tanh                  x86-64-v3   3  0   # constants of exp in an elementwise loop, beside 8 multiply-adds
tanh                  x86-64-v4   3  0   # the same, beside 17
mul                   x86-64-v3   3  0   # the same, beside 17
mul                   x86-64-v4   3  0   # the same
add                   x86-64-v3   3  0   # the same, beside 26
add                   x86-64-v4   3  0   # the same
gelu                  x86-64-v3   2  0   # constants of erf and exp, beside 30
gelu                  x86-64-v4   1  0   # the same
gelu_d                x86-64-v3   2  0   # the same, beside 39
gelu_d                x86-64-v4   2  0   # the same
attention_dx          x86-64-v3   0  1   # a pointer, beside 460
token_attention       x86-64-v3  14  0   # constants of exp, beside 21; once for each generated token
batch_statistics      x86-64-v3   4  0   # constants of a loop over channels, once a step
batch_statistics      x86-64-v4   8  0   # the same
batch_record          x86-64-v4   8  0   # the same, with 4 or 8 slices
grad_update           x86-64-v3   9  0   # the last vector of an array, which is not whole, goes by way of the stack; constants of Adam
grad_update           x86-64-v4   5  2   # the same, and two pointers
dense_dx_transposed   x86-64-v3   0  1   # a team's part, which a thread alone does not compute: text_cnn's one output is one term, the inner loop goes over panels
conv2d                x86-64-v3   2  2   # the ends of loops of 10 and 12 multiply-adds: the last input channels of 1 x 1, fewer than 16; a weight of U-Net's first layer, beside 36
conv2d_dx             x86-64-v3   1  1   # the same; MobileNet's mask of lanes, on a path that 960 channels do not take
conv2d_pool           x86-64-v3  13  1   # 12 sums, 3 weights and a pixel in 16 registers, beside 60 multiply-adds of first layers; constants of tanh
conv2d_pool           x86-64-v4  14  0   # beside 200
conv2d_pool_dw        x86-64-v3   0  1   # the address of a table that tells where a window's largest stood, beside 12
END
)

# The check itself must work: 24 accumulators in 16 registers spill, 8 do not.
spilling() {
    cat > "$work/$1.c" <<END
typedef float vec __attribute__((vector_size(32)));
void $1(vec *y, const vec *a, const float *b, int k)
{
    vec c[$2];
    for (int i = 0; i < $2; i++)
        c[i] = y[i];
    for (int p = 0; p < k; p++)
#pragma GCC unroll 32
        for (int i = 0; i < $2; i++)
            c[i] += a[p] * b[p * $2 + i];
    for (int i = 0; i < $2; i++)
        y[i] = c[i];
}
END
    gcc -O2 -march=x86-64-v3 -ffp-contract=fast -fno-strict-aliasing -funroll-loops -S -o "$work/$1.s" "$work/$1.c"
    look "$work/$1.s"
}
read -r _ _ loops fmas vectors words < <(spilling many 24) || true
[ "${loops:-0}" -ge 1 ] && [ "${fmas:-0}" -ge 24 ] && [ "${vectors:-0}" -ge 8 ] && ok ||
    bad "24 accumulators in 16 registers: ${loops:-0} loops, ${fmas:-0} multiply-adds, ${vectors:-0} vectors on the stack"
read -r _ _ loops fmas vectors words < <(spilling few 8) || true
same "8 accumulators in 16 registers" "${loops:-0} $([ "${fmas:-0}" -ge 8 ] && echo some) ${vectors:-none} ${words:-none}" "1 some 0 0"

# Only instructions on a path of the loop count: not the end of the function (.L4), nor the way back to the outer loop (.L5), but an
# accumulator (32) and the end of the loop (24) on the stack.
cat > "$work/paths.s" <<'END'
paths:
	subq	$64, %rsp
.L1:
	movq	%rax, 8(%rsp)
.L2:
	vfmadd231ps	(%rdi), %ymm0, %ymm1
	je	.L3
	jmp	.L6
.L4:
	vmovups	%ymm1, 40(%rsp)
	addq	$64, %rsp
	ret
.L5:
	movq	%rbx, 16(%rsp)
	jmp	.L1
.L3:
	vfmadd213ps	32(%rsp), %ymm0, %ymm2
.L6:
	addq	$32, %rdi
	cmpq	24(%rsp), %rdi
	jne	.L2
	jl	.L5
	jmp	.L4
END
same "paths of a loop" "$(look "$work/paths.s")" "paths paths 1 2 1 1"

# One read of a word is free beside 16 multiply-adds; a second read and each write count.
words() {
    printf 'words:\n.L1:\n'
    printf '\tvfmadd231ps\t(%%rdi), %%ymm0, %%ymm1\n%.0s' {1..16}
    printf '\t%s\n' "$@" 'cmpq 8(%rsp), %rdi' 'jne .L1'
}
words > "$work/words.s"
same "one word beside 16 multiply-adds" "$(look "$work/words.s")" "words words 1 16 0 0"
words 'movq 16(%rsp), %rax' 'movq %rbx, 24(%rsp)' 'addq $8, 32(%rsp)' > "$work/words.s"
same "two reads and two writes" "$(look "$work/words.s")" "words words 1 16 0 3"

# Each unit is compiled by way of assembly, which stays in $ASM.  Units of different models can have the same name.
cat > "$work/cc" <<'END'
#!/bin/bash
case " $* " in
*" -c -o "*)
    n=$#
    flags=("${@:1:n-4}") object=${@:n-1:1} source=${@:n:1}
    name=$(basename "$source" .c)
    gcc "${flags[@]}" -S -o "$ASM/$name.s" "$source" && exec gcc -c -o "$object" "$ASM/$name.s" ;;
*) exec gcc "$@" ;;
esac
END
chmod +x "$work/cc"
export TENON_CACHE=$work/cache TENON_CFLAGS="-Wall -Wextra -Werror"        # the same flags as in generated.sh, which shares the cache
for cpu in x86-64-v3 x86-64-v4; do
    for model in $(shipped_models); do
        name=$(basename "$model" .tn)
        export ASM=$work/$cpu/$name
        mkdir -p "$ASM"
        succeeds "$name.tn --cpu $cpu" env CC="$work/cc" "$TENON" build "$model" -o "$work/p" --cpu $cpu
        if compgen -G "$ASM/*.s" > /dev/null; then look "$ASM"/*.s | sed "s/^/$name /"; fi >> "$work/$cpu.list"
    done
    [ "$(wc -l < "$work/$cpu.list")" -gt 20 ] && ok || bad "only $(wc -l < "$work/$cpu.list") kernels of --cpu $cpu have loops with multiply-adds"
    if [ "${1:-}" = --list ]; then sed "s/^/$cpu /" "$work/$cpu.list"; continue; fi
    while read -r name unit function loops fmas vectors words; do
        base=${function%%.*}
        [[ $base =~ ^(.*)_[0-9a-f]{8}$ ]] && base=${BASH_REMATCH[1]}
        read -r most_vectors most_words < <(awk -v b="$base" -v c="$cpu" '$1 == b && $2 == c { v = $3; w = $4 } END { print v + 0, w + 0 }' <<< "$known")
        if [ "$vectors" -le "$most_vectors" ] && [ "$words" -le "$most_words" ]; then ok
        else
            bad "$base --cpu $cpu ($unit of $name): $vectors vectors and $words words on the stack beside $fmas multiply-adds in $loops inner loops, not $most_vectors and $most_words"
        fi
    done < "$work/$cpu.list"
done
finish
