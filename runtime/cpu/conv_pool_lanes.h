/* conv_pool_lanes.h -- y = act(max_pool(conv(x) + bias)) with V samples in the lanes.
 *
 * For few input channels, and outputs that would leave much of their last vector empty (20 of 32
 * lanes used): the lanes are samples, a tile is the four corners of a window by a few output
 * channels, and weights are broadcast.  x is first transposed to (H, W, C, V), and results are
 * transposed back a row of windows at a time, which costs a few instructions a value.  The
 * activation runs between the two, where its constants have enough registers (AVX2, LeNet: 8.3
 * instead of 9.3 us a sample).  The sum of an output goes over bias and taps in the same order as
 * in conv_pool_forward.h, so the bits are the same.
 */
#ifndef CPU_CONV_POOL_LANES_H
#define CPU_CONV_POOL_LANES_H
#include "cpu/conv_forward.h"
#include "cpu/transpose.h"

#if defined(RT_AVX2)
enum { LANES_TILE = 3 }; /* outputs: 12 accumulators, 3 broadcasts, 1 vector of x; 16 registers */
#else
enum { LANES_TILE = 6 }; /* outputs: 24 accumulators and 6 broadcasts; 32 registers */
#endif
enum { LANES_ROW = 64 * 1024 / sizeof(real) }; /* reals of a row of windows: half an L2 share */

/* The first maximum of four, and its index 0..3; a NaN in the first stays. */
RT_LEAF vec pool_corners(const vec *t, int step, vec *number)
{
    const vec a = v_select_gt(t[step], t[0], t[step], t[0]),
              b = v_select_gt(t[3 * step], t[2 * step], t[3 * step], t[2 * step]);
    const vec at_a = v_select_gt(t[step], t[0], v_set(1), v_set(0));
    const vec at_b = v_select_gt(t[3 * step], t[2 * step], v_set(3), v_set(2));
    *number = v_select_gt(b, a, at_b, at_a);
    return v_select_gt(b, a, b, a);
}

/* Reals of an image row with V samples in the lanes. */
RT_LEAF int64_t lanes_row(Conv c)
{
    return (int64_t)conv_reach_w(c) * c.c * V;
}

/* Rows of outputs, an even number or all, whose image fits the scratch; 0: conv_pool_forward.h
 * fills the lanes better. */
RT_LEAF int lanes_band(Conv c)
{
    const int64_t most = CONV_SCRATCH / lanes_row(c);
    const int64_t rows = (most - conv_reach_h(c, 1)) / c.stride_h + 1;
    const bool empty = 8 * c.o < 7 * conv_ceil(c.o, V) * V;
    if (V == 1 || !empty || c.c > 4 || c.groups > 1 || c.dil_w > 1 || most < conv_reach_h(c, 2) ||
        (int64_t)(c.ow / 2) * c.o * V > LANES_ROW)
        return 0;
    return rows >= c.oh ? c.oh : (int)(rows / 2 * 2);
}

/* Copies the image rows for `rows` output rows from oy on, of V samples, with padding. */
RT_LEAF void lanes_image(real *restrict t, const real *restrict x, Conv c, int oy, int rows)
{
    const int width = conv_reach_w(c), top = oy * c.stride_h - c.pad_h;
    const int left = c.pad_w < width ? c.pad_w : width;
    const int columns = width - left < c.w ? width - left : c.w;
    for (int i = 0; i < conv_reach_h(c, rows); i++, t += lanes_row(c)) {
        const bool inside = top + i >= 0 && top + i < c.h;
        if (!inside || columns < width)
            memset(t, 0, sizeof(real) * lanes_row(c));
        if (inside)
            lanes_from_rows(t + left * c.c * V, x + (int64_t)(top + i) * c.w * c.c,
                            (int64_t)c.h * c.w * c.c, columns * c.c);
    }
}

/* Computes one window of `outputs` outputs: y, index (O, V); w: the outputs' weights in their
 * panel; x: the window's first tap. */
