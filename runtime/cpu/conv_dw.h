/* conv_dw.h -- gradient of a convolution's weights; with a fused max-pool: conv_pool_dw.h.
 *
 *   dw (O, J) += sum over positions k of dy[k][o] X[k][j]       j: a tap, (r, s, channel)
 *
 * This is a product of two matrices whose rows are positions; X, which has the image once for each
 * tap, is never stored.  Sizes alone select one of three implementations:
 *   few channels (conv_dw_few.h)      lanes are outputs: three channels would leave lanes empty
 *   small images (conv_dw_taps.h)     tap by tap, over the positions whose tap lies in the image
 *   else                              lanes are a run of taps; x and dy are read in place
 * The order of each sum depends on sizes only: blocks of positions in order, positions in order.
 */
#ifndef CPU_CONV_DW_H
#define CPU_CONV_DW_H
#include "cpu/channel_sum.h"
#include "cpu/conv_forward.h"

/* ---------------------------------------------------------------- one output position at a time */
/* to[i] += g from[i] for i < count. */
RT_INLINE void conv_add(real *to, const real *from, real g, int count)
{
    RT_MAP(count, STORE(to, v_fma(v_set(g), LOAD(from), LOAD(to))));
}

/* dw += g x: the weights (R, S, C/g) of one output, for the taps of position (oy, ox) that lie in
 * the image.  x: the group's first channel. */
RT_INLINE void conv_dw_position(real *dw, const real *x, real g, Conv c, int oy, int ox)
{
    const int inputs = c.c / c.groups;
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h,
                      ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
            if (iy >= 0 && iy < c.h && ix >= 0 && ix < c.w)
                conv_add(dw + (int64_t)(r * c.s + s) * inputs, x + ((int64_t)iy * c.w + ix) * c.c,
                         g, inputs);
        }
}

RT_INLINE void conv_dw_positions(real *dw, const real *x, const real *dy, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int oy = 0; oy < c.oh; oy++)
        for (int ox = 0; ox < c.ow; ox++, dy += c.o)
            for (int o = 0; o < c.o; o++)
                conv_dw_position(dw + (int64_t)o * c.r * c.s * inputs, x + o / outputs * inputs,
                                 dy[o], c, oy, ox);
}

/* ------------------------------------------------------------------------------- a block in place
 * A tile is a few outputs by two vectors of a run of taps.  Its inner loop goes over all positions
 * of the band. */
RT_INLINE void conv_dw_tile(real *dw, ConvImage m, const real *dy, Conv c, int rows, int outputs,
                            int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    const int64_t filter = (int64_t)c.r * c.s * (c.c / c.groups);
    vec t[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < outputs * vectors; i++)
        t[i] = v_set(0);
    for (int oy = 0; oy < rows; oy++)
        tile_product(t, (TileRows){.count = outputs, .step = 1}, vectors, c.ow,
                     dy + (int64_t)oy * c.ow * c.o, c.o, m.x + oy * c.stride_h * m.row,
                     c.stride_w * c.c, P);
    RT_UNROLL
    for (int i = 0; i < outputs; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            real *to = dw + i * filter + j * V;
            const int k = tile_lanes(lanes, j);
            v_store_lanes(to, (c.write ? v_set(0) : v_load_lanes(to, k)) + t[i * vectors + j], k);
        }
    }
}

/* The runs of taps of an output: a whole kernel row if its taps are contiguous, else one tap.
 * A run takes `columns` tiles of P lanes. */
typedef struct ConvRuns {
    int runs, length, columns; /* runs of a kernel row; reals of a run */
} ConvRuns;
RT_INLINE ConvRuns conv_dw_runs(Conv c)
{
    const int inputs = c.c / c.groups;
    const bool whole = c.groups == 1 && c.dil_w == 1;
    const int length = whole ? c.s * inputs : inputs;
    return (ConvRuns){whole ? 1 : c.s, length, conv_ceil(length, P)};
}

/* Computes the tiles of a few outputs that belong to a member of a team; `own` counts tiles. */
RT_INLINE void conv_dw_outputs(real *dw, ConvImage m, const real *dy, Conv c, int rows, int outputs,
                               TeamRange own)
{
    const ConvRuns run = conv_dw_runs(c);
    const int full = run.length / P * P;
    int tile = 0;
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < run.runs; s++, dw += run.length, tile += run.columns) {
            const ConvImage at = {m.x + r * c.dil_h * m.row + s * c.dil_w * c.c, m.row};
            for (int k = 0; k < full; k += P)
                if (team_has(own, tile + k / P))
                    conv_dw_tile(dw + k, (ConvImage){at.x + k, at.row}, dy, c, rows, outputs, P);
            RT_NEEDS(LEFT, full < run.length);
            if (RT_VARIANT(LEFT) && full < run.length && team_has(own, tile + full / P))
                conv_dw_tile(dw + full, (ConvImage){at.x + full, at.row}, dy, c, rows, outputs,
                             run.length - full);
        }
}

RT_INLINE void conv_dw_band(real *dw, ConvImage m, const real *dy, Conv c, int rows)
{
    const int inputs = c.c / c.groups;
    const TileSplit t = tile_split(c.o / c.groups, TILE_ROWS);
    const ConvRuns run = conv_dw_runs(c);
    const int64_t filter = (int64_t)c.r * c.s * inputs, all = c.r * run.runs * run.columns;
    const RtGrid part = team_grid(t.bigs + t.smalls, all);
    const TeamRange tiles = team_rows(part, t.bigs + t.smalls), own = team_columns(part, all);
    for (int group = 0; group < c.groups; group++, m.x += inputs) {
        const int first = group * (c.o / c.groups);
        TEAM_IN(i, t.bigs + t.smalls, tiles) {
            const int o = first + tile_first(t, i);
            if (i < t.bigs)
                conv_dw_outputs(dw + o * filter, m, dy + o, c, rows, t.big, own);
            else
                conv_dw_outputs(dw + o * filter, m, dy + o, c, rows, t.small, own);
        }
    }
}

