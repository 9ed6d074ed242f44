/* conv_dx.h -- gradient of a convolution's images; behind a fused max-pool: conv_pool_dx.h. */
#ifndef CPU_CONV_DX_H
#define CPU_CONV_DX_H
#include "cpu/conv_dw.h"

/* dx += g times the output's weights p (R, run). */
RT_INLINE void conv_dx_position(real *dx, const real *p, real g, Conv c, int oy, int ox)
{
    const int inputs = c.c / c.groups;
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h,
                      ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
            if (iy >= 0 && iy < c.h && ix >= 0 && ix < c.w)
                conv_add(dx + ((int64_t)iy * c.w + ix) * c.c, p + r * CONV_RUN(c) + s * inputs, g,
                         inputs);
        }
}

RT_INLINE void conv_dx_positions(real *dx, const real *p, const real *dy, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    memset(dx, 0, sizeof(real) * c.h * c.w * c.c);
    for (int oy = 0; oy < c.oh; oy++)
        for (int ox = 0; ox < c.ow; ox++, dy += c.o)
            for (int o = 0; o < c.o; o++)
                conv_dx_position(dx + o / outputs * inputs, p + (int64_t)o * c.r * CONV_RUN(c),
                                 dy[o], c, oy, ox);
}

/* --------------------------------------------------------------------------- gradient of the input
 *     dx[iy][ix] = sum of w[r][s] dy[oy][ox] over r, s with oy stride = iy + pad - r dil, ox too
 * Positions ix that differ by the stride meet the same taps, and dy side by side: they are the rows
 * of a tile, a panel of input channels its columns.  dy lies between zeros, so that every oy, ox
 * may be read. */
RT_INLINE int conv_margin(int reach, int stride)
{
    return reach > 0 ? conv_ceil(reach, stride) : 0;
}
RT_INLINE int conv_most(int a, int b)
{
    return a > b ? a : b;
}

/* dy with its margins, told as the input of a 1x1 convolution, for conv_pad. */
RT_INLINE Conv conv_dx_frame(Conv c)
{
    const int top = conv_margin((c.r - 1) * c.dil_h - c.pad_h, c.stride_h);
    const int left = conv_margin((c.s - 1) * c.dil_w - c.pad_w, c.stride_w);
    return (Conv){.c = c.o,
                  .h = c.oh,
                  .w = c.ow,
                  .r = 1,
                  .s = 1,
                  .stride_h = 1,
                  .stride_w = 1,
                  .pad_h = top,
                  .pad_w = left,
                  .dil_h = 1,
                  .dil_w = 1,
                  .groups = 1,
                  .oh = top + conv_most(c.oh, (c.h - 1 + c.pad_h) / c.stride_h + 1),
                  .ow = left + conv_most(c.ow, (c.w - 1 + c.pad_w) / c.stride_w + 1)};
}

/* What the rows of dx have in common: the framed dy (m.x at padded row `top`), weights, mask and
 * where y lies. */
typedef struct ConvDx {
    ConvImage m;
    int top;
    const real *p;
    Mask mask;
    const real *y;
} ConvDx;

/* `count` positions ix, ix + stride ... of row iy, `lanes` channels from channel x_at of group
 * `group` on. */
RT_INLINE void conv_dx_tile(real *dx, ConvDx q, Conv c, int iy, int ix, int group, int x_at,
                            int count, int lanes)
{
    const Conv f = conv_dx_frame(c);
    const int vectors = lanes > V ? 2 : 1, inputs = c.c / c.groups, outputs = c.o / c.groups;
    const real *p = q.p + (int64_t)group * outputs * c.r * CONV_RUN(c) + x_at;
    vec t[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < count * vectors; i++)
        t[i] = v_set(0);
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            const int down = iy + c.pad_h - r * c.dil_h + f.pad_h * c.stride_h;
            const int right = ix + c.pad_w - s * c.dil_w + f.pad_w * c.stride_w;
            if (down % c.stride_h || right % c.stride_w)
                continue;
            tile_product(t, (TileRows){.count = count, .step = c.o}, vectors, outputs,
                         q.m.x + (down / c.stride_h - q.top) * q.m.row +
                             right / c.stride_w * (int64_t)c.o + group * outputs,
                         1, p + r * CONV_RUN(c) + s * inputs, c.r * CONV_RUN(c), P);
        }
    const int64_t at = ((int64_t)iy * c.w + ix) * c.c + group * inputs + x_at,
                  step = (int64_t)c.stride_w * c.c;
    RT_UNROLL
    for (int i = 0; i < count; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            const int64_t e = at + i * step + j * V;
            const int k = tile_lanes(lanes, j);
            const vec g = t[i * vectors + j];
            v_store_lanes(dx + e, q.y ? q.mask(g, v_load_lanes(q.y + e, k)) : g, k);
        }
    }
}

