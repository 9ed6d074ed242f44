/* conv_pool_backward.h -- gradients of a convolution behind a fused 2x2 max-pool.
 *
 * Three of four gradients behind the pool are zero, so the sums run over pooled outputs, not
 * positions: a quarter of the textbook work.  What one output adds to, or takes from, is for each
 * kernel row a run of S * C reals that lie side by side in the image and in the weights; the runs
 * of a few kernel rows stay in registers while a list is swept.
 * Groups and dilated columns break the runs up: those go a position at a time.
 */
#ifndef CPU_CONV_POOL_BACKWARD_H
#define CPU_CONV_POOL_BACKWARD_H
#include "cpu/conv_dx.h"

/* ----------------------------------------------------- through a max-pool, a position at a time */
RT_INLINE void pool_dw_positions(real *dw, const real *x, const real *dy, const uint8_t *index,
                                 Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int py = 0; py < c.oh / 2; py++)
        for (int px = 0; px < c.ow / 2; px++, dy += c.o, index += c.o)
            for (int o = 0; o < c.o; o++)
                conv_dw_position(dw + (int64_t)o * c.r * c.s * inputs, x + o / outputs * inputs,
                                 dy[o], c, 2 * py + index[o] / 2, 2 * px + index[o] % 2);
}

RT_INLINE void pool_dx_positions(real *dx, const real *p, const real *dy, const uint8_t *index,
                                 Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int py = 0; py < c.oh / 2; py++)
        for (int px = 0; px < c.ow / 2; px++, dy += c.o, index += c.o)
            for (int o = 0; o < c.o; o++)
                conv_dx_position(dx + o / outputs * inputs, p + (int64_t)o * c.r * CONV_RUN(c),
                                 dy[o], c, 2 * py + index[o] / 2, 2 * px + index[o] % 2);
}

#if defined(RT_AVX2)
enum { RUN_MAX = 13 }; /* vectors in registers: 16 less a broadcast and a spare */
#else
enum { RUN_MAX = 14 };
#endif

/* `rows` runs of `vectors` vectors, the last of which has `lanes` lanes. */
typedef struct Run {
    int rows, vectors, lanes;
} Run;
RT_INLINE int run_lanes(Run u, int j)
{
    return j + 1 < u.vectors ? V : u.lanes;
}

RT_INLINE void run_load(vec *t, const real *y, int64_t row, Run u)
{
    RT_UNROLL
    for (int i = 0; i < u.rows; i++) {
        RT_UNROLL
        for (int j = 0; j < u.vectors; j++)
            t[i * u.vectors + j] = v_load_lanes(y + i * row + j * V, run_lanes(u, j));
    }
}
RT_INLINE void run_store(real *y, const vec *t, int64_t row, Run u)
{
    RT_UNROLL
    for (int i = 0; i < u.rows; i++) {
        RT_UNROLL
        for (int j = 0; j < u.vectors; j++)
            v_store_lanes(y + i * row + j * V, t[i * u.vectors + j], run_lanes(u, j));
    }
}

/* t += *g times the runs at `from`; reads whole vectors, up to V - 1 reals behind a run. */
RT_INLINE void run_add(vec *t, const real *g, const real *from, int64_t row, Run u)
{
    const vec s = v_broadcast(g);
    RT_UNROLL
    for (int i = 0; i < u.rows; i++) {
        RT_UNROLL
        for (int j = 0; j < u.vectors; j++)
            t[i * u.vectors + j] = v_fma(s, v_load(from + i * row + j * V), t[i * u.vectors + j]);
    }
}

/* Kernel rows whose runs fit the registers together. */
RT_INLINE int run_rows(Conv c)
{
    const int vectors = conv_ceil(c.s * c.c, V);
    return vectors < RUN_MAX ? RUN_MAX / vectors : 1;
}

/* Distance from a window's first corner to corner k, in an image of `row` reals a row. */
RT_INLINE int64_t pool_corner(Conv c, int64_t row, int k)
{
    return (k >> 1) * (int64_t)c.stride_h * row + (k & 1) * (int64_t)c.stride_w * c.c;
}

/* ---------------------------------------------------------------------- gradient of the weights */

/* The windows of a band and one output channel: dw += dy x over the windows.  x, dw: at the first
 * kernel row. */
