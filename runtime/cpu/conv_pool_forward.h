/* conv_pool_forward.h -- y = act(max_pool(conv(x) + bias)), direct.
 *
 * Pooling comes before the activation, which is monotone: the four corners of a window are four
 * rows of one tile, so that pre-activations are never stored and the activation runs on a quarter
 * of the values.  Where the activation saturates, the true maximum wins instead of the first of
 * equal values: values are the same, and gradients are 0 there.  Few channels, and outputs that
 * fill their vectors badly, use conv_pool_lanes.h.
 */
#ifndef CPU_CONV_POOL_FORWARD_H
#define CPU_CONV_POOL_FORWARD_H
#include "cpu/conv_pool_lanes.h"

RT_INLINE void conv_pool_store(real *y, uint8_t *index, const vec *t, int windows, int lanes,
                               Act act, int64_t step)
{
    const int vectors = lanes > V ? 2 : 1;
    RT_UNROLL
    for (int i = 0; i < windows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            vec number;
            const vec top = pool_corners(t + i * 4 * vectors + j, vectors, &number);
            v_store_lanes(y + i * step + j * V, act(top), tile_lanes(lanes, j));
            v_store_bytes(index + i * step + j * V, number, tile_lanes(lanes, j));
        }
    }
}

/* Computes a row of windows of one panel.  x: the first tap of the first window's upper left
 * corner. */
RT_INLINE void conv_pool_row(real *y, uint8_t *index, ConvPanel q, const real *x, int64_t row,
                             Act act, Conv c)
{
    const TileSplit k = tile_split(c.ow / 2, q.lanes > V ? TILE_WINDOWS : TILE_ROWS_1 / 4);
    const int64_t step = (int64_t)c.stride_w * c.c, down = (int64_t)c.stride_h * row;
    vec t[TILE_MAX];
    for (int i = 0; i < k.bigs;
         i++, x += 2 * k.big * step, y += (int64_t)k.big * c.o, index += (int64_t)k.big * c.o) {
        conv_tile(t, (TileRows){4 * k.big, step, down, true}, q, x, row, c);
        conv_pool_store(y, index, t, k.big, q.lanes, act, c.o);
    }
    for (int i = 0; i < k.smalls; i++, x += 2 * k.small * step, y += (int64_t)k.small * c.o,
             index += (int64_t)k.small * c.o) {
        conv_tile(t, (TileRows){4 * k.small, step, down, true}, q, x, row, c);
        conv_pool_store(y, index, t, k.small, q.lanes, act, c.o);
    }
}

/* Computes `rows` rows of outputs before pooling, an even number, from row oy on. */
RT_INLINE void conv_pool_rows(real *y, uint8_t *index, ConvPanel q, ConvImage m, Act act, Conv c,
                              int oy, int rows)
{
    for (int i = 0; i + 2 <= rows; i += 2) {
        const int64_t at = (int64_t)((oy + i) / 2) * (c.ow / 2) * c.o;
        conv_pool_row(y + at, index + at, q, m.x + (int64_t)i * c.stride_h * m.row, m.row, act, c);
    }
}

RT_INLINE void conv_pool_positions(real *y, uint8_t *index, ConvPanel q, const real *x, Act act,
                                   Conv c)
{
    const int vectors = q.lanes > V ? 2 : 1;
    vec t[8];
    for (int py = 0; py < c.oh / 2; py++)
        for (int px = 0; px < c.ow / 2; px++) {
            for (int i = 0; i < 4; i++)
                conv_position(t + i * vectors, q, x, c, 2 * py + i / 2, 2 * px + i % 2);
            const int64_t at = ((int64_t)py * (c.ow / 2) + px) * c.o;
            conv_pool_store(y + at, index + at, t, 1, q.lanes, act, c.o);
        }
}

/* y (N, OH/2, OW/2, O) = act(max_pool(conv(x) + bias)); index: the corner of each window that won,
 * 0..3 in row-major order. */
RT_INLINE void conv2d_pool(real *restrict y, uint8_t *restrict index, const real *restrict x,
                           const real *restrict p, const real *restrict bias, Act act, Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const int64_t outputs_a_sample = (int64_t)(c.oh / 2) * (c.ow / 2) * c.o;
    const int band = conv_band(c, 2), lanes = lanes_band(c);
    int n = 0;
    for (; lanes && n + V <= c.n; n += V, x += (int64_t)V * c.h * c.w * c.c,
                                  y += V * outputs_a_sample, index += V * outputs_a_sample)
        conv_pool_lanes(y, index, x, p, bias, act, c, lanes);
    const TeamRange part = team_range(c.n - n); /* of the samples that are left */
    x += part.first * c.h * c.w * c.c, y += part.first * outputs_a_sample;
    index += part.first * outputs_a_sample;
    for (int64_t i = part.first; i < part.end;
         i++, x += (int64_t)c.h * c.w * c.c, y += outputs_a_sample, index += outputs_a_sample) {
        if (!conv_padded(c)) {
            const ConvImage m = {x, (int64_t)c.w * c.c};
            CONV_EACH_PANEL(c, p, bias,
                            conv_pool_rows(y + y_at, index + y_at, q,
                                           (ConvImage){m.x + x_at, m.row}, act, c, 0, c.oh))
        } else if (!band) {
            CONV_EACH_PANEL(c, p, bias,
                            conv_pool_positions(y + y_at, index + y_at, q, x + x_at, act, c))
        } else
            for (int oy = 0; oy < c.oh; oy += band) {
                const int rows = c.oh - oy < band ? c.oh - oy : band;
                const ConvImage m = conv_pad(scratch, x, c, oy, rows);
                CONV_EACH_PANEL(c, p, bias,
                                conv_pool_rows(y + y_at, index + y_at, q,
                                               (ConvImage){m.x + x_at, m.row}, act, c, oy, rows))
            }
    }
}

#endif
