/* bf16_conv_update.h -- the gradient of large filters over few positions from factors in bf16, and
 * their update, in one sweep.
 *
 *   dw[o][r][s][c] = tree over the shards of tree over the slices of a shard of
 *                    sum over the positions k of a slice of dy[k][o] x[k + (r, s)][c]
 *
 * With sums of slices, each chunk writes all of dw, and the update reads it.  Here a unit is a
 * block of filters: BF16_FILTER_OUTPUTS outputs by CONV_DW_CHANNELS channels of one tap.  Filters
 * and states are read and written once a step.  The sum of a slice has the order of bf16_conv_dw.h:
 * each chunk begins with a new block of 32 positions.  One group only.
 */
#ifndef CPU_BF16_CONV_UPDATE_H
#define CPU_BF16_CONV_UPDATE_H
#include "cpu/bf16_conv_dw.h"
#include "cpu/conv_dw_units.h"
#include "cpu/update.h"

/* How the samples of a shard are divided. */
typedef struct Bf16Cut {
    int slice, chunk; /* samples */
} Bf16Cut;

enum {
    BF16_FILTER_TILES = BF16_FILTER_OUTPUTS / BF16_ROWS,
    BF16_FILTER_DEPTH = 8, /* levels of the trees of at most 8 shards and 8 slices */
};

/* Positions of a chunk, and with the zeros that fill its last block; chunks of a shard. */
#define BF16_CUT_POSITIONS(c, cut) ((cut).chunk * (c).oh * (c).ow)
#define BF16_CUT_FILLED(c, cut)    (BF16_BLOCKS(BF16_CUT_POSITIONS(c, cut)) * BF16_BLOCK)
#define BF16_CUT_CHUNKS(c, cut)    ((c).n / (cut).chunk)

/* Filters of a unit: outputs from o on and channels from k on, of tap (r, s). */
typedef struct Bf16Filters {
    int o, outputs, k, channels, r, s;
} Bf16Filters;

RT_INLINE Bf16Filters bf16_filters_of(Conv c, int unit)
{
    const int k = unit % CONV_DW_C(c.c) * CONV_DW_CHANNELS,
              tap = unit / CONV_DW_C(c.c) % (c.r * c.s),
              o = unit / CONV_DW_C(c.c) / (c.r * c.s) * BF16_FILTER_OUTPUTS;
    return (Bf16Filters){.o = o,
                         .outputs = c.o - o < BF16_FILTER_OUTPUTS ? c.o - o : BF16_FILTER_OUTPUTS,
                         .k = k,
                         .channels = c.c - k < CONV_DW_CHANNELS ? c.c - k : CONV_DW_CHANNELS,
                         .r = tap / c.s,
                         .s = tap % c.s};
}

/* Packs the second factor of a chunk that begins at sample n: `lanes` channels of a tap, from k
 * on. */
RT_INLINE void bf16_filters_pairs(bf16 *restrict to, const bf16 *x, const bf16 *zero, Conv c,
                                  Bf16Cut cut, Bf16Filters u, int n, int k, int lanes)
{
    const bf16 *row[BF16_CUT_POSITIONS(c, cut)];
    const Bf16Positions q = {n * c.oh * c.ow, BF16_CUT_POSITIONS(c, cut)};
    bf16_positions_tap(row, q, x, zero, c, u.r, u.s);
    bf16_pairs(to, BF16_POSITIONS * BF16_LANES, row, k, q.count, lanes);
}

RT_INLINE void bf16_filters_turn(bf16 *restrict to, const bf16 *dy, Conv c, Bf16Cut cut, int n,
                                 int o, int outputs)
{
    const bf16 *row[BF16_CUT_POSITIONS(c, cut)];
    const int count = BF16_CUT_POSITIONS(c, cut);
    bf16_dense_rows(row, dy, c.o, n * c.oh * c.ow, count);
    bf16_turn(to, row, o, count, outputs);
}

RT_INLINE void bf16_filters_add(float *restrict to, const float *restrict from)
{
    RT_MAP(BF16_TILE, STORE(to, LOAD(to) + LOAD(from)));
}

/* Adds the newest sum of a stack to the sums before it, which begin at `first`.  The newest sum is
 * item `at` of a tree.  It is added to the sums that it completes, or (all) to all of them. */
RT_INLINE void bf16_filters_join(float (*stack)[BF16_TILE], int *depth, int first, int at, bool all)
{
    for (; *depth - first > 1 && (all || at & 1); at >>= 1, --*depth)
        bf16_filters_add(stack[*depth - 2], stack[*depth - 1]);
}

/* Computes the sum of a tile over all shards, in stack[0].  turned, pairs: the factors of the first
 * shard; turned_shard, pairs_shard: numbers from the factors of a shard to those of the next
 * one. */
RT_INLINE void bf16_filters_sum(float (*stack)[BF16_TILE], const bf16 *turned, int64_t turned_shard,
                                const bf16 *pairs, int64_t pairs_shard, int shards, int rows,
                                int lanes, Conv c, Bf16Cut cut)
{
    const int chunks = cut.slice / cut.chunk, filled = BF16_CUT_FILLED(c, cut);
    int depth = 0;
    for (int s = 0; s < shards; s++, turned += turned_shard, pairs += pairs_shard) {
        const int first = depth;
        for (int i = 0, at = 0; i < c.n / cut.slice; i++) {
            for (int j = 0; j < chunks; j++, at += filled)
                bf16_product_turned(stack[depth], BF16_ROWS, j == 0, turned + at, rows,
                                    pairs + (int64_t)at * BF16_LANES, lanes,
                                    BF16_CUT_POSITIONS(c, cut));
            depth++;
            bf16_filters_join(stack, &depth, first, i, i + 1 == c.n / cut.slice);
        }
        bf16_filters_join(stack, &depth, 0, s, s + 1 == shards);
    }
}

