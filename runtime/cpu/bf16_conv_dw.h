/* bf16_conv_dw.h -- the gradient of a convolution's weights, with factors in bf16 and sums in f32.
 *
 *   x (N, H, W, C) bf16   dy (N, OH, OW, O) bf16   dw (O, R, S, C/g) f32
 *
 * Each sum has the order of bf16.h.  Its factors are the positions of all samples of the call, in
 * order (n, oy, ox).  In the padding, x is +0.  Each block of 32 positions is added to dw.
 *
 * A tile is 32 outputs by 32 channels of one tap, or of a kernel row.  For each block of at most
 * BF16_POSITIONS positions, dy of BF16_TURNED tiles of outputs is copied once for all taps, and x
 * of a tap once for these tiles.  Positions outside of the image read zeros.
 */
#ifndef CPU_BF16_CONV_DW_H
#define CPU_BF16_CONV_DW_H
#include "cpu/bf16_dense.h"

#ifndef RT_DOUBLE
/* The positions of a block: first .. first + count - 1 of all samples. */
typedef struct Bf16Positions {
    int first, count;
} Bf16Positions;

/* Where tap (r, s) of each position lies; zero: in the padding. */
RT_INLINE void bf16_positions_tap(const bf16 **row, Bf16Positions q, const bf16 *x,
                                  const bf16 *zero, Conv c, int r, int s)
{
    const int64_t step = (int64_t)c.stride_w * c.c;
    int ox = q.first % c.ow, oy = q.first / c.ow % c.oh, n = q.first / c.ow / c.oh;
    const int move = s * c.dil_w - c.pad_w; /* the first and the last output inside, by stride */
    const int low = move < 0 ? BF16_COUNT(-move, c.stride_w) : 0,
              high = c.w - move > 0 ? BF16_COUNT(c.w - move, c.stride_w) : 0;
    for (int p = 0; p < q.count; ox = 0) {
        const int y = oy * c.stride_h - c.pad_h + r * c.dil_h,
                  left = q.count - p < c.ow - ox ? q.count - p : c.ow - ox, end = ox + left;
        const bool inside = y >= 0 && y < c.h;
        const bf16 *at = x + (((int64_t)n * c.h + y) * c.w + move) * c.c + ox * step;
        for (; ox < end; ox++, at += step)
            row[p++] = inside && ox >= low && ox < high ? at : zero;
        if (++oy == c.oh)
            oy = 0, n++;
    }
}

/* Copies a tile between dw, whose rows are `filter` apart, and sums. */
RT_INLINE void bf16_filters(float *sum, real *dw, int64_t filter, int rows, int channels, bool load)
{
    for (int i = 0; i < rows; i++, dw += filter)
        for (int j = 0; j < channels; j += V) {
            const int lanes = tile_lanes(channels - j, 0);
            if (load)
                v_store(sum + i * BF16_ROWS + j, v_load_lanes(dw + j, lanes));
            else
                v_store_lanes(dw + j, v_load(sum + i * BF16_ROWS + j), lanes);
        }
}

/* Whether the taps of a kernel row are adjacent, and none of them lies left or right of the image.
 * Then the channels of a tile are those of the row: 3 or 20 channels of a tap leave lanes empty. */
RT_INLINE bool bf16_conv_rows_whole(Conv c)
{
    return BF16_CONV_WHOLE(c) && c.pad_w == 0 && (c.ow - 1) * c.stride_w + c.s <= c.w;
}
#define BF16_CONV_COLUMNS(q) ((q).c / (q).groups * (bf16_conv_rows_whole(q) ? (q).s : 1))

