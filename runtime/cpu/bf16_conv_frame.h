/* bf16_conv_frame.h -- the image that a convolution in bf16 reads, with zeros around it.
 *
 * Forward, and in the gradient of the images, a result is a sum over taps of an image: x, or dy.
 * If taps lie in the padding, the image is copied to a frame with zeros around it.  A frame has
 * whole samples, as many as fit BF16_FRAME, or a band of rows of one sample.  A row of all samples
 * comes before the next row.
 *
 * A unit is a row or a column of the results.  In the gradient of the images, a unit is `stride`
 * adjacent rows or columns, which are its phases.  Results of one phase use the same taps, and read
 * the image one pixel apart.
 */
#ifndef CPU_BF16_CONV_FRAME_H
#define CPU_BF16_CONV_FRAME_H
#include "cpu/bf16_dense.h"
#include "cpu/conv_box.h"

#ifndef RT_DOUBLE
enum { BF16_FRAME = 256 * 1024 / sizeof(bf16) };

RT_INLINE int bf16_floor(int a, int b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}
RT_INLINE int bf16_axis_units(ConvAxis a)
{
    return a.back ? BF16_COUNT(a.outputs, a.stride) : a.outputs;
}
/* The pixel of the image at which the frame begins, and the pixels that `units` units read. */
RT_INLINE int bf16_axis_low(ConvAxis a)
{
    return a.back ? bf16_floor(a.pad - (a.taps - 1) * a.dil, a.stride) : -a.pad;
}
RT_INLINE int bf16_axis_reach(ConvAxis a, int units)
{
    return a.back ? (units * a.stride - 1 + a.pad) / a.stride - bf16_axis_low(a) + 1
                  : (units - 1) * a.stride + (a.taps - 1) * a.dil + 1;
}
/* Pixels of the image from one unit to the next, and results of a unit. */
RT_INLINE int bf16_axis_step(ConvAxis a)
{
    return a.back ? 1 : a.stride;
}
RT_INLINE int bf16_axis_phases(ConvAxis a)
{
    return a.back ? a.stride : 1;
}
/* How many of the units first .. end - 1 have a result in this phase. */
RT_INLINE int bf16_axis_count(ConvAxis a, int phase, int first, int end)
{
    const int all = a.back ? BF16_COUNT(a.outputs - phase, a.stride) : a.outputs;
    return (end < all ? end : all) - first;
}
/* The pixel of the frame that a phase of the first unit reads at tap t, or -1: the tap reaches
 * none. */
RT_INLINE int bf16_axis_tap(ConvAxis a, int phase, int t)
{
    const int up = phase + a.pad - t * a.dil, down = bf16_floor(up, a.stride);
    if (!a.back)
        return t * a.dil;
    return down * a.stride == up ? down - bf16_axis_low(a) : -1;
}
/* Whether tap t of a unit lies in the image. */
RT_INLINE bool bf16_axis_inside(ConvAxis a, int phase, int t, int unit)
{
    const int tap = bf16_axis_tap(a, phase, t),
              pixel = bf16_axis_low(a) + unit * bf16_axis_step(a) + tap;
    return tap >= 0 && pixel >= 0 && pixel < a.inputs;
}
/* The first unit after `unit` that has other taps in the image, at most `end`. */
RT_INLINE int bf16_axis_group(ConvAxis a, int phase, int unit, int end)
{
    for (int next = unit + 1; next < end; next++)
        for (int t = 0; t < a.taps; t++)
            if (bf16_axis_inside(a, phase, t, next) != bf16_axis_inside(a, phase, t, unit))
                return next;
    return end;
}
RT_INLINE bool bf16_axis_padded(ConvAxis a)
{
    return bf16_axis_low(a) != 0 || bf16_axis_reach(a, bf16_axis_units(a)) > a.inputs;
}

/* A convolution in one direction.  channels, results: of a pixel of the image and of the result, of
 * all groups; step: numbers from a position of the result to the next. */
