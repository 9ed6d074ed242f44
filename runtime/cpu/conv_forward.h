/* conv_forward.h -- y = act(conv(x) + bias), direct.
 *
 * A tile is a few output positions by one panel of output channels.  Channels are innermost, so the
 * taps of one kernel row are one run of S * C reals in the image and in the packed weights: one
 * long inner product for each kernel row.
 */
#ifndef CPU_CONV_FORWARD_H
#define CPU_CONV_FORWARD_H
#include "cpu/conv_gather.h"
#include "cpu/conv_pack.h"

/* An image in which each tap may be read: the sample itself, or a copy of some rows with padding.
 * x: row 0, column -pad_w; row: distance of rows in reals. */
typedef struct ConvImage {
    const real *x;
    int64_t row;
} ConvImage;

enum {
    CONV_SCRATCH = 256 * 1024 / sizeof(real)
}; /* reals of stack for copies: a core's share of the L2 cache */

/* Input columns that the taps read, and input rows that `rows` rows of outputs read. */
RT_INLINE int conv_reach_w(Conv c)
{
    return (c.ow - 1) * c.stride_w + (c.s - 1) * c.dil_w + 1;
}
RT_INLINE int conv_reach_h(Conv c, int rows)
{
    return (rows - 1) * c.stride_h + (c.r - 1) * c.dil_h + 1;
}
RT_INLINE bool conv_padded(Conv c)
{
    return c.pad_h > 0 || c.pad_w > 0 || conv_reach_w(c) > c.w || conv_reach_h(c, c.oh) > c.h;
}

/* Rows of outputs, a multiple of `unit`, whose padded input fits CONV_SCRATCH; 0: none fit. */
RT_INLINE int conv_band(Conv c, int unit)
{
    const int64_t row = (int64_t)conv_reach_w(c) * c.c, most = (CONV_SCRATCH - 2 * V) / row;
    const int64_t rows = (most - (c.r - 1) * c.dil_h - 1) / c.stride_h + 1;
    if (most < conv_reach_h(c, unit))
        return 0;
    return rows >= c.oh ? c.oh : (int)(rows / unit * unit);
}

/* Copies the input rows for `rows` output rows from oy on, with zeros as padding. */
RT_INLINE ConvImage conv_pad(real *restrict t, const real *restrict x, Conv c, int oy, int rows)
{
    const int width = conv_reach_w(c), height = conv_reach_h(c, rows),
              top = oy * c.stride_h - c.pad_h;
    const int left = c.pad_w < width ? c.pad_w : width;
    const int copied = width - left < c.w ? width - left : c.w, right = width - left - copied;
    for (int i = 0; i < height; i++, t += (int64_t)width * c.c)
        if (top + i < 0 || top + i >= c.h)
            memset(t, 0, sizeof(real) * width * c.c);
        else {
            memset(t, 0, sizeof(real) * left * c.c);
            memcpy(t + left * c.c, x + (int64_t)(top + i) * c.w * c.c, sizeof(real) * copied * c.c);
            memset(t + (left + copied) * c.c, 0, sizeof(real) * right * c.c);
        }
    return (ConvImage){t - (int64_t)height * width * c.c, (int64_t)width * c.c};
}

/* The reverse of conv_pad: adds the rows of the padded copy to the image. */
RT_INLINE void conv_unpad(real *restrict x, const real *restrict t, Conv c, int oy, int rows)
{
    const int width = conv_reach_w(c), height = conv_reach_h(c, rows),
              top = oy * c.stride_h - c.pad_h;
    const int left = c.pad_w < width ? c.pad_w : width;
    const int copied = width - left < c.w ? width - left : c.w;
    for (int i = 0; i < height; i++, t += (int64_t)width * c.c)
        if (top + i >= 0 && top + i < c.h) {
            real *to = x + (int64_t)(top + i) * c.w * c.c;
            RT_MAP((int64_t)copied * c.c, STORE(to, LOAD(to) + LOAD(t + left * c.c)));
        }
}

/* The operands of a tile: packed weights and bias of its outputs, their number, the activation. */
typedef struct ConvPanel {
    const real *p, *bias;
    int lanes;
} ConvPanel;

