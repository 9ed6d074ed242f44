/* conv.h -- two-dimensional convolution: sizes, plain reference.
 *
 *   plain: x (N, C, H, W)   w (O, C/groups, R, S)       y (N, O, OH, OW)
 *   fast:  x (N, H, W, C)   w (O, R, S, C/groups)       y (N, OH, OW, O)
 *
 *   y[n][o][oy][ox] = sum over c, r, s of w[o][c][r][s] x[n][c][iy][ix]
 *                     iy = oy stride - pad + r dil, ix likewise
 *
 * pad is the padding before the first row and column; OH and OW imply the padding at the end.
 * Weights are packed by conv_pack.h; the fast kernels are in conv_forward.h, conv_dx.h, conv_dw.h,
 * conv_pool_forward.h, conv_pool_dx.h and conv_pool_dw.h.
 * Source: Dumoulin & Visin 2016, "A guide to convolution arithmetic for deep learning".
 */
#ifndef CPU_CONV_H
#define CPU_CONV_H
#include "cpu/tile.h"

/* Variants of these kernels that a file can need.  Sizes select one, but GCC inlines all of them
 * before it knows the sizes.  So the file of one kernel defines which are available
 * (compiler/ops/conv_variants.c); other files define nothing.  Compilation fails if the sizes
 * select one that is not available. */
#define RT_VARIANT_CHANNELS 1  /* depthwise, channels in the lanes */
#define RT_VARIANT_FLAT     2  /* 1x1, stride 1: all positions are rows of one product */
#define RT_VARIANT_BOXES    4  /* all other sizes */
#define RT_VARIANT_WIDE     8  /* forward, few products a position: tiles without a function call */
#define RT_VARIANT_LEFT     16 /* a last panel with fewer than P outputs */
#define RT_VARIANT_FEW      32 /* dw, few channels */
#define RT_VARIANT_TAPS     64 /* dw, tap by tap */
#define RT_VARIANT_FAR      128 /* dw, rows too long to be copied */
#ifndef RT_VARIANTS
#define RT_VARIANTS (-1)
#endif
#define RT_VARIANT(variant) (((RT_VARIANTS) & (RT_VARIANT_##variant)) != 0)
#ifdef __OPTIMIZE__
void rt_no_variant(void)
    __attribute__((error("RT_VARIANTS lacks a variant that the sizes of this convolution need")));
#else /* -O0 keeps the call, although the condition is false for these sizes */
#define rt_no_variant() __builtin_trap()
#endif
#define RT_NEEDS(variant, condition)                                                               \
    if (!RT_VARIANT(variant) && (condition))                                                       \
    rt_no_variant()

typedef struct Conv {
    int n, c, h, w, o, r, s, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups, oh, ow, pool;
    bool write; /* the gradient of weights is written instead of added */
    int ldy;    /* conv2d, direct, not depthwise: reals from one position of y to the next; 0: o */
} Conv;

/* ------------------------------------------------------------------------------ plain reference */

/* The loops of the definition: a body for each combination of y[at_y], x[at_x], w[at_w].  Divisions
 * are outside of the inner loops, where they would take most of the time. */
/* clang-format off */
#define CONV_PLAIN_EACH(q, ...)                                                                    \
    for (int n = 0; n < (q).n; n++)                                                                \
    for (int o = 0, inputs = (q).c / (q).groups, outputs = (q).o / (q).groups; o < (q).o; o++)     \
    for (int oy = 0, channel = o / outputs * inputs; oy < (q).oh; oy++)                            \
    for (int ox = 0; ox < (q).ow; ox++)                                                            \
    for (int i = 0; i < inputs; i++)                                                               \
    for (int r = 0; r < (q).r; r++)                                                                \
    for (int s = 0; s < (q).s; s++) {                                                              \
        const int iy = oy * (q).stride_h - (q).pad_h + r * (q).dil_h;                              \
        const int ix = ox * (q).stride_w - (q).pad_w + s * (q).dil_w;                              \
        const int64_t at_y = (((int64_t)n * (q).o + o) * (q).oh + oy) * (q).ow + ox;               \
        const int64_t at_x = (((int64_t)n * (q).c + channel + i) * (q).h + iy) * (q).w + ix;       \
        const int64_t at_w = (((int64_t)o * inputs + i) * (q).r + r) * (q).s + s;                  \
        if (iy >= 0 && iy < (q).h && ix >= 0 && ix < (q).w)                                        \
            __VA_ARGS__;                                                                           \
    }
/* clang-format on */

RT_INLINE void conv2d_plain(real *y, const real *x, const real *w, Conv c)
{
    memset(y, 0, sizeof(real) * c.n * c.o * c.oh * c.ow);
    CONV_PLAIN_EACH(c, y[at_y] += w[at_w] * x[at_x]);
}

RT_INLINE void conv2d_dx_plain(real *dx, const real *w, const real *dy, Conv c)
{
    memset(dx, 0, sizeof(real) * c.n * c.c * c.h * c.w);
    CONV_PLAIN_EACH(c, dx[at_x] += w[at_w] * dy[at_y]);
}

RT_INLINE void conv2d_dw_plain(real *dw, const real *x, const real *dy, Conv c)
{
    CONV_PLAIN_EACH(c, dw[at_w] += dy[at_y] * x[at_x]);
}

#endif
