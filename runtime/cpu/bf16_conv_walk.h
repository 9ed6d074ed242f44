/* bf16_conv_walk.h -- the order in which tiles go through the positions of a convolution in bf16.
 *
 *   DENSE   tiles have 32 positions each: along the longer side, then the next line, then the next
 *           sample.
 *   HALVES  a half of a tile ends at the end of a line, because the rows of a tile of AMX are read
 *           in place only if they are equally far apart.
 *   LINES   all positions of the image from the first to the last of a group, which are equally far
 *           apart.  Positions between two lines have no result.  A group has all lines of the box,
 *           the lines of a sample, or in a frame the lines of a row.
 *
 * Vectors take DENSE.  For tiles of AMX, the cheapest order is chosen: a copied position costs 1.6
 * times as much, a position without a result costs as much as another one, and LINES save a
 * quarter, because rows have no addresses of their own.
 */
#ifndef CPU_BF16_CONV_WALK_H
#define CPU_BF16_CONV_WALK_H
#include "cpu/bf16_conv_frame.h"

#ifndef RT_DOUBLE
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

/* The order of the positions of a box, as above. */
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

/* Finds where the results of positions at .. at + count - 1 of a group of LINES go. to[i] < 0:
 * position i has no result.  first: the result of the first position.  Returns whether there are
 * results. */
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

/* Finds tile t of LINES: its number of rows, and where their results go.  Returns its first row;
 * NULL: no row has a result. */
RT_INLINE const bf16 *bf16_conv_line(int64_t *to, int *count, Bf16Image m, Bf16Conv g, Bf16Box box,
                                     const Bf16Walk *w, int64_t t)
{
    const int64_t at = t % w->group * BF16_ROWS, far = t / w->group, step = bf16_conv_unit(g),
                  line = bf16_axis_step(g.down) * m.row;
    const Bf16Results r = bf16_conv_results(m, g, box);
    const int64_t first = r.first + box.y * r.row + box.x * r.column + far * w->far.result;
    *count = w->all - at < BF16_ROWS ? (int)(w->all - at) : BF16_ROWS;
    if (!bf16_conv_targets(to, w, r.column, first, at, *count))
        return NULL;
    return m.x + (box.y - m.first) * line + (box.x + at) * step + far * w->far.image;
}

/* Finds the rows of tile t of a box: pointers, and where their results go.  Returns their
 * number. */
static RT_SEPARATE int bf16_conv_rows(const bf16 **row, int64_t *to, Bf16Image m, Bf16Conv g,
                                      Bf16Box box, Bf16Walk w, int64_t t)
{
    const int64_t step = bf16_conv_unit(g), line = bf16_axis_step(g.down) * m.row;
    const Bf16Results r = bf16_conv_results(m, g, box);
    int count = 0;
    if (w.order == BF16_LINES) {
        const bf16 *first = bf16_conv_line(to, &count, m, g, box, &w, t);
        for (int i = 0; first && i < count; i++)
            row[i] = first + i * step;
        return first ? count : 0;
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
#endif

#endif