RT_INLINE void pool_dw_run(real *dw, ConvImage m, const real *dy, const uint8_t *index, Conv c,
                           int bands, Run u)
{
    const int64_t corner[4] = {0, pool_corner(c, m.row, 1), pool_corner(c, m.row, 2),
                               pool_corner(c, m.row, 3)};
    vec t[RUN_MAX];
    run_load(t, dw, c.s * c.c, u);
    for (int py = 0; py < bands; py++) {
        const real *x = m.x + 2 * py * c.stride_h * m.row;
        for (int px = 0; px < c.ow / 2; px++, x += 2 * c.stride_w * c.c, dy += c.o, index += c.o)
            run_add(t, dy, x + corner[*index & 3], c.dil_h * m.row, u);
    }
    run_store(dw, t, c.s * c.c, u);
}

RT_INLINE void pool_dw_rows(real *dw, ConvImage m, const real *dy, const uint8_t *index, Conv c,
                            int bands, int rows)
{
    const int length = c.s * c.c, vectors = conv_ceil(length, V), full = (vectors - 1) / RUN_MAX;
    for (int b = 0; b < full; b++)
        pool_dw_run(dw + b * RUN_MAX * V, (ConvImage){m.x + b * RUN_MAX * V, m.row}, dy, index, c,
                    bands, (Run){rows, RUN_MAX, V});
    pool_dw_run(dw + full * RUN_MAX * V, (ConvImage){m.x + full * RUN_MAX * V, m.row}, dy, index, c,
                bands, (Run){rows, vectors - full * RUN_MAX, length - (vectors - 1) * V});
}

RT_INLINE void pool_dw_band(real *dw, ConvImage m, const real *dy, const uint8_t *index, Conv c,
                            int bands)
{
    const TileSplit k = tile_split(c.r, run_rows(c));
    const int64_t length = c.s * c.c, down = c.dil_h * m.row;
    for (int o = 0; o < c.o; o++) {
        ConvImage at = m;
        for (int i = 0; i < k.bigs; i++, dw += k.big * length, at.x += k.big * down)
            pool_dw_rows(dw, at, dy + o, index + o, c, bands, k.big);
        for (int i = 0; i < k.smalls; i++, dw += k.small * length, at.x += k.small * down)
            pool_dw_rows(dw, at, dy + o, index + o, c, bands, k.small);
    }
}

/* dw (O, R, S, C/g) += dy x, and db += sum of dy unless NULL; dy and index (N, OH/2, OW/2, O). */
RT_INLINE void conv2d_pool_dw(real *restrict dw, real *restrict db, const real *restrict x,
                              const real *restrict dy, const uint8_t *restrict index, Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const int64_t outputs = (int64_t)(c.oh / 2) * (c.ow / 2) * c.o;
    const int band = conv_band(c, 2);
    if (db)
        channel_sum(db, dy, c.n * (c.oh / 2) * (c.ow / 2), c.o);
    for (int n = 0; n < c.n; n++, x += (int64_t)c.h * c.w * c.c, dy += outputs, index += outputs) {
        if (c.groups > 1 || c.dil_w > 1 || (conv_padded(c) && !band))
            pool_dw_positions(dw, x, dy, index, c);
        else if (!conv_padded(c))
            pool_dw_band(dw, (ConvImage){x, (int64_t)c.w * c.c}, dy, index, c, c.oh / 2);
        else
            for (int oy = 0; oy + 2 <= c.oh; oy += band) {
                const int rows = c.oh - oy < band ? c.oh - oy : band;
                const int64_t at = (int64_t)(oy / 2) * (c.ow / 2) * c.o;
                pool_dw_band(dw, conv_pad(scratch, x, c, oy, rows), dy + at, index + at, c,
                             rows / 2);
            }
    }
}

/* ------------------------------------------------------------------------ gradient of the input */

/* For each of some windows and each corner, the outputs that won there: offsets of their weights,
 * and their gradients. */
enum { POOL_LIST = 8192 };
typedef struct PoolList {
    int32_t at[POOL_LIST];
    real g[POOL_LIST];
} PoolList;

/* Windows go down the columns, number i is (i % bands, i / bands): two in a row never touch the
 * same image row. */
RT_INLINE int64_t pool_window_at(Conv c, int bands, int i)
{
    return (int64_t)(i % bands) * (c.ow / 2) + i / bands;
}

/* Sorts the outputs of window i into the four lists at slot * 4 * O; count: how many in each. */
RT_INLINE void pool_sort(PoolList *list, int *count, const real *dy, const uint8_t *index, Conv c,
                         int slot)
{
    int next[4] = {slot * 4 * c.o, (slot * 4 + 1) * c.o, (slot * 4 + 2) * c.o,
                   (slot * 4 + 3) * c.o};
    for (int o = 0; o < c.o; o++) {
        const int at = next[index[o] & 3]++;
        list->at[at] = o * c.r * CONV_RUN(c);
        list->g[at] = dy[o];
    }
    for (int k = 0; k < 4; k++)
        count[k] = next[k] - (slot * 4 + k) * c.o;
}