typedef struct Bf16Conv {
    ConvAxis down, across;
    int n, channels, results, groups;
    int64_t step;
    bool whole; /* runs are kernel rows */
    bool lines; /* columns of frames are filled up to whole blocks */
} Bf16Conv;

RT_INLINE Bf16Conv bf16_conv_forward(Conv c)
{
    return (Bf16Conv){{c.h, c.oh, c.r, c.stride_h, c.pad_h, c.dil_h, false},
                      {c.w, c.ow, c.s, c.stride_w, c.pad_w, c.dil_w, false},
                      c.n,
                      c.c,
                      c.o,
                      c.groups,
                      c.ldy ? c.ldy : c.o,
                      BF16_CONV_WHOLE(c),
                      false};
}
RT_INLINE Bf16Conv bf16_conv_back(Conv c)
{
    return (Bf16Conv){{c.oh, c.h, c.r, c.stride_h, c.pad_h, c.dil_h, true},
                      {c.ow, c.w, c.s, c.stride_w, c.pad_w, c.dil_w, true},
                      c.n,
                      c.o,
                      c.c,
                      c.groups,
                      c.c,
                      false,
                      false};
}

/* Whether runs do not fill their blocks, or pixels do not begin at cache lines.  For tiles of AMX,
 * each column of a frame then has its own copy of what it reads, filled with zeros up to whole
 * blocks: a kernel row if runs are kernel rows, else a pixel.  Otherwise each tile would copy its
 * rows for each run. */
RT_INLINE bool bf16_conv_uneven(Bf16Conv g)
{
    return g.groups == 1 && g.channels % BF16_BLOCK != 0;
}
RT_INLINE bool bf16_conv_framed(Bf16Conv g)
{
    return g.lines || bf16_axis_padded(g.down) || bf16_axis_padded(g.across);
}
RT_INLINE int bf16_conv_length(Bf16Conv g) /* of a run */
{
    return g.channels / g.groups * (g.whole ? g.across.taps : 1);
}
/* Columns of a frame, numbers of a column, and numbers from a unit to the next one in its row. */
RT_INLINE int bf16_conv_columns(Bf16Conv g)
{
    const int units = bf16_axis_units(g.across);
    return g.lines && g.whole ? units : bf16_axis_reach(g.across, units);
}
RT_INLINE int bf16_conv_column(Bf16Conv g)
{
    return g.lines ? BF16_BLOCKS(bf16_conv_length(g)) * BF16_BLOCK : g.channels;
}
RT_INLINE int64_t bf16_conv_unit(Bf16Conv g)
{
    return (int64_t)bf16_conv_column(g) * (g.lines && g.whole ? 1 : bf16_axis_step(g.across));
}
RT_INLINE int64_t bf16_conv_row(Bf16Conv g) /* numbers of a row of a frame */
{
    return (int64_t)bf16_conv_columns(g) * bf16_conv_column(g);
}

/* Rows of units of a frame, a whole image if it fits; at least one. */
RT_INLINE int bf16_conv_band(Bf16Conv g)
{
    const int all = bf16_axis_units(g.down);
    const int64_t row = bf16_conv_row(g);
    int units = all;
    if (bf16_axis_reach(g.down, all) * row > BF16_FRAME) {
        const int64_t more = BF16_FRAME / row - bf16_axis_reach(g.down, 1);
        units = more > 0 ? 1 + (int)(more / bf16_axis_step(g.down)) : 1;
    }
    return units;
}
/* Numbers of a frame of one sample; whole samples of a frame. */
RT_INLINE int64_t bf16_conv_frame(Bf16Conv g)
{
    return bf16_conv_row(g) * bf16_axis_reach(g.down, bf16_conv_band(g));
}
RT_INLINE int bf16_conv_samples(Bf16Conv g)
{
    const int64_t fit = BF16_FRAME / bf16_conv_frame(g);
    return bf16_conv_band(g) < bf16_axis_units(g.down) || fit < 1 ? 1 : fit < g.n ? (int)fit : g.n;
}