/* Where the sum of a unit goes: to grad, or to the update if grad is NULL. */
typedef struct Bf16Target {
    real *grad, *w, *s0, *s1;
    const RtOpt *o;
    Update update;
} Bf16Target;

RT_INLINE void bf16_filters_fetch(Bf16Target q, int64_t at, int64_t filter, int rows)
{
    for (int i = 0; i < rows; i++, at += filter)
        for (int j = 0; j < BF16_PAIR; j += 64 / (int)sizeof(real)) {
            v_fetch_to_write((q.grad ? q.grad : q.w) + at + j);
            if (q.s0 && !q.grad)
                v_fetch_to_write(q.s0 + at + j);
            if (q.s1 && !q.grad)
                v_fetch_to_write(q.s1 + at + j);
        }
}

RT_INLINE void bf16_filters_put(Bf16Target q, int64_t at, int64_t filter, const float *sum,
                                int rows, int channels)
{
    for (int i = 0; i < rows; i++, at += filter, sum += BF16_ROWS)
        for (int j = 0; j < channels; j += V) {
            const int lanes = tile_lanes(channels - j, 0);
            const vec g = v_load(sum + j);
            if (q.grad)
                v_store_lanes(q.grad + at + j, g, lanes);
            else
                update_lanes(q.w + at + j, q.s0 ? q.s0 + at + j : NULL, q.s1 ? q.s1 + at + j : NULL,
                             g, q.o, q.update, lanes);
        }
}

/* Computes one of BF16_FILTER_UNITS(o, c, r * s) units.  x, dy: of the first local shard, c.n
 * samples; the next shard's lie r->shard_bytes later.  grad: bytes, where the sum goes in r->grad
 * if the update has to wait for a reduction. */
RT_INLINE void bf16_conv2d_dw_update(const Rt *r, int unit, int64_t grad, real *restrict w,
                                     real *restrict s0, real *restrict s1, const char *restrict x,
                                     const char *restrict dy, Factors f, Update update, Conv c,
                                     Bf16Cut cut)
{
    enum { TURNED = BF16_ROWS * BF16_POSITIONS, PAIRS = BF16_PAIR * BF16_POSITIONS };
    bf16 turned[RT_BF16_FILTER_SHARDS][BF16_FILTER_TILES * TURNED] __attribute__((aligned(64)));
    bf16 pairs[RT_BF16_FILTER_SHARDS][PAIRS] __attribute__((aligned(64)));
    float stack[BF16_FILTER_DEPTH][BF16_TILE] __attribute__((aligned(64)));
    const RtOpt o = update_options(r, f);
    const Bf16Filters u = bf16_filters_of(c, unit);
    const int64_t filter = (int64_t)c.r * c.s * c.c,
                  first = u.o * filter + (int64_t)(u.r * c.s + u.s) * c.c + u.k;
    const Bf16Target q = {.grad = r->grad ? (real *)(r->grad + grad) + first : NULL,
                          .w = w + first,
                          .s0 = s0 ? s0 + first : NULL,
                          .s1 = s1 ? s1 + first : NULL,
                          .o = &o,
                          .update = update};
    const int filled = BF16_CUT_FILLED(c, cut), tiles = BF16_COUNT(u.outputs, BF16_ROWS);
    bf16 zero[c.c];
    memset(zero, 0, sizeof zero);
    for (int s = 0; s < r->shards; s++)
        for (int i = 0; i < BF16_CUT_CHUNKS(c, cut); i++)
            for (int t = 0; t < tiles; t++) {
                const int left = u.outputs - t * BF16_ROWS;
                bf16_filters_turn(turned[s] + t * TURNED + i * filled,
                                  (const bf16 *)(dy + s * r->shard_bytes), c, cut, i * cut.chunk,
                                  u.o + t * BF16_ROWS, left < BF16_ROWS ? left : BF16_ROWS);
            }
    for (int k = 0; k < u.channels; k += BF16_PAIR) {
        const int lanes = u.channels - k < BF16_PAIR ? u.channels - k : BF16_PAIR;
        for (int s = 0; s < r->shards; s++)
            for (int i = 0; i < BF16_CUT_CHUNKS(c, cut); i++)
                bf16_filters_pairs(pairs[s] + (int64_t)i * filled * BF16_LANES,
                                   (const bf16 *)(x + s * r->shard_bytes), zero, c, cut, u,
                                   i * cut.chunk, u.k + k, lanes);
        for (int t = 0; t < tiles; t++) {
            const int left = u.outputs - t * BF16_ROWS, rows = left < BF16_ROWS ? left : BF16_ROWS;
            const int64_t at = t * BF16_ROWS * filter + k;
            bf16_filters_fetch(q, at, filter, rows);
            bf16_filters_sum(stack, turned[0] + t * TURNED, BF16_FILTER_TILES * TURNED, pairs[0],
                             PAIRS, r->shards, rows, lanes, c, cut);
            bf16_filters_put(q, at, filter, stack[0], rows, lanes);
        }
    }
}

#endif
