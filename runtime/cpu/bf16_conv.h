/* bf16_conv.h -- two-dimensional convolution and the gradient of its image, with factors in bf16
 * and sums in f32.
 *
 *   x (N, H, W, C) bf16   y (N, OH, OW, O) bf16   w (O, R, S, C/g) f32
 *
 * Each sum has the order of bf16.h.  Its factors:
 *   forward   the runs of taps (bf16_pack.h), in order.  A run begins with a new block.  A tap, or
 *             a kernel row that is one run, is left out if it lies in the padding.  In a run that
 *             is a kernel row, pixels left and right of the image are +0.  The bias is added to the
 *             complete sum.
 *   dx        a run for each tap that carries the pixel to an output, in order (r, s): the outputs
 *             of the group.
 * The gradient of the weights is bf16_conv_dw.h.
 */
#ifndef CPU_BF16_CONV_H
#define CPU_BF16_CONV_H
#include "cpu/bf16_dense.h"
#include "cpu/conv_box.h"

#ifndef RT_DOUBLE
/* -------------------------------------------------------------------------- frames and positions
 * Forward, and in the gradient of the images, a result is a sum over taps of an image: x, or dy.
 * If taps lie in the padding, the image is copied to a frame with zeros around it.  A frame has
 * whole samples, as many as fit BF16_FRAME, or a band of rows of one sample.
 *
 * A unit of a direction is a row or column of the results; backward it is `stride` of them.  Those
 * of a unit are its phases.  Results of one phase use the same taps, and read the image one pixel
 * apart. */
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
/* Pixels of the image from one unit to the next, and results. */
RT_INLINE int bf16_axis_step(ConvAxis a)
{
    return a.back ? 1 : a.stride;
}
RT_INLINE int bf16_axis_phases(ConvAxis a)
{
    return a.back ? a.stride : 1;
}
/* Units of units first .. end - 1 that have a result in this phase. */
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
} Bf16Conv;

RT_INLINE bool bf16_conv_framed(Bf16Conv g)
{
    return bf16_axis_padded(g.down) || bf16_axis_padded(g.across);
}

/* Rows of units of a frame, a whole image if it fits; at least one. */
RT_INLINE int bf16_conv_band(Bf16Conv g)
{
    const int all = bf16_axis_units(g.down);
    const int64_t row = (int64_t)bf16_axis_reach(g.across, bf16_axis_units(g.across)) * g.channels;
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
    return (int64_t)bf16_axis_reach(g.across, bf16_axis_units(g.across)) * g.channels *
           bf16_axis_reach(g.down, bf16_conv_band(g));
}
RT_INLINE int bf16_conv_samples(Bf16Conv g)
{
    const int64_t fit = BF16_FRAME / bf16_conv_frame(g);
    return bf16_conv_band(g) < bf16_axis_units(g.down) || fit < 1 ? 1 : fit < g.n ? (int)fit : g.n;
}

/* Copies `rows` rows of a frame, from row `first` of the frame of the whole image on. */
RT_INLINE void bf16_conv_fill(bf16 *restrict to, const bf16 *restrict x, Bf16Conv g, int first,
                              int rows)
{
    const int width = bf16_axis_reach(g.across, bf16_axis_units(g.across)),
              low = bf16_axis_low(g.across), from = low > 0 ? low : 0,
              left = low < 0 ? (-low < width ? -low : width) : 0,
              most = width - left < g.across.inputs - from ? width - left : g.across.inputs - from,
              copied = most > 0 ? most : 0, right = width - left - copied;
    const size_t pixel = sizeof(bf16) * (size_t)g.channels;
    for (int i = 0; i < rows; i++, to += (int64_t)width * g.channels) {
        const int row = bf16_axis_low(g.down) + first + i;
        if (row < 0 || row >= g.down.inputs) {
            memset(to, 0, pixel * (size_t)width);
            continue;
        }
        memset(to, 0, pixel * (size_t)left);
        memcpy(to + (int64_t)left * g.channels,
               x + ((int64_t)row * g.across.inputs + from) * g.channels, pixel * (size_t)copied);
        memset(to + (int64_t)(left + copied) * g.channels, 0, pixel * (size_t)right);
    }
}

/* The image of some units: a frame, or x itself.  Distances in numbers. */
typedef struct Bf16Image {
    const bf16 *x;
    int64_t row, sample;
    int n, samples;   /* the first sample, and how many */
    int first, units; /* the first row of units, and how many */
    const bf16 *end;  /* memory before it can be read */
} Bf16Image;

/* ---------------------------------------------------------------------------------- the product */

