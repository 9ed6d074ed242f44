/* conv_box.h -- direct convolution by boxes of outputs, forward and backward.
 *
 *     y[n][i][j] = sum over taps (r, s), channels k of x[n][i'(i, r)][j'(j, s)][k] w[r][s][k]
 *
 * A box is a rectangle of outputs that use the same taps, so that taps in the padding are skipped
 * instead of multiplied by zeros (a 3x3 kernel does 5.4 of 9 multiplications on a 4x4 image, 1 of 9
 * on 1x1).  A tile is a few positions of a box by one panel of channels; the positions can lie in
 * different rows and samples, so that small images fill whole tiles.  In the gradient of the
 * images, a box lies in one phase of the stride: its positions use the same taps and read adjacent
 * dy.  Sums go over taps and then channels in one order, independent of the boxes.
 * Source: Georganas et al. 2018, "Anatomy of high-performance deep learning convolutions on SIMD
 * architectures", for panels and tiles.
 */
#ifndef CPU_CONV_BOX_H
#define CPU_CONV_BOX_H
#include "cpu/conv.h"
#include "cpu/conv_sum.h"
#include "cpu/team.h"

RT_INLINE int64_t conv_count(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

/* ------------------------------------------------------------------------------- taps and inputs
 * One direction, rows or columns.  Forward, output o reads at tap t the input
 * o stride - pad + t dil.  Backward, outputs and inputs are exchanged: it reads
 * (o + pad - t dil) / stride if that is whole. */
typedef struct ConvAxis {
    int inputs, outputs, taps, stride, pad, dil;
    bool back;
} ConvAxis;

/* Outputs first, first + step, ... that use the same taps: `tap`, tap + tap_step, ...  The first
 * output reads its first tap at input `at`.  at_step: from this input to the next output's; at_tap:
 * to the next tap's. */
typedef struct ConvLine {
    int first, count, step, tap, taps, tap_step, at, at_step, at_tap;
} ConvLine;

/* The input that output o reads at tap t, or -1. */
RT_INLINE int conv_place(ConvAxis a, int o, int t)
{
    const int up = a.back ? o + a.pad - t * a.dil : o * a.stride - a.pad + t * a.dil;
    const int at = a.back ? up / a.stride : up;
    return up >= 0 && at < a.inputs && (!a.back || up % a.stride == 0) ? at : -1;
}

/* The taps and inputs of output o, as a line of one output.  Its taps are evenly spaced, and so are
 * its inputs. */
RT_INLINE ConvLine conv_taps(ConvAxis a, int o)
{
    ConvLine l = {o, 1, a.back ? a.stride : 1, 0, 0, 1, 0, a.back ? 1 : a.stride, 0};
    for (int t = 0; t < a.taps; t++) {
        const int at = conv_place(a, o, t);
        if (at < 0)
            continue;
        if (l.taps == 0)
            l.tap = t, l.at = at;
        else if (l.taps == 1)
            l.tap_step = t - l.tap, l.at_tap = at - l.at;
        l.taps++;
    }
    return l;
}

/* The longest line that begins at `first` and ends before `end`. */
RT_INLINE ConvLine conv_line(ConvAxis a, int first, int end)
{
    ConvLine l = conv_taps(a, first);
    for (int o = first + l.step; o < end; o += l.step, l.count++) {
        const ConvLine next = conv_taps(a, o);
        if (next.tap != l.tap || next.taps != l.taps)
            break;
    }
    return l;
}

/* ------------------------------------------------------------------------------- x and y in memory
 * Distances in reals between adjacent positions, rows and samples. */
typedef struct ConvPitch {
    int64_t position, row, sample;
} ConvPitch;

typedef struct ConvGather {
    ConvAxis down, across;
    ConvPitch x, y;
    int inputs, outputs, groups; /* channels of a group: summed over, computed */
} ConvGather;

/* One panel of one group: packed weights [tap][inputs][P], bias or NULL, how many of the P outputs
 * exist, and pointers to x, y and the mask of y at the group and panel. */
typedef struct ConvPart {
    const real *p, *bias, *x, *value;
    real *y;
    int lanes;
    bool first; /* the first panel of the group, which reads x for the first time */
} ConvPart;

/* A walk over the positions of a box: columns, then rows, then samples. */
typedef struct ConvWalk {
    int64_t x, y;            /* offsets of the current position */
    int column, row;         /* positions left in this row, rows left in this sample */
    int64_t x_row, x_sample; /* from the end of a row, of a sample, to the start of the next */
    int64_t y_row, y_sample;
} ConvWalk;

RT_INLINE ConvWalk conv_walk(ConvGather g, ConvLine v, ConvLine u, int sample)
{
    return (ConvWalk){
        sample * g.x.sample + v.at * g.x.row + u.at * g.x.position,
        sample * g.y.sample + v.first * g.y.row + u.first * g.y.position,
        u.count,
        v.count,
        v.at_step * g.x.row - u.count * u.at_step * g.x.position,
        g.x.sample - v.count * v.at_step * g.x.row,
        v.step * g.y.row - u.count * u.step * g.y.position,
        g.y.sample - v.count * v.step * g.y.row,
    };
}
RT_INLINE void conv_step(ConvWalk *w, ConvGather g, ConvLine v, ConvLine u)
{
    w->x += u.at_step * g.x.position, w->y += u.step * g.y.position;
    if (--w->column)
        return;
    w->x += w->x_row, w->y += w->y_row, w->column = u.count;
    if (--w->row)
        return;
    w->x += w->x_sample, w->y += w->y_sample, w->row = v.count;
}

/* The taps of a box as runs: taps of one kernel row that are adjacent in x are one run. */
RT_INLINE ConvRun conv_run(ConvGather g, ConvLine v, ConvLine u)
{
    const bool whole = !g.across.back && g.groups == 1 && g.across.dil == 1;
    return (ConvRun){
        v.taps,
        whole ? u.taps > 0 : u.taps,
        v.at_tap * g.x.row,
        u.at_tap * g.x.position,
        (int64_t)v.tap_step * g.across.taps * g.inputs * P,
        (int64_t)u.tap_step * g.inputs * P,
        whole ? u.taps * g.inputs : g.inputs,
    };
}

/* Applies mask or activation to the sums of `rows` rows, and stores them. */
RT_INLINE void conv_put(const vec *t, const int64_t *to, int rows, ConvPart q, Act act, Mask mask)
{
    const int vectors = q.lanes > V ? 2 : 1;
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            const int lanes = tile_lanes(q.lanes, j);
            const int64_t at = to[i] + j * V;
            const vec y = act(t[i * vectors + j]);
            v_store_lanes(q.y + at, q.value ? mask(y, v_load_lanes(q.value + at, lanes)) : y,
                          lanes);
        }
    }
}

