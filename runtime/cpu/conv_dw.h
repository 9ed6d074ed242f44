/* conv_dw.h -- gradient of a convolution's weights; behind a fused max-pool: conv_pool_backward.h. */
#ifndef CPU_CONV_DW_H
#define CPU_CONV_DW_H
#include "cpu/conv_forward.h"

/* db += sum over the rows of dy (rows, O). */
RT_INLINE void channel_sum(real *restrict db, const real *restrict dy, int rows, int o)
{
    for (int i = 0; i < rows; i++)
        RT_MAP(o, STORE(db, LOAD(db) + LOAD(dy + (int64_t)i * o)));
}

/* ------------------------------------------------------------------- one output position at a time
 * Every tap of position (oy, ox) that lies in the image: to[i] += g from[i] over the group's
 * channels. */
RT_INLINE void conv_add(real *to, const real *from, real g, int count)
{
    RT_MAP(count, STORE(to, v_fma(v_set(g), LOAD(from), LOAD(to))));
}

/* dw: the output's weights (R, S, C/g) += g x.  x: the group's first channel. */
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

/* ------------------------------------------------------------------------- gradient of the weights
 * A tile is a few outputs by two vectors of a run of taps; its inner product goes over all
 * positions of the band. */
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
            v_store_lanes(to, v_load_lanes(to, k) + t[i * vectors + j], k);
        }
    }
}

/* All taps of a few outputs: whole kernel rows when they are runs, else tap by tap. */
RT_INLINE void conv_dw_outputs(real *dw, ConvImage m, const real *dy, Conv c, int rows, int outputs)
{
    const int inputs = c.c / c.groups;
    const bool whole = c.groups == 1 && c.dil_w == 1;
    const int runs = whole ? 1 : c.s, length = whole ? c.s * inputs : inputs, full = length / P * P;
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < runs; s++, dw += length) {
            const ConvImage at = {m.x + r * c.dil_h * m.row + s * c.dil_w * c.c, m.row};
            for (int k = 0; k < full; k += P)
                conv_dw_tile(dw + k, (ConvImage){at.x + k, at.row}, dy, c, rows, outputs, P);
            if (full < length)
                conv_dw_tile(dw + full, (ConvImage){at.x + full, at.row}, dy, c, rows, outputs,
                             length - full);
        }
}

RT_INLINE void conv_dw_band(real *dw, ConvImage m, const real *dy, Conv c, int rows)
{
    const int inputs = c.c / c.groups;
    const TileSplit t = tile_split(c.o / c.groups, TILE_ROWS);
    const int64_t filter = (int64_t)c.r * c.s * inputs;
    for (int group = 0; group < c.groups; group++, m.x += inputs) {
        for (int i = 0; i < t.bigs; i++, dw += t.big * filter, dy += t.big)
            conv_dw_outputs(dw, m, dy, c, rows, t.big);
        for (int i = 0; i < t.smalls; i++, dw += t.small * filter, dy += t.small)
            conv_dw_outputs(dw, m, dy, c, rows, t.small);
    }
}

/* dw (O, R, S, C/g) += over samples and positions of dy x */
RT_INLINE void conv2d_dw(real *restrict dw, const real *restrict x, const real *restrict dy, Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const int band = conv_band(c, 1);
    for (int n = 0; n < c.n; n++, x += (int64_t)c.h * c.w * c.c, dy += (int64_t)c.oh * c.ow * c.o) {
        if (!conv_padded(c))
            conv_dw_band(dw, (ConvImage){x, (int64_t)c.w * c.c}, dy, c, c.oh);
        else if (!band)
            conv_dw_positions(dw, x, dy, c);
        else
            for (int oy = 0; oy < c.oh; oy += band) {
                const int rows = c.oh - oy < band ? c.oh - oy : band;
                conv_dw_band(dw, conv_pad(scratch, x, c, oy, rows), dy + (int64_t)oy * c.ow * c.o,
                             c, rows);
            }
    }
}

#endif
