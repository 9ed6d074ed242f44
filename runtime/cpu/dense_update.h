/* dense_update.h -- the gradient of a dense layer's weights and their update in one sweep.
 *
 *   dw[o][k] = tree over the shards of sum over a shard's samples of dy[n][o] x[n][k]
 *
 * A tile is a few inputs by one panel of outputs and stays in registers; its weights and states are
 * touched once a step, when its sum is complete.  A unit is a few tiles of one panel, or of up to
 * four panels in large layers.  Units of the same inputs follow each other, so that a thread reads
 * only its part of x: a step of the MLP with two threads is 2 to 10 % faster than panel by panel
 * (it depends on the cores on which the host runs them).  The plain reference is dense_dw_plain.
 */
#ifndef CPU_DENSE_UPDATE_H
#define CPU_DENSE_UPDATE_H
#include "cpu/dense.h"
#include "cpu/update.h"

enum { DENSE_UNIT_TILES = RT_DENSE_UNIT_TILES };
#define DENSE_TILES(k)  (((k) + TILE_ROWS - 1) / TILE_ROWS)
#define DENSE_BLOCKS(k) ((DENSE_TILES(k) + DENSE_UNIT_TILES - 1) / DENSE_UNIT_TILES)
/* Panels of a unit: up to four, if at least 32 units remain. */
#define DENSE_GROUP(k, o)                                                                          \
    (DENSE_PANELS(o) * DENSE_BLOCKS(k) >= 128 ? 4 : DENSE_PANELS(o) * DENSE_BLOCKS(k) >= 64 ? 2 : 1)
#define DENSE_GROUPS(k, o) ((DENSE_PANELS(o) + DENSE_GROUP(k, o) - 1) / DENSE_GROUP(k, o))
#define DENSE_UNITS(k, o)  (DENSE_GROUPS(k, o) * DENSE_BLOCKS(k))
/* The same for bf16_update.h.  Inputs come from beyond the L2 cache, so few units read the same
 * ones. */
enum { BF16_UNIT_TILES = RT_BF16_UNIT_INPUTS / TILE_ROWS };
#define BF16_DENSE_BLOCKS(k) ((DENSE_TILES(k) + BF16_UNIT_TILES - 1) / BF16_UNIT_TILES)
#define BF16_DENSE_GROUP(o)                                                                        \
    (DENSE_PANELS(o) < RT_BF16_UNIT_PANELS ? DENSE_PANELS(o) : RT_BF16_UNIT_PANELS)
#define BF16_DENSE_GROUPS(o)   ((DENSE_PANELS(o) + BF16_DENSE_GROUP(o) - 1) / BF16_DENSE_GROUP(o))
#define BF16_DENSE_UNITS(k, o) (BF16_DENSE_GROUPS(o) * BF16_DENSE_BLOCKS(k))

/* The operands of all units of a layer. */
typedef struct DenseUpdate {
    const Rt *r;
    const RtOpt *o;
    int64_t grad; /* bytes: the layer's sums begin there in r->grad */
    real *w, *s0, *s1;
    const char *x, *dy;        /* of the first shard; dy at the panel's first output */
    int samples;               /* of a shard */
    int64_t x_row, dy_row;     /* reals from a sample to the next */
    int64_t x_shard, dy_shard; /* bytes from a shard to the next */
} DenseUpdate;

RT_INLINE void tile_zero(vec *c, int size)
{
    RT_UNROLL
    for (int i = 0; i < size; i++)
        c[i] = v_set(0);
}
RT_INLINE void tile_copy(vec *restrict to, const vec *restrict from, int size)
{
    RT_UNROLL
    for (int i = 0; i < size; i++)
        to[i] = from[i];
}
RT_INLINE void tile_add(vec *restrict to, const vec *restrict from, int size)
{
    RT_UNROLL
    for (int i = 0; i < size; i++)
        to[i] = from[i] + to[i];
}

/* x with 0 in all lanes but the first k. */
RT_INLINE vec dense_keep(vec x, int k)
{
    real t[V];
    if (k >= V)
        return x;
    v_store(t, x);
    return v_load_n(t, k > 0 ? k : 0);
}

