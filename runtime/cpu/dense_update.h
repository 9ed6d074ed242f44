/* dense_update.h -- the gradient of a dense layer's weights and their update in one sweep.
 *
 *   dw[o][k] = tree over the shards of sum over a shard's samples of dy[n][o] x[n][k]
 *
 * A tile is a few inputs by one panel of outputs and stays in registers; its weights and states are
 * touched once a step, when its sum is complete.  A unit is a few tiles of one panel; units of the
 * same inputs follow each other, so that a thread reads its part of x alone: a step of the MLP with two
 * threads is 2 to 10 % faster than panel by panel (it varies with where the host puts them).
 * The plain reference is dense_dw_plain.
 */
#ifndef CPU_DENSE_UPDATE_H
#define CPU_DENSE_UPDATE_H
#include "cpu/dense.h"
#include "cpu/update.h"

enum { DENSE_UNIT_TILES = 14 };
#define DENSE_TILES(k)    (((k) + TILE_ROWS - 1) / TILE_ROWS)
#define DENSE_BLOCKS(k)   ((DENSE_TILES(k) + DENSE_UNIT_TILES - 1) / DENSE_UNIT_TILES)
#define DENSE_UNITS(k, o) (DENSE_PANELS(o) * DENSE_BLOCKS(k))

/* What all units of a layer share. */
typedef struct DenseUpdate {
    const Rt *r;
    const RtOpt *o;
    int64_t grad; /* bytes: where the layer's sums lie in r->grad */
    real *w, *s0, *s1;
    const char *x, *dy;        /* the first shard's, from this panel's first output on */
    int samples;               /* a shard */
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

/* The first k lanes of x, the others 0. */
RT_INLINE vec dense_keep(vec x, int k)
{
    real t[V];
    if (k >= V)
        return x;
    v_store(t, x);
    return v_load_n(t, k > 0 ? k : 0);
}

/* A tile of the sum, in whole panels. */
RT_INLINE void dense_keep_sum(real *sum, const vec *g, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < 2; j++)
            v_store(sum + i * P + j * V, j < vectors ? g[i * vectors + j] : v_set(0));
    }
}

/* The sum of one tile is complete: the update, or the store into r->grad.  `at`: its first element
 * in w, the states and the gradient.  Tiles are summed in whole vectors; behind the panel's `lanes`
 * outputs these hold what follows a row of dy. */