/* A row of dx: every phase of the stride, in tiles of neighbours within the phase. */
RT_INLINE void conv_dx_row(real *dx, ConvDx q, Conv c, int iy, int group, int x_at, int lanes)
{
    for (int phase = 0; phase < c.stride_w && phase < c.w; phase++) {
        const TileSplit t = tile_split((c.w - phase + c.stride_w - 1) / c.stride_w,
                                       lanes > V ? TILE_ROWS : TILE_ROWS_1);
        int ix = phase;
        for (int i = 0; i < t.bigs; i++, ix += t.big * c.stride_w)
            conv_dx_tile(dx, q, c, iy, ix, group, x_at, t.big, lanes);
        for (int i = 0; i < t.smalls; i++, ix += t.small * c.stride_w)
            conv_dx_tile(dx, q, c, iy, ix, group, x_at, t.small, lanes);
    }
}

RT_INLINE void conv_dx_rows(real *dx, ConvDx q, Conv c, int first, int rows)
{
    const int inputs = c.c / c.groups, full = inputs / P * P;
    for (int group = 0; group < c.groups; group++)
        for (int iy = first; iy < first + rows; iy++) {
            for (int x_at = 0; x_at < full; x_at += P)
                conv_dx_row(dx, q, c, iy, group, x_at, P);
            if (full < inputs)
                conv_dx_row(dx, q, c, iy, group, full, inputs - full);
        }
}

/* Rows of dx whose dy, with margins, fits the scratch. */
RT_INLINE int conv_dx_band(Conv c)
{
    const Conv f = conv_dx_frame(c);
    const int64_t most = (CONV_SCRATCH - 2 * V) / ((int64_t)f.ow * c.o);
    const int64_t rows = (most - 2) * c.stride_h - (int64_t)(c.r - 1) * c.dil_h + 1;
    return rows < 0 ? 0 : rows < c.h ? (int)rows : c.h;
}

/* One sample of dx, framed band by band. */
RT_INLINE void conv_dx_sample(real *dx, const real *p, const real *dy, Mask mask, const real *y,
                              Conv c, int band)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const Conv f = conv_dx_frame(c);
    for (int iy = 0; iy < c.h; iy += band) {
        const int rows = c.h - iy < band ? c.h - iy : band, reach = (c.r - 1) * c.dil_h;
        const int top = (iy + c.pad_h - reach + f.pad_h * c.stride_h) / c.stride_h;
        const int bottom = (iy + rows - 1 + c.pad_h) / c.stride_h + f.pad_h;
        const ConvDx q = {conv_pad(scratch, dy, f, top, bottom - top + 1), top, p, mask, y};
        conv_dx_rows(dx, q, c, iy, rows);
    }
}

/* dx = mask(w^T dy, y); p from conv2d_pack_dx; y (N, H, W, C) is the value whose activation is
 * undone, or NULL. */
RT_INLINE void conv2d_dx(real *restrict dx, const real *restrict p, const real *restrict dy,
                         Mask mask, const real *restrict y, Conv c)
{
    const int64_t count = (int64_t)c.h * c.w * c.c;
    const int band = conv_dx_band(c);
    for (int n = 0; n < c.n; n++, dx += count, dy += (int64_t)c.oh * c.ow * c.o) {
        const real *value = y ? y + n * count : NULL;
        if (!conv_padded(conv_dx_frame(c))) {
            conv_dx_rows(dx, (ConvDx){{dy, (int64_t)c.ow * c.o}, 0, p, mask, value}, c, 0, c.h);
        } else if (band) {
            conv_dx_sample(dx, p, dy, mask, value, c, band);
        } else {
            conv_dx_positions(dx, p, dy, c);
            if (value)
                RT_MAP(count, STORE(dx, mask(LOAD(dx), LOAD(value))));
        }
    }
}

#endif