/* Stores a tile of the sum, in whole panels. */
RT_INLINE void dense_keep_sum(real *sum, const vec *g, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < 2; j++)
            v_store(sum + i * P + j * V, j < vectors ? g[i * vectors + j] : v_set(0));
    }
}

/* Called when the sum of a tile is complete: updates the weights, or stores the sum into r->grad.
 * at: offset of the tile's first element in w, the states and the gradient.  Tiles are summed in
 * whole vectors; lanes from `lanes` on hold what follows a row of dy. */
RT_INLINE void dense_update_tile(DenseUpdate q, Update u, const vec *c, int64_t at, int rows,
                                 int vectors, int lanes)
{
    const RtOpt o = *q.o;
    real *const w = q.w + at, *const s0 = q.s0 ? q.s0 + at : NULL,
                *const s1 = q.s1 ? q.s1 + at : NULL;
    vec g[TILE_MAX];
    if (rows * vectors > TILE_MAX)
        __builtin_unreachable(); /* gcc 12 warns of a 33rd vector if it does not know the sizes */
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        g[i] = dense_keep(c[i], lanes - i % vectors * V);
    if (q.r->grad) {
        dense_keep_sum((real *)(q.r->grad + q.grad) + at, g, rows, vectors);
        return;
    }
    if (o.clip_value > 0) {
        RT_UNROLL
        for (int i = 0; i < rows * vectors; i++)
            g[i] = v_clamp(g[i], -o.clip_value, o.clip_value);
    }
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++) {
        const int e = i / vectors * P + i % vectors * V;
        u(w + e, s0 ? s0 + e : NULL, s1 ? s1 + e : NULL, g[i], &o);
    }
}

/* ---------------------------------------------------------- shards of few samples: tile by tile */

/* c = the sum over the samples of one shard, inputs k .. k + rows - 1. */
RT_INLINE void dense_shard(vec *restrict c, DenseUpdate q, int shard, int k, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        c[i] = v_set(0);
    tile_product(c, (TileRows){.count = rows, .step = 1}, vectors, q.samples,
                 (const real *)(q.x + shard * q.x_shard) + k, q.x_row,
                 (const real *)(q.dy + shard * q.dy_shard), q.dy_row, vectors * V);
}

/* Prefetches weights and state of a tile while its sum is computed, if those of the layer do not
 * stay in an L2 cache: LeNet's 800 x 500 take 1.12 instead of 1.24 ms on one thread of a Zen 4;
 * smaller layers would lose 2 %. */
enum { DENSE_FETCH_FROM = 512 * 1024 / sizeof(real) };
RT_INLINE void dense_fetch(const real *p, int size)
{
    for (int i = 0; p && i < size; i += 64 / (int)sizeof(real))
        v_fetch_to_write(p + i);
}

/* c = the sum of one tile over some shards.  Four shards are added as (0 + 1) + (2 + 3), and these
 * sums as a binary counter: a branch on the bits of each shard's index is often mispredicted (5 %
 * of the time at 16 samples a shard).  dense_shard is called in one place, because its product is
 * most of what the C compiler has to compile. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized" /* gcc 12 without vectors: a and b at s = 0 */
RT_INLINE void dense_shards(vec *restrict c, DenseUpdate q, int shards, int k, int rows,
                            int vectors)
{
    const int size = rows * vectors;
    vec stack[TREE_DEPTH][TILE_MAX], a[TILE_MAX], b[TILE_MAX];
    int depth = 0;
    if (shards < 1)
        __builtin_unreachable(); /* gcc 12 warns of c, which no shard would set */
    for (int s = 0; s < shards; s++) {
        dense_shard(c, q, s, k, rows, vectors);
        if (s % 4 == 0) {
            tile_copy(a, c, size);
        } else if (s % 4 == 1) {
            tile_add(c, a, size);
            tile_copy(a, c, size);
        } else if (s % 4 == 2) {
            tile_copy(b, c, size);
        } else {
            tile_add(c, b, size);
            tile_add(c, a, size);
            for (int bits = s / 4; bits & 1; bits >>= 1)
                tile_add(c, stack[--depth], size);
            if (s + 1 < shards)
                tile_copy(stack[depth++], c, size);
        }
    }
    if (shards % 4 == 3)
        tile_add(c, a, size);
    while (depth > 0)
        tile_add(c, stack[--depth], size);
}
#pragma GCC diagnostic pop

