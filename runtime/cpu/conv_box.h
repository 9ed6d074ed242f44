/* conv_box.h -- direct convolution by boxes of outputs, forward and back.
 *
 *     y[n][i][j] = sum over taps (r, s), channels k of x[n][i'(i, r)][j'(j, s)][k] w[r][s][k]
 *
 * Taps that fall into the padding are left out, not multiplied by zeros: outputs are taken in boxes
 * that meet the same taps (a 3x3 kernel on a 4x4 image does 5.4 multiplications of 9, on 1x1 one).
 * A tile is a few positions of a box, which may lie in different rows and samples, by one panel of
 * channels: small images fill whole tiles.  For the gradient of the images the boxes are those of
 * one phase of the stride, whose positions meet the same taps and read dy side by side.
 * Sums go over taps and then channels in one order, whatever the boxes.
 * Source: Georganas et al. 2018, "Anatomy of high-performance deep learning convolutions on SIMD
 * architectures", for panels and tiles.
 */
#ifndef CPU_CONV_BOX_H
#define CPU_CONV_BOX_H
#include "cpu/conv_sum.h"

RT_INLINE int64_t conv_count(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

/* ------------------------------------------------------------------------- which taps, which inputs
 * One direction, rows or columns.  Forward, output o meets at tap t the input o stride - pad + t dil;
 * back, where outputs and inputs have changed places, (o + pad - t dil) / stride if that is whole. */
typedef struct ConvAxis {
    int inputs, outputs, taps, stride, pad, dil;
    bool back;
} ConvAxis;

/* Outputs first, first + step, ... that meet the same taps: `tap`, tap + tap_step, ..., the first
 * of them at input `at`.  The next output lies at_step inputs on, the next tap at_tap. */
typedef struct ConvLine {
    int first, count, step, tap, taps, tap_step, at, at_step, at_tap;
} ConvLine;

/* The input that output o meets at tap t, or -1. */
RT_INLINE int conv_place(ConvAxis a, int o, int t)
{
    const int up = a.back ? o + a.pad - t * a.dil : o * a.stride - a.pad + t * a.dil;
    const int at = a.back ? up / a.stride : up;
    return up >= 0 && at < a.inputs && (!a.back || up % a.stride == 0) ? at : -1;
}

/* What output o meets, as a line of one.  Its taps are evenly spaced and so are their inputs. */
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

/* ------------------------------------------------------------------------------------ what is read
 * x and y are told by the distances in reals of neighbouring positions, rows and samples. */
typedef struct ConvPitch {
    int64_t position, row, sample;
} ConvPitch;

typedef struct ConvGather {
    ConvAxis down, across;
    ConvPitch x, y;
    int inputs, outputs, groups; /* channels of a group that are summed over, and made */
} ConvGather;

/* One panel of one group: packed weights [tap][inputs][P], bias or NULL, how many of its P outputs
 * there are, and the places of x, y and of y's mask at the group and panel. */
typedef struct ConvPart {
    const real *p, *bias, *x, *value;
    real *y;
    int lanes;
    bool first; /* of the group: it reads x for the first time */
} ConvPart;

/* A walk over the positions of a box: columns, then rows, then samples. */
typedef struct ConvWalk {
    int64_t x, y;            /* of the position at hand */
    int column, row;         /* positions left in this row, rows left in this sample */
    int64_t x_row, x_sample; /* from the end of a row, of a sample, to the next one's begin */
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

/* How the taps of a box lie.  Taps of one kernel row that lie side by side in x are one run. */
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

/* `rows` sums on their way out. */
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

/* Accumulators of `rows` rows, in registers: their start, and their way out to y + at, `step` apart. */
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
 * Whole tiles of neighbours in a row that meet all columns of the kernel: their distance is a
 * literal, their sums never leave the registers.  What a tile costs beside its products matters
 * where there are few (3x3 3->64: 27 a tile). */
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

/* Is it worth it for this kernel, and possible in this box? */
RT_INLINE bool conv_wide(ConvPart q, ConvGather g, ConvLine u)
{
    return !g.across.back && g.down.taps * g.across.taps * g.inputs <= RT_CONV_NARROW &&
           g.across.outputs >= conv_wide_rows(q) && u.taps == g.across.taps &&
           u.count >= conv_wide_rows(q);
}

/* The left part of a box; returns what is left.  Where it is cheaper, that is nothing: the last tile
 * of a row begins early and makes a few sums once more. */
RT_INLINE ConvLine conv_wide_box(ConvPart q, Act act, Mask mask, ConvGather g, ConvLine v,
                                 ConvLine u, int n, int end)
{
    enum { AGAIN = 200 }; /* products of a row that cost as much as a tile of conv_sum on its own */
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

/* Samples n .. end of one box, in tiles of sizes as equal as can be. */
RT_INLINE void conv_box(ConvPart q, Act act, Mask mask, ConvGather g, ConvLine v, ConvLine u, int n,
                        int end)
{
    RT_NEEDS(WIDE, conv_wide(q, g, u));
    if (RT_WAY(WIDE) && conv_wide(q, g, u))
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

/* Does something for every box (v, u) of the rows from .. below; back, `from` is a multiple of the
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

/* Rows from .. below of samples n .. end.  Back, boxes without taps have been cleared before. */
RT_INLINE void conv_boxes(ConvPart q, Act act, Mask mask, ConvGather g, int n, int end, int from,
                          int below)
{
    CONV_EACH_BOX(g, from, below, {
        if (!g.down.back || (v.taps && u.taps))
            conv_box(q, act, mask, g, v, u, n, end);
    });
}

#endif
