/* conv_dw_update.h -- the gradient of large filters over few positions, and their update, in one
 * sweep.
 *
 *   dw[o][r][s][c] = tree over the shards of
 *                    sum over a shard's positions k of dy[k][o] x[k + (r, s)][c]
 *
 * With slices, each chunk writes all of dw, and the update reads it: for 1x1 512->2048 at 7 x 7
 * with two samples a chunk, 4 MB for 98 multiply-adds a number.  Here a unit is a block of filters:
 * outputs by channels of one tap.  Filters and states are read and written once a step, when the
 * sum of a tile is complete.  x and dy are copied as in conv_dw_taps.h, all positions of a shard at
 * once, at most TAPS_POSITIONS: the copies are made for each block, and with more positions they
 * cost as much as they save.  One group only.
 *
 * Milliseconds of sums and update on two threads of a Xeon, with slices and with blocks of filters:
 *   3x3 512        at 1 x 1, 32 samples       1.7   0.55
 *   1x1 512->2048  at 1 x 1                   0.60  0.33
 *   1x1 512->2048  at 7 x 7, 2 x 2 samples    1.65  1.37
 *   3x3 256        at 2 x 2                   0.41  0.35
 * The plain reference is conv2d_dw_plain.
 */
#ifndef CPU_CONV_DW_UPDATE_H
#define CPU_CONV_DW_UPDATE_H
#include "cpu/conv_dw.h"
#include "cpu/conv_dw_units.h"
#include "cpu/update.h"

/* A unit: outputs from o on, channels from k on, of tap (r, s), which reads a window of
 * positions. */
typedef struct FilterBlock {
    int r, s, o, outputs, k, channels;
    ConvWindow window;
} FilterBlock;

/* The block of a unit.  Blocks that read the same dy follow each other. */
RT_INLINE FilterBlock filter_block(Conv c, int unit)
{
    const int k = unit % CONV_DW_C(c.c) * CONV_DW_CHANNELS,
              part = unit / CONV_DW_C(c.c) % CONV_DW_O(c.o),
              tap = unit / CONV_DW_C(c.c) / CONV_DW_O(c.o);
    const int tiles = conv_ceil(c.o, TILE_ROWS), o = tiles * part / CONV_DW_O(c.o) * TILE_ROWS,
              end = tiles * (part + 1) / CONV_DW_O(c.o) * TILE_ROWS;
    return (FilterBlock){.r = tap / c.s,
                         .s = tap % c.s,
                         .o = o,
                         .outputs = (end < c.o ? end : c.o) - o,
                         .k = k,
                         .channels = c.c - k < CONV_DW_CHANNELS ? c.c - k : CONV_DW_CHANNELS,
                         .window = conv_window(c, tap / c.s, tap % c.s)};
}

/* Where the sum of a shard is stored.  Sums of all shards but the last go to `sum`, whose rows are
 * CONV_DW_CHANNELS apart.  The last shard's sum is added to the pending sums and goes to grad, or
 * to the update if grad is NULL; there, rows are `filter` apart. */
typedef struct BlockSum {
    real *sum;
    bool last;
    int pending; /* number of pending sums before `sum`, CONV_DW_BLOCK apart */
    real *grad, *w, *s0, *s1;
    int64_t filter;
    const RtOpt *o;
    Update update;
} BlockSum;

RT_INLINE void filters_add(vec *t, const real *sum, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            t[i * vectors + j] = v_load(sum + i * CONV_DW_CHANNELS + j * V) + t[i * vectors + j];
    }
}

/* Prefetches the weights and states of the next tile while the sums of this one are computed. */
RT_INLINE void filters_fetch(const real *p, int64_t filter, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_fetch_to_write(p + i * filter + P + j * V);
    }
}

/* Computes the sum of one tile.  at: its offset in the block; to: its offset in the filters. */
RT_INLINE void filters_tile(BlockSum q, int64_t at, int64_t to, const real *dy, const real *x,
                            int count, int rows, int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    vec t[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        t[i] = v_set(0);
    if (q.last) {
        filters_fetch(q.grad ? q.grad + to : q.w + to, q.filter, rows, vectors);
        if (q.s0 && !q.grad)
            filters_fetch(q.s0 + to, q.filter, rows, vectors);
        if (q.s1 && !q.grad)
            filters_fetch(q.s1 + to, q.filter, rows, vectors);
    }
    tile_product(t, (TileRows){.count = rows, .step = 1}, vectors, count, dy, TILE_ROWS, x, P, P);
    for (int d = 1; q.last && d <= q.pending; d++)
        filters_add(t, q.sum + at - (int64_t)d * CONV_DW_BLOCK, rows, vectors);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            const int64_t e = to + i * q.filter + j * V;
            const vec g = t[i * vectors + j];
            if (!q.last)
                v_store(q.sum + at + i * CONV_DW_CHANNELS + j * V, g);
            else if (q.grad)
                v_store_lanes(q.grad + e, g, tile_lanes(lanes, j));
            else
                update_lanes(q.w + e, q.s0 ? q.s0 + e : NULL, q.s1 ? q.s1 + e : NULL, g, q.o,
                             q.update, tile_lanes(lanes, j));
        }
    }
}