#ifdef RT_AVX512
RT_INLINE uint32_t bf16_ones(int count)
{
    return count <= 0 ? 0 : count >= BF16_BLOCK ? ~0u : (1u << count) - 1;
}
#endif
/* Fills a column of whole blocks: numbers low .. high - 1 are those of `from`, others are 0. */
RT_INLINE void bf16_conv_fill_column(bf16 *restrict to, const bf16 *restrict from, int count,
                                     int low, int high)
{
#ifdef RT_AVX512
    for (int i = 0; i < count; i += BF16_BLOCK) {
        Bf16Line x;
        __asm__("vmovdqu16 %1, %0%{%2%}%{z%}"
                : "=v"(x)
                : "m"(*(const Bf16LineMemory *)(from + i)),
                  "Yk"(bf16_ones(high - i) & ~bf16_ones(low - i)));
        *(Bf16Line *)(to + i) = x;
    }
#else
    memset(to, 0, sizeof *to * (size_t)count);
    if (low < high)
        memcpy(to + low, from + low, sizeof *to * (size_t)(high - low));
#endif
}

/* Fills a row of columns of whole blocks, from a row of the image. */
RT_INLINE void bf16_conv_fill_lines(bf16 *restrict to, const bf16 *restrict row, Bf16Conv g)
{
    const int step = g.whole ? g.across.stride : 1, taps = g.whole ? g.across.taps : 1,
              count = bf16_conv_column(g), columns = bf16_conv_columns(g);
    for (int q = 0, x = bf16_axis_low(g.across); q < columns; q++, x += step, to += count) {
        const bf16 *const from = row + (int64_t)x * g.channels;
        if (x >= 0 && x + taps <= g.across.inputs) {
            bf16_conv_fill_column(to, from, count, 0, taps * g.channels);
            continue;
        }
        const int low = x < 0 ? (-x < taps ? -x : taps) : 0, left = g.across.inputs - x,
                  high = left < taps ? (left > 0 ? left : 0) : taps;
        bf16_conv_fill_column(to, from, count, low * g.channels, high * g.channels);
    }
}

/* Copies `rows` rows of a sample's frame, from row `first` of the frame of the whole image on;
 * `line` numbers from a row to the next. */
RT_INLINE void bf16_conv_fill(bf16 *restrict to, const bf16 *restrict x, Bf16Conv g, int64_t line,
                              int first, int rows)
{
    const int width = bf16_conv_columns(g), low = bf16_axis_low(g.across), from = low > 0 ? low : 0,
              left = low < 0 ? (-low < width ? -low : width) : 0,
              most = width - left < g.across.inputs - from ? width - left : g.across.inputs - from,
              copied = most > 0 ? most : 0, right = width - left - copied;
    const size_t pixel = sizeof(bf16) * (size_t)g.channels;
    for (int i = 0; i < rows; i++, to += line) {
        const int row = bf16_axis_low(g.down) + first + i;
        const bf16 *const at = x + (int64_t)row * g.across.inputs * g.channels;
        if (row < 0 || row >= g.down.inputs) {
            memset(to, 0, sizeof *to * (size_t)bf16_conv_row(g));
        } else if (g.lines) {
            bf16_conv_fill_lines(to, at, g);
        } else {
            memset(to, 0, pixel * (size_t)left);
            memcpy(to + (int64_t)left * g.channels, at + (int64_t)from * g.channels,
                   pixel * (size_t)copied);
            memset(to + (int64_t)(left + copied) * g.channels, 0, pixel * (size_t)right);
        }
    }
}

/* The image of some units: a frame, or x itself.  Distances in numbers.  In a frame, a row of all
 * samples comes before the next row. */
typedef struct Bf16Image {
    const bf16 *x;
    int64_t row, sample;
    int n, samples;   /* the first sample; number of samples */
    int first, units; /* the first row of units; number of rows */
    const bf16 *end;  /* memory before this address can be read */
} Bf16Image;
#endif

#endif