RT_INLINE void dense_update_tile(DenseUpdate q, Update u, const vec *c, int64_t at, int rows,
                                 int vectors, int lanes)
{
    const RtOpt o = *q.o;
    real *const w = q.w + at, *const s0 = q.s0 ? q.s0 + at : NULL,
                *const s1 = q.s1 ? q.s1 + at : NULL;
    vec g[TILE_MAX];
    if (rows * vectors > TILE_MAX)
        __builtin_unreachable(); /* gcc 12 warns of a 33rd vector where it does not know the sizes */
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

/* ------------------------------------------------------------- shards of few samples: tile by tile */

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

/* c = (0 + 1) + (2 + 3) of four shards.  Written out, because a loop that finds its way through the
 * tree guesses branches wrong: 5 % of the time at 16 samples a shard. */
RT_INLINE void dense_four(vec *restrict c, DenseUpdate q, int shard, int k, int rows, int vectors)
{
    const int size = rows * vectors;
    vec a[TILE_MAX], b[TILE_MAX];
    dense_shard(c, q, shard, k, rows, vectors);
    tile_copy(a, c, size);
    dense_shard(c, q, shard + 1, k, rows, vectors);
    tile_add(c, a, size);
    tile_copy(a, c, size);
    dense_shard(c, q, shard + 2, k, rows, vectors);
    tile_copy(b, c, size);
    dense_shard(c, q, shard + 3, k, rows, vectors);
    tile_add(c, b, size);
    tile_add(c, a, size);
}

/* Weights and state of a tile are fetched while its sum is made, where the layer's do not stay in a
 * second-level cache: LeNet's 800 x 500 take 1.12 instead of 1.24 ms on one thread of a Zen 4; smaller
 * ones would lose 2 %. */
enum { DENSE_FETCH_FROM = 512 * 1024 / sizeof(real) };
RT_INLINE void dense_fetch(const real *p, int size)
{
    for (int i = 0; p && i < size; i += 64 / (int)sizeof(real))
        v_fetch_to_write(p + i);
}

/* c = the sum of one tile over some shards; fours: taken four at a time. */
RT_INLINE void dense_shards(vec *restrict c, DenseUpdate q, int shards, int k, int rows,
                            int vectors, bool fours)
{
    const int size = rows * vectors;
    vec stack[TREE_DEPTH][TILE_MAX];
    int depth = 0, s = 0;
    RT_UNROLL
    for (int i = 0; i < size; i++)
        c[i] = v_set(0);
    for (; fours && s + 4 <= shards; s += 4) {
        if (s > 0)
            tile_copy(stack[depth++], c, size);
        dense_four(c, q, s, k, rows, vectors);
        for (int bits = s / 4; bits & 1; bits >>= 1)
            tile_add(c, stack[--depth], size);
    }
    for (; s < shards; s++) {
        if (s > 0)
            tile_copy(stack[depth++], c, size);
        dense_shard(c, q, s, k, rows, vectors);
        for (int bits = s; bits & 1; bits >>= 1)
            tile_add(c, stack[--depth], size);
    }
    while (depth > 0)
        tile_add(c, stack[--depth], size);
}

/* One tile over all shards held here, then its update. */
RT_INLINE void dense_tile_shards(DenseUpdate q, Update u, Dense d, int64_t at, int k, int rows,
                                 int vectors, int lanes, bool fours)
{
    vec c[TILE_MAX];
    if (DENSE_COUNT(d.k, d.o) >= DENSE_FETCH_FROM) {
        dense_fetch(q.w + at + (int64_t)k * P, rows * P);
        dense_fetch(q.s0 ? q.s0 + at + (int64_t)k * P : NULL, rows * P);
    }
    dense_shards(c, q, q.r->shards, k, rows, vectors, fours);
    dense_update_tile(q, u, c, at + (int64_t)k * P, rows, vectors, lanes);
}

/* ---------------------------------------------------- shards of many samples: a block at a time */

/* The panel's columns of dy are fetched a block ahead, a share of its rows with each tile: a stride
 * that the processor does not foresee.  LeNet's 800 x 500 at 512 samples a shard take 8.1 instead of 9.3 us a
 * sample on one thread of a Zen 4; fetching the rows of x as well makes it 8.6. */
RT_INLINE void dense_fetch_dy(const real *dy, Dense d, int part, int parts)
{
    const int first = DENSE_SAMPLES * part / parts, end = DENSE_SAMPLES * (part + 1) / parts;
    for (int n = first; n < end; n++) {
        const real *row = dy + (int64_t)n * d.o;
        RT_UNROLL
        for (int i = 0; i < P; i += 64 / (int)sizeof(real))
            __builtin_prefetch(row + i, 0, 2);
        if (d.o * sizeof(real) % 64)
            __builtin_prefetch(row + P - 1, 0, 2);
    }
}

/* Tiles first .. end - 1 of a panel: sum += the samples of one shard.  next: dy of the shard that
 * follows. */
RT_INLINE void dense_unit_shard(real *sum, const real *x, const real *dy, const real *next,
                                int samples, Dense d, int first, int end, int vectors)
{
    real packed[DENSE_SAMPLES * P] __attribute__((aligned(64)));
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    for (int n = 0; n < samples; n += DENSE_SAMPLES) {
        const int count = samples - n < DENSE_SAMPLES ? samples - n : DENSE_SAMPLES;
        const real *block = x + (int64_t)n * d.k,
                   *ahead = n + count < samples ? dy + (int64_t)(n + count) * d.o : next;
        real *to = sum;
        dense_pack_dy(packed, dy + (int64_t)n * d.o, count, d, vectors, P);
        for (int i = first; i < end; i++) {
            dense_fetch_dy(ahead, d, i - first, end - first);
            if (i < t.bigs)
                dense_tile_block(to, block + tile_first(t, i), packed, count, d, t.big, vectors);
            else
                dense_tile_block(to, block + tile_first(t, i), packed, count, d, t.small, vectors);
            to += (i < t.bigs ? t.big : t.small) * P;
        }
    }
}

enum { DENSE_UNIT_SIZE = DENSE_UNIT_TILES * TILE_ROWS * P };

RT_INLINE void dense_unit_add(real *restrict to, const real *restrict from)
{
    RT_MAP(DENSE_UNIT_SIZE, STORE(to, LOAD(to) + LOAD(from)));
}

RT_INLINE void dense_unit_blocks(DenseUpdate q, Update u, Dense d, int64_t at, int first, int end,
                                 int vectors, int lanes)
{
    real stack[TREE_DEPTH][DENSE_UNIT_SIZE] __attribute__((aligned(64)));
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    int depth = 0;
    for (int s = 0; s < q.r->shards; s++) {
        const int64_t shard = s * q.r->shard_bytes, next = (s + 1) % q.r->shards * q.r->shard_bytes;
        memset(stack[depth], 0, sizeof stack[depth]);
        dense_unit_shard(stack[depth++], (const real *)(q.x + shard), (const real *)(q.dy + shard),
                         (const real *)(q.dy + next), q.samples, d, first, end, vectors);
        for (int bits = s; bits & 1; bits >>= 1, depth--)
            dense_unit_add(stack[depth - 2], stack[depth - 1]);
    }
    for (; depth > 1; depth--)
        dense_unit_add(stack[depth - 2], stack[depth - 1]);
    const int from = tile_first(t, first), count = tile_first(t, end) - from;
    for (int k = 0; k < count; k++) {
        const vec c[2] = {v_load(stack[0] + k * P), v_load(stack[0] + k * P + V)};
        dense_update_tile(q, u, c, at + (int64_t)(from + k) * P, 1, 2, lanes);
    }
}

/* --------------------------------------------------------------------------------------- a unit */

RT_INLINE void dense_update_unit(DenseUpdate q, Update u, Dense d, int panel, int first,
                                 int vectors, int lanes)
{
    const int64_t at = (int64_t)panel * d.k * P;
    const int tiles = DENSE_TILES(d.k),
              end = tiles - first < DENSE_UNIT_TILES ? tiles : first + DENSE_UNIT_TILES;
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    q.dy += panel * P * (int64_t)sizeof(real);
    if (q.samples > DENSE_SAMPLES) {
        dense_unit_blocks(q, u, d, at, first, end, vectors, lanes);
        return;
    }
    for (int i = first; i < end; i++)
        if (t.bigs > 0 && i < t.bigs)
            dense_tile_shards(q, u, d, at, tile_first(t, i), t.big, vectors, lanes, true);
        else
            dense_tile_shards(q, u, d, at, tile_first(t, i), t.small, vectors, lanes, t.bigs == 0);
}

/* Unit of DENSE_UNITS(k, o): a few tiles of one panel, over all shards held here.
 *   x, dy   the first local shard's, `samples` rows each; the next shard's lie r->shard_bytes on
 *           (after the last row of dy, 64 bytes may be read)
 *   grad    bytes: where the sum goes in r->grad when the update has to wait for other processes */
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
    const int panel = unit % DENSE_PANELS(d.o), first = unit / DENSE_PANELS(d.o) * DENSE_UNIT_TILES;
    const int lanes = d.o - panel * P < P ? d.o - panel * P : P, last = d.o % P;
    if (last > 0 && last <= V && lanes == last)
        dense_update_unit(q, u, d, panel, first, 1, last);
    else if (last == 0 || last > V || d.o > P)
        dense_update_unit(q, u, d, panel, first, 2, lanes);
}

#endif