RT_INLINE void filters_row(BlockSum q, int64_t at, int64_t to, const real *dy, const real *x,
                           int count, Conv c, int rows, int channels)
{
    for (; channels >= P; channels -= P, at += P, to += P, x += (int64_t)count * P)
        filters_tile(q, at, to, dy, x, count, rows, P);
    if (c.c % P && channels)
        filters_tile(q, at, to, dy, x, count, rows, c.c % P);
}

RT_INLINE void filters_block(BlockSum q, const real *ys, const real *xs, int count, Conv c,
                             FilterBlock u)
{
    const int left = c.o % TILE_ROWS;
    int64_t at = 0, to = 0;
    int outputs = u.outputs;
    for (; outputs >= TILE_ROWS; outputs -= TILE_ROWS, ys += TAPS_STRIPE) {
        filters_row(q, at, to, ys, xs, count, c, TILE_ROWS, u.channels);
        at += TILE_ROWS * CONV_DW_CHANNELS, to += TILE_ROWS * q.filter;
    }
    if (left && outputs)
        filters_row(q, at, to, ys, xs, count, c, left, u.channels);
}

/* Computes the sums over the positions of one shard, c.n samples. */
RT_INLINE void filters_shard(BlockSum q, const real *x, const real *dy, Conv c, FilterBlock u)
{
    real xs[TAPS_POSITIONS * CONV_DW_CHANNELS] __attribute__((aligned(64)));
    real ys[CONV_DW_OUTPUTS / TILE_ROWS * TAPS_STRIPE] __attribute__((aligned(64)));
    const int positions = c.n * u.window.h * u.window.w;
    if (positions > 0) { /* else the tap reads only padding */
        conv_dw_taps_dy(ys, dy + u.o, c, u.window, 0, positions, u.outputs);
        conv_dw_taps_x(xs, x + u.k, c, u.window, u.r, u.s, 0, positions, u.channels);
    }
    filters_block(q, ys, xs, positions, c, u);
}

RT_INLINE void filters_join(real *restrict to, const real *restrict from)
{
    RT_MAP(CONV_DW_BLOCK, STORE(to, LOAD(to) + LOAD(from)));
}

/* Computes one of CONV_DW_UNITS(o, c, r * s) units.  x, dy: of the first local shard, c.n samples;
 * the next shard's lie r->shard_bytes later.  grad: bytes, where the sum goes in r->grad if the
 * update has to wait for a reduction. */
RT_INLINE void conv2d_dw_update(const Rt *r, int unit, int64_t grad, real *restrict w,
                                real *restrict s0, real *restrict s1, const char *restrict x,
                                const char *restrict dy, Factors f, Update update, Conv c)
{
    real stack[CONV_DW_DEPTH][CONV_DW_BLOCK] __attribute__((aligned(64)));
    const RtOpt o = update_options(r, f);
    const FilterBlock u = filter_block(c, unit);
    const int64_t filter = (int64_t)c.r * c.s * c.c,
                  at = u.o * filter + (int64_t)(u.r * c.s + u.s) * c.c + u.k;
    BlockSum q = {.grad = r->grad ? (real *)(r->grad + grad) + at : NULL,
                  .w = w + at,
                  .s0 = s0 ? s0 + at : NULL,
                  .s1 = s1 ? s1 + at : NULL,
                  .filter = filter,
                  .o = &o,
                  .update = update};
    int depth = 0;
    for (int s = 0; s < r->shards; s++, x += r->shard_bytes, dy += r->shard_bytes) {
        q.sum = stack[depth], q.pending = depth, q.last = s + 1 == r->shards;
        filters_shard(q, (const real *)x, (const real *)dy, c, u);
        for (int bits = s; (bits & 1) && !q.last; bits >>= 1, depth--)
            filters_join(stack[depth - 1], stack[depth]);
        depth++;
    }
}

#endif
