/* bf16_gemm.h -- products of many small matrices with factors in bf16 and sums in f32.
 *
 *   c[i][j] = sum over k of a[i][k] b[k][j]            i < m, j < n
 *
 * Operands are those of gemm.h, in bf16.  Each sum has the order of bf16.h.  A tile is 32 rows by
 * 32 columns.  B is packed for BF16_POSITIONS factors at a time, and so is A if it is transposed.
 * If there are no more factors, B is packed once for all rows.
 */
#ifndef CPU_BF16_GEMM_H
#define CPU_BF16_GEMM_H
#include "cpu/bf16_dense.h"
#include "cpu/gemm.h"

/* ------------------------------------------------------------------------------------ reference */
RT_INLINE void bf16_matmul_plain(real *c, const bf16 *a, const bf16 *b, Gemm g)
{
    for (int s = 0; s < g.count; s++) {
        for (int i = 0; i < g.m; i++)
            for (int j = 0; j < g.n; j++) {
                Bf16Sum sum = {0};
                for (int k = 0; k < g.k; k++)
                    bf16_sum_add(&sum,
                                 bf16_wide(g.transpose_a ? a[(int64_t)k * g.m + i]
                                                         : a[(int64_t)i * g.k + k]),
                                 bf16_wide(g.transpose_b ? b[(int64_t)j * g.k + k]
                                                         : b[(int64_t)k * g.n + j]));
                bf16_sum_end(&sum);
                c[(int64_t)i * g.n + j] = sum.sum;
            }
        a += (int64_t)g.m * g.k, b += (int64_t)g.k * g.n, c += (int64_t)g.m * g.n;
    }
}

#ifndef RT_DOUBLE
/* ------------------------------------------------------------------------------------ operands */

/* BV pairs of adjacent numbers, of which `count` exist; others are 0. */
RT_INLINE bvec bf16_load_pairs(const bf16 *p, int count)
{
    bvec x = {0};
    if (count >= 2 * BV)
        memcpy(&x, p, sizeof x);
    else if (count > 0)
        memcpy(&x, p, sizeof *p * (size_t)count);
    return x;
}

/* Packs the second factor from rows of outputs: output j, factor k is b[j * step + k].  Panels have
 * 16 outputs and are `panel` numbers apart; blocks and panels are filled with zeros. */
RT_INLINE void bf16_pairs_of_rows(bf16 *restrict to, int64_t panel, const bf16 *restrict b,
                                  int64_t step, int count, int outputs)
{
    for (int o = 0; o < BF16_PANELS(outputs) * BF16_LANES; o += BV) {
        bf16 *const at = to + o / BF16_LANES * panel + o % BF16_LANES * 2;
        for (int k = 0; k < BF16_BLOCKS(count) * BF16_BLOCK; k += 2 * BV) {
            bvec t[BV];
            for (int i = 0; i < BV; i++)
                t[i] = o + i < outputs ? bf16_load_pairs(b + (o + i) * step + k, count - k)
                                       : (bvec){0};
            b_transpose(t);
            for (int i = 0; i < BV; i++)
                memcpy(at + (k / 2 + i) * (2 * BF16_LANES), &t[i], sizeof t[i]);
        }
    }
}

/* Factors k .. k + count - 1 of B for the columns j .. j + outputs - 1. */
RT_INLINE void bf16_matmul_pack(bf16 *restrict to, const bf16 *restrict b, Gemm g, int k, int count,
                                int j, int outputs)
{
    enum { PANEL = BF16_POSITIONS * BF16_LANES };
    const bf16 *row[BF16_POSITIONS];
    if (g.transpose_b) {
        bf16_pairs_of_rows(to, PANEL, b + (int64_t)j * g.k + k, g.k, count, outputs);
        return;
    }
    bf16_dense_rows(row, b, g.n, k, count);
    bf16_pairs(to, PANEL, row, j, count, outputs);
}

/* sum += the product of factors k .. k + count - 1: rows i .. i + rows - 1, packed columns. */
RT_INLINE void bf16_matmul_tile(float *sum, const bf16 *restrict a, const bf16 *restrict packed,
                                Gemm g, int k, int count, int i, int rows, int outputs)
{
    const int64_t zero = 0;
    const Bf16Runs run = {1, count, &zero, &zero, 0};
    const bf16 *row[BF16_POSITIONS];
    if (g.transpose_a) {
        bf16 turned[BF16_ROWS * BF16_POSITIONS] __attribute__((aligned(64)));
        bf16_dense_rows(row, a, g.m, k, count);
        bf16_turn(turned, row, i, count, rows);
        bf16_product_turned(sum, BF16_ROWS, false, turned, rows, packed, outputs, count);
        return;
    }
    bf16_dense_rows(row, a + k, g.k, i, rows);
    bf16_product(sum, row, rows, a + (int64_t)g.m * g.k, packed, BF16_POSITIONS * BF16_LANES,
                 BF16_PANELS(outputs), &run);
}

/* Computes the columns j .. j + outputs - 1 of one matrix. */
RT_INLINE void bf16_matmul_columns(Bf16End e, const bf16 *restrict a, const bf16 *restrict b,
                                   Gemm g, int j, int outputs)
{
    bf16 packed[BF16_PAIR * BF16_POSITIONS] __attribute__((aligned(64)));
    for (int i = 0; i < g.m; i += BF16_ROWS) {
        float sum[BF16_TILE] __attribute__((aligned(64))) = {0};
        const int rows = g.m - i < BF16_ROWS ? g.m - i : BF16_ROWS;
        int64_t to[BF16_ROWS];
        for (int k = 0; k < g.k; k += BF16_POSITIONS) {
            const int count = g.k - k < BF16_POSITIONS ? g.k - k : BF16_POSITIONS;
            if (i == 0 || g.k > BF16_POSITIONS)
                bf16_matmul_pack(packed, b, g, k, count, j, outputs);
            bf16_matmul_tile(sum, a, packed, g, k, count, i, rows, outputs);
        }
        for (int r = 0; r < rows; r++)
            to[r] = (int64_t)(i + r) * g.n;
        bf16_end(sum, e, to, rows, j, outputs);
    }
}

RT_INLINE void bf16_matmul_any(void *c, bool wide, const bf16 *restrict a, const bf16 *restrict b,
                               Gemm g)
{
    const int pairs = BF16_COUNT(g.n, BF16_PAIR);
    const RtGrid part = team_grid(g.count, pairs);
    const TeamRange products = team_rows(part, g.count), columns = team_columns(part, pairs);
    for (int64_t s = products.first; s < products.end; s++) {
        const int64_t size = s * g.m * g.n;
        const Bf16End e = {bf16_result(c, wide, size), wide, NULL, NULL, v_identity, d_identity};
        for (int64_t p = columns.first; p < columns.end; p++) {
            const int j = (int)p * BF16_PAIR;
            bf16_matmul_columns(e, a + s * g.m * g.k, b + s * g.k * g.n, g, j,
                                g.n - j < BF16_PAIR ? g.n - j : BF16_PAIR);
        }
    }
}

RT_INLINE void bf16_matmul(bf16 *restrict c, const bf16 *restrict a, const bf16 *restrict b, Gemm g)
{
    bf16_matmul_any(c, false, a, b, g);
}

/* The same with c in f32. */
RT_INLINE void bf16_matmul_f32(real *restrict c, const bf16 *restrict a, const bf16 *restrict b,
                               Gemm g)
{
    bf16_matmul_any(c, true, a, b, g);
}
#endif

#endif