/* Accumulators of `rows` rows, in registers.  conv_begin initialises them; conv_end stores them at
 * y + at, `step` apart. */
RT_INLINE void conv_begin(vec *t, int rows, ConvPart q)
{
    const int vectors = q.lanes > V ? 2 : 1;
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            t[i * vectors + j] =
                q.bias ? v_load_lanes(q.bias + j * V, tile_lanes(q.lanes, j)) : v_set(0);
    }
}
RT_INLINE void conv_end(const vec *t, int rows, int64_t at, int64_t step, ConvPart q, Act act,
                        Mask mask)
{
    const int vectors = q.lanes > V ? 2 : 1;
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            const int lanes = tile_lanes(q.lanes, j);
            const int64_t to = at + i * step + j * V;
            const vec y = act(t[i * vectors + j]);
            v_store_lanes(q.y + to, q.value ? mask(y, v_load_lanes(q.value + to, lanes)) : y,
                          lanes);
        }
    }
}

/* -------------------------------------------------------------------------------------- wide boxes
 * Whole tiles of adjacent positions in a row that use all columns of the kernel.  The distance of
 * positions is a literal, and sums never leave the registers.  This reduces the overhead of a tile,
 * which matters if a tile has few products (3x3 3->64: 27). */
RT_INLINE int conv_wide_rows(ConvPart q)
{
    return q.lanes > V ? TILE_ROWS : TILE_ROWS_1;
}
RT_INLINE void conv_wide_tile(const real *x, int64_t to, ConvPart q, Act act, Mask mask,
                              ConvGather g, ConvLine v)
{
    const int rows = conv_wide_rows(q), vectors = q.lanes > V ? 2 : 1, columns = g.across.taps;
    const bool whole = g.groups == 1 && g.across.dil == 1;
    const int runs = whole ? 1 : columns, length = whole ? columns * g.inputs : g.inputs;
    vec t[TILE_MAX];
    conv_begin(t, rows, q);
    for (int r = 0; r < v.taps; r++)
        for (int s = 0; s < runs; s++)
            tile_product(t, (TileRows){.count = rows, .step = g.across.stride * g.x.position},
                         vectors, length,
                         x + r * g.down.dil * g.x.row + s * g.across.dil * g.x.position, 1,
                         q.p + (int64_t)((v.tap + r) * columns + s) * g.inputs * P, P, P);
    conv_end(t, rows, to, g.y.position, q, act, mask);
}

