/* conv_gather.h -- direct convolution, forward and backward: what conv_forward.h and conv_dx.h
 * share.
 *
 * 1x1 kernels are one product over all positions; other sizes go by boxes (conv_box.h).
 */
#ifndef CPU_CONV_GATHER_H
#define CPU_CONV_GATHER_H
#include "cpu/conv_box.h"

/* ------------------------------------------------------------------------------------ 1x1 kernels
 * With stride 1 and no padding, the positions of all samples are the rows of one product. */
RT_INLINE bool conv_flat(ConvGather g)
{
    return g.down.taps == 1 && g.across.taps == 1 && g.groups == 1 && g.down.stride == 1 &&
           g.across.stride == 1 && g.down.inputs == g.down.outputs && g.down.pad == 0 &&
           g.across.inputs == g.across.outputs && g.across.pad == 0;
}

/* The product of `rows` rows that are read for the first time.  It goes through FLAT_LINE numbers
 * of a row at a time, and prefetches the rows of the next tile, which follow the rows of
 * this tile.
 * 256->64 at 56 x 56: 126 instead of 109 GFLOP/s of a core. */
enum { FLAT_LINE = 64 / sizeof(real) };
RT_INLINE void conv_flat_first(vec *t, int rows, int vectors, int count, const real *x,
                               const real *p)
{
    const TileRows tile = {.count = rows, .step = count};
    const int whole = count / FLAT_LINE * FLAT_LINE;
    for (int k = 0; k < whole; k += FLAT_LINE) {
        RT_UNROLL
        for (int i = 0; i < rows; i++)
            __builtin_prefetch(x + (int64_t)(rows + i) * count + k);
        tile_product(t, tile, vectors, FLAT_LINE, x + k, 1, p + (int64_t)k * P, P, P);
    }
    if (whole < count)
        tile_product(t, tile, vectors, count - whole, x + whole, 1, p + (int64_t)whole * P, P, P);
}

/* Computes `rows` rows of one panel. */
RT_INLINE void conv_flat_tile(int64_t first, int rows, ConvPart q, Act act, Mask mask, ConvGather g)
{
    const int vectors = q.lanes > V ? 2 : 1;
    const TileRows tile = {.count = rows, .step = g.inputs};
    const real *x = q.x + first * g.inputs;
    const bool far = tile_far((int64_t)g.inputs * g.outputs);
    vec t[TILE_MAX];
    for (int i = 0; i < rows; i++) /* prefetches the next tile's outputs: a store needs its line */
        for (int j = 0; j < q.lanes; j += FLAT_LINE)
            __builtin_prefetch(q.y + (first + rows + i) * g.y.position + j, 1);
    TILE_BEGIN;
    conv_begin(t, rows, q);
    if (far)
        tile_product_far(t, tile, vectors, g.inputs, x, 1, q.p, P, P);
    else if (q.first)
        conv_flat_first(t, rows, vectors, g.inputs, x, q.p);
    else
        tile_product(t, tile, vectors, g.inputs, x, 1, q.p, P, P);
    conv_end(t, rows, first * g.y.position, g.y.position, q, act, mask);
}

/* Computes a team member's part of these rows. */
RT_INLINE void conv_flat_rows(int64_t first, int64_t rows, ConvPart q, Act act, Mask mask,
                              ConvGather g, RtGrid part)
{
    const TileSplit k = tile_split((int)rows, q.lanes > V ? TILE_ROWS : TILE_ROWS_1);
    const TeamRange tiles = team_rows(part, k.bigs + k.smalls);
    TEAM_IN(i, k.bigs + k.smalls, tiles) {
        if (i < k.bigs)
            conv_flat_tile(first + i * k.big, k.big, q, act, mask, g);
        else
            conv_flat_tile(first + tile_first(k, i), k.small, q, act, mask, g);
    }
}