/* Computes one tile over all local shards, and then its update. */
RT_INLINE void dense_tile_shards(DenseUpdate q, Update u, Dense d, int64_t at, int k, int rows,
                                 int vectors, int lanes)
{
    vec c[TILE_MAX];
    if (DENSE_COUNT(d.k, d.o) >= DENSE_FETCH_FROM) {
        dense_fetch(q.w + at + (int64_t)k * P, rows * P);
        dense_fetch(q.s0 ? q.s0 + at + (int64_t)k * P : NULL, rows * P);
    }
    dense_shards(c, q, q.r->shards, k, rows, vectors);
    dense_update_tile(q, u, c, at + (int64_t)k * P, rows, vectors, lanes);
}

/* ---------------------------------------------------- shards of many samples: a block at a time
 *
 * x and dy come from beyond the L2 cache, row by row.  So a unit packs its inputs of a block once
 * for all of its panels, and prefetches the rows of the next block while it sums this one: 2450 x
 * 500 at 4096 samples take 46 instead of 89 ms on two threads of a Xeon with a slow L3.  If a row
 * of x is at most a page and a shard has few samples, tile by tile is as fast, or 2 % faster.
 */

enum {
    DENSE_MANY = 48, /* samples of a shard, if a row of x is more than a page; else DENSE_SAMPLES */
    DENSE_PAGE = 4096 / sizeof(real),
    DENSE_DEPTH = 16, /* of the tree over the shards */
    DENSE_UNIT_SIZE = DENSE_UNIT_TILES * TILE_ROWS * P,
    DENSE_X_TILE = DENSE_SAMPLES * TILE_ROWS + 64 / sizeof(real) /* and a cache line: other sets */
};

/* Tiles first .. end - 1 of one panel. */
typedef struct DenseTiles {
    TileSplit split;
    int first, end;
} DenseTiles;

/* Copies each tile's inputs of a block of samples to one stream: in place, each sample's inputs are
 * on a line and a page of their own. */
RT_INLINE void dense_pack_x(real *restrict to, const real *restrict x, int samples, Dense d,
                            DenseTiles t)
{
    for (int n = 0; n < samples; n++, x += d.k)
        for (int i = t.first; i < t.end; i++) {
            const real *from = x + tile_first(t.split, i) - tile_first(t.split, t.first);
            real *tile = to + (i - t.first) * DENSE_X_TILE + n * TILE_ROWS;
            if (i < t.split.bigs)
                memcpy(tile, from, (size_t)t.split.big * sizeof(real));
            else
                memcpy(tile, from, (size_t)t.split.small * sizeof(real));
        }
}

/* The next block, which is prefetched while this one is summed, some of its rows with each tile:
 * the processor cannot predict these strides. */
typedef struct DenseNext {
    const real *x, *dy;
    int columns, outputs; /* of a row of x, of dy */
    int rows, parts, part;
} DenseNext;

RT_INLINE void dense_fetch_row(const real *p, int count)
{
    for (int i = 0; i < count; i += 64 / (int)sizeof(real))
        __builtin_prefetch(p + i, 0, 2);
    __builtin_prefetch(p + count - 1, 0, 2);
}

RT_INLINE void dense_fetch_next(DenseNext *f, Dense d)
{
    const int first = f->rows * f->part / f->parts, end = f->rows * (f->part + 1) / f->parts;
    f->part++;
    for (int n = first; n < end; n++) {
        dense_fetch_row(f->x + (int64_t)n * d.k, f->columns);
        dense_fetch_row(f->dy + (int64_t)n * d.o, f->outputs);
    }
}