/* Whether wide tiles are faster for this kernel, and possible in this box. */
RT_INLINE bool conv_wide(ConvPart q, ConvGather g, ConvLine u)
{
    return !g.across.back && g.down.taps * g.across.taps * g.inputs <= RT_CONV_NARROW &&
           g.across.outputs >= conv_wide_rows(q) && u.taps == g.across.taps &&
           u.count >= conv_wide_rows(q);
}

/* Computes the left part of a box and returns the rest.  The rest is empty if that is cheaper: then
 * the last tile of a row begins earlier and computes a few sums twice. */
RT_INLINE ConvLine conv_wide_box(ConvPart q, Act act, Mask mask, ConvGather g, ConvLine v,
                                 ConvLine u, int n, int end)
{
    enum { AGAIN = 200 }; /* products of a row that take as long as one more tile of conv_sum */
    const int rows = conv_wide_rows(q), missing = rows - u.count % rows;
    const bool again = missing * g.down.taps * g.across.taps * g.inputs < AGAIN;
    const int count = again ? u.count : u.count / rows * rows, last = u.count - rows;
    for (; n < end; n++)
        for (int i = 0; i < v.count; i++) {
            const real *x =
                q.x + n * g.x.sample + (v.at + i * g.down.stride) * g.x.row + u.at * g.x.position;
            const int64_t to = n * g.y.sample + (v.first + i) * g.y.row + u.first * g.y.position;
            for (int k = 0; k < count; k += rows) {
                const int first = k < last ? k : last;
                conv_wide_tile(x + first * g.across.stride * g.x.position,
                               to + first * g.y.position, q, act, mask, g, v);
            }
        }
    u.first += count, u.at += count * g.across.stride, u.count -= count;
    return u;
}

/* Computes samples n .. end - 1 of one box, in tiles of nearly equal size. */
RT_INLINE void conv_box(ConvPart q, Act act, Mask mask, ConvGather g, ConvLine v, ConvLine u, int n,
                        int end)
{
    RT_NEEDS(WIDE, conv_wide(q, g, u));
    if (RT_VARIANT(WIDE) && conv_wide(q, g, u))
        u = conv_wide_box(q, act, mask, g, v, u, n, end);
    const int vectors = q.lanes > V ? 2 : 1;
    const TileSplit k = tile_split((end - n) * v.count * u.count, vectors == 2 ? TILE_ROWS : 8);
    const ConvRun run = conv_run(g, v, u);
    const real *const p = q.p + ((int64_t)v.tap * g.across.taps + u.tap) * g.inputs * P;
    ConvWalk walk = conv_walk(g, v, u, n);
    vec start[2] = {v_set(0), v_set(0)};
    if (q.bias)
        for (int j = 0; j < vectors; j++)
            start[j] = v_load_lanes(q.bias + j * V, tile_lanes(q.lanes, j));
    for (int i = 0; i < k.bigs + k.smalls; i++) {
        const int rows = i < k.bigs ? k.big : k.small;
        const real *x[8];
        int64_t to[8];
        vec t[16];
        for (int row = 0; row < rows; row++) {
            x[row] = q.x + walk.x, to[row] = walk.y;
            conv_step(&walk, g, v, u);
        }
        conv_tile_sum(t, rows, vectors, start, x, p, &run);
        conv_put(t, to, rows, q, act, mask);
    }
}

/* Runs a body for each box (v, u) of rows from .. below - 1.  Backward, `from` is a multiple of the
 * stride. */
#define CONV_EACH_BOX(g, from_, below_, ...)                                                       \
    do {                                                                                           \
        const int rows_ = (g).down.back ? (g).down.stride : 1;                                     \
        const int columns_ = (g).across.back ? (g).across.stride : 1, end_ = (g).across.outputs;   \
        for (int i_ = (from_); i_ < (from_) + rows_ && i_ < (below_); i_++)                        \
            for (int y_ = i_; y_ < (below_);) {                                                    \
                const ConvLine v = conv_line((g).down, y_, below_);                                \
                for (int j_ = 0; j_ < columns_ && j_ < end_; j_++)                                 \
                    for (int x_ = j_; x_ < end_;) {                                                \
                        const ConvLine u = conv_line((g).across, x_, end_);                        \
                        __VA_ARGS__;                                                               \
                        x_ += u.count * u.step;                                                    \
                    }                                                                              \
                y_ += v.count * v.step;                                                            \
            }                                                                                      \
    } while (0)

/* Computes rows from .. below - 1 of samples n .. end - 1.  Backward, the caller has cleared boxes
 * without taps. */
RT_INLINE void conv_boxes(ConvPart q, Act act, Mask mask, ConvGather g, int n, int end, int from,
                          int below)
{
    CONV_EACH_BOX(g, from, below, {
        if (!g.down.back || (v.taps && u.taps))
            conv_box(q, act, mask, g, v, u, n, end);
    });
}

#endif
