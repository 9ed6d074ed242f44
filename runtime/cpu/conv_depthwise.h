/* conv_depthwise.h -- convolutions with a filter of its own for each channel: lanes are channels.
 *
 *     y[n][i][j][c] = sum over taps of x[n][i'][j'][c] w[r][s][c]        w (R, S, C)
 *
 * Channels share no data, so each multiply-add needs a load of x: at most a vector a cycle, and
 * large images run at memory bandwidth.  Boxes and phases are those of conv_box.h; a tile is a few
 * adjacent positions of a row by one vector of channels.
 */
#ifndef CPU_CONV_DEPTHWISE_H
#define CPU_CONV_DEPTHWISE_H
#include "cpu/conv_forward.h"

/* ----------------------------------------------------------------------- forward, and back to x */

/* A tile: pointers to the first position's first tap, weight, output and mask value, of channel
 * 0. */
typedef struct ConvSpot {
    const real *x, *w, *bias, *value;
    real *y;
} ConvSpot;

/* Computes `count` positions of a line, all channels. */
RT_INLINE void conv_depth_tile(ConvSpot q, int count, Act act, Mask mask, ConvGather g, ConvLine v,
                               ConvLine u)
{
    const int channels = g.groups;
    const int64_t x_step = u.at_step * g.x.position, y_step = u.step * g.y.position;
    /* prefetched: the lowest row that the next tile reads */
    const real *ahead = q.x + (v.taps - 1) * v.at_tap * g.x.row + count * x_step;
    for (int k = 0; k < channels; k += V) {
        const int lanes = channels - k < V ? channels - k : V;
        const vec start = q.bias ? v_load_lanes(q.bias + k, lanes) : v_set(0);
        vec t[8];
        RT_UNROLL
        for (int i = 0; i < count; i++) {
            t[i] = start;
            __builtin_prefetch(ahead + i * x_step + k);
        }
        for (int r = 0; r < v.taps; r++)
            for (int s = 0; s < u.taps; s++) {
                const int tap = r * v.tap_step * g.across.taps + s * u.tap_step;
                const vec w = v_load_lanes(q.w + (int64_t)tap * channels + k, lanes);
                const real *x = q.x + r * v.at_tap * g.x.row + s * u.at_tap * g.x.position + k;
                RT_UNROLL
                for (int i = 0; i < count; i++)
                    t[i] = v_fma(v_load_lanes(x + i * x_step, lanes), w, t[i]);
            }
        RT_UNROLL
        for (int i = 0; i < count; i++) {
            const int64_t at = i * y_step + k;
            const vec y = act(t[i]);
            v_store_lanes(q.y + at, q.value ? mask(y, v_load_lanes(q.value + at, lanes)) : y,
                          lanes);
        }
    }
}

/* Computes one row of a box. */
RT_INLINE void conv_depth_row(ConvSpot q, Act act, Mask mask, ConvGather g, ConvLine v, ConvLine u)
{
    int left = u.count;
#define CONV_DEPTH_TILES(size)                                                                     \
    for (; left >= size; left -= size) {                                                           \
        conv_depth_tile(q, size, act, mask, g, v, u);                                              \
        q.x += size * u.at_step * g.x.position;                                                    \
        q.y += size * u.step * g.y.position;                                                       \
        q.value = q.value ? q.value + size * u.step * g.y.position : NULL;                         \
    }
    CONV_DEPTH_TILES(8)
    CONV_DEPTH_TILES(4)
    CONV_DEPTH_TILES(2)
    CONV_DEPTH_TILES(1)
#undef CONV_DEPTH_TILES
}