/* Results of one phase that use the same taps: rows y .. y_end - 1 and columns x .. x_end - 1 of
 * units, of all samples of the image. */
typedef struct Bf16Box {
    int down, across; /* the phase */
    int y, y_end, x, x_end;
} Bf16Box;

/* The runs of a box, in order. */
RT_INLINE Bf16Runs bf16_conv_runs(int64_t *a, int64_t *b, Bf16Conv g, int64_t row, Bf16Box box)
{
    const int inputs = g.channels / g.groups, length = g.whole ? g.across.taps * inputs : inputs;
    int count = 0;
    for (int r = 0; r < g.down.taps; r++)
        for (int s = 0; s < (g.whole ? 1 : g.across.taps); s++) {
            if (!bf16_axis_inside(g.down, box.down, r, box.y) ||
                (!g.whole && !bf16_axis_inside(g.across, box.across, s, box.x)))
                continue;
            a[count] = bf16_axis_tap(g.down, box.down, r) * row +
                       (int64_t)bf16_axis_tap(g.across, box.across, s) * g.channels;
            b[count++] = (int64_t)(g.whole ? r : r * g.across.taps + s) * BF16_PANEL(length);
        }
    return (Bf16Runs){count, length, a, b, 0};
}

/* The order of the positions of a box.
 *
 *   DENSE   tiles have 32 positions each: along the longer side, then the next line, then the next
 *           sample.
 *   HALVES  a half of a tile ends at the end of a line, because the rows of a tile of AMX are read
 *           in place only if they are equally far apart.
 *   LINES   all positions of the image from the first to the last of a group of samples, which are
 *           equally far apart.  Those between two lines have no result.
 *
 * Vectors take the first one.  For tiles of AMX, a position that is copied counts 1.6 times, and
 * one without a result is lost. */
typedef enum Bf16Order { BF16_DENSE, BF16_HALVES, BF16_LINES } Bf16Order;

typedef struct Bf16Walk {
    Bf16Order order;
    bool tall;                 /* lines are columns */
    int inner, outer, parts;   /* positions of a line, lines, halves of a line */
    int samples;               /* LINES: of a group */
    int64_t line, sample, all; /* LINES: positions from one to the next, and of a group */
    int64_t group, tiles;      /* tiles of a group, and of the box */
} Bf16Walk;

RT_INLINE Bf16Walk bf16_conv_walk(Bf16Image m, Bf16Conv g, Bf16Box box, bool amx)
{
    const int height = box.y_end - box.y, width = box.x_end - box.x;
    const bool tall = height > width;
    const int64_t step = bf16_axis_step(g.across) * (int64_t)g.channels,
                  line = bf16_axis_step(g.down) * m.row,
                  positions = (int64_t)m.samples * height * width;
    Bf16Walk w = {.order = BF16_DENSE,
                  .tall = tall,
                  .inner = tall ? height : width,
                  .outer = tall ? width : height,
                  .parts = 1,
                  .tiles = BF16_COUNT(positions, BF16_ROWS)};
    if (!amx)
        return w;
    const int parts = BF16_COUNT(w.inner, BF16_LANES);
    const int64_t copied = 8 * (w.tiles * BF16_ROWS) / 5,
                  halves = (int64_t)m.samples * w.outer * parts * BF16_LANES;
    int64_t best = copied;
    if (halves < best && w.inner > 1) {
        best = halves;
        w.order = BF16_HALVES, w.parts = parts;
        w.tiles = BF16_COUNT((int64_t)m.samples * w.outer * parts, 2);
    }
    if (line % step == 0) {
        const bool joined = m.sample % step == 0;
        const int samples = joined ? m.samples : 1;
        const int64_t all =
                          (samples - 1) * (m.sample / step) + (height - 1) * (line / step) + width,
                      group = BF16_COUNT(all, BF16_ROWS), tiles = m.samples / samples * group;
        if (tiles * BF16_ROWS < best) {
            w.order = BF16_LINES, w.samples = samples, w.tiles = tiles, w.group = group;
            w.line = line / step, w.sample = m.sample / step, w.all = all;
        }
    }
    return w;
}

