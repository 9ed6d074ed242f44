/* bf16_conv_dw.h -- the gradient of a convolution's weights, with factors in bf16 and sums in f32.
 *
 *   x (N, H, W, C) bf16   dy (N, OH, OW, O) bf16   dw (O, R, S, C/g) f32
 *
 * Each sum has the order of bf16.h.  Its factors are the positions of all samples of the call, in
 * order (n, oy, ox).  In the padding, x is +0.  Each block of 32 positions is added to dw.
 *
 * A tile is 32 outputs by 32 channels of one tap, or of a kernel row.  For each block of at most
 * BF16_POSITIONS positions, dy of BF16_TURNED tiles of outputs is copied once for all taps, and x
 * of a tap once for these tiles.  Positions outside of the image read zeros.  If the positions of
 * each block of 32 are adjacent, bf16_conv_dw_rows copies x once for all kernel rows.
 */
#ifndef CPU_BF16_CONV_DW_H
#define CPU_BF16_CONV_DW_H
#include "cpu/bf16_conv_frame.h"

#ifndef RT_DOUBLE
/* The positions of a block: first .. first + count - 1 of all samples. */
typedef struct Bf16Positions {
    int first, count;
} Bf16Positions;

/* Finds the addresses that tap (r, s) of each position reads; `zero` in the padding. */
RT_INLINE void bf16_positions_tap(const bf16 **row, Bf16Positions q, const bf16 *x,
                                  const bf16 *zero, Conv c, int r, int s)
{
    const int64_t step = (int64_t)c.stride_w * c.c;
    int ox = q.first % c.ow, oy = q.first / c.ow % c.oh, n = q.first / c.ow / c.oh;
    const int move = s * c.dil_w - c.pad_w; /* column of x for output column 0 */
    /* outputs low .. high - 1 of a row read inside the image */
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
 * Then a tile takes channels of the whole row, because the channels of one tap, such as 3 or 20,
 * would leave lanes empty. */
RT_INLINE bool bf16_conv_rows_whole(Conv c)
{
    return BF16_CONV_WHOLE(c) && c.pad_w == 0 && (c.ow - 1) * c.stride_w + c.s <= c.w;
}
#define BF16_CONV_COLUMNS(q) ((q).c / (q).groups * (bf16_conv_rows_whole(q) ? (q).s : 1))

/* Adds the products of one block of positions, for one group.  clear: the sums begin with 0. */
RT_INLINE void bf16_conv_dw_block(real *dw, const bf16 *x, const bf16 *dy, const bf16 *zero,
                                  Bf16Positions q, Conv c, int group, bool clear)
{
    const int inputs = BF16_CONV_COLUMNS(c), outputs = c.o / c.groups,
              across = bf16_conv_rows_whole(c) ? 1 : c.s, taps = c.r * across,
              tiles = BF16_COUNT(outputs, BF16_ROWS), pairs = BF16_COUNT(inputs, BF16_PAIR),
              kept = bf16_turned_most(tiles);
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
                    for (int i = 0; i < rows; i++) { /* the next tile: 32 separate lines or more */
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

/* ------------------------------------------------------------------------ kernel rows, packed once
 * In a convolution without dilation across, the second factor of a position and a kernel row is
 * S C adjacent numbers of an image row.  A block of positions copies the image rows that it reads
 * to a frame in which each position has these numbers, and packs the frame once for all kernel
 * rows: kernel row r reads the positions r lines later.  So the 32 positions of each block of a sum
 * must be adjacent in the frame. */
enum { BF16_JOINT = 192 * 1024 }; /* most numbers of a frame */

#define BF16_JOINT_COLUMN(c) (BF16_BLOCKS((c).s * (c).c) * BF16_BLOCK)
/* Most lines and positions of the frame of `count` positions. */
#define BF16_JOINT_LINES(c, count)                                                                 \
    ((BF16_COUNT(count, (c).ow) + 2) * (c).stride_h +                                              \
     (BF16_COUNT(count, (c).oh * (c).ow) + 1) * ((c).r - 1) * (c).dil_h)
#define BF16_JOINT_POSITIONS(c, count)                                                             \
    (BF16_BLOCKS(BF16_JOINT_LINES(c, count) * (c).ow) * BF16_BLOCK)

RT_INLINE bool bf16_conv_dw_joint(Conv c, int count)
{
    return BF16_CONV_WHOLE(c) && c.r * c.s > 1 && c.ow % 2 == 0 && c.oh * c.ow % BF16_BLOCK == 0 &&
           (c.stride_h == 1 || c.ow % BF16_BLOCK == 0) &&
           BF16_JOINT_POSITIONS(c, count) * BF16_JOINT_COLUMN(c) <= BF16_JOINT;
}

/* Fills the frame of a block of positions.  at[b]: the position of the frame that kernel row 0 of
 * the first position of block b reads.  Returns the positions of the frame. */
RT_INLINE int bf16_joint_fill(bf16 *restrict frame, int *at, const bf16 *restrict x,
                              Bf16Positions q, Conv c)
{
    Bf16Conv g = bf16_conv_forward(c);
    g.lines = true;
    const int sample = c.oh * c.ow, end = q.first + q.count;
    int filled = 0;
    for (int p = q.first; p < end;) {
        const int n = p / sample, last = (n + 1) * sample < end ? (n + 1) * sample : end,
                  low = p % sample / c.ow * c.stride_h,
                  high = (last - 1 - n * sample) / c.ow * c.stride_h + (c.r - 1) * c.dil_h + 1;
        bf16_conv_fill(frame + (int64_t)filled * BF16_JOINT_COLUMN(c),
                       x + (int64_t)n * c.h * c.w * c.c, g, (int64_t)c.ow * BF16_JOINT_COLUMN(c),
                       low, high - low);
        for (; p < last; p += BF16_BLOCK) {
            const int y = p % sample / c.ow * c.stride_h - low;
            at[(p - q.first) / BF16_BLOCK] = filled + y * c.ow + p % c.ow;
        }
        filled += (high - low) * c.ow;
    }
    return filled;
}

/* Adds the products of one block of positions.  clear: the sums begin with 0. */
RT_INLINE void bf16_conv_dw_rows(real *dw, const bf16 *x, const bf16 *dy, Bf16Positions q, int most,
                                 Conv c, bool clear)
{
    const int column = BF16_JOINT_COLUMN(c), length = c.s * c.c,
              pairs = BF16_COUNT(length, BF16_PAIR), tiles = BF16_COUNT(c.o, BF16_ROWS),
              blocks = q.count / BF16_BLOCK;
    const int64_t filter = (int64_t)c.r * length,
                  panel = (int64_t)BF16_JOINT_POSITIONS(c, most) * BF16_LANES;
    bf16 frame[BF16_JOINT_POSITIONS(c, most) * column] __attribute__((aligned(64)));
    bf16 packed[BF16_JOINT_POSITIONS(c, most) * column] __attribute__((aligned(64)));
    bf16 turned[BF16_ROWS * BF16_POSITIONS] __attribute__((aligned(64)));
    float sum[BF16_TILE] __attribute__((aligned(64)));
    const bf16 *row[BF16_JOINT_POSITIONS(c, most)];
    int at[BF16_POSITIONS / BF16_BLOCK];
    int64_t a[BF16_POSITIONS / BF16_BLOCK], b[BF16_POSITIONS / BF16_BLOCK];
    const int filled = bf16_joint_fill(frame, at, x, q, c),
              whole = BF16_BLOCKS(filled) * BF16_BLOCK;
    bf16_dense_rows(row, frame, column, 0, whole);
    for (int j = 0; j < pairs; j++)
        bf16_pairs(packed + 2 * j * panel, panel, row, j * BF16_PAIR, whole, BF16_PAIR);
    const RtGrid part = team_grid(tiles, c.r * pairs);
    const TeamRange mine = team_rows(part, tiles), own = team_columns(part, c.r * pairs);
    for (int64_t t = mine.first; t < mine.end; t++) {
        const int o = (int)t * BF16_ROWS, rows = c.o - o < BF16_ROWS ? c.o - o : BF16_ROWS;
        const bf16 *dy_row[BF16_POSITIONS];
        bf16_dense_rows(dy_row, dy, c.o, q.first, q.count);
        bf16_turn(turned, dy_row, o, q.count, rows);
        for (int64_t rj = own.first; rj < own.end; rj++) {
            const int r = (int)(rj / pairs), j = (int)(rj % pairs), left = length - j * BF16_PAIR,
                      lanes = left < BF16_PAIR ? left : BF16_PAIR;
            for (int i = 0; i < blocks; i++) {
                a[i] = i * BF16_BLOCK;
                b[i] = (int64_t)(at[i] + r * c.dil_h * c.ow) * BF16_LANES;
            }
            const Bf16Runs runs = {blocks, BF16_BLOCK, a, b, 0};
            real *const to = dw + o * filter + r * length + j * BF16_PAIR;
            if (bf16_adds_in_place(rows, lanes)) {
                bf16_product_turned_runs(to, filter, clear, turned, rows, packed + 2 * j * panel,
                                         panel, lanes, &runs);
                continue;
            }
            if (!clear)
                bf16_filters(sum, to, filter, rows, lanes, true);
            bf16_product_turned_runs(sum, BF16_ROWS, clear, turned, rows, packed + 2 * j * panel,
                                     panel, lanes, &runs);
            bf16_filters(sum, to, filter, rows, lanes, false);
        }
    }
}

/* dw (O, R, S, C/g) += over samples and positions of dy x.  With c.write it is =. */
RT_INLINE void bf16_conv2d_dw(real *restrict dw, const bf16 *restrict x, const bf16 *restrict dy,
                              Conv c)
{
    const int all = c.n * c.oh * c.ow, most = bf16_positions_most(all);
    if (bf16_conv_dw_joint(c, most)) {
        for (int first = 0; first < all; first += most)
            bf16_conv_dw_rows(dw, x, dy,
                              (Bf16Positions){first, all - first < most ? all - first : most}, most,
                              c, c.write && first == 0);
        return;
    }
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