/* dx: the image of `row` reals a row, at the first kernel row of the band; p: the weights,
 * likewise. */
RT_INLINE void pool_dx_run(real *dx, int64_t row, const real *p, const PoolList *list,
                           const int *count, Conv c, int bands, int first, int windows, Run u)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < windows; i++) {
            const int begin = (i * 4 + k) * c.o, end = begin + count[i * 4 + k];
            const int64_t py = (first + i) % bands, px = (first + i) / bands;
            real *y =
                dx + 2 * py * c.stride_h * row + 2 * px * c.stride_w * c.c + pool_corner(c, row, k);
            vec t[RUN_MAX];
            if (begin == end)
                continue;
            run_load(t, y, c.dil_h * row, u);
            for (int e = begin; e < end; e++)
                run_add(t, list->g + e, p + list->at[e], CONV_RUN(c), u);
            run_store(y, t, c.dil_h * row, u);
        }
}

RT_INLINE void pool_dx_rows(real *dx, int64_t row, const real *p, const PoolList *list,
                            const int *count, Conv c, int bands, int first, int windows, int rows)
{
    const int length = c.s * c.c, vectors = conv_ceil(length, V), full = (vectors - 1) / RUN_MAX;
    for (int b = 0; b < full; b++)
        pool_dx_run(dx + b * RUN_MAX * V, row, p + b * RUN_MAX * V, list, count, c, bands, first,
                    windows, (Run){rows, RUN_MAX, V});
    pool_dx_run(dx + full * RUN_MAX * V, row, p + full * RUN_MAX * V, list, count, c, bands, first,
                windows, (Run){rows, vectors - full * RUN_MAX, length - (vectors - 1) * V});
}

/* Kernel rows outermost: the weights of one, O runs, are what the first-level cache has to hold. */
RT_INLINE void pool_dx_band(real *dx, int64_t row, const real *p, const real *dy,
                            const uint8_t *index, Conv c, int bands)
{
    PoolList list;
    int count[POOL_LIST];
    const int windows = bands * (c.ow / 2), slots = POOL_LIST / (4 * c.o);
    for (int first = 0; first < windows; first += slots) {
        const int some = windows - first < slots ? windows - first : slots;
        for (int i = 0; i < some; i++) {
            const int64_t at = pool_window_at(c, bands, first + i) * c.o;
            pool_sort(&list, count + 4 * i, dy + at, index + at, c, i);
        }
        for (int r = 0; r < c.r; r++)
            pool_dx_rows(dx + r * c.dil_h * row, row, p + r * CONV_RUN(c), &list, count, c, bands,
                         first, some, 1);
    }
}

/* dx = mask(w^T unpool(dy), y); p from conv2d_pack_dx; y: the value whose activation is undone, or
 * NULL. */
RT_INLINE void conv2d_pool_dx(real *restrict dx, const real *restrict p, const real *restrict dy,
                              const uint8_t *restrict index, Mask mask, const real *restrict y,
                              Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const int64_t outputs = (int64_t)(c.oh / 2) * (c.ow / 2) * c.o,
                  count = (int64_t)c.h * c.w * c.c;
    const int64_t row = conv_padded(c) ? (int64_t)conv_reach_w(c) * c.c : (int64_t)c.w * c.c;
    const int band = conv_band(c, 2);
    for (int n = 0; n < c.n; n++, dx += count, dy += outputs, index += outputs) {
        memset(dx, 0, sizeof(real) * count);
        if (c.groups > 1 || c.dil_w > 1 || 4 * c.o > POOL_LIST || (conv_padded(c) && !band))
            pool_dx_positions(dx, p, dy, index, c);
        else if (!conv_padded(c))
            pool_dx_band(dx, row, p, dy, index, c, c.oh / 2);
        else
            for (int oy = 0; oy + 2 <= c.oh; oy += band) {
                const int rows = c.oh - oy < band ? c.oh - oy : band;
                const int64_t at = (int64_t)(oy / 2) * (c.ow / 2) * c.o;
                memset(scratch, 0, sizeof(real) * conv_reach_h(c, rows) * row);
                pool_dx_band(scratch, row, p, dy + at, index + at, c, rows / 2);
                conv_unpad(dx, scratch, c, oy, rows);
            }
        if (y)
            RT_MAP(count, STORE(dx, mask(LOAD(dx), LOAD(y + n * count))));
    }
}

#endif
