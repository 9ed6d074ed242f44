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
 * whole samples, as many as fit BF16_FRAME, or a band of rows of one sample.  A row of all samples
 * comes before the next row.
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
    bool lines; /* columns of frames are filled up to whole blocks */
} Bf16Conv;

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
/* Columns of a frame, numbers of a column, and numbers from a unit across to the next. */
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
/* A column of whole blocks: numbers low .. high - 1 are those of `from`, others are 0. */
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

/* A row of columns of whole blocks, from a row of the image. */
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
    const int length = g.lines ? bf16_conv_column(g) : bf16_conv_length(g);
    int count = 0;
    for (int r = 0; r < g.down.taps; r++)
        for (int s = 0; s < (g.whole ? 1 : g.across.taps); s++) {
            if (!bf16_axis_inside(g.down, box.down, r, box.y) ||
                (!g.whole && !bf16_axis_inside(g.across, box.across, s, box.x)))
                continue;
            a[count] = bf16_axis_tap(g.down, box.down, r) * row +
                       (int64_t)bf16_axis_tap(g.across, box.across, s) * bf16_conv_column(g);
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
 *   LINES   all positions of the image from the first to the last of a group, which are equally far
 *           apart.  Those between two lines have no result.  A group has all lines of the box, or
 *           the lines that are near: of one sample, or in a frame those of one row.
 *
 * Vectors take the first one.  For tiles of AMX, a position that is copied counts 1.6 times, one
 * without a result is lost, and LINES save a quarter: rows have no addresses of their own. */
typedef enum Bf16Order { BF16_DENSE, BF16_HALVES, BF16_LINES } Bf16Order;

/* Lines of LINES that are equally far apart: `count` of them.  Distances in positions, in numbers
 * of the image and in numbers of the results. */
typedef struct Bf16Dim {
    int count;
    int64_t positions, image, result;
} Bf16Dim;

typedef struct Bf16Walk {
    Bf16Order order;
    bool tall;               /* lines are columns */
    int inner, outer, parts; /* positions of a line, lines, halves of a line */
    Bf16Dim near, far;       /* LINES: rows and samples, or samples and rows */
    int width, groups;       /* LINES: positions of a line that have results; groups */
    int64_t all, group;      /* LINES: positions of a group, and its tiles */
    int64_t tiles;           /* of the box */
} Bf16Walk;

/* Distances in the results: the first one of the box, columns, rows and samples. */
typedef struct Bf16Results {
    int64_t first, column, row, sample;
} Bf16Results;
RT_INLINE Bf16Results bf16_conv_results(Bf16Image m, Bf16Conv g, Bf16Box box)
{
    const Bf16Results y = {0, bf16_axis_phases(g.across) * g.step,
                           (int64_t)bf16_axis_phases(g.down) * g.across.outputs * g.step,
                           (int64_t)g.down.outputs * g.across.outputs * g.step};
    return (Bf16Results){m.n * y.sample + (int64_t)box.down * g.across.outputs * g.step +
                             box.across * g.step,
                         y.column, y.row, y.sample};
}

RT_INLINE Bf16Walk bf16_conv_walk(Bf16Image m, Bf16Conv g, Bf16Box box, bool amx)
{
    const int height = box.y_end - box.y, width = box.x_end - box.x;
    const bool tall = height > width;
    const int64_t step = bf16_conv_unit(g), line = bf16_axis_step(g.down) * m.row,
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
    const Bf16Results y = bf16_conv_results(m, g, box);
    const Bf16Dim rows = {height, line / step, line, y.row},
                  samples = {m.samples, m.sample / step, m.sample, y.sample};
    const bool by_row = m.sample < m.row;
    const Bf16Dim near = by_row ? samples : rows, far = by_row ? rows : samples;
    if (near.image % step != 0 && near.count > 1)
        return w;
    const int64_t some = (near.count - 1) * near.positions + width,
                  whole = (far.count - 1) * far.positions + some,
                  tiles_some = far.count * BF16_COUNT(some, BF16_ROWS),
                  tiles_whole = BF16_COUNT(whole, BF16_ROWS);
    const bool joined = far.image % step == 0 && tiles_whole <= tiles_some;
    if (4 * (joined ? tiles_whole : tiles_some) * BF16_ROWS <= 5 * best) {
        w.order = BF16_LINES, w.near = near, w.far = far, w.width = width;
        w.groups = joined ? 1 : far.count, w.all = joined ? whole : some;
        w.group = BF16_COUNT(w.all, BF16_ROWS), w.tiles = w.groups * w.group;
    }
    return w;
}

/* Where the results of positions at .. at + count - 1 of a group of LINES go; to[i] < 0: position i
 * has none.  first: the result of the first position.  Returns whether there are results. */
static RT_SEPARATE bool bf16_conv_targets(int64_t *restrict to, const Bf16Walk *w, int64_t column,
                                          int64_t first, int64_t at, int count)
{
    const int lines = w->near.count;
    const int64_t line = lines > 1 ? w->near.positions : w->all,
                  all = w->groups > 1 || w->far.count == 1 ? w->all : w->far.positions;
    int64_t o = at / all, p = at % all;
    bool some = false;
    for (int i = 0; i < count;) {
        const int64_t y = p / line, x = p % line;
        const bool inside = y < lines && x < w->width;
        const int64_t end = inside ? w->width - x : y < lines - 1 ? line - x : all - p;
        const int run = end < count - i ? (int)end : count - i;
        int64_t next = inside ? first + o * w->far.result + y * w->near.result + x * column : -1;
        for (const int last = i + run; i < last; i++, next += inside ? column : 0)
            to[i] = next;
        some = some || inside;
        p += run;
        if (p == all)
            p = 0, o++;
    }
    return some;
}

/* The rows of tile t of a box: pointers, and where their results go.  Returns their number. */
static RT_SEPARATE int bf16_conv_rows(const bf16 **row, int64_t *to, Bf16Image m, Bf16Conv g,
                                      Bf16Box box, Bf16Walk w, int64_t t)
{
    const int64_t step = bf16_conv_unit(g), line = bf16_axis_step(g.down) * m.row;
    const Bf16Results r = bf16_conv_results(m, g, box);
    int count = 0;
    if (w.order == BF16_LINES) {
        const int64_t at = t % w.group * BF16_ROWS, far = t / w.group;
        const bf16 *first = m.x + (box.y - m.first) * line + box.x * step + far * w.far.image;
        count = w.all - at < BF16_ROWS ? (int)(w.all - at) : BF16_ROWS;
        for (int i = 0; i < count; i++)
            row[i] = first + (at + i) * step;
        return bf16_conv_targets(to, &w, r.column,
                                 r.first + box.y * r.row + box.x * r.column + far * w.far.result,
                                 at, count)
                   ? count
                   : 0;
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
            to[count] = r.first + n * r.sample + y * r.row + x * r.column;
        }
    }
    return count;
}

