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
 * bf16_conv_frame.h makes the image that the tiles read, and bf16_conv_walk.h their order.  The
 * gradient of the weights is bf16_conv_dw.h.
 */
#ifndef CPU_BF16_CONV_H
#define CPU_BF16_CONV_H
#include "cpu/bf16_conv_walk.h"

#ifndef RT_DOUBLE
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
/* Computes tiles of LINES whose runs have whole blocks: no row has an address of its own. */
RT_INLINE void bf16_conv_lines(const bf16 *p, Bf16End e, Bf16Conv g, Bf16Work w,
                               const Bf16Runs *runs)
{
    const int inputs = g.channels / g.groups, outputs = g.results / g.groups;
    const int64_t step = bf16_conv_unit(g), panel = bf16_conv_panel(g);
    int64_t reach = 0;
    for (int t = 0; t < runs->count; t++)
        reach = runs->a[t] > reach ? runs->a[t] : reach;
    Bf16Runs ahead =
        *runs; /* the first panels of a 1x1 kernel prefetch the rows of the next tile */
    if (runs->count == 1)
        ahead.ahead = w.first ? BF16_ROWS * step : 0;
    for (int64_t t = w.tiles.first; t < w.tiles.end; t++) {
        int64_t to[BF16_ROWS];
        int count;
        const bf16 *const from = bf16_conv_line(to, &count, w.m, g, w.box, &w.walk, t);
        if (!from)
            continue;
        const int read = count <= BF16_LANES ? BF16_LANES : BF16_ROWS;
        const bool direct =
            (read - 1) * step + reach + runs->length + (g.groups - 1) * inputs <= w.m.end - from;
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

/* Computes tiles of any order. */
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

/* Computes the results of one phase. */
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