/* Runs a body for each panel q of one group that is in the part of a team member. */
#define CONV_GATHER_PANELS(g, group, part, y, x, p_, bias_, value_, ...)                           \
    do {                                                                                           \
        const int64_t panel_ = (int64_t)(g).down.taps * (g).across.taps * (g).inputs * P;          \
        const int to_ = (group) * (g).outputs, panels_ = ((g).outputs + P - 1) / P;                \
        const int full_ = (g).outputs / P * P;                                                     \
        const TeamRange mine_ = team_columns(part, panels_);                                       \
        const real *const from_ = (p_) + (int64_t)(group)*panels_ * panel_;                        \
        TEAM_IN(at_, full_ / P, mine_) {                                                           \
            const int first_ = at_ * P;                                                            \
            const ConvPart q = {from_ + at_ * panel_,                                              \
                                (bias_) ? (bias_) + to_ + first_ : NULL,                           \
                                (x) + (group) * (g).inputs,                                        \
                                (value_) ? (value_) + to_ + first_ : NULL,                         \
                                (y) + to_ + first_,                                                \
                                P,                                                                 \
                                first_ == 0};                                                      \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        RT_NEEDS(LEFT, full_ < (g).outputs);                                                       \
        if (RT_VARIANT(LEFT) && full_ < (g).outputs && team_has(mine_, full_ / P)) {               \
            const ConvPart q = {from_ + full_ / P * panel_,                                        \
                                (bias_) ? (bias_) + to_ + full_ : NULL,                            \
                                (x) + (group) * (g).inputs,                                        \
                                (value_) ? (value_) + to_ + full_ : NULL,                          \
                                (y) + to_ + full_,                                                 \
                                (g).outputs - full_,                                               \
                                full_ == 0};                                                       \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

enum {
    CONV_BLOCK = 256 * 1024 / sizeof(real)
}; /* reals of x that stay in a core's L2 cache from panel to panel */

/* If x does not fit the cache, and reading the weights again costs less than reading x again, x is
 * processed in blocks: rows of the product, whole samples, or bands of rows of a sample. */
RT_INLINE void conv_gather_flat(real *y, const real *x, const real *p, const real *bias,
                                const real *value, Act act, Mask mask, ConvGather g, int n)
{
    const int64_t rows = (int64_t)n * g.down.outputs * g.across.outputs;
    const bool far = tile_far((int64_t)g.inputs * g.outputs); /* then y need not stay */
    const int64_t row = far ? g.inputs : g.inputs + g.outputs,
                  fit = 2 * CONV_BLOCK / row / TILE_ROWS * TILE_ROWS;
    const bool blocks = fit > 0 && conv_count(rows, fit) * g.inputs * P < rows * g.inputs;
    const int64_t block = blocks && fit < rows ? fit : rows;
    const RtGrid part = team_grid(conv_count(block, TILE_ROWS), conv_count(g.outputs, P));
    for (int64_t first = 0; first + block <= rows; first += block)
        CONV_GATHER_PANELS(g, 0, part, y, x, p, bias, value,
                           conv_flat_rows(first, block, q, act, mask, g, part));
    if (rows % block)
        CONV_GATHER_PANELS(g, 0, part, y, x, p, bias, value,
                           conv_flat_rows(rows / block * block, rows % block, q, act, mask, g,
                                          part));
}

/* Whether an output of the backward pass has no taps. */
RT_INLINE bool conv_gaps(ConvAxis a)
{
    bool gaps = false;
    for (int o = 0; o < a.outputs; o++)
        gaps = gaps || !conv_taps(a, o).taps;
    return a.back && gaps;
}

/* Samples in a block.  A strided 1x1 kernel reads only a few pixels, so more samples fit.
 * 1x1/2 1024->2048 at 14 x 14: 105 instead of 82 GFLOP/s of a core. */
RT_INLINE int conv_samples(ConvGather g)
{
    const int64_t read = (int64_t)g.down.outputs * g.across.outputs * g.x.position;
    const bool few = !g.down.back && g.down.taps == 1 && g.across.taps == 1;
    return few && 2 * CONV_BLOCK > read ? (int)(2 * CONV_BLOCK / read) : 1;
}

/* Calls conv_boxes for steps first to end - 1.  A step: rows of outputs of one sample, as many as
 * the backward stride; steps of all samples are counted one after another. */
RT_INLINE void conv_steps(ConvPart q, Act act, Mask mask, ConvGather g, int64_t first, int64_t end)
{
    const int unit = g.down.back ? g.down.stride : 1, steps = (int)conv_count(g.down.outputs, unit);
    while (first < end) {
        const int n = (int)(first / steps), from = (int)(first % steps);
        const int64_t left = end - first;
        const int samples = from == 0 && left >= steps ? (int)(left / steps) : 1;
        const int to = samples > 1 || from + left > steps ? steps : from + (int)left;
        const int below = to * unit < g.down.outputs ? to * unit : g.down.outputs;
        conv_boxes(q, act, mask, g, n, n + samples, from * unit, below);
        first += samples > 1 ? (int64_t)samples * steps : to - from;
    }
}

RT_INLINE void conv_gather(real *y, const real *x, const real *p, const real *bias,
                           const real *value, Act act, Mask mask, ConvGather g, int n)
{
    const int64_t panels = (int64_t)g.groups * ((g.outputs + P - 1) / P);
    const int64_t weights = panels * g.down.taps * g.across.taps * g.inputs * P;
    const int64_t sample = g.x.row * g.down.inputs, blocks = conv_count(n * sample, CONV_BLOCK);
    const int unit = g.down.back ? g.down.stride : 1, samples = conv_samples(g);
    const int64_t fit = CONV_BLOCK / (g.x.row * (g.down.back ? 1 : g.down.stride)) * unit;
    const int rows = fit < unit                             ? unit
                     : samples == 1 && fit < g.down.outputs ? (int)fit
                                                            : g.down.outputs;

    if (conv_gaps(g.down) || conv_gaps(g.across)) {
        if (TEAM_FIRST)
            memset(y, 0, sizeof(real) * n * g.y.sample);
        TEAM_BARRIER;
    }
    RT_NEEDS(FLAT, conv_flat(g));
    RT_NEEDS(BOXES, !conv_flat(g));
    if (RT_VARIANT(FLAT) && conv_flat(g)) {
        conv_gather_flat(y, x, p, bias, value, act, mask, g, n);
        return;
    }
    if (!RT_VARIANT(BOXES))
        return;
    const int steps = (int)conv_count(g.down.outputs, unit); /* of a sample */
    const bool whole = blocks == 1 || weights * blocks > n * sample * panels;
    const int64_t all = (int64_t)n * steps, block = whole         ? all
                                                    : samples > 1 ? (int64_t)samples * steps
                                                                  : conv_count(rows, unit);
    const RtGrid part = team_grid(all, conv_count(g.outputs, P));
    const TeamRange mine = team_rows(part, all);
    for (int64_t at = mine.first; at < mine.end;) {
        /* samples == 1: a block ends with its sample */
        const int64_t after = whole || samples > 1 ? at + block : at + block - at % steps % block,
                      last = (at / steps + 1) * steps;
        int64_t end = !whole && samples == 1 && after > last ? last : after;
        end = end < mine.end ? end : mine.end;
        for (int group = 0; group < g.groups; group++)
            CONV_GATHER_PANELS(g, group, part, y, x, p, bias, value,
                               conv_steps(q, act, mask, g, at, end));
        at = end;
    }
}

#endif