/* Computes the rows of one box of one sample. */
RT_INLINE void conv_depth_box(ConvSpot q, Act act, Mask mask, ConvGather g, ConvLine v, ConvLine u)
{
    q.x += v.at * g.x.row + u.at * g.x.position;
    q.w += ((int64_t)v.tap * g.across.taps + u.tap) * g.groups;
    for (int i = 0; i < v.count; i++) {
        const int64_t to = (v.first + i * v.step) * g.y.row + u.first * g.y.position;
        ConvSpot row = q;
        row.x += i * v.at_step * g.x.row, row.y += to;
        row.value = q.value ? q.value + to : NULL;
        conv_depth_row(row, act, mask, g, v, u);
    }
}

RT_INLINE void conv_depth(real *y, const real *x, const real *w, const real *bias,
                          const real *value, Act act, Mask mask, ConvGather g, int samples)
{
    const TeamRange mine = team_range(samples);
    for (int n = (int)mine.first; n < mine.end; n++) {
        const ConvSpot q = {x + n * g.x.sample, w, bias, value ? value + n * g.y.sample : NULL,
                            y + n * g.y.sample};
        CONV_EACH_BOX(g, 0, g.down.outputs, conv_depth_box(q, act, mask, g, v, u));
    }
}

/* ----------------------------------------------------------------------------------------- planes
 * One vector of channels at a time: its part of x is copied with its padding, one band of output
 * rows at a time, so that all taps of all positions are close together.  Without the copy, channels
 * a power of two apart share few sets of the L1 cache; the copy costs less than these conflicts
 * (3x3 512 @14, backward: 54 instead of 35 GF/s). */
enum {
    CONV_DEPTH_SUMS = V == 1              ? 4
                      : sizeof(vec) == 64 ? 25
                                          : 12,                    /* sums at a time */
    CONV_DEPTH_HELD = CONV_DEPTH_SUMS > 12 ? CONV_DEPTH_SUMS : 12, /* at least a kernel row */
    CONV_DEPTH_PLANE = 128 * 1024 / sizeof(real)                   /* reals of x in the L1 cache */
};
RT_INLINE int conv_depth_band(Conv c)
{
    const int height = CONV_DEPTH_PLANE / (conv_reach_w(c) * V) - (c.r - 1) * c.dil_h - 1;
    const int rows = height / c.stride_h + 1;
    return height < 0 ? 1 : rows < c.oh ? rows : c.oh;
}
RT_INLINE int64_t conv_depth_plane_count(Conv c, int rows)
{
    return (int64_t)conv_reach_w(c) * conv_reach_h(c, rows) * V;
}

/* Copies to t [row][column][V] the inputs of `rows` rows of outputs from oy on, one vector of
 * channels. */
RT_INLINE void conv_depth_plane(real *restrict t, const real *restrict x, Conv c, int oy, int rows,
                                int lanes)
{
    const int width = conv_reach_w(c), height = conv_reach_h(c, rows);
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++, t += V) {
            const int iy = oy * c.stride_h - c.pad_h + i, ix = j - c.pad_w;
            const bool there = iy >= 0 && iy < c.h && ix >= 0 && ix < c.w;
            v_store(t, there ? v_load_lanes(x + ((int64_t)iy * c.w + ix) * c.c, lanes) : v_set(0));
        }
}

/* Computes y, `rows` rows of outputs from the plane t, for `lanes` channels; weights w [taps] are
 * in registers. */
RT_INLINE void conv_depth_filter(real *y, const real *value, const real *t, const vec *w, vec start,
                                 Act act, Mask mask, Conv c, int rows, int lanes)
{
    const int64_t width = conv_reach_w(c);
    for (int oy = 0; oy < rows; oy++)
        for (int ox = 0; ox < c.ow; ox++, y += c.o, value = value ? value + c.o : NULL) {
            const real *x = t + (oy * c.stride_h * width + ox * c.stride_w) * V;
            vec sum = start;
            RT_UNROLL
            for (int r = 0; r < c.r; r++) {
                RT_UNROLL
                for (int s = 0; s < c.s; s++)
                    sum = v_fma(v_load(x + (r * c.dil_h * width + s * c.dil_w) * V), w[r * c.s + s],
                                sum);
            }
            sum = act(sum);
            v_store_lanes(y, value ? mask(sum, v_load_lanes(value, lanes)) : sum, lanes);
        }
}