/* A box and its share of the work: tiles and pairs of panels of this member of the team. */
typedef struct Bf16Work {
    Bf16Image m;
    Bf16Box box;
    Bf16Walk walk;
    TeamRange tiles, pairs;
    bool first; /* no panel has read the image */
} Bf16Work;

RT_INLINE int64_t bf16_conv_panel(Bf16Conv g)
{
    return (int64_t)g.down.taps * (g.whole ? 1 : g.across.taps) * BF16_PANEL(bf16_conv_length(g));
}

#ifdef RT_AMX
/* The tiles of LINES whose runs have whole blocks: no row has an address of its own. */
RT_INLINE void bf16_conv_lines(const bf16 *p, Bf16End e, Bf16Conv g, Bf16Work w,
                               const Bf16Runs *runs)
{
    const int inputs = g.channels / g.groups, outputs = g.results / g.groups;
    const int64_t step = bf16_conv_unit(g), panel = bf16_conv_panel(g),
                  line = bf16_axis_step(g.down) * w.m.row;
    const Bf16Results r = bf16_conv_results(w.m, g, w.box);
    const bf16 *const first = w.m.x + (w.box.y - w.m.first) * line + w.box.x * step;
    int64_t reach = 0;
    for (int t = 0; t < runs->count; t++)
        reach = runs->a[t] > reach ? runs->a[t] : reach;
    Bf16Runs ahead =
        *runs; /* the first panels of a 1x1 kernel prefetch the rows of the next tile */
    if (runs->count == 1)
        ahead.ahead = w.first ? BF16_ROWS * step : 0;
    for (int64_t t = w.tiles.first; t < w.tiles.end; t++) {
        const int64_t at = t % w.walk.group * BF16_ROWS, far = t / w.walk.group;
        const int count = w.walk.all - at < BF16_ROWS ? (int)(w.walk.all - at) : BF16_ROWS,
                  read = count <= BF16_LANES ? BF16_LANES : BF16_ROWS;
        const bf16 *const from = first + far * w.walk.far.image + at * step;
        const bool direct =
            (read - 1) * step + reach + runs->length + (g.groups - 1) * inputs <= w.m.end - from;
        int64_t to[BF16_ROWS];
        if (!bf16_conv_targets(to, &w.walk, r.column,
                               r.first + w.box.y * r.row + w.box.x * r.column +
                                   far * w.walk.far.result,
                               at, count))
            continue;
        for (int group = 0; group < g.groups; group++) {
            const bf16 *const own = p + (int64_t)group * BF16_PANELS(outputs) * panel,
                              *const a = from + group * inputs;
            for (int64_t j = w.pairs.first; j < w.pairs.end; j++) {
                float sum[BF16_TILE] __attribute__((aligned(64)));
                const int o = (int)j * BF16_PAIR,
                          lanes = outputs - o < BF16_PAIR ? outputs - o : BF16_PAIR;
                const Bf16Runs *const these = j == w.pairs.first ? &ahead : runs;
                if (direct) {
                    bf16_product_even(sum, BF16_ROWS, true, a, step, count > BF16_LANES,
                                      own + 2 * j * panel, panel, BF16_PANELS(lanes), these);
                } else {
                    const bf16 *row[BF16_ROWS];
                    for (int i = 0; i < count; i++)
                        row[i] = a + i * step;
                    const Bf16Rows rows = bf16_rows(row, count, w.m.end, runs, NULL, 1);
                    bf16_product_rows(sum, BF16_ROWS, true, &rows, own + 2 * j * panel, panel,
                                      BF16_PANELS(lanes), runs);
                }
                bf16_end(sum, e, to, count, group * outputs + o, lanes);
            }
        }
    }
}
#endif

