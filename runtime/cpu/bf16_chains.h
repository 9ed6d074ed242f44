/* bf16_chains.h -- the product of bf16_tile.h by the instruction VDPBF16PS of AVX512_BF16, for
 * programs built with --fast.
 *
 * Each sum is one chain over all pairs of factors, the odd factor first:
 *
 *     sum = fma(a[k], b[k], fma(a[k + 1], b[k + 1], sum))
 *
 * So its bits differ from those of the order in bf16.h.  The order is that of a Zen 4 (3,200,000
 * results were compared) and of a Xeon (76,800).  On Zen 4 and 5 the instruction has twice the
 * speed of an FMA.
 */
#ifndef CPU_BF16_CHAINS_H
#define CPU_BF16_CHAINS_H
#include "cpu/bf16_tile.h"

/* Whether products of this thread take this form. */
RT_INLINE bool bf16_has_chains(void)
{
    return rt_tiles == RT_TILES_CHAINS;
}

/* Computes 8 rows by `panels` panels. */
RT_INLINE void bf16_chains(float *restrict sum, const bf16 *const *row, const bf16 *restrict b,
                           int64_t panel, int panels, const Bf16Runs *runs)
{
    enum { ROWS = 8 };
    bvec s[2 * ROWS];
    RT_UNROLL
    for (int i = 0; i < ROWS * panels; i++)
        s[i] = *(const bvec_memory *)(sum + i / panels * BF16_ROWS + i % panels * BF16_LANES);
    for (int t = 0; t < runs->count; t++) {
        const bf16 *a[ROWS], *from = b + runs->b[t];
        RT_UNROLL
        for (int i = 0; i < ROWS; i++)
            a[i] = row[i] + runs->a[t];
        int64_t k = 0;
        for (const int64_t last = runs->length / 2 * 2; k < last; k += 2, from += 2 * BF16_LANES) {
            bvec_bits w[2];
            __asm__("" : "+r"(k)); /* else gcc adds to a pointer for each row */
            RT_UNROLL
            for (int j = 0; j < panels; j++)
                w[j] = b_load_pairs(from + j * panel);
            RT_UNROLL
            for (int i = 0; i < ROWS * panels; i++)
                __asm__("vdpbf16ps %2%{1to16%}, %1, %0"
                        : "+v"(s[i])
                        : "v"(w[i % panels]),
                          "m"(*(const uint32_t *)(const void *)(a[i / panels] + k)));
        }
        if (k == runs->length)
            continue;
        RT_UNROLL
        for (int i = 0; i < ROWS * panels; i++) { /* a factor without a pair */
            const bvec_bits single = (uint32_t)a[i / panels][k] - (bvec_bits){0};
            __asm__("vdpbf16ps %2, %1, %0"
                    : "+v"(s[i])
                    : "v"(b_load_pairs(from + i % panels * panel)), "v"(single));
        }
    }
    RT_UNROLL
    for (int i = 0; i < ROWS * panels; i++)
        *(bvec_memory *)(sum + i / panels * BF16_ROWS + i % panels * BF16_LANES) = s[i];
}

/* Rows are filled up to a multiple of 8 with the last row, whose sums are not used. */
static RT_SEPARATE void bf16_product_chains(float *sum, const bf16 *const *row, int rows,
                                            const bf16 *b, int64_t panel, int panels,
                                            const Bf16Runs *runs)
{
    const bf16 *all[BF16_ROWS];
    for (int i = 0; i < BF16_ROWS; i++)
        all[i] = row[i < rows ? i : rows - 1];
    for (int i = 0; i < rows; i += 8)
        if (panels == 2)
            bf16_chains(sum + i * BF16_ROWS, all + i, b, panel, 2, runs);
        else
            bf16_chains(sum + i * BF16_ROWS, all + i, b, panel, 1, runs);
}

#endif
