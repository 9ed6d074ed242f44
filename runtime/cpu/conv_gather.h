/* conv_gather.h -- direct convolution, forward and back: what conv_forward.h and conv_dx.h share.
 *
 * 1x1 kernels are one product over all positions; other sizes go by boxes (conv_box.h).
 */
#ifndef CPU_CONV_GATHER_H
#define CPU_CONV_GATHER_H
#include "cpu/conv_box.h"

/* ------------------------------------------------------------------------------------ 1x1 kernels
 * With stride 1 and no padding all positions of all samples are the rows of one product. */
RT_INLINE bool conv_flat(ConvGather g)
{
    return g.down.taps == 1 && g.across.taps == 1 && g.groups == 1 && g.down.stride == 1 &&
           g.across.stride == 1 && g.down.inputs == g.down.outputs && g.down.pad == 0 &&
           g.across.inputs == g.across.outputs && g.across.pad == 0;
}

/* The product of `rows` rows that are read for the first time: FLAT_LINE numbers a row at a time,
 * and the next tile's are called, whose rows follow these.  256->64 at 56 x 56: 126 instead of 109
 * GFLOP/s of a core. */
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

/* `rows` rows of one panel. */
RT_INLINE void conv_flat_tile(int64_t first, int rows, ConvPart q, Act act, Mask mask, ConvGather g)
{
    const int vectors = q.lanes > V ? 2 : 1;
    const TileRows tile = {.count = rows, .step = g.inputs};
    const real *x = q.x + first * g.inputs;
    const bool far = tile_far((int64_t)g.inputs * g.outputs);
    vec t[TILE_MAX];
    for (int i = 0; i < rows; i++) /* the next tile's outputs: a store waits for its line, too */
        for (int j = 0; j < q.lanes; j += FLAT_LINE)
            __builtin_prefetch(q.y + (first + rows + i) * g.y.position + j, 1);
    conv_begin(t, rows, q);
    if (far)
        tile_product_far(t, tile, vectors, g.inputs, x, 1, q.p, P, P);
    else if (q.first)
        conv_flat_first(t, rows, vectors, g.inputs, x, q.p);
    else
        tile_product(t, tile, vectors, g.inputs, x, 1, q.p, P, P);
    conv_end(t, rows, first * g.y.position, g.y.position, q, act, mask);
}

RT_INLINE void conv_flat_rows(int64_t first, int64_t rows, ConvPart q, Act act, Mask mask,
                              ConvGather g)
{
    const TileSplit k = tile_split((int)rows, q.lanes > V ? TILE_ROWS : TILE_ROWS_1);
    for (int i = 0; i < k.bigs; i++, first += k.big)
        conv_flat_tile(first, k.big, q, act, mask, g);
    for (int i = 0; i < k.smalls; i++, first += k.small)
        conv_flat_tile(first, k.small, q, act, mask, g);
}

/* Does something for every panel q of one group. */
#define CONV_GATHER_PANELS(g, group, y, x, p_, bias_, value_, ...)                                 \
    do {                                                                                           \
        const int64_t panel_ = (int64_t)(g).down.taps * (g).across.taps * (g).inputs * P;          \
        const int to_ = (group) * (g).outputs, panels_ = ((g).outputs + P - 1) / P;                \
        const int full_ = (g).outputs / P * P;                                                     \
        const real *from_ = (p_) + (group)*panels_ * panel_;                                       \
        for (int first_ = 0; first_ < full_; first_ += P, from_ += panel_) {                       \
            const ConvPart q = {from_,                                                             \
                                (bias_) ? (bias_) + to_ + first_ : NULL,                           \
                                (x) + (group) * (g).inputs,                                        \
                                (value_) ? (value_) + to_ + first_ : NULL,                         \
                                (y) + to_ + first_,                                                \
                                P,                                                                 \
                                first_ == 0};                                                      \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        RT_NEEDS(LEFT, full_ < (g).outputs);                                                       \
        if (RT_WAY(LEFT) && full_ < (g).outputs) {                                                 \
            const ConvPart q = {from_,                                                             \
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
}; /* reals of x that a core's L2 keeps while panels pass */

/* When x does not fit the cache and it pays to read the weights again rather than x, it goes by
 * blocks: rows of the product, whole samples, or bands of rows of one. */
RT_INLINE void conv_gather_flat(real *y, const real *x, const real *p, const real *bias,
                                const real *value, Act act, Mask mask, ConvGather g, int n)
{
    const int64_t rows = (int64_t)n * g.down.outputs * g.across.outputs;
    const bool far = tile_far((int64_t)g.inputs * g.outputs); /* then y need not stay */
    const int64_t row = far ? g.inputs : g.inputs + g.outputs,
                  fit = 2 * CONV_BLOCK / row / TILE_ROWS * TILE_ROWS;
    const bool blocks = fit > 0 && conv_count(rows, fit) * g.inputs * P < rows * g.inputs;
    const int64_t block = blocks && fit < rows ? fit : rows;
    for (int64_t first = 0; first + block <= rows; first += block)
        CONV_GATHER_PANELS(g, 0, y, x, p, bias, value,
                           conv_flat_rows(first, block, q, act, mask, g));
    if (rows % block)
        CONV_GATHER_PANELS(g, 0, y, x, p, bias, value,
                           conv_flat_rows(rows / block * block, rows % block, q, act, mask, g));
}

/* Back, is there an output without taps? */
RT_INLINE bool conv_gaps(ConvAxis a)
{
    bool gaps = false;
    for (int o = 0; o < a.outputs; o++)
        gaps = gaps || !conv_taps(a, o).taps;
    return a.back && gaps;
}

/* Samples in a block: of a strided 1x1, of which a few pixels are read, as many as fit with those.
 * 1x1/2 1024->2048 at 14 x 14: 105 instead of 82 GFLOP/s of a core. */
RT_INLINE int conv_samples(ConvGather g)
{
    const int64_t read = (int64_t)g.down.outputs * g.across.outputs * g.x.position;
    const bool few = !g.down.back && g.down.taps == 1 && g.across.taps == 1;
    return few && 2 * CONV_BLOCK > read ? (int)(2 * CONV_BLOCK / read) : 1;
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

    if (conv_gaps(g.down) || conv_gaps(g.across))
        memset(y, 0, sizeof(real) * n * g.y.sample);
    RT_NEEDS(FLAT, conv_flat(g));
    RT_NEEDS(BOXES, !conv_flat(g));
    if (RT_WAY(FLAT) && conv_flat(g))
        conv_gather_flat(y, x, p, bias, value, act, mask, g, n);
    else if (!RT_WAY(BOXES))
        return;
    else if (blocks == 1 || weights * blocks > n * sample * panels)
        for (int group = 0; group < g.groups; group++)
            CONV_GATHER_PANELS(g, group, y, x, p, bias, value,
                               conv_boxes(q, act, mask, g, 0, n, 0, g.down.outputs));
    else
        for (int i = 0; i < n; i += samples)
            for (int from = 0; from < g.down.outputs; from += rows) {
                const int below = from + rows < g.down.outputs ? from + rows : g.down.outputs;
                const int end = i + samples < n ? i + samples : n;
                for (int group = 0; group < g.groups; group++)
                    CONV_GATHER_PANELS(g, group, y, x, p, bias, value,
                                       conv_boxes(q, act, mask, g, i, end, from, below));
            }
}

#endif