/* Tiles of any order. */
RT_INLINE void bf16_conv_tiles(const bf16 *p, Bf16End e, Bf16Conv g, Bf16Work w,
                               const Bf16Runs *runs)
{
    const int inputs = g.channels / g.groups, outputs = g.results / g.groups,
              blocks =
                  g.down.taps * (g.whole ? 1 : g.across.taps) * BF16_BLOCKS(bf16_conv_length(g));
    const int64_t panel = bf16_conv_panel(g);
    bf16 kept[BF16_KEPT_COUNT(blocks)] __attribute__((aligned(64)));
    Bf16Runs first =
        *runs; /* the first panels of a 1x1 kernel prefetch the rows of the next tile */
    if (runs->count == 1)
        first.ahead = BF16_ROWS * bf16_conv_unit(g);
    for (int64_t t = w.tiles.first; t < w.tiles.end; t++) {
        const bf16 *row[BF16_ROWS];
        int64_t to[BF16_ROWS];
        const int count = bf16_conv_rows(row, to, w.m, g, w.box, w.walk, t);
        for (int group = 0; group < g.groups && count > 0; group++) {
            const bf16 *own = p + (int64_t)group * BF16_PANELS(outputs) * panel;
            const Bf16Rows rows = bf16_rows(row, count, w.m.end, runs, BF16_KEPT_AT(kept, blocks),
                                            (int)(w.pairs.end - w.pairs.first));
            for (int64_t j = w.pairs.first; j < w.pairs.end; j++) {
                float sum[BF16_TILE] __attribute__((aligned(64)));
                const int o = (int)j * BF16_PAIR,
                          lanes = outputs - o < BF16_PAIR ? outputs - o : BF16_PAIR;
                bf16_product_rows(sum, BF16_ROWS, true, &rows, own + 2 * j * panel, panel,
                                  BF16_PANELS(lanes), j == w.pairs.first ? &first : runs);
                bf16_end(sum, e, to, count, group * outputs + o, lanes);
            }
            for (int i = 0; i < count && g.groups > 1; i++)
                row[i] += inputs;
        }
    }
}

/* The pairs of panels that bf16_conv_box computes: all, or those of `pairs` if `some`. */
typedef struct Bf16Pairs {
    bool some, first;
    TeamRange pairs;
} Bf16Pairs;

