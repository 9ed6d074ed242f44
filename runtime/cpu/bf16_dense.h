/* bf16_dense.h -- y = act(x W^T + b) and its gradients, with factors in bf16 and sums in f32.
 *
 *   x (N, K) bf16   y (N, O) bf16 or f32   w f32, in the panels of dense.h
 *
 * The forward pass and the gradient of the input read weights that bf16_pack.h has packed.  Each
 * sum has the order of bf16.h; the bias is added to the complete sum.  In the gradient of the
 * weights, the factors are the samples of the call, in order.
 */
#ifndef CPU_BF16_DENSE_H
#define CPU_BF16_DENSE_H
#include "cpu/bf16_turn.h"

/* ------------------------------------------------------------------------------------ reference
 * w (O, K), f32. */
RT_INLINE void bf16_dense_plain(real *y, const bf16 *x, const real *w, Dense d)
{
    for (int n = 0; n < d.n; n++)
        for (int o = 0; o < d.o; o++) {
            Bf16Sum s = {0};
            for (int k = 0; k < d.k; k++)
                bf16_sum_add(&s, bf16_wide(x[(int64_t)n * d.k + k]),
                             bf16_wide(bf16_narrow((float)w[(int64_t)o * d.k + k])));
            bf16_sum_end(&s);
            y[(int64_t)n * d.o + o] = s.sum;
        }
}

RT_INLINE void bf16_dense_dx_plain(real *dx, const real *w, const bf16 *dy, Dense d)
{
    for (int n = 0; n < d.n; n++)
        for (int k = 0; k < d.k; k++) {
            Bf16Sum s = {0};
            for (int o = 0; o < d.o; o++)
                bf16_sum_add(&s, bf16_wide(dy[(int64_t)n * d.o + o]),
                             bf16_wide(bf16_narrow((float)w[(int64_t)o * d.k + k])));
            bf16_sum_end(&s);
            dx[(int64_t)n * d.k + k] = s.sum;
        }
}

/* dw += dy^T x: each block of 32 samples is added to dw. */
RT_INLINE void bf16_dense_dw_plain(real *dw, const bf16 *x, const bf16 *dy, Dense d)
{
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++) {
            Bf16Sum s = {.sum = (float)dw[(int64_t)o * d.k + k]};
            for (int n = 0; n < d.n; n++)
                bf16_sum_add(&s, bf16_wide(x[(int64_t)n * d.k + k]),
                             bf16_wide(dy[(int64_t)n * d.o + o]));
            bf16_sum_end(&s);
            dw[(int64_t)o * d.k + k] = s.sum;
        }
}

#ifndef RT_DOUBLE
/* -------------------------------------------------------------------------------------- forward
 * Rows are read once; the packed weights are read for every 32 rows, and the 2 KB of a block stay
 * in the L1 cache for the rows of a tile. */
enum { BF16_PAIR = 2 * BF16_LANES }; /* outputs of a tile */
#define BF16_COUNT(n, unit) (((n) + (unit)-1) / (unit))

/* Whether tiles read rows in place: their blocks are whole, and so are halves of a tile. */
RT_INLINE bool bf16_dense_even(Dense d, int rows)
{
    return d.k % BF16_BLOCK == 0 && rows % BF16_LANES == 0 && bf16_has_tiles();
}

