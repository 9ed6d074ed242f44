/* bf16_update.h -- the gradient of a dense layer's weights from factors in bf16, and their update,
 * in one sweep.
 *
 *   dw[o][k] = tree over the shards of sum over a shard's samples of dy[n][o] x[n][k]
 *
 * The sum of a shard has the order of bf16.h: blocks of 32 samples.  Units have the
 * tiles of dense_update.h.  The reference of a shard's sum is bf16_dense_dw_plain.
 */
#ifndef CPU_BF16_UPDATE_H
#define CPU_BF16_UPDATE_H
#include "cpu/bf16_dense.h"
#include "cpu/dense_update.h"

/* Inputs from .. from + columns - 1 and outputs o .. o + outputs - 1 of a layer. */
typedef struct Bf16Part {
    int from, columns, o, outputs;
} Bf16Part;

/* sum (panels, columns, P) += the samples of one shard, by the product of a layer.  begin: sum is
 * set instead. */
RT_INLINE void bf16_update_shard_tiles(real *restrict sum, bool begin, const bf16 *restrict x,
                                       const bf16 *restrict dy, int samples, Dense d, Bf16Part t)
{
    const Dense part = {.k = t.columns, .o = t.outputs};
    const TeamRange mine = {0, BF16_COUNT(t.columns, BF16_ROWS)},
                    own = {0, BF16_COUNT(t.outputs, BF16_PAIR)};
    const int most = bf16_positions_most(samples);
    if (samples == 0 && begin)
        memset(sum, 0, (size_t)(DENSE_PANELS(t.outputs) * t.columns * P) * sizeof *sum);
    for (int first = 0; first < samples; first += most) {
        const int count = samples - first < most ? samples - first : most;
        const bf16 *x_row[BF16_POSITIONS], *dy_row[BF16_POSITIONS];
        bf16_dense_rows(x_row, x + t.from, d.k, first, count);
        bf16_dense_rows(dy_row, dy + t.o, d.o, first, count);
        bf16_dense_dw_block(sum, x_row, dy_row, count, part, mine, own, begin && first == 0);
    }
}

#ifdef RT_AVX512
/* The same by f32 tiles, which stay in registers for a block of samples: the even and the odd
 * samples are two products.  Shards of few samples then need no packing: a step of the MLP, batch
 * 128, takes 0.69 instead of 0.83 ms on one thread of a Zen 4. */

/* to (rows, step) = `count` columns of x as f32, then zeros up to `step`. */
RT_INLINE void bf16_widen(real *restrict to, int step, const bf16 *restrict x, int rows,
                          int64_t x_row, int count)
{
    for (int n = 0; n < rows; n++)
        for (int i = 0; i < step; i += V)
            v_store(to + n * step + i,
                    count - i >= V ? v_load_bf16(x + n * x_row + i)
                                   : v_load_bf16_n(x + n * x_row + i, count > i ? count - i : 0));
}

/* sum += a block of `samples` samples, or = if `begin`: `rows` inputs, one panel. */
RT_INLINE void bf16_update_tile(real *sum, bool begin, const real *x, int x_row, const real *dy,
                                int dy_row, int samples, int rows, int vectors)
{
    const TileRows tile = {.count = rows, .step = 1};
    vec even[TILE_MAX], odd[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        even[i] = v_set(0);
    tile_product(even, tile, vectors, (samples + 1) / 2, x, 2 * x_row, dy, 2 * dy_row, vectors * V);
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        odd[i] = v_set(0);
    tile_product(odd, tile, vectors, samples / 2, x + x_row, 2 * x_row, dy + dy_row, 2 * dy_row,
                 vectors * V);
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++) { /* missing samples add +0 to their chain */
        const vec e = samples < BF16_BLOCK - 1 ? even[i] + v_set(0) : even[i],
                  o = samples < BF16_BLOCK ? odd[i] + v_set(0) : odd[i];
        real *const to = sum + i / vectors * P + i % vectors * V;
        v_store(to, (begin ? v_set(0) : v_load(to)) + (e + o));
    }
}

RT_INLINE void bf16_update_panel(real *sum, bool begin, const real *x, int x_row, const real *dy,
                                 int dy_row, int samples, DenseTiles t, int vectors)
{
    for (int i = t.first; i < t.end; i++) {
        const int rows = i < t.split.bigs ? t.split.big : t.split.small;
        if (i < t.split.bigs)
            bf16_update_tile(sum, begin, x, x_row, dy, dy_row, samples, t.split.big, vectors);
        else
            bf16_update_tile(sum, begin, x, x_row, dy, dy_row, samples, t.split.small, vectors);
        x += rows, sum += rows * P;
    }
}