/* ----------------------------------------------------------------------------------- in place */

enum {
    DW_BLOCK = 384 * 1024 / sizeof(real)
}; /* reals of x and dy of a block of positions: a part of the L2 cache */

/* 1 x 1 without stride or padding: the positions of all samples are one row. */
RT_INLINE bool conv_dw_flat(Conv c)
{
    return c.r == 1 && c.s == 1 && c.stride_h == 1 && c.stride_w == 1 && !conv_padded(c);
}

RT_INLINE int conv_dw_most(Conv c)
{
    return DW_BLOCK / (c.c + c.o) + 1;
}

RT_INLINE void conv_dw_row(real *dw, const real *x, const real *dy, Conv c)
{
    const int positions = c.n * c.oh * c.ow, most = conv_dw_most(c);
    const int block = conv_ceil(positions, conv_ceil(positions, most));
    for (int k = 0; k < positions; k += block, c.write = false) {
        c.ow = positions - k < block ? positions - k : block;
        conv_dw_band(dw, (ConvImage){x + (int64_t)k * c.c, 0}, dy + (int64_t)k * c.o, c, 1);
    }
}

/* Rows of outputs in a block. */
RT_INLINE int conv_dw_rows(Conv c)
{
    const int64_t row = (int64_t)c.stride_h * c.w * c.c + (int64_t)c.ow * c.o;
    const int most = (int)(DW_BLOCK / row) + 1, fit = most < c.oh ? most : c.oh;
    const int rows = conv_ceil(c.oh, conv_ceil(c.oh, fit)), band = conv_band(c, 1);
    return conv_padded(c) && band < rows ? band : rows;
}

RT_INLINE void conv_dw_image(real *dw, const real *x, const real *dy, Conv c, int band)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const int64_t row = (int64_t)c.w * c.c;
    for (int oy = 0; oy < c.oh; oy += band) {
        const int rows = c.oh - oy < band ? c.oh - oy : band;
        const ConvImage m = conv_padded(c) ? conv_pad(scratch, x, c, oy, rows)
                                           : (ConvImage){x + oy * c.stride_h * row, row};
        conv_dw_band(dw, m, dy + (int64_t)oy * c.ow * c.o, c, rows);
    }
}

#include "cpu/conv_dw_few.h"
#include "cpu/conv_dw_taps.h"

/* Whether the kernel for these sizes goes over the positions of all samples at once, so that its
 * first sum can be a write. */
RT_INLINE bool conv_dw_writes(Conv c)
{
    return !(CONV_DEPTHWISE(c) && CONV_DEPTH_FITS(c)) && !conv_dw_is_few(c) &&
           ((RT_VARIANT(TAPS) && conv_dw_by_taps(c)) || conv_dw_flat(c));
}

/* dw (O, R, S, C/g) += over samples and positions of dy x.  With c.write, dw = the sum: this saves
 * a pass of large weights through memory if there are few positions.  Kernels that cannot write
 * clear dw first. */
RT_INLINE void conv2d_dw(real *restrict dw, const real *restrict x, const real *restrict dy, Conv c)
{
    const int band = conv_dw_rows(c);
    if (c.write && !conv_dw_writes(c)) {
        if (TEAM_FIRST)
            memset(dw, 0, sizeof(real) * c.o * c.r * c.s * (c.c / c.groups));
        TEAM_BARRIER;
        c.write = false;
    }
    const bool channels = CONV_DEPTHWISE(c) && CONV_DEPTH_FITS(c);
    const bool few = !channels && conv_dw_is_few(c);
    const bool by_taps = !channels && !few && conv_dw_by_taps(c),
               taps = RT_VARIANT(TAPS) && by_taps;
    const bool other = !channels && !few && !taps, flat = other && conv_dw_flat(c);
    RT_NEEDS(CHANNELS, channels);
    RT_NEEDS(FEW, few);
    /* gcc knows the number of taps inside of the image if there are few: 9 x 9 with -O2 */
    RT_NEEDS(TAPS, __builtin_constant_p(by_taps) && by_taps);
    RT_NEEDS(FLAT, flat);
    RT_NEEDS(BOXES, other && !flat && band);
    RT_NEEDS(FAR, other && !flat && !band);
    if (RT_VARIANT(CHANNELS) && channels)
        conv_depth_dw(dw, x, dy, c);
    if (RT_VARIANT(FEW) && few)
        conv_dw_few(dw, x, dy, c);
    if (RT_VARIANT(TAPS) && taps)
        conv_dw_taps(dw, x, dy, c);
    if (RT_VARIANT(FLAT) && flat)
        conv_dw_row(dw, x, dy, c);
    for (int n = 0; n < c.n && other && !flat; n++) {
        if (RT_VARIANT(BOXES) && band)
            conv_dw_image(dw, x, dy, c, band);
        if (RT_VARIANT(FAR) && !band && TEAM_FIRST)
            conv_dw_positions(dw, x, dy, c);
        x += (int64_t)c.h * c.w * c.c, dy += (int64_t)c.oh * c.ow * c.o;
    }
}

#endif