/* t[i][j] = bias + the taps of tile row i; x: the first row's first tap. */
RT_INLINE void conv_tile(vec *t, TileRows rows, ConvPanel q, const real *x, int64_t row, Conv c)
{
    const int vectors = q.lanes > V ? 2 : 1, inputs = c.c / c.groups;
    const bool whole = c.groups == 1 && c.dil_w == 1;
    const int runs = whole ? 1 : c.s, length = whole ? c.s * inputs : inputs;
    RT_UNROLL
    for (int i = 0; i < rows.count; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            t[i * vectors + j] =
                q.bias ? v_load_lanes(q.bias + j * V, tile_lanes(q.lanes, j)) : v_set(0);
    }
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < runs; s++)
            tile_product(t, rows, vectors, length,
                         x + r * c.dil_h * row + (int64_t)s * c.dil_w * c.c, 1,
                         q.p + (int64_t)(r * c.s + s) * inputs * P, P, P);
}

/* The same for one output position, by the definition: used if a copy of the padded image would not
 * fit. */
RT_INLINE void conv_position(vec *t, ConvPanel q, const real *x, Conv c, int oy, int ox)
{
    const int vectors = q.lanes > V ? 2 : 1, inputs = c.c / c.groups;
    for (int j = 0; j < vectors; j++)
        t[j] = q.bias ? v_load_lanes(q.bias + j * V, tile_lanes(q.lanes, j)) : v_set(0);
    for (int r = 0; r < c.r; r++)
        for (int s = 0; s < c.s; s++) {
            const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h,
                      ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
            if (iy >= 0 && iy < c.h && ix >= 0 && ix < c.w)
                tile_product(t, (TileRows){.count = 1}, vectors, inputs,
                             x + ((int64_t)iy * c.w + ix) * c.c, 1,
                             q.p + (int64_t)(r * c.s + s) * inputs * P, P, P);
        }
}

/* Runs a body for each panel q of each group; x_at, y_at: its first input and output channel. */
#define CONV_EACH_PANEL(c, packed, bias_, ...)                                                     \
    for (int group = 0; group < (c).groups; group++) {                                             \
        const int outputs = (c).o / (c).groups, x_at = group * ((c).c / (c).groups);               \
        const int64_t panel_reals = (int64_t)(c).r * (c).s * ((c).c / (c).groups) * P;             \
        const real *panel = (packed) + group * conv_ceil(outputs, P) * panel_reals;                \
        for (int first = 0; first + P <= outputs; first += P, panel += panel_reals) {              \
            const int y_at = group * outputs + first;                                              \
            const ConvPanel q = {panel, (bias_) ? (bias_) + y_at : NULL, P};                       \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        if (outputs % P) {                                                                         \
            const int y_at = group * outputs + outputs / P * P;                                    \
            const ConvPanel q = {panel, (bias_) ? (bias_) + y_at : NULL, outputs % P};             \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    }

/* ----------------------------------------------------------------------------------- the kernel */
RT_INLINE ConvGather conv_forward(Conv c)
{
    const int64_t in = c.c, out = c.ldy ? c.ldy : c.o;
    return (ConvGather){
        {c.h, c.oh, c.r, c.stride_h, c.pad_h, c.dil_h, false},
        {c.w, c.ow, c.s, c.stride_w, c.pad_w, c.dil_w, false},
        {in, c.w * in, c.h * c.w * in},
        {out, c.ow * out, c.oh * c.ow * out},
        c.c / c.groups,
        c.o / c.groups,
        c.groups,
    };
}

#include "cpu/conv_depthwise.h"

/* y = act(conv(x) + bias); p from conv2d_pack. */
RT_INLINE void conv2d(real *restrict y, const real *restrict x, const real *restrict p,
                      const real *restrict bias, Act act, Conv c)
{
    RT_NEEDS(CHANNELS, CONV_DEPTHWISE(c));
    if (RT_VARIANT(CHANNELS) && CONV_DEPTHWISE(c))
        conv_depthwise(y, x, p, bias, act, c);
    else
        conv_gather(y, x, p, bias, NULL, act, d_identity, conv_forward(c), c.n);
}

#endif