RT_INLINE void bf16_update_shard_vectors(real *restrict sum, const bf16 *restrict x,
                                         const bf16 *restrict dy, int samples, Dense d,
                                         DenseTiles tiles, Bf16Part t)
{
    enum { COLUMNS = BF16_UNIT_TILES * TILE_ROWS };
    const int step = BF16_DENSE_GROUP(d.o) * P;
    real xs[BF16_BLOCK * COLUMNS + V] __attribute__((aligned(64)));
    real dys[BF16_BLOCK * BF16_DENSE_GROUP(d.o) * P] __attribute__((aligned(64)));
    for (int n = 0; n < samples; n += BF16_BLOCK) {
        const int rows = samples - n < BF16_BLOCK ? samples - n : BF16_BLOCK;
        bf16_widen(xs, COLUMNS, x + (int64_t)n * d.k + t.from, rows, d.k, t.columns);
        bf16_widen(dys, step, dy + (int64_t)n * d.o + t.o, rows, d.o, t.outputs);
        for (int p = 0; p < DENSE_PANELS(t.outputs); p++) {
            real *const to = sum + p * t.columns * P;
            if (d.o <= V)
                bf16_update_panel(to, n == 0, xs, COLUMNS, dys + p * P, step, rows, tiles, 1);
            else
                bf16_update_panel(to, n == 0, xs, COLUMNS, dys + p * P, step, rows, tiles, 2);
        }
    }
}
#endif

RT_INLINE void bf16_update_shard(real *restrict sum, const bf16 *restrict x,
                                 const bf16 *restrict dy, int samples, Dense d, DenseTiles tiles,
                                 Bf16Part t)
{
#ifdef RT_AVX512
    if (!bf16_has_tiles() && (samples <= BF16_BLOCK || !bf16_has_chains())) {
        bf16_update_shard_vectors(sum, x, dy, samples, d, tiles, t);
        return;
    }
#endif
    (void)tiles;
    bf16_update_shard_tiles(sum, true, x, dy, samples, d, t);
}

/* Whether the tiles add shard s to the sum of the shard before it.  If a shard is one block, this
 * addition of a block is also the first addition of the tree over the shards. */
RT_INLINE bool bf16_update_joins(int s, int samples)
{
    return s % 2 == 1 && samples <= BF16_BLOCK && bf16_has_tiles();
}

RT_INLINE void bf16_update_part(DenseUpdate q, Update u, Dense d, DenseTiles tiles, Bf16Part t)
{
    enum { MOST = BF16_UNIT_TILES * TILE_ROWS * P };
    real stack[TREE_DEPTH][BF16_DENSE_GROUP(d.o) * MOST] __attribute__((aligned(64)));
    const int64_t size = DENSE_PANELS(t.outputs) * t.columns * P;
    int depth = 0;
    for (int s = 0; s < q.r->shards; s++) {
        const bf16 *const x = (const bf16 *)(q.x + s * q.x_shard),
                          *const dy = (const bf16 *)(q.dy + s * q.dy_shard);
        const bool joins = bf16_update_joins(s, q.samples);
        if (joins)
            bf16_update_shard_tiles(stack[depth - 1], false, x, dy, q.samples, d, t);
        else
            bf16_update_shard(stack[depth++], x, dy, q.samples, d, tiles, t);
        for (int bits = joins ? s >> 1 : s; bits & 1; bits >>= 1, depth--)
            dense_unit_add(stack[depth - 2], stack[depth - 1], size);
    }
    for (; depth > 1; depth--)
        dense_unit_add(stack[depth - 2], stack[depth - 1], size);
    for (int p = 0; p < DENSE_PANELS(t.outputs); p++)
        for (int k = 0; k < t.columns; k++) {
            const real *sum = stack[0] + (p * t.columns + k) * P;
            const vec c[2] = {v_load(sum), v_load(sum + V)};
            dense_update_tile(q, u, c, ((int64_t)(t.o / P + p) * d.k + t.from + k) * P, 1, 2,
                              t.outputs - p * P < P ? t.outputs - p * P : P);
        }
}

/* Computes one of BF16_DENSE_UNITS(k, o) units.  The parameters are those of dense_dw_update, with
 * x and dy in bf16. */
RT_INLINE void bf16_dense_dw_update(const Rt *r, int unit, int64_t grad, real *restrict w,
                                    real *restrict s0, real *restrict s1, const char *restrict x,
                                    const char *restrict dy, int samples, Factors f, Update u,
                                    Dense d)
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
                           .x_shard = r->shard_bytes,
                           .dy_shard = r->shard_bytes};
    const int group = BF16_DENSE_GROUP(d.o), first = unit % BF16_DENSE_GROUPS(d.o) * group * P,
              tile = unit / BF16_DENSE_GROUPS(d.o) * BF16_UNIT_TILES,
              last = tile + BF16_UNIT_TILES < DENSE_TILES(d.k) ? tile + BF16_UNIT_TILES
                                                               : DENSE_TILES(d.k);
    const TileSplit split = tile_split(d.k, TILE_ROWS);
    const int from = tile_first(split, tile), left = d.o - first;
    const DenseTiles tiles = {.split = split, .first = tile, .end = last};
    bf16_update_part(q, u, d, tiles,
                     (Bf16Part){.from = from,
                                .columns = tile_first(split, last) - from,
                                .o = first,
                                .outputs = left < group * P ? left : group * P});
}

#endif
