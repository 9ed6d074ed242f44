/* bf16_conv_plain.h -- convolutions in bf16 and their gradients by their definition. */
#ifndef BF16_CONV_PLAIN_H
#define BF16_CONV_PLAIN_H
#include "cpu/bf16_pack.h"

/* x (N, H, W, C), w (O, R, S, C/g), y (N, OH, OW, O); a pixel in the padding is +0. */
RT_INLINE float bf16_conv_pixel(const bf16 *x, Conv c, int n, int iy, int ix, int channel)
{
    return iy >= 0 && iy < c.h && ix >= 0 && ix < c.w
               ? bf16_wide(x[(((int64_t)n * c.h + iy) * c.w + ix) * c.c + channel])
               : 0;
}

RT_INLINE float bf16_conv_at(const bf16 *x, const real *w, Conv c, int n, int oy, int ox, int o)
{
    const int inputs = c.c / c.groups, first = o / (c.o / c.groups) * inputs;
    Bf16Sum sum = {0};
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h,
                      ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
            const bool outside =
                iy < 0 || iy >= c.h || (!BF16_CONV_WHOLE(c) && (ix < 0 || ix >= c.w));
            for (int i = 0; i < inputs && !outside; i++)
                bf16_sum_add(&sum, bf16_conv_pixel(x, c, n, iy, ix, first + i),
                             bf16_wide(bf16_narrow(
                                 (float)w[(((int64_t)o * c.r + r) * c.s + s) * inputs + i])));
            if (!BF16_CONV_WHOLE(c) || s == c.s - 1)
                bf16_sum_end(&sum);
        }
    return sum.sum;
}
RT_INLINE void bf16_conv2d_plain(real *y, const bf16 *x, const real *w, Conv c)
{
    for (int n = 0; n < c.n; n++)
        for (int oy = 0; oy < c.oh; oy++)
            for (int ox = 0; ox < c.ow; ox++)
                for (int o = 0; o < c.o; o++)
                    *y++ = bf16_conv_at(x, w, c, n, oy, ox, o);
}

/* The output to which tap t carries an input pixel, a row or a column, or -1. */
RT_INLINE int bf16_conv_output(int at, int pad, int t, int dil, int stride, int outputs)
{
    const int up = at + pad - t * dil;
    return up >= 0 && up % stride == 0 && up / stride < outputs ? up / stride : -1;
}

RT_INLINE float bf16_conv_dx_at(const real *w, const bf16 *dy, Conv c, int n, int iy, int ix, int i)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups, first = i / inputs * outputs;
    Bf16Sum sum = {0};
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            const int oy = bf16_conv_output(iy, c.pad_h, r, c.dil_h, c.stride_h, c.oh),
                      ox = bf16_conv_output(ix, c.pad_w, s, c.dil_w, c.stride_w, c.ow);
            for (int o = 0; oy >= 0 && ox >= 0 && o < outputs; o++)
                bf16_sum_add(&sum,
                             bf16_wide(
                                 dy[(((int64_t)n * c.oh + oy) * c.ow + ox) * c.o + first + o]),
                             bf16_wide(bf16_narrow(
                                 (float)w[(((int64_t)(first + o) * c.r + r) * c.s + s) * inputs +
                                          i % inputs])));
            bf16_sum_end(&sum);
        }
    return sum.sum;
}
RT_INLINE void bf16_conv2d_dx_plain(real *dx, const real *w, const bf16 *dy, Conv c)
{
    for (int n = 0; n < c.n; n++)
        for (int iy = 0; iy < c.h; iy++)
            for (int ix = 0; ix < c.w; ix++)
                for (int i = 0; i < c.c; i++)
                    *dx++ = bf16_conv_dx_at(w, dy, c, n, iy, ix, i);
}

RT_INLINE void bf16_conv2d_dw_plain(real *dw, const bf16 *x, const bf16 *dy, Conv c)
{
    const int inputs = c.c / c.groups;
    for (int o = 0; o < c.o; o++)
        for (int r = 0; r < c.r; r++)
            for (int s = 0; s < c.s; s++)
                for (int i = 0; i < inputs; i++, dw++) {
                    Bf16Sum sum = {.sum = c.write ? 0 : (float)*dw};
                    for (int k = 0; k < c.n * c.oh * c.ow; k++)
                        bf16_sum_add(&sum,
                                     bf16_conv_pixel(x, c, k / c.ow / c.oh,
                                                     k / c.ow % c.oh * c.stride_h - c.pad_h +
                                                         r * c.dil_h,
                                                     k % c.ow * c.stride_w - c.pad_w + s * c.dil_w,
                                                     o / (c.o / c.groups) * inputs + i),
                                     bf16_wide(dy[(int64_t)k * c.o + o]));
                    bf16_sum_end(&sum);
                    *dw = sum.sum;
                }
}

#endif
