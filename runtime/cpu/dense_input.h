/* dense_input.h -- the gradient and update of a first dense layer's weights, from the samples as they are stored.
 *
 *   dw[o][k] = tree over the shards of sum over a shard's samples of dy[n][o] x[n][k]
 *
 * x are the numbers that rt_input makes; here they are made again, a few columns at a time.  So the forward pass keeps them
 * no longer than a chunk: they stay in its first caches, are not written for other threads to fetch, and a unit reads bytes
 * instead of reals.  The sums are dense_update.h's, to the bit.
 *
 * A unit is a few tiles of inputs by all outputs.  It goes through the samples in blocks of a few shards, whose columns of x
 * lie in the first cache.  Sums of a block wait in `stack`, one behind the other as the tree has them.
 *
 * Measured: a step of the MLP on two threads of a Zen 4, with weights fetched early to be written, takes 0.18 instead of 0.20 ms
 * (B=64), 0.52 instead of 0.64 (B=128), 0.93 instead of 1.21 (B=256), 3.2 instead of 3.4 (B=1024): most where the host has put
 * the threads far from each other; on one thread as long as before.  Shards of several blocks lose (B=4096, one thread: 20.5
 * instead of 19.0), because each dy is taken for a few inputs only.
 */
#ifndef CPU_DENSE_INPUT_H
#define CPU_DENSE_INPUT_H
#include "cpu/dense_update.h"
#include "cpu/input.h"

enum { DENSE_INPUT_TILES = 4, DENSE_INPUT_COLUMNS = DENSE_INPUT_TILES * TILE_ROWS };
#define DENSE_INPUT_UNITS(k) ((DENSE_TILES(k) + DENSE_INPUT_TILES - 1) / DENSE_INPUT_TILES)

/* Columns k .. k + count - 1 of sample `row`, and what is behind them up to a whole vector. */
RT_INLINE void dense_input_row(real *restrict x, const Rt *r, const char *row, int k, int count,
                               int all)
{
    const int own = sizeof(real) == 4 ? RT_F32 : RT_F64;
    const real scale = (real)r->x_scale;
    for (int i = 0; i < count; i += V)
        if (r->x_type == RT_U8 && k + i + V <= all)
            v_store(x + i, v_load_bytes((const uint8_t *)row + k + i) * v_set(scale));
        else if (r->x_type == own && k + i + V <= all)
            v_store(x + i, v_load_opaque((const real *)row + k + i));
        else
            for (int j = i; j < count && j < i + V; j++)
                x[j] = input_at(r, row, k + j);
}

/* The columns of n samples from number `first` of the batch on. */
RT_INLINE void dense_input_block(real *restrict x, const Rt *r, int first, int n, int k, int count,
                                 int all)
{
    for (int i = 0; i < n; i++, x += DENSE_INPUT_COLUMNS)
        dense_input_row(x, r, (const char *)r->x + (int64_t)r->index[first + i] * r->x_stride, k,
                        count, all);
}

/* Where a unit's sums wait: of each panel and input a panel of outputs. */
#define DENSE_INPUT_SUMS(o) (DENSE_PANELS(o) * DENSE_INPUT_COLUMNS * P)

/* The shards of a block are a node of the tree, or what is left of one at the end. */
typedef struct DenseBlock {
    int shards, number;
    bool ends; /* none follows */
} DenseBlock;

RT_INLINE void dense_input_add(vec *c, const real *sum, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        c[i] = v_load(sum + i / vectors * P + i % vectors * V) + c[i];
}

RT_INLINE void dense_input_store(real *sum, const vec *c, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        v_store(sum + i / vectors * P + i % vectors * V, c[i]);
}

/* One tile: its products of the block, what the tree adds then, and the update when nothing follows.  sum: its place in the
 * lowest sums that wait, `level` reals from one to the next; at: its first element in w. */