RT_INLINE void bf16_dense_tiles(const bf16 *x, const bf16 *p, Bf16End e, Dense d)
{
    const int tiles = BF16_COUNT(d.n, BF16_ROWS), pairs = BF16_COUNT(d.o, BF16_PAIR);
    const RtGrid part = team_grid(tiles, pairs);
    const TeamRange rows = team_rows(part, tiles), columns = team_columns(part, pairs);
    const int64_t zero = 0, panel = BF16_PANEL(d.k);
    const Bf16Runs run = {1, d.k, &zero, &zero, 0},
                   first_run = {1, d.k, &zero, &zero, BF16_ROWS * (int64_t)d.k};
    bf16 kept[BF16_KEPT_COUNT(BF16_BLOCKS(d.k))] __attribute__((aligned(64)));
    for (int64_t t = rows.first; t < rows.end; t++) {
        const int64_t first = t * BF16_ROWS;
        const int count = d.n - first < BF16_ROWS ? (int)(d.n - first) : BF16_ROWS;
        const bf16 *row[BF16_ROWS];
        int64_t to[BF16_ROWS];
        for (int i = 0; i < count; i++)
            row[i] = x + (first + i) * d.k, to[i] = (first + i) * d.o;
        const bool even = bf16_dense_even(d, count);
        Bf16Rows all = {.row = row, .rows = count};
        if (!even)
            all =
                bf16_rows(row, count, x + (int64_t)d.n * d.k, &run,
                          BF16_KEPT_AT(kept, BF16_BLOCKS(d.k)), (int)(columns.end - columns.first));
        for (int64_t j = columns.first; j < columns.end; j++) {
            float sum[BF16_TILE] __attribute__((aligned(64)));
            const int o = (int)j * BF16_PAIR, outputs = d.o - o < BF16_PAIR ? d.o - o : BF16_PAIR;
            const Bf16Runs *const runs = j == columns.first ? &first_run : &run;
#ifdef RT_AMX
            if (even)
                bf16_product_even(sum, BF16_ROWS, true, row[0], d.k, count > BF16_LANES,
                                  p + j * 2 * panel, panel, BF16_PANELS(outputs), runs);
            else
#endif
                bf16_product_rows(sum, BF16_ROWS, true, &all, p + j * 2 * panel, panel,
                                  BF16_PANELS(outputs), runs);
            bf16_end(sum, e, to, count, o, outputs);
        }
    }
}

/* y = act(x W^T + bias); bias may be NULL.  p from bf16_dense_pack. */
RT_INLINE void bf16_dense(bf16 *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                          const real *restrict bias, Act act, Dense d)
{
    bf16_dense_tiles(x, p, (Bf16End){y, false, bias, NULL, act, d_identity}, d);
}

/* The same with y in f32, for an output of the network. */
RT_INLINE void bf16_dense_f32(real *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                              const real *restrict bias, Act act, Dense d)
{
    bf16_dense_tiles(x, p, (Bf16End){y, true, bias, NULL, act, d_identity}, d);
}

/* ------------------------------------------------------------------------ gradient of the input */

/* dx = mask(dy W, y); p from bf16_dense_pack_back.  y (N, K): the output of the activation whose
 * derivative `mask` applies, or NULL.  _f32: dx in f32, for a state of a loop over time. */
RT_INLINE void bf16_dense_dx(bf16 *restrict dx, const bf16 *restrict p, const bf16 *restrict dy,
                             Mask mask, const bf16 *restrict y, Dense d)
{
    bf16_dense_tiles(dy, p, (Bf16End){dx, false, NULL, y, v_identity, mask},
                     (Dense){.n = d.n, .k = d.o, .o = d.k});
}

RT_INLINE void bf16_dense_dx_f32(real *restrict dx, const bf16 *restrict p, const bf16 *restrict dy,
                                 Mask mask, const bf16 *restrict y, Dense d)
{
    bf16_dense_tiles(dy, p, (Bf16End){dx, true, NULL, y, v_identity, mask},
                     (Dense){.n = d.n, .k = d.o, .o = d.k});
}

/* ---------------------------------------------------------------------- gradient of the weights
 * A tile is 32 inputs by 32 outputs.  Both operands are copied for a block of at most
 * BF16_POSITIONS samples: the outputs of BF16_TURNED pairs of panels once for all inputs, and the
 * inputs of a tile once for these outputs. */

/* Samples first .. first + count - 1 of a matrix with rows of `step` numbers. */
RT_INLINE void bf16_dense_rows(const bf16 **row, const bf16 *x, int64_t step, int first, int count)
{
    for (int i = 0; i < count; i++)
        row[i] = x + (first + i) * step;
}

/* Copies a tile of dw between the panels of dense.h and sums: inputs k .. k + rows - 1, outputs
 * o .. o + outputs - 1.  (If a panel is as wide as a tile, a whole tile has the layout of sums.) */
RT_INLINE void bf16_dense_tile(float *sum, real *dw, Dense d, int k, int rows, int o, int outputs,
                               bool load)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < outputs; j += V) {
            real *at = dw + ((int64_t)((o + j) / P) * d.k + k + i) * P + (o + j) % P;
            if (load)
                v_store(sum + i * BF16_ROWS + j, v_load(at));
            else
                v_store_lanes(at, v_load(sum + i * BF16_ROWS + j), tile_lanes(outputs - j, 0));
        }
}