RT_LEAF void lanes_window(real *y, uint8_t *index, const real *x, const real *w, const real *bias,
                          Conv c, int outputs)
{
    const int64_t row = lanes_row(c), corner = (int64_t)c.stride_w * c.c * V;
    vec t[4 * TILE_MAX];
    TILE_BEGIN;
    RT_UNROLL
    for (int i = 0; i < outputs; i++)
        t[4 * i] = t[4 * i + 1] = t[4 * i + 2] = t[4 * i + 3] = bias ? v_set(bias[i]) : v_set(0);
    for (int r = 0; r < c.r; r++) {
        const real *from = x + r * c.dil_h * row;
        RT_UNROLL_4
        for (int s = 0; s < c.s * c.c; s++, from += V, w += P) {
            vec b[TILE_MAX];
            RT_UNROLL
            for (int i = 0; i < outputs; i++)
                b[i] = v_broadcast(w + i);
            RT_UNROLL
            for (int k = 0; k < 4; k++) {
                const vec a = v_load_opaque(from + (k >> 1) * c.stride_h * row + (k & 1) * corner);
                RT_UNROLL
                for (int i = 0; i < outputs; i++)
                    t[4 * i + k] = v_fma(b[i], a, t[4 * i + k]);
            }
        }
    }
    RT_UNROLL
    for (int i = 0; i < outputs; i++) {
        vec number;
        v_store(y + i * V, pool_corners(t + 4 * i, 1, &number));
        v_store_bytes(index + i * V, number, V);
    }
}

/* Computes a row of windows: y, index (OW/2, O, V). */
RT_LEAF void lanes_windows(real *y, uint8_t *index, const real *x, const real *p, const real *bias,
                           Conv c, int outputs)
{
    for (int px = 0; px < c.ow / 2; px++, x += (int64_t)2 * c.stride_w * c.c * V,
             y += (int64_t)c.o * V, index += (int64_t)c.o * V)
        lanes_window(y, index, x, p, bias, c, outputs);
}

/* Computes the outputs of one panel. */
RT_LEAF void lanes_panel(real *y, uint8_t *index, const real *x, const real *p, const real *bias,
                         Conv c, int outputs)
{
    const TileSplit k = tile_split(outputs, LANES_TILE);
    int o = 0;
    for (int i = 0; i < k.bigs; i++, o += k.big)
        lanes_windows(y + o * V, index + o * V, x, p + o, bias ? bias + o : NULL, c, k.big);
    for (int i = 0; i < k.smalls; i++, o += k.small)
        lanes_windows(y + o * V, index + o * V, x, p + o, bias ? bias + o : NULL, c, k.small);
}

/* The same as conv2d_pool, for V samples. */
RT_LEAF void conv_pool_lanes(real *restrict y, uint8_t *restrict index, const real *restrict x,
                             const real *restrict p, const real *restrict bias, Act act, Conv c,
                             int band)
{
    real image[CONV_SCRATCH] __attribute__((aligned(64)));
    real top[LANES_ROW + V * V] __attribute__((aligned(64)));
    uint8_t number[LANES_ROW + 16 * V] __attribute__((aligned(64)));
    const int count = c.ow / 2 * c.o, full = c.o / P * P;
    const int64_t panel = (int64_t)c.r * c.s * c.c * P, step = (int64_t)(c.oh / 2) * count;
    for (int oy = 0; oy + 2 <= c.oh; oy += band) {
        const int rows = c.oh - oy < band ? c.oh - oy : band;
        lanes_image(image, x, c, oy, rows);
        const TeamRange part = team_range(rows / 2); /* rows of windows */
        real *to = y + part.first * count;
        uint8_t *at = index + part.first * count;
        y += (int64_t)(rows / 2) * count, index += (int64_t)(rows / 2) * count;
        for (int i = 2 * (int)part.first; i < 2 * part.end; i += 2, to += count, at += count) {
            const real *from = image + i * c.stride_h * lanes_row(c);
            for (int o = 0; o < full; o += P)
                lanes_panel(top + o * V, number + o * V, from, p + o / P * panel,
                            bias ? bias + o : NULL, c, P);
            if (full < c.o)
                lanes_panel(top + full * V, number + full * V, from, p + full / P * panel,
                            bias ? bias + full : NULL, c, c.o - full);
            RT_MAP((int64_t)count * V, STORE(top, act(LOAD(top))));
            rows_from_lanes(to, top, step, count);
            byte_rows_from_lanes(at, number, step, count);
        }
    }
}

#endif