RT_INLINE void dense_input_tile(DenseUpdate q, Update u, DenseBlock b, real *sum, int64_t level,
                                int64_t at, int column, int rows, int vectors, int lanes,
                                bool fours)
{
    vec c[TILE_MAX];
    int depth = __builtin_popcount((unsigned)b.number);
    if (b.ends) {
        dense_fetch(q.w + at, rows * P);
        dense_fetch(q.s0 ? q.s0 + at : NULL, rows * P);
    }
    dense_shards(c, q, b.shards, column, rows, vectors, fours);
    for (int bits = b.number; depth > 0 && (b.ends || bits & 1); bits >>= 1)
        dense_input_add(c, sum + --depth * level, rows, vectors);
    if (b.ends)
        dense_update_tile(q, u, c, at, rows, vectors, lanes);
    else
        dense_input_store(sum + depth * level, c, rows, vectors);
}

/* One panel's tiles first .. end - 1. */
RT_INLINE void dense_input_panel(DenseUpdate q, Update u, DenseBlock b, real *sum, int64_t level,
                                 Dense d, int64_t at, int first, int end, int vectors, int lanes)
{
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    const int from = tile_first(t, first);
    for (int i = first; i < end; i++) {
        const int k = tile_first(t, i), column = k - from;
        if (t.bigs > 0 && i < t.bigs)
            dense_input_tile(q, u, b, sum + column * P, level, at + (int64_t)k * P, column, t.big,
                             vectors, lanes, true);
        else
            dense_input_tile(q, u, b, sum + column * P, level, at + (int64_t)k * P, column, t.small,
                             vectors, lanes, t.bigs == 0);
    }
}

/* All panels of one block, whose columns of x are in q.x. */
RT_INLINE void dense_input_panels(DenseUpdate q, Update u, DenseBlock b, real *stack, Dense d,
                                  int first, int end)
{
    const int full = d.o / P, last = d.o % P;
    for (int p = 0; p < full; p++) {
        dense_input_panel(q, u, b, stack + (int64_t)p * DENSE_INPUT_COLUMNS * P,
                          DENSE_INPUT_SUMS(d.o), d, (int64_t)p * d.k * P, first, end, 2, P);
        q.dy += P * sizeof(real);
    }
    if (last > 0)
        dense_input_panel(q, u, b, stack + (int64_t)full * DENSE_INPUT_COLUMNS * P,
                          DENSE_INPUT_SUMS(d.o), d, (int64_t)full * d.k * P, first, end,
                          last > V ? 2 : 1, last);
}

/* Unit of DENSE_INPUT_UNITS(k): as dense_dw_update, with x = samples of the batch; at most DENSE_SAMPLES a shard. */
RT_INLINE void dense_dw_update_input(const Rt *r, int unit, int64_t grad, real *restrict w,
                                     real *restrict s0, real *restrict s1, const char *restrict dy,
                                     int samples, Factors f, Update u, Dense d)
{
    real x[DENSE_SAMPLES * DENSE_INPUT_COLUMNS + V] __attribute__((aligned(64)));
    real stack[TREE_DEPTH * DENSE_INPUT_SUMS(d.o)] __attribute__((aligned(64)));
    const RtOpt o = update_options(r, f);
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    const int first = unit * DENSE_INPUT_TILES, tiles = DENSE_TILES(d.k),
              end = tiles - first < DENSE_INPUT_TILES ? tiles : first + DENSE_INPUT_TILES,
              from = tile_first(t, first), columns = tile_first(t, end) - from;
    int group = 1; /* shards of a block */
    while (2 * group * samples <= DENSE_SAMPLES)
        group *= 2;
    DenseUpdate q = {.r = r,
                     .o = &o,
                     .grad = grad,
                     .w = w,
                     .s0 = s0,
                     .s1 = s1,
                     .x = (const char *)x,
                     .samples = samples,
                     .x_row = DENSE_INPUT_COLUMNS,
                     .dy_row = d.o,
                     .x_shard = (int64_t)samples * DENSE_INPUT_COLUMNS * (int64_t)sizeof(real),
                     .dy_shard = r->shard_bytes};
    for (int s = 0; s < r->shards; s += group) {
        const int some = r->shards - s < group ? r->shards - s : group;
        const DenseBlock b = {some, s / group, s + group >= r->shards};
        dense_input_block(x, r, (r->first_shard + s) * samples, some * samples, from, columns, d.k);
        q.dy = dy + s * r->shard_bytes;
        dense_input_panels(q, u, b, stack, d, first, end);
    }
}

#endif