/* Prefetches the next tile of dw. */
RT_INLINE void dense_fetch_rows(const real *p, int count)
{
    for (int i = 0; i < count; i += 64 / (int)sizeof(real))
        v_fetch_to_write(p + i);
}

/* Pairs of panels whose copies are kept: 512 KB.  Products by vectors take so long that they gain
 * nothing from more than 256 KB. */
enum { BF16_TURNED = 16 };
RT_INLINE int bf16_turned_most(int64_t all)
{
    const int most = bf16_has_tiles() ? BF16_TURNED : BF16_TURNED / 2;
    return all < most ? (int)all : most;
}

/* dw += the sum over one block of `count` samples, whose rows are x and dy; begin: dw = this sum.
 * mine: tiles of inputs; own: pairs of panels. */
RT_INLINE void bf16_dense_dw_block(real *dw, const bf16 *const *x, const bf16 *const *dy, int count,
                                   Dense d, TeamRange mine, TeamRange own, bool begin)
{
    const int64_t all = own.end - own.first;
    const int kept = bf16_turned_most(all);
    bf16 turned[BF16_ROWS * BF16_POSITIONS] __attribute__((aligned(64)));
    bf16 packed[BF16_TURNED * BF16_PAIR * BF16_POSITIONS] __attribute__((aligned(64)));
    float sum[BF16_TILE] __attribute__((aligned(64)));
    for (int64_t from = own.first; from < own.end; from += kept) {
        const int64_t end = from + kept < own.end ? from + kept : own.end;
        for (int64_t j = from; j < end; j++) {
            const int o = (int)j * BF16_PAIR;
            bf16_pairs(packed + (j - from) * BF16_PAIR * BF16_POSITIONS,
                       BF16_POSITIONS * BF16_LANES, dy, o, count,
                       d.o - o < BF16_PAIR ? d.o - o : BF16_PAIR);
        }
        for (int64_t i = mine.first; i < mine.end; i++) {
            const int k = (int)i * BF16_ROWS, rows = d.k - k < BF16_ROWS ? d.k - k : BF16_ROWS;
            bf16_turn(turned, x, k, count, rows);
            for (int64_t j = from; j < end; j++) {
                const bf16 *pairs = packed + (j - from) * BF16_PAIR * BF16_POSITIONS;
                const int o = (int)j * BF16_PAIR,
                          outputs = d.o - o < BF16_PAIR ? d.o - o : BF16_PAIR;
                dense_fetch_rows(dw + ((int64_t)((o + BF16_PAIR) / P) * d.k + k) * P, rows * P);
                if ((int)P == (int)BF16_ROWS && rows == BF16_ROWS && outputs == BF16_PAIR) {
                    bf16_product_turned(dw + ((int64_t)o * d.k + (int64_t)k * P), BF16_ROWS, begin,
                                        turned, rows, pairs, outputs, count);
                    continue;
                }
                if (!begin)
                    bf16_dense_tile(sum, dw, d, k, rows, o, outputs, true);
                bf16_product_turned(sum, BF16_ROWS, begin, turned, rows, pairs, outputs, count);
                bf16_dense_tile(sum, dw, d, k, rows, o, outputs, false);
            }
        }
    }
}

/* dw += dy^T x, in the panels of dense.h. */
RT_INLINE void bf16_dense_dw(real *restrict dw, const bf16 *restrict x, const bf16 *restrict dy,
                             Dense d)
{
    const int tiles = BF16_COUNT(d.k, BF16_ROWS), pairs = BF16_COUNT(d.o, BF16_PAIR);
    const RtGrid part = team_grid(tiles, pairs);
    const TeamRange mine = team_rows(part, tiles), own = team_columns(part, pairs);
    const int most = bf16_positions_most(d.n);
    for (int first = 0; first < d.n; first += most) {
        const int count = d.n - first < most ? d.n - first : most;
        const bf16 *x_row[BF16_POSITIONS], *dy_row[BF16_POSITIONS];
        bf16_dense_rows(x_row, x, d.k, first, count);
        bf16_dense_rows(dy_row, dy, d.o, first, count);
        bf16_dense_dw_block(dw, x_row, dy_row, count, d, mine, own, false);
    }
}
#endif

#endif