/* One block of positions, for one group.  clear: the sums begin with 0. */
RT_INLINE void bf16_conv_dw_block(real *dw, const bf16 *x, const bf16 *dy, const bf16 *zero,
                                  Bf16Positions q, Conv c, int group, bool clear)
{
    const int inputs = BF16_CONV_COLUMNS(c), outputs = c.o / c.groups,
              across = bf16_conv_rows_whole(c) ? 1 : c.s, taps = c.r * across,
              tiles = BF16_COUNT(outputs, BF16_ROWS), pairs = BF16_COUNT(inputs, BF16_PAIR),
              kept = tiles < BF16_TURNED ? tiles : BF16_TURNED;
    const int64_t filter = (int64_t)taps * inputs;
    const RtGrid part = team_grid(tiles, taps);
    const TeamRange mine = team_rows(part, tiles), own = team_columns(part, taps);
    bf16 turned[kept * BF16_ROWS * BF16_POSITIONS] __attribute__((aligned(64)));
    bf16 packed[BF16_PAIR * BF16_POSITIONS] __attribute__((aligned(64)));
    float sum[BF16_TILE] __attribute__((aligned(64)));
    const bf16 *row[BF16_POSITIONS];
    for (int64_t from = mine.first; from < mine.end; from += kept) {
        const int64_t end = from + kept < mine.end ? from + kept : mine.end;
        bf16_dense_rows(row, dy, c.o, q.first, q.count);
        for (int64_t t = from; t < end; t++) {
            const int o = (int)t * BF16_ROWS;
            bf16_turn(turned + (t - from) * BF16_ROWS * BF16_POSITIONS, row, group * outputs + o,
                      q.count, outputs - o < BF16_ROWS ? outputs - o : BF16_ROWS);
        }
        for (int64_t tap = own.first; tap < own.end; tap++) {
            bf16_positions_tap(row, q, x, zero, c, (int)tap / across, (int)tap % across);
            for (int j = 0; j < pairs; j++) {
                const int channel = j * BF16_PAIR,
                          lanes = inputs - channel < BF16_PAIR ? inputs - channel : BF16_PAIR;
                bf16_pairs(packed, BF16_POSITIONS * BF16_LANES, row, group * inputs + channel,
                           q.count, lanes);
                for (int64_t t = from; t < end; t++) {
                    const int o = group * outputs + (int)t * BF16_ROWS,
                              left = outputs - (int)t * BF16_ROWS,
                              rows = left < BF16_ROWS ? left : BF16_ROWS;
                    const bf16 *own_turned = turned + (t - from) * BF16_ROWS * BF16_POSITIONS;
                    real *to = dw + o * filter + tap * inputs + channel;
                    if (bf16_adds_in_place(rows, lanes)) {
                        bf16_product_turned(to, filter, clear, own_turned, rows, packed, lanes,
                                            q.count);
                        continue;
                    }
                    if (!clear)
                        bf16_filters(sum, to, filter, rows, lanes, true);
                    for (int i = 0; i < rows; i++) { /* the next tile, 32 lines or more apart */
                        v_fetch_to_write(to + i * filter + BF16_PAIR);
                        v_fetch_to_write(to + i * filter + BF16_PAIR + BF16_LANES);
                    }
                    bf16_product_turned(sum, BF16_ROWS, clear, own_turned, rows, packed, lanes,
                                        q.count);
                    bf16_filters(sum, to, filter, rows, lanes, false);
                }
            }
        }
    }
}

/* dw (O, R, S, C/g) += over samples and positions of dy x.  With c.write it is =. */
RT_INLINE void bf16_conv2d_dw(real *restrict dw, const bf16 *restrict x, const bf16 *restrict dy,
                              Conv c)
{
    const int all = c.n * c.oh * c.ow, most = bf16_positions_most(all);
    bf16 zero[c.c * c.s];
    memset(zero, 0, sizeof zero);
    for (int first = 0; first < all; first += most) {
        const Bf16Positions q = {first, all - first < most ? all - first : most};
        for (int group = 0; group < c.groups; group++)
            bf16_conv_dw_block(dw, x, dy, zero, q, c, group, c.write && first == 0);
    }
}
#endif

#endif