RT_INLINE void dense_packed_panel(real *sum, bool begin, const real *x, const real *dy, int samples,
                                  Dense d, DenseTiles t, DenseNext *next, int vectors)
{
    for (int i = t.first; i < t.end; i++, x += DENSE_X_TILE) {
        dense_fetch_next(next, d);
        if (i < t.split.bigs)
            dense_tile_block(sum, begin, x, TILE_ROWS, dy, samples, t.split.big, vectors);
        else
            dense_tile_block(sum, begin, x, TILE_ROWS, dy, samples, t.split.small, vectors);
        sum += (i < t.split.bigs ? t.split.big : t.split.small) * P;
    }
}

/* sum[panel] += the samples of one shard, for the panels of a unit. */
RT_INLINE void dense_unit_shard(real *sum, const real *x, const real *dy, const real *next_x,
                                const real *next_dy, int samples, Dense d, DenseTiles t, int panel,
                                int panels)
{
    const int columns = tile_first(t.split, t.end) - tile_first(t.split, t.first),
              left = d.o - panel * P, outputs = left < panels * P ? left : panels * P;
    x += tile_first(t.split, t.first);
    next_x += tile_first(t.split, t.first);
    real xs[DENSE_UNIT_TILES * DENSE_X_TILE] __attribute__((aligned(64)));
    real packed[DENSE_SAMPLES * P] __attribute__((aligned(64)));
    for (int n = 0; n < samples; n += DENSE_SAMPLES) {
        const int count = samples - n < DENSE_SAMPLES ? samples - n : DENSE_SAMPLES;
        const bool last_block = n + count >= samples;
        DenseNext next = {.x = last_block ? next_x : x + (int64_t)(n + count) * d.k,
                          .dy = last_block ? next_dy : dy + (int64_t)(n + count) * d.o,
                          .columns = columns,
                          .outputs = outputs,
                          .rows = !last_block && samples - n - count < count ? samples - n - count
                                                                             : count,
                          .parts = panels * (t.end - t.first)};
        dense_pack_x(xs, x + (int64_t)n * d.k, count, d, t);
        for (int p = 0; p < panels; p++) {
            const int lanes = d.o - (panel + p) * P, last = d.o % P;
            const real *from = dy + (int64_t)n * d.o + p * P;
            real *to = sum + p * DENSE_UNIT_SIZE;
            if (last > 0 && last <= V && lanes == last) {
                dense_pack_dy(packed, from, count, d, 1, last);
                dense_packed_panel(to, n == 0, xs, packed, count, d, t, &next, 1);
            } else {
                dense_pack_dy(packed, from, count, d, 2, P);
                dense_packed_panel(to, n == 0, xs, packed, count, d, t, &next, 2);
            }
        }
    }
}

RT_INLINE void dense_unit_add(real *restrict to, const real *restrict from, int64_t count)
{
    RT_MAP(count, STORE(to, LOAD(to) + LOAD(from)));
}

RT_INLINE void dense_unit_blocks(DenseUpdate q, Update u, Dense d, DenseTiles t, int panel,
                                 int panels)
{
    real stack[DENSE_DEPTH][DENSE_GROUP(d.k, d.o) * DENSE_UNIT_SIZE] __attribute__((aligned(64)));
    const int64_t size = panels * DENSE_UNIT_SIZE;
    int depth = 0;
    for (int s = 0; s < q.r->shards; s++) {
        const int next = (s + 1) % q.r->shards;
        dense_unit_shard(stack[depth++], (const real *)(q.x + s * q.x_shard),
                         (const real *)(q.dy + s * q.dy_shard),
                         (const real *)(q.x + next * q.x_shard),
                         (const real *)(q.dy + next * q.dy_shard), q.samples, d, t, panel, panels);
        for (int bits = s; bits & 1; bits >>= 1, depth--)
            dense_unit_add(stack[depth - 2], stack[depth - 1], size);
    }
    for (; depth > 1; depth--)
        dense_unit_add(stack[depth - 2], stack[depth - 1], size);
    const int from = tile_first(t.split, t.first), count = tile_first(t.split, t.end) - from;
    for (int p = 0; p < panels; p++) {
        const int left = d.o - (panel + p) * P;
        for (int k = 0; k < count; k++) {
            const real *sum = stack[0] + p * DENSE_UNIT_SIZE + k * P;
            const vec c[2] = {v_load(sum), v_load(sum + V)};
            dense_update_tile(q, u, c, ((int64_t)(panel + p) * d.k + from + k) * P, 1, 2,
                              left < P ? left : P);
        }
    }
}