/* Computes one band of one vector of channels; back: taps in reverse order. */
RT_INLINE void conv_depth_band_of(real *y, const real *value, const real *x, const real *p,
                                  vec start, bool back, Act act, Mask mask, Conv c, int oy,
                                  int rows, int lanes)
{
    const int taps = c.r * c.s;
    real t[CONV_SCRATCH] __attribute__((aligned(64)));
    vec w[CONV_DEPTH_HELD];
    RT_UNROLL
    for (int k = 0; k < taps; k++)
        w[k] = v_load_lanes(p + (int64_t)(back ? taps - 1 - k : k) * c.c, lanes);
    conv_depth_plane(t, x, c, oy, rows, lanes);
    conv_depth_filter(y, value, t, w, start, act, mask, c, rows, lanes);
}

RT_INLINE void conv_depth_planes(real *y, const real *x, const real *p, const real *bias,
                                 const real *value, bool back, Act act, Mask mask, Conv c)
{
    const int band = conv_depth_band(c);
    const RtGrid part = team_grid(c.n, conv_ceil(c.c, V));
    const TeamRange samples = team_rows(part, c.n), vectors = team_columns(part, conv_ceil(c.c, V));
    for (int n = (int)samples.first; n < samples.end; n++)
        for (int oy = 0; oy < c.oh; oy += band) {
            const int rows = c.oh - oy < band ? c.oh - oy : band;
            const int64_t to = ((int64_t)n * c.oh + oy) * c.ow * c.o;
            const real *from = x + (int64_t)n * c.h * c.w * c.c;
            for (int k = (int)vectors.first * V; k < c.c && k < vectors.end * V; k += V) {
                const int lanes = c.c - k < V ? c.c - k : V;
                conv_depth_band_of(y + to + k, value ? value + to + k : NULL, from + k, p + k,
                                   bias ? v_load_lanes(bias + k, lanes) : v_set(0), back, act, mask,
                                   c, oy, rows, lanes);
            }
        }
}

/* Whether the weights stay in registers, and a band of one row fits CONV_SCRATCH. */
#define CONV_DEPTH_PLANES(q)                                                                       \
    ((q).r * (q).s <= CONV_DEPTH_SUMS && conv_depth_plane_count(q, 1) <= CONV_SCRATCH)

/* The transposed convolution with stride 1, as a convolution with taps in reverse order. */
RT_INLINE Conv conv_depth_transposed(Conv c)
{
    Conv b = c;
    b.h = c.oh, b.w = c.ow, b.oh = c.h, b.ow = c.w;
    b.pad_h = (c.r - 1) * c.dil_h - c.pad_h, b.pad_w = (c.s - 1) * c.dil_w - c.pad_w;
    return b;
}

/* ---------------------------------------------------------------------------------- the kernels */
RT_INLINE void conv_depthwise(real *y, const real *x, const real *p, const real *bias, Act act,
                              Conv c)
{
    if (CONV_DEPTH_PLANES(c))
        conv_depth_planes(y, x, p, bias, NULL, false, act, d_identity, c);
    else
        conv_depth(y, x, p, bias, NULL, act, d_identity, conv_forward(c), c.n);
}

RT_INLINE void conv_depthwise_dx(real *dx, const real *p, const real *dy, Mask mask, const real *y,
                                 ConvGather back, Conv c)
{
    const Conv b = conv_depth_transposed(c);
    if (c.stride_h == 1 && c.stride_w == 1 && b.pad_h >= 0 && b.pad_w >= 0 && CONV_DEPTH_PLANES(b))
        conv_depth_planes(dx, dy, p, NULL, y, true, v_identity, mask, b);
    else
        conv_depth(dx, dy, p, NULL, y, v_identity, mask, back, c.n);
}