/* The rows of tile t of a box: pointers, and where their results go.  Returns their number. */
static RT_SEPARATE int bf16_conv_rows(const bf16 **row, int64_t *to, Bf16Image m, Bf16Conv g,
                                      Bf16Box box, Bf16Walk w, int64_t t)
{
    const int height = box.y_end - box.y, width = box.x_end - box.x;
    const int64_t step = bf16_axis_step(g.across) * (int64_t)g.channels,
                  line = bf16_axis_step(g.down) * m.row,
                  y_step = bf16_axis_phases(g.across) * g.step,
                  y_line = (int64_t)bf16_axis_phases(g.down) * g.across.outputs * g.step,
                  y_sample = (int64_t)g.down.outputs * g.across.outputs * g.step,
                  y_first = m.n * y_sample + (int64_t)box.down * g.across.outputs * g.step +
                            box.across * g.step;
    int count = 0;
    if (w.order == BF16_LINES) {
        const int64_t first = t % w.group * BF16_ROWS; /* of one sample, or of all samples */
        const int64_t in_sample = w.samples > 1 ? first % w.sample : first;
        int n = (int)(w.samples > 1 ? first / w.sample : t / w.group),
            y = (int)(in_sample / w.line), x = (int)(in_sample % w.line);
        const bf16 *at =
            m.x + (int64_t)n * m.sample + (box.y - m.first + y) * line + (box.x + x) * step;
        bool some = false;
        for (; count < BF16_ROWS && first + count < w.all; count++, at += step) {
            const bool inside = y < height && x < width;
            row[count] = at;
            to[count] =
                inside ? y_first + n * y_sample + (box.y + y) * y_line + (box.x + x) * y_step : -1;
            some = some || inside;
            if (++x == w.line)
                x = 0, y++;
            if (w.samples > 1 && y * w.line + x == w.sample)
                n++, y = 0, x = 0;
        }
        return some ? count : 0;
    }
    const bool halves = w.order == BF16_HALVES;
    const int64_t all = (int64_t)m.samples * w.outer * w.parts,
                  begin = halves ? 2 * t : t * BF16_ROWS / w.inner;
    int i = halves ? 0 : (int)(t * BF16_ROWS % w.inner);
    for (int64_t part = begin; part < all && count < BF16_ROWS; part++, i = 0) {
        const int n = (int)(part / w.parts / w.outer), o = (int)(part / w.parts % w.outer),
                  first = (int)(part % w.parts) * BF16_LANES,
                  end = halves && first + BF16_LANES < w.inner ? first + BF16_LANES : w.inner;
        if (halves && part == begin + 2)
            break;
        for (; halves && count % BF16_LANES; count++) /* the second half begins at row 16 */
            row[count] = row[count - 1], to[count] = -1;
        for (i += first; i < end && count < BF16_ROWS; i++, count++) {
            const int y = box.y + (w.tall ? i : o), x = box.x + (w.tall ? o : i);
            row[count] = m.x + n * m.sample + (y - m.first) * line + x * step;
            to[count] = y_first + n * y_sample + y * y_line + x * y_step;
        }
    }
    return count;
}

RT_INLINE void bf16_conv_box(Bf16Image m, const bf16 *p, Bf16End e, Bf16Conv g, Bf16Box box)
{
    const int inputs = g.channels / g.groups, outputs = g.results / g.groups,
              pairs = BF16_COUNT(outputs, BF16_PAIR),
              length = g.whole ? g.across.taps * inputs : inputs,
              blocks = g.down.taps * (g.whole ? 1 : g.across.taps) * BF16_BLOCKS(length);
    const Bf16Walk walk = bf16_conv_walk(m, g, box, bf16_has_tiles());
    int64_t a[g.down.taps * g.across.taps], b[g.down.taps * g.across.taps];
    bf16 kept[BF16_KEPT_COUNT(blocks)] __attribute__((aligned(64)));
    const Bf16Runs runs = bf16_conv_runs(a, b, g, m.row, box);
    Bf16Runs first = runs; /* the first panels of a 1x1 kernel prefetch the rows of the next tile */
    if (runs.count == 1)
        first.ahead = BF16_ROWS * (int64_t)bf16_axis_step(g.across) * g.channels;
    const int64_t panel =
        (int64_t)g.down.taps * (g.whole ? 1 : g.across.taps) * BF16_PANEL(runs.length);
    const RtGrid part = team_grid(walk.tiles, pairs);
    const TeamRange mine = team_rows(part, walk.tiles), own = team_columns(part, pairs);
    for (int64_t t = mine.first; t < mine.end; t++) {
        const bf16 *row[BF16_ROWS];
        int64_t to[BF16_ROWS];
        const int count = bf16_conv_rows(row, to, m, g, box, walk, t);
        for (int group = 0; group < g.groups && count > 0; group++) {
            const bf16 *w = p + (int64_t)group * BF16_PANELS(outputs) * panel;
            const Bf16Rows rows = bf16_rows(row, count, m.end, &runs, BF16_KEPT_AT(kept, blocks),
                                            (int)(own.end - own.first));
            for (int64_t j = own.first; j < own.end; j++) {
                float sum[BF16_TILE] __attribute__((aligned(64)));
                const int o = (int)j * BF16_PAIR,
                          lanes = outputs - o < BF16_PAIR ? outputs - o : BF16_PAIR;
                bf16_product_rows(sum, BF16_ROWS, true, &rows, w + 2 * j * panel, panel,
                                  BF16_PANELS(lanes), j == own.first ? &first : &runs);
                bf16_end(sum, e, to, count, group * outputs + o, lanes);
            }
            for (int i = 0; i < count && g.groups > 1; i++)
                row[i] += inputs;
        }
    }
}