/* --------------------------------------------------------------------------------------- a unit */

RT_INLINE void dense_update_panel(DenseUpdate q, Update u, Dense d, DenseTiles t, int panel,
                                  int vectors, int lanes)
{
    const int64_t at = (int64_t)panel * d.k * P;
    for (int i = t.first; i < t.end; i++)
        if (t.split.bigs > 0 && i < t.split.bigs)
            dense_tile_shards(q, u, d, at, tile_first(t.split, i), t.split.big, vectors, lanes);
        else
            dense_tile_shards(q, u, d, at, tile_first(t.split, i), t.split.small, vectors, lanes);
}

/* Tiles of `panels` panels, from `panel` on. */
RT_INLINE void dense_update_unit(DenseUpdate q, Update u, Dense d, DenseTiles t, int panel,
                                 int panels)
{
    const int last = d.o % P;
    q.dy += panel * P * (int64_t)sizeof(real);
    if (q.samples >= (d.k > DENSE_PAGE ? DENSE_MANY : DENSE_SAMPLES + 1) &&
        q.r->shards < 1 << (DENSE_DEPTH - 1)) {
        dense_unit_blocks(q, u, d, t, panel, panels);
        return;
    }
    for (; panels > 0; panels--, panel++, q.dy += P * (int64_t)sizeof(real)) {
        const int lanes = d.o - panel * P < P ? d.o - panel * P : P;
        if (last > 0 && last <= V && lanes == last)
            dense_update_panel(q, u, d, t, panel, 1, last);
        else if (last == 0 || last > V || d.o > P)
            dense_update_panel(q, u, d, t, panel, 2, lanes);
    }
}

/* Computes one of DENSE_UNITS(k, o) units: a few tiles of some panels, over all local shards.
 *   x, dy   of the first local shard, `samples` rows; the next shard's lie r->shard_bytes later
 *           (64 bytes after the last row of dy may be read)
 *   grad    bytes: where the sum goes in r->grad if the update has to wait for a reduction */
RT_INLINE void dense_dw_update(const Rt *r, int unit, int64_t grad, real *restrict w,
                               real *restrict s0, real *restrict s1, const char *restrict x,
                               const char *restrict dy, int samples, Factors f, Update u, Dense d)
{
    const RtOpt o = update_options(r, f);
    const DenseUpdate q = {.r = r,
                           .o = &o,
                           .grad = grad,
                           .w = w,
                           .s0 = s0,
                           .s1 = s1,
                           .x = x,
                           .dy = dy,
                           .samples = samples,
                           .x_row = d.k,
                           .dy_row = d.o,
                           .x_shard = r->shard_bytes,
                           .dy_shard = r->shard_bytes};
    const int panel = unit % DENSE_GROUPS(d.k, d.o) * DENSE_GROUP(d.k, d.o),
              left = DENSE_PANELS(d.o) - panel, tiles = DENSE_TILES(d.k),
              blocks = DENSE_BLOCKS(d.k), block = unit / DENSE_GROUPS(d.k, d.o);
    /* equal blocks: with 14 of 16 tiles, a unit of the MLP's second layer takes 1.75 times as long
     * as one of the first layer */
    const DenseTiles t = {
        .split = tile_split(d.k, TILE_ROWS),
        .first = tiles * block / blocks,
        .end = tiles * (block + 1) / blocks,
    };
    dense_update_unit(q, u, d, t, panel,
                      left < DENSE_GROUP(d.k, d.o) ? left : DENSE_GROUP(d.k, d.o));
}

#endif