RT_INLINE void bf16_conv_box(Bf16Image m, const bf16 *p, Bf16End e, Bf16Conv g, Bf16Box box,
                             Bf16Pairs these)
{
    const int pairs = BF16_COUNT(g.results / g.groups, BF16_PAIR);
    int64_t a[g.down.taps * g.across.taps], b[g.down.taps * g.across.taps];
    const Bf16Runs runs = bf16_conv_runs(a, b, g, m.row, box);
    Bf16Work w = {m, box, bf16_conv_walk(m, g, box, bf16_has_tiles()), {0, 0}, {0, 0}, true};
    if (these.some) {
        w.tiles = (TeamRange){0, w.walk.tiles}, w.pairs = these.pairs;
        w.first = these.first;
    } else {
        const RtGrid part = team_grid(w.walk.tiles, pairs);
        w.tiles = team_rows(part, w.walk.tiles), w.pairs = team_columns(part, pairs);
    }
#ifdef RT_AMX
    if (w.walk.order == BF16_LINES && runs.length % BF16_BLOCK == 0) {
        bf16_conv_lines(p, e, g, w, &runs);
        return;
    }
#endif
    bf16_conv_tiles(p, e, g, w, &runs);
}

/* The results of one phase. */
RT_INLINE void bf16_conv_phase(Bf16Image m, const bf16 *p, Bf16End e, Bf16Conv g, int down,
                               int across, Bf16Pairs these)
{
    const int all = bf16_axis_count(g.down, down, 0, m.first + m.units),
              columns = bf16_axis_count(g.across, across, 0, bf16_axis_units(g.across));
    for (int y = m.first, y_end; y < all; y = y_end) {
        y_end = bf16_axis_group(g.down, down, y, all);
        for (int x = 0, x_end; x < columns; x = x_end) {
            x_end = g.whole ? columns : bf16_axis_group(g.across, across, x, columns);
            bf16_conv_box(m, p, e, g, (Bf16Box){down, across, y, y_end, x, x_end}, these);
        }
    }
}

/* Weights of more bytes than BF16_FAR leave the L2 cache before the next tile reads them.  If the
 * image fits there, all its tiles are computed for one pair of panels and then for the next.  (For
 * vectors, the weights arrive in time.) */
enum { BF16_FAR = 1 << 20 };

RT_INLINE void bf16_conv_phases(Bf16Image m, const bf16 *p, Bf16End e, Bf16Conv g)
{
    const int pairs = BF16_COUNT(g.results / g.groups, BF16_PAIR);
    const bool far = bf16_has_tiles() && g.groups == 1 &&
                     pairs * 2 * bf16_conv_panel(g) * (int64_t)sizeof *p > BF16_FAR &&
                     (int64_t)g.n * g.down.inputs * g.across.inputs * g.channels <=
                         BF16_FAR / (int64_t)sizeof *p;
    const TeamRange own = far ? team_range(pairs) : (TeamRange){0, 1};
    for (int64_t j = own.first; j < own.end; j++)
        for (int down = 0; down < bf16_axis_phases(g.down); down++)
            for (int across = 0; across < bf16_axis_phases(g.across); across++)
                bf16_conv_phase(m, p, e, g, down, across,
                                (Bf16Pairs){far, j == own.first, {j, j + 1}});
}

RT_INLINE void bf16_conv_all(const bf16 *x, const bf16 *p, Bf16End e, Bf16Conv g)
{
    const int64_t image = (int64_t)g.down.inputs * g.across.inputs * g.channels;
    const int units = bf16_axis_units(g.down);
    g.lines = bf16_conv_uneven(g) && bf16_has_tiles();
    if (bf16_conv_row(g) * bf16_axis_reach(g.down, 1) > BF16_FRAME)
        g.lines = false;
    if (!bf16_conv_framed(g)) {
        bf16_conv_phases((Bf16Image){x, (int64_t)g.across.inputs * g.channels, image, 0, g.n, 0,
                                     units, x + g.n * image},
                         p, e, g);
        return;
    }
    const int band = bf16_conv_band(g), samples = bf16_conv_samples(g);
    const int64_t row = bf16_conv_row(g), size = samples * bf16_conv_frame(g);
    bf16 frame[size] __attribute__((aligned(64)));
    for (int n = 0; n < g.n; n += samples)
        for (int first = 0; first < units; first += band) {
            const int own = g.n - n < samples ? g.n - n : samples,
                      rows = units - first < band ? units - first : band;
            for (int i = 0; i < own; i++)
                bf16_conv_fill(frame + i * row, x + (n + i) * image, g, samples * row,
                               first * bf16_axis_step(g.down), bf16_axis_reach(g.down, rows));
            bf16_conv_phases((Bf16Image){frame, samples * row, row, n, own, first, rows,
                                         frame + size},
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