/* ------------------------------------------------------------------------ gradient of the weights
 * The sums of as many kernel rows as fit the registers are kept over all samples. */
RT_INLINE int conv_depth_rows(Conv c)
{
    const int rows = CONV_DEPTH_SUMS / c.s;
    return rows < 1 ? 1 : rows < c.r ? rows : c.r;
}
/* sum[r][s] += dy x over `rows` rows of outputs, for `kernel` kernel rows from `first` on. */
RT_INLINE void conv_depth_sums(vec *sum, const real *t, const real *dy, Conv c, int rows, int first,
                               int kernel, int lanes)
{
    const int64_t width = conv_reach_w(c);
    vec a[CONV_DEPTH_HELD];
    RT_UNROLL
    for (int k = 0; k < kernel * c.s; k++)
        a[k] = sum[k];
    for (int oy = 0; oy < rows; oy++)
        for (int ox = 0; ox < c.ow; ox++, dy += c.o) {
            const vec d = v_load_lanes(dy, lanes);
            const real *x = t + ((oy * c.stride_h + first * c.dil_h) * width + ox * c.stride_w) * V;
            RT_UNROLL
            for (int r = 0; r < kernel; r++) {
                RT_UNROLL
                for (int s = 0; s < c.s; s++)
                    a[r * c.s + s] = v_fma(v_load(x + (r * c.dil_h * width + s * c.dil_w) * V), d,
                                           a[r * c.s + s]);
            }
        }
    RT_UNROLL
    for (int k = 0; k < kernel * c.s; k++)
        sum[k] = a[k];
}

/* Computes `kernel` kernel rows from `first` on, of `lanes` channels; x, dy and dw (C, R, S) at the
 * first. */
RT_INLINE void conv_depth_dw_rows(real *restrict dw, const real *restrict x,
                                  const real *restrict dy, Conv c, int first, int kernel, int lanes)
{
    const int band = conv_depth_band(c), taps = c.r * c.s;
    real t[CONV_SCRATCH] __attribute__((aligned(64)));
    vec sum[CONV_DEPTH_HELD];
    for (int k = 0; k < kernel * c.s; k++)
        sum[k] = v_set(0);
    for (int n = 0; n < c.n; n++)
        for (int oy = 0; oy < c.oh; oy += band) {
            const int rows = c.oh - oy < band ? c.oh - oy : band;
            conv_depth_plane(t, x + (int64_t)n * c.h * c.w * c.c, c, oy, rows, lanes);
            conv_depth_sums(sum, t, dy + ((int64_t)n * c.oh + oy) * c.ow * c.o, c, rows, first,
                            kernel, lanes);
        }
    for (int k = 0; k < kernel * c.s; k++) {
        real one[V];
        memcpy(one, &sum[k], sizeof one);
        for (int i = 0; i < lanes; i++)
            dw[(int64_t)i * taps + first * c.s + k] += one[i];
    }
}

/* dw (C, R, S) += over samples and positions of dy x */
RT_INLINE void conv_depth_dw(real *restrict dw, const real *restrict x, const real *restrict dy,
                             Conv c)
{
    const int rows = conv_depth_rows(c);
    const TeamRange vectors = team_range(conv_ceil(c.c, V));
    for (int k = (int)vectors.first * V; k < c.c && k < vectors.end * V; k += V) {
        const int lanes = c.c - k < V ? c.c - k : V;
        real *to = dw + (int64_t)k * c.r * c.s;
        int first = 0;
        for (; first + rows <= c.r; first += rows)
            conv_depth_dw_rows(to, x + k, dy + k, c, first, rows, lanes);
        if (c.r % rows)
            conv_depth_dw_rows(to, x + k, dy + k, c, first, c.r % rows, lanes);
    }
}

/* Whether the sums and a band of one row fit the kernel's arrays. */
#define CONV_DEPTH_FITS(q) ((q).s <= 12 && conv_depth_plane_count(q, 1) <= CONV_SCRATCH)

#endif
