/* bf16_conv.h -- two-dimensional convolution and its gradients, with factors in bf16 and sums in
 * f32.
 *
 *   x (N, H, W, C) bf16   y (N, OH, OW, O) bf16   w (O, R, S, C/g) f32
 *
 * Each sum has the order of bf16.h.  Its factors:
 *   forward   a sum for each run of taps (bf16_pack.h), in order.  A run begins with a new block.
 *             Taps in the padding have the factor +0.  The bias is added to the complete sum.
 *   dx        a run for each tap that reaches the pixel, in order (r, s): the outputs of the group.
 *             Taps in the padding have the factor +0.
 *   dw        the positions of all samples of the call, in order (n, oy, ox), without regard to the
 *             padding: there, x is +0.  Each block of 32 positions is added to dw.
 */
#ifndef CPU_BF16_CONV_H
#define CPU_BF16_CONV_H
#include "cpu/bf16_dense.h"

/* ------------------------------------------------------------------------------------ reference
 * x (N, H, W, C), w (O, R, S, C/g), y (N, OH, OW, O); a pixel in the padding is +0. */
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
            for (int i = 0; i < inputs; i++)
                bf16_sum_add(&sum,
                             bf16_conv_pixel(x, c, n, oy * c.stride_h - c.pad_h + r * c.dil_h,
                                             ox * c.stride_w - c.pad_w + s * c.dil_w, first + i),
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

/* The output that tap t carries an input pixel to, or -1; oy, or ox.  *reaches: the tap reaches an
 * output, perhaps one outside of the image. */
RT_INLINE int bf16_conv_output(int at, int pad, int t, int dil, int stride, int outputs,
                               bool *reaches)
{
    const int up = at + pad - t * dil;
    *reaches = up % stride == 0;
    return *reaches && up >= 0 && up / stride < outputs ? up / stride : -1;
}

RT_INLINE float bf16_conv_dx_at(const real *w, const bf16 *dy, Conv c, int n, int iy, int ix, int i)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups, first = i / inputs * outputs;
    Bf16Sum sum = {0};
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            bool down, across;
            const int oy = bf16_conv_output(iy, c.pad_h, r, c.dil_h, c.stride_h, c.oh, &down),
                      ox = bf16_conv_output(ix, c.pad_w, s, c.dil_w, c.stride_w, c.ow, &across);
            if (!down || !across)
                continue;
            for (int o = 0; o < outputs; o++)
                bf16_sum_add(&sum,
                             oy >= 0 && ox >= 0
                                 ? bf16_wide(
                                       dy[(((int64_t)n * c.oh + oy) * c.ow + ox) * c.o + first + o])
                                 : 0,
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

#ifndef RT_DOUBLE
/* ---------------------------------------------------------------------------------- the kernels */

RT_INLINE float bf16_conv_weight(const bf16 *p, int64_t k, int j)
{
    return bf16_wide(p[(k / 2 * BF16_LANES + j) * 2 + k % 2]);
}

/* y = act(conv(x) + bias); bias may be NULL.  p from bf16_conv_pack. */
RT_INLINE void bf16_conv2d(bf16 *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                           const real *restrict bias, Act act, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups, length = BF16_CONV_LENGTH(c),
              taps = BF16_CONV_WHOLE(c) ? c.s : 1;
    const int64_t panel = BF16_CONV_RUNS(c) * BF16_PANEL(length);
    const TeamRange mine = team_range((int64_t)c.n * c.oh * c.ow);
    for (int64_t at = mine.first; at < mine.end; at++)
        for (int o = 0; o < c.o; o++) {
            const int group = o / outputs, own = o % outputs, n = (int)(at / c.ow / c.oh),
                      oy = (int)(at / c.ow % c.oh), ox = (int)(at % c.ow);
            const bf16 *w = p + (group * BF16_PANELS(outputs) + own / BF16_LANES) * panel;
            Bf16Sum sum = {0};
            for (int r = 0; r < c.r; r++)
                for (int s = 0; s < c.s; s++)
                    for (int i = 0; i < inputs; i++) {
                        bf16_sum_add(&sum,
                                     bf16_conv_pixel(x, c, n,
                                                     oy * c.stride_h - c.pad_h + r * c.dil_h,
                                                     ox * c.stride_w - c.pad_w + s * c.dil_w,
                                                     group * inputs + i),
                                     bf16_conv_weight(w + (r * c.s + s) / taps * BF16_PANEL(length),
                                                      s % taps * inputs + i, own % BF16_LANES));
                        if (s % taps * inputs + i + 1 == length)
                            bf16_sum_end(&sum);
                    }
            v_store_bf16_n(y + at * c.o + o, act(v_set(sum.sum + (bias ? bias[o] : 0))), 1);
        }
}

/* dx = mask(w^T dy, y); p from bf16_conv_pack_back.  y (N, H, W, C): the output of the activation
 * whose derivative `mask` applies, or NULL. */
RT_INLINE void bf16_conv2d_dx(bf16 *restrict dx, const bf16 *restrict p, const bf16 *restrict dy,
                              Mask mask, const bf16 *restrict y, Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    const int64_t panel = (int64_t)c.r * c.s * BF16_PANEL(outputs);
    const TeamRange mine = team_range((int64_t)c.n * c.h * c.w);
    for (int64_t at = mine.first; at < mine.end; at++)
        for (int i = 0; i < c.c; i++) {
            const int group = i / inputs, own = i % inputs, n = (int)(at / c.w / c.h);
            const bf16 *w = p + (group * BF16_PANELS(inputs) + own / BF16_LANES) * panel;
            Bf16Sum sum = {0};
            for (int tap = 0; tap < c.r * c.s; tap++) {
                bool down, across;
                const int oy = bf16_conv_output((int)(at / c.w % c.h), c.pad_h, tap / c.s, c.dil_h,
                                                c.stride_h, c.oh, &down),
                          ox = bf16_conv_output((int)(at % c.w), c.pad_w, tap % c.s, c.dil_w,
                                                c.stride_w, c.ow, &across);
                for (int o = 0; down && across && o < outputs; o++)
                    bf16_sum_add(&sum,
                                 oy >= 0 && ox >= 0
                                     ? bf16_wide(dy[(((int64_t)n * c.oh + oy) * c.ow + ox) * c.o +
                                                    group * outputs + o])
                                     : 0,
                                 bf16_conv_weight(w + tap * BF16_PANEL(outputs), o,
                                                  own % BF16_LANES));
                bf16_sum_end(&sum);
            }
            const vec z = v_set(sum.sum);
            v_store_bf16_n(dx + at * c.c + i, y ? mask(z, v_set(bf16_wide(y[at * c.c + i]))) : z,
                           1);
        }
}

/* dw (O, R, S, C/g) += over samples and positions of dy x.  With c.write it is =. */
RT_INLINE void bf16_conv2d_dw(real *restrict dw, const bf16 *restrict x, const bf16 *restrict dy,
                              Conv c)
{
    if (TEAM_FIRST)
        bf16_conv2d_dw_plain(dw, x, dy, c);
}
#endif

#endif
