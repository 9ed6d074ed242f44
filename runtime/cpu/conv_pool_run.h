/* conv_pool_run.h -- what the gradients of a convolution with a fused 2x2 max-pool share.
 *
 * Three of four gradients before the pool are zero, so the sums run over pooled outputs instead of
 * positions: a quarter of the textbook work.  For each kernel row, an output adds to, or reads, a
 * run of S * C reals that are contiguous in the image and in the weights.  The runs of a few kernel
 * rows stay in registers while a list of outputs is processed.  Outputs whose gradient is zero are
 * left out; after a relu these are many (lenet_relu on MNIST: a share of 0.3).
 *
 * A frame is the image with its padding, in a layout in which every run starts at a multiple of 32
 * bytes: rows are padded to whole lines, and odd columns have a second copy if a pixel does not
 * fill its last line.  A load at any other address costs twice as much (12.6 instead of 8.4 cycles
 * for a run of 7 vectors of 64 bytes, Zen 4).  A load at 32 bytes costs hardly more than at 64 on
 * Zen 4 (8.7), but a quarter more on a Xeon: runs that start in the middle of a line are read from
 * the second half of the line on.
 */
#ifndef CPU_CONV_POOL_RUN_H
#define CPU_CONV_POOL_RUN_H
#include "cpu/conv_dx.h"
#include "cpu/half.h"

#if defined(RT_AVX2)
enum { RUN_MAX = 13 }; /* vectors of sums in 16 registers, beside a broadcast and spares */
#else
enum { RUN_MAX = 28 };
#endif

/* `rows` runs of `vectors` vectors, of which the last has `lanes` lanes.  head: a half vector comes
 * first, for runs that start in the middle of a line. */
typedef struct Run {
    int rows, vectors, lanes;
    bool head;
} Run;
/* Whether the last vector is a half, which takes half the time: it has few lanes.  LeNet's runs of
 * 100 are seven vectors; with the half, their two gradients gain 5 %. */
RT_LEAF bool run_half(Run u)
{
    return V / VH == 2 && u.lanes <= VH && !u.head;
}
RT_LEAF int run_wholes(Run u)
{
    return run_half(u) || u.head ? u.vectors - 1 : u.vectors;
}
RT_LEAF int run_lanes(Run u, int j)
{
    return j + 1 < u.vectors - u.head ? V : u.lanes;
}
/* The offsets of the whole vectors, and of the half. */
RT_LEAF int run_first(Run u)
{
    return u.head ? VH : 0;
}
RT_LEAF int run_half_at(Run u)
{
    return u.head ? 0 : (u.vectors - 1) * V;
}

/* The sums of some runs. */
typedef struct RunSum {
    vec t[RUN_MAX];
    hvec h[RUN_MAX];
} RunSum;

RT_LEAF void run_load(RunSum *s, const real *y, int64_t row, Run u)
{
    RT_UNROLL
    for (int i = 0; i < u.rows; i++, y += row) {
        RT_UNROLL
        for (int j = 0; j < run_wholes(u); j++)
            s->t[i * u.vectors + j] = v_load_lanes(y + run_first(u) + j * V, run_lanes(u, j));
        if (run_half(u) || u.head)
            s->h[i] = h_load_n(y + run_half_at(u), u.head ? VH : u.lanes);
    }
}
RT_LEAF void run_store(real *y, const RunSum *s, int64_t row, Run u)
{
    RT_UNROLL
    for (int i = 0; i < u.rows; i++, y += row) {
        RT_UNROLL
        for (int j = 0; j < run_wholes(u); j++)
            v_store_lanes(y + run_first(u) + j * V, s->t[i * u.vectors + j], run_lanes(u, j));
        if (run_half(u) || u.head)
            h_store_n(y + run_half_at(u), s->h[i], u.head ? VH : u.lanes);
    }
}

/* s += g times the runs at `from`; reads whole vectors, up to V - 1 reals after a run. */
RT_LEAF void run_add(RunSum *s, real g, const real *from, int64_t row, Run u)
{
    const vec a = v_set(g);
    RT_UNROLL
    for (int i = 0; i < u.rows; i++, from += row) {
        RT_UNROLL
        for (int j = 0; j < run_wholes(u); j++)
            s->t[i * u.vectors + j] =
                v_fma(a, v_load(from + run_first(u) + j * V), s->t[i * u.vectors + j]);
        if (run_half(u) || u.head)
            s->h[i] = h_fma(h_low(a), h_load(from + run_half_at(u)), s->h[i]);
    }
}

