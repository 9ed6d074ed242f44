/* conv_backward.h -- gradients of a convolution; those behind a fused max-pool: conv_pooled.h. */
#ifndef CPU_CONV_BACKWARD_H
#define CPU_CONV_BACKWARD_H

/* db += sum over the rows of dy (rows, O). */
RT_INLINE void channel_sum(real *restrict db, const real *restrict dy, int rows, int o)
{
    for (int i = 0; i < rows; i++)
        RT_MAP(o, STORE(db, LOAD(db) + LOAD(dy + (int64_t)i * o)));
}

/* ------------------------------------------------------------------------------- one output position at a time
 * Every tap of position (oy, ox) that lies in the image: to[i] += g from[i] over the group's channels. */
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
        const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h, ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
        if (iy >= 0 && iy < c.h && ix >= 0 && ix < c.w)
            conv_add(dw + (int64_t)(r * c.s + s) * inputs, x + ((int64_t)iy * c.w + ix) * c.c, g, inputs);
    }
}

/* dx += g times the output's weights p (R, run). */
RT_INLINE void conv_dx_position(real *dx, const real *p, real g, Conv c, int oy, int ox)
{
    const int inputs = c.c / c.groups;
    for (int r = 0; r < c.r; r++)
    for (int s = 0; s < c.s; s++) {
        const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h, ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
        if (iy >= 0 && iy < c.h && ix >= 0 && ix < c.w)
            conv_add(dx + ((int64_t)iy * c.w + ix) * c.c, p + r * CONV_RUN(c) + s * inputs, g, inputs);
    }
}

/* ---------------------------------------------------------------------------------------------------------- dense */

/* dw (O, R, S, C/g) += over samples and positions of dy x */
RT_INLINE void conv2d_dw(real *restrict dw, const real *restrict x, const real *restrict dy, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int n = 0; n < c.n; n++, x += (int64_t)c.h * c.w * c.c)
    for (int oy = 0; oy < c.oh; oy++)
    for (int ox = 0; ox < c.ow; ox++, dy += c.o)
    for (int o = 0; o < c.o; o++)
        conv_dw_position(dw + (int64_t)o * c.r * c.s * inputs, x + o / outputs * inputs, dy[o], c, oy, ox);
}

/* dx = mask(w^T dy, y); p from conv2d_pack_dx; y (N, H, W, C) is the value whose activation is undone, or NULL. */
RT_INLINE void conv2d_dx(real *restrict dx, const real *restrict p, const real *restrict dy, Mask mask,
                         const real *restrict y, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    const int64_t count = (int64_t)c.h * c.w * c.c;
    memset(dx, 0, sizeof(real) * count * c.n);
    for (int n = 0; n < c.n; n++)
    for (int oy = 0; oy < c.oh; oy++)
    for (int ox = 0; ox < c.ow; ox++, dy += c.o)
    for (int o = 0; o < c.o; o++)
        conv_dx_position(dx + n * count + o / outputs * inputs, p + (int64_t)o * c.r * CONV_RUN(c), dy[o], c, oy, ox);
    if (y)
        RT_MAP(count * c.n, STORE(dx, mask(LOAD(dx), LOAD(y))));
}

/* ------------------------------------------------------------------- through a max-pool, a position at a time */
RT_INLINE void pool_dw_positions(real *dw, const real *x, const real *dy, const uint8_t *index, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int py = 0; py < c.oh / 2; py++)
    for (int px = 0; px < c.ow / 2; px++, dy += c.o, index += c.o)
    for (int o = 0; o < c.o; o++)
        conv_dw_position(dw + (int64_t)o * c.r * c.s * inputs, x + o / outputs * inputs, dy[o], c,
                         2 * py + index[o] / 2, 2 * px + index[o] % 2);
}

RT_INLINE void pool_dx_positions(real *dx, const real *p, const real *dy, const uint8_t *index, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int py = 0; py < c.oh / 2; py++)
    for (int px = 0; px < c.ow / 2; px++, dy += c.o, index += c.o)
    for (int o = 0; o < c.o; o++)
        conv_dx_position(dx + o / outputs * inputs, p + (int64_t)o * c.r * CONV_RUN(c), dy[o], c,
                         2 * py + index[o] / 2, 2 * px + index[o] % 2);
}

#include "cpu/conv_pooled.h"

#endif