/* The results of one phase. */
RT_INLINE void bf16_conv_phase(Bf16Image m, const bf16 *p, Bf16End e, Bf16Conv g, int down,
                               int across)
{
    const int all = bf16_axis_count(g.down, down, 0, m.first + m.units),
              columns = bf16_axis_count(g.across, across, 0, bf16_axis_units(g.across));
    for (int y = m.first, y_end; y < all; y = y_end) {
        y_end = bf16_axis_group(g.down, down, y, all);
        for (int x = 0, x_end; x < columns; x = x_end) {
            x_end = g.whole ? columns : bf16_axis_group(g.across, across, x, columns);
            bf16_conv_box(m, p, e, g, (Bf16Box){down, across, y, y_end, x, x_end});
        }
    }
}

RT_INLINE void bf16_conv_phases(Bf16Image m, const bf16 *p, Bf16End e, Bf16Conv g)
{
    for (int down = 0; down < bf16_axis_phases(g.down); down++)
        for (int across = 0; across < bf16_axis_phases(g.across); across++)
            bf16_conv_phase(m, p, e, g, down, across);
}

RT_INLINE void bf16_conv_all(const bf16 *x, const bf16 *p, Bf16End e, Bf16Conv g)
{
    const int64_t image = (int64_t)g.down.inputs * g.across.inputs * g.channels;
    const int units = bf16_axis_units(g.down);
    if (!bf16_conv_framed(g)) {
        bf16_conv_phases((Bf16Image){x, (int64_t)g.across.inputs * g.channels, image, 0, g.n, 0,
                                     units, x + g.n * image},
                         p, e, g);
        return;
    }
    const int band = bf16_conv_band(g), samples = bf16_conv_samples(g);
    const int64_t size = bf16_conv_frame(g),
                  row = (int64_t)bf16_axis_reach(g.across, bf16_axis_units(g.across)) * g.channels;
    bf16 frame[samples * size] __attribute__((aligned(64)));
    for (int n = 0; n < g.n; n += samples)
        for (int first = 0; first < units; first += band) {
            const int own = g.n - n < samples ? g.n - n : samples,
                      rows = units - first < band ? units - first : band;
            for (int i = 0; i < own; i++)
                bf16_conv_fill(frame + i * size, x + (n + i) * image, g,
                               first * bf16_axis_step(g.down), bf16_axis_reach(g.down, rows));
            bf16_conv_phases((Bf16Image){frame, row, size, n, own, first, rows,
                                         frame + samples * size},
                             p, e, g);
        }
}

/* ---------------------------------------------------------------------------------- the kernels */

RT_INLINE Bf16Conv bf16_conv_forward(Conv c)
{
    return (Bf16Conv){{c.h, c.oh, c.r, c.stride_h, c.pad_h, c.dil_h, false},
                      {c.w, c.ow, c.s, c.stride_w, c.pad_w, c.dil_w, false},
                      c.n,
                      c.c,
                      c.o,
                      c.groups,
                      c.ldy ? c.ldy : c.o,
                      BF16_CONV_WHOLE(c)};
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
                      false};
}
/* y = act(conv(x) + bias); bias may be NULL.  p from bf16_conv_pack. */
RT_INLINE void bf16_conv2d(bf16 *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                           const real *restrict bias, Act act, Conv c)
{
    bf16_conv_all(x, p, (Bf16End){y, false, bias, NULL, act, d_identity}, bf16_conv_forward(c));
}

/* dx = mask(w^T dy, y); p from bf16_conv_pack_back.  y (N, H, W, C): the output of the activation
 * whose derivative `mask` applies, or NULL. */
RT_INLINE void bf16_conv2d_dx(bf16 *restrict dx, const bf16 *restrict p, const bf16 *restrict dy,
                              Mask mask, const bf16 *restrict y, Conv c)
{
    bf16_conv_all(dy, p, (Bf16End){dx, false, NULL, y, v_identity, mask}, bf16_conv_back(c));
}
#endif

#endif