/* Moves the sums of runs with a head to the positions that they have without one. */
RT_LEAF void run_settle(RunSum *s, Run u)
{
#ifdef RT_HALVES
    RT_UNROLL
    for (int i = 0; i < u.rows; i++) {
        vec before = h_upper(s->h[i]);
        RT_UNROLL
        for (int j = 0; j < u.vectors - 1; j++) {
            vec *const t = s->t + i * u.vectors + j;
            const vec next = *t;
            *t = h_between(before, next);
            before = next;
        }
        s->h[i] = h_high(before);
    }
#else
    (void)s, (void)u;
#endif
}

/* Runs longer than the registers are divided into `parts` of `vectors` vectors; the last part has
 * `last` vectors, and its last vector `lanes` lanes. */
typedef struct RunSplit {
    int parts, vectors, last, lanes;
} RunSplit;
RT_LEAF RunSplit run_split(Conv c)
{
    const int length = c.s * c.c, all = conv_ceil(length, V), parts = conv_ceil(all, RUN_MAX),
              vectors = conv_ceil(all, parts);
    return (RunSplit){parts, vectors, all - (parts - 1) * vectors, length - (all - 1) * V};
}

/* Kernel rows whose runs fit the registers at the same time. */
RT_LEAF int run_rows(Conv c)
{
    const RunSplit s = run_split(c);
    return s.parts > 1 ? 1 : RUN_MAX / s.vectors;
}

/* ------------------------------------------------------------------------------------ the frame
 * row: reals from one image row to the next.  odd: reals from an odd column to its copy; 0: no
 * copy.  band: rows of outputs whose frame fits FRAME, an even number, or all; 0: not even two fit.
 * needed: the image in place is not enough.
 *
 * FRAME is larger than an L1 cache, because shorter lists then cost less for each sweep:
 * lenet_relu's conv2d_pool_dw takes 5 % less than with 24 KB, on a Xeon with an L1 of 48 KB. */
#if defined(RT_AVX512) || defined(RT_WIDE)
enum { FRAME = 40 * 1024 / sizeof(real) };
#else
enum { FRAME = 24 * 1024 / sizeof(real) };
#endif
typedef struct PoolFrame {
    int64_t row, odd;
    int band;
    bool needed;
} PoolFrame;

RT_LEAF PoolFrame pool_frame(Conv c)
{
    const int64_t step = (int64_t)c.stride_w * c.c, width = (int64_t)conv_reach_w(c) * c.c;
    const bool aligned = 2 * step % VH == 0, two = aligned && step % V;
    const int64_t row = aligned ? (width + V - 1) / V * V : width, copies = two ? 2 : 1;
    const int64_t most = (FRAME / copies - VH) / row, least = conv_reach_h(c, 2);
    const int64_t fit = (most - conv_reach_h(c, 1)) / c.stride_h + 1;
    int band = most < least ? 2 : fit >= c.oh ? c.oh : (int)(fit / 2 * 2);
    if (copies * (conv_reach_h(c, band) * row + 2 * V) > CONV_SCRATCH)
        band = 0;
    return (PoolFrame){.row = row,
                       .odd = two ? conv_reach_h(c, band) * row + V - step % V : 0,
                       .band = band,
                       .needed = conv_padded(c) || two ||
                                 (aligned && (c.w * c.c % V || (int64_t)c.h * c.w * c.c % V))};
}
/* The image in place as a frame. */
RT_LEAF PoolFrame pool_no_frame(Conv c)
{
    return (PoolFrame){.row = (int64_t)c.w * c.c, .band = c.oh};
}

/* Reals of a frame for `rows` rows of outputs. */
RT_LEAF int64_t pool_frame_count(PoolFrame f, Conv c, int rows)
{
    return f.odd + conv_reach_h(c, rows) * f.row;
}

/* Row i of the frame that begins at output row oy: the row of the image, the number of columns of
 * padding before it, and the number of columns of the image after these.  False: there is no such
 * row. */
typedef struct FrameRow {
    int y, left, columns;
} FrameRow;
RT_LEAF bool frame_row(FrameRow *q, Conv c, int oy, int i)
{
    const int width = conv_reach_w(c), left = c.pad_w < width ? c.pad_w : width;
    *q = (FrameRow){oy * c.stride_h - c.pad_h + i, left, width - left < c.w ? width - left : c.w};
    return q->y >= 0 && q->y < c.h;
}

/* Distance from a window's first corner to corner k. */
RT_LEAF int64_t pool_corner(PoolFrame f, Conv c, int k)
{
    return (k >> 1) * (int64_t)c.stride_h * f.row + (k & 1) * ((int64_t)c.stride_w * c.c + f.odd);
}

#endif
