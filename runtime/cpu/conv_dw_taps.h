/* conv_dw_taps.h -- gradient of the weights for small images, where many taps lie outside of the
 * image, and for 1x1 kernels.
 *
 * For each tap, the positions of all samples whose tap lies in the image are copied, TAPS_POSITIONS
 * at a time: dy into stripes as wide as the rows of a register tile, x into a panel of P channels.
 * So a tile reads two contiguous streams and multiplies no zeros: 16 of 36 products remain at 2 x 2
 * pixels, 361 of 441 at 7 x 7.  For 1 x 1 kernels, the copies avoid rows so far apart that they
 * share cache sets and need many pages.  Measured on AVX-512, nominal share of the FMA peak for 3 x
 * 3: 108 % at 7 x 7 (in place 82), 133 at 4 x 4 (92), 204 at 2 x 2 (76), 790 at 1 x 1 (32).
 */
#ifndef CPU_CONV_DW_TAPS_H
#define CPU_CONV_DW_TAPS_H

enum {
    TAPS_POSITIONS = RT_TAPS_POSITIONS,                  /* positions in a block */
    TAPS_COLUMNS = 256 * 1024 / sizeof(real),            /* reals of x in a block */
    TAPS_STRIPE = (TAPS_POSITIONS + 4) * TILE_ROWS + 16, /* no power of two: no shared cache sets */
    TAPS_FEW = RT_TAPS_FEW,                              /* positions of a sample, at most */
    TAPS_OUTPUTS = 256 * 1024 / sizeof(real) / TAPS_POSITIONS / TILE_ROWS * TILE_ROWS
};

/* A rectangle of positions (oy, ox) of the output image, the same in each sample. */
typedef struct ConvWindow {
    int y, x, h, w;
} ConvWindow;

/* Finds the outputs along one axis whose tap, `at` pixels after the window's first, lies in the
 * image. */
RT_INLINE void conv_inside(int *first, int *count, int at, int pad, int stride, int size, int out)
{
    const int low = pad > at ? conv_ceil(pad - at, stride) : 0, last = size - 1 + pad - at;
    const int high = last < 0 ? 0 : last / stride + 1 < out ? last / stride + 1 : out;
    *first = low;
    *count = high > low ? high - low : 0;
}

RT_INLINE ConvWindow conv_window(Conv c, int r, int s)
{
    ConvWindow v;
    conv_inside(&v.y, &v.h, r * c.dil_h, c.pad_h, c.stride_h, c.h, c.oh);
    conv_inside(&v.x, &v.w, s * c.dil_w, c.pad_w, c.stride_w, c.w, c.ow);
    return v;
}

/* 1 x 1 without padding, with rows so wide that they evict each other from the cache if read in
 * place.  With copies, 256->64 at 56 x 56 takes 0.85 of the time on AVX-512 and 0.75 on AVX2;
 * 1 x 1/2 512->256 at 28 x 28 takes 0.6. */
enum { TAPS_WIDE_IN = 128, TAPS_WIDE_OUT = 256 };
RT_INLINE bool conv_dw_wide(Conv c)
{
    return c.r == 1 && c.s == 1 && !conv_padded(c) && (c.c > TAPS_WIDE_IN || c.o > TAPS_WIDE_OUT);
}

/* Whether the copies pay: rows are wide, or a tenth or more of the vectors of products is saved, or
 * a sample has so few positions that a kernel in place would load and store its sums too often. */
RT_INLINE bool conv_dw_by_taps(Conv c)
{
    const int inputs = c.c / c.groups;
    const bool whole = c.groups == 1 && c.dil_w == 1;
    const int tap = conv_ceil(inputs, V), row = whole ? conv_ceil(c.s * inputs, V) : c.s * tap;
    int64_t rows = 0, columns = 0; /* of all windows; two short loops, which gcc computes */
    for (int r = 0; r < c.r; r++)
        rows += conv_window(c, r, 0).h;
    for (int s = 0; s < c.s; s++)
        columns += conv_window(c, 0, s).w;
    return conv_dw_wide(c) || rows * columns * tap * 10 <= (int64_t)c.oh * c.ow * c.r * row * 9 ||
           (!conv_dw_flat(c) && c.oh * c.ow <= TAPS_FEW && tap == row / c.s);
}

/* ----------------------------------------------------------------------------------- the copies */

/* Runs a body for positions first .. first + count - 1 of a window: index i, sample n, position oy,
 * ox. */
#define TAPS_EACH(w_, first_, count_, ...)                                                         \
    for (int i = 0, ox = (first_) % (w_).w, oy = (first_) / (w_).w % (w_).h,                       \
             n = (first_) / (w_).w / (w_).h;                                                       \
         i < (count_); i++) {                                                                      \
        __VA_ARGS__;                                                                               \
        if (++ox == (w_).w) {                                                                      \
            ox = 0;                                                                                \
            if (++oy == (w_).h)                                                                    \
                oy = 0, n++;                                                                       \
        }                                                                                          \
    }

/* Copies to t [panel][count][P] the channels of tap (r, s) at the window's positions. */
RT_INLINE void conv_dw_taps_x(real *restrict t, const real *restrict x, Conv c, ConvWindow w, int r,
                              int s, int first, int count, int channels)
{
    const int top = w.y * c.stride_h - c.pad_h + r * c.dil_h,
              left = w.x * c.stride_w - c.pad_w + s * c.dil_w;
    TAPS_EACH(w, first, count, {
        const int iy = top + oy * c.stride_h, ix = left + ox * c.stride_w;
        const real *from = x + (((int64_t)n * c.h + iy) * c.w + ix) * c.c;
        real *to = t + (int64_t)i * P;
        int k = 0;
        for (; k + P <= channels; k += P, to += (int64_t)count * P)
            RT_MAP(P, STORE(to, LOAD(from + k)));
        if (k < channels)
            RT_MAP(channels - k, STORE(to, LOAD(from + k)));
    });
}

/* Copies to t [tile][TAPS_STRIPE] TILE_ROWS outputs side by side at each of the window's
 * positions. */
RT_INLINE void conv_dw_taps_dy(real *restrict t, const real *restrict dy, Conv c, ConvWindow w,
                               int first, int count, int outputs)
{
    TAPS_EACH(w, first, count, {
        const real *from = dy + (((int64_t)n * c.oh + w.y + oy) * c.ow + w.x + ox) * c.o;
        real *to = t + i * TILE_ROWS;
        int o = 0;
        for (; o + TILE_ROWS <= outputs; o += TILE_ROWS, to += TAPS_STRIPE)
            memcpy(to, from + o, sizeof(real) * TILE_ROWS);
        for (int k = 0; o + k < outputs; k++)
            to[k] = from[o + k];
    });
}

/* ---------------------------------------------------------------------- prefetch of the next block
 * The product of a block reads no memory outside the caches.  So while a block is multiplied, the
 * lines of x and dy of the next block are prefetched into the L2 cache, a few lines every TAPS_STEP
 * positions.  256->64 at 56 x 56: 112 instead of 105 GFLOP/s a core. */
enum { TAPS_STEP = 16, TAPS_LINE = 64 };

/* Lines to prefetch: `rows` rows of `width` bytes, `step` bytes apart; the first row continues at
 * `line`. */
typedef struct TapsLines {
    const char *at;
    int rows, width, line;
    int64_t step;
} TapsLines;

/* Lines of x and dy to prefetch, and the number of lines every TAPS_STEP positions of a tile. */
typedef struct TapsNext {
    TapsLines x, dy;
    int lines;
} TapsNext;

RT_INLINE void taps_prefetch(TapsLines *a)
{
    __builtin_prefetch(a->at + a->line, 0, 2);
    a->line += TAPS_LINE;
    if (a->line >= a->width)
        a->line = 0, a->at += a->step, a->rows--;
}
RT_INLINE void taps_prefetch_next(TapsNext *next)
{
    for (int i = 0; i < next->lines; i++)
        if (next->x.rows)
            taps_prefetch(&next->x);
        else if (next->dy.rows)
            taps_prefetch(&next->dy);
}

/* The part of `from` (positions of `all` channels) that a block reads: positions from `first` on,
 * at most `most` channels from k on. */
RT_INLINE TapsLines taps_lines(const real *from, int all, int first, int positions, int k, int most)
{
    const int channels = all - k < most ? all - k : most;
    return (TapsLines){(const char *)(from + (int64_t)first * all + k), positions,
                       channels * (int)sizeof(real), 0, all * (int64_t)sizeof(real)};
}

/* A block: positions from `first` on, `outputs` from `o` on, `channels` from `k` on. */
typedef struct TapsBlock {
    int first, count, o, outputs, k, channels;
} TapsBlock;

/* Finds the lines that the block after b reads: the next channels; after the last channels, the
 * next outputs and the first channels; after the last outputs, the next positions.  If a block has
 * all channels, their copy serves all outputs.  Nothing for a team, or if the positions of x are
 * not contiguous. */
RT_INLINE TapsNext conv_dw_taps_next(const real *x, const real *dy, Conv c, TapsBlock b)
{
    const int positions = c.n * c.oh * c.ow, most = TAPS_COLUMNS / (b.count * P) * P;
    const int after = b.first + b.count, left = positions - after,
              count = left < b.count ? left : b.count;
    TapsNext next = {.lines = 0};
    if (!conv_dw_flat(c) || c.groups > 1 || rt_team.of > 1)
        return next;
    if (b.k + b.channels < c.c)
        next.x = taps_lines(x, c.c, b.first, b.count, b.k + b.channels, most);
    else if (b.o + b.outputs < c.o) {
        if (b.channels < c.c)
            next.x = taps_lines(x, c.c, b.first, b.count, 0, most);
        next.dy = taps_lines(dy, c.o, b.first, b.count, b.o + b.outputs, TAPS_OUTPUTS);
    } else if (count > 0) {
        next.x = taps_lines(x, c.c, after, count, 0, most);
        next.dy = taps_lines(dy, c.o, after, count, 0, TAPS_OUTPUTS);
    }
    const int lines = next.x.rows * conv_ceil(next.x.width, TAPS_LINE) +
                      next.dy.rows * conv_ceil(next.dy.width, TAPS_LINE);
    const int steps =
        conv_ceil(b.outputs, TILE_ROWS) * conv_ceil(b.channels, P) * (b.count / TAPS_STEP);
    next.lines = steps ? conv_ceil(lines, steps) : 0;
    return next;
}

/* ---------------------------------------------------------------------------------- the product */

/* dw: `rows` outputs, `filter` reals apart, by up to two vectors of channels.  dw is not in the
 * cache, so the dw of the next tile is prefetched before the product. */
RT_INLINE void conv_dw_taps_tile(real *dw, int64_t filter, const real *dy, const real *x, int count,
                                 int rows, int lanes, bool write, TapsNext *next)
{
    const int vectors = lanes > V ? 2 : 1;
    const TileRows outputs = {.count = rows, .step = 1};
    vec t[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(dw + i * filter + P, 1);
        __builtin_prefetch(dw + i * filter + P + V, 1);
    }
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        t[i] = v_set(0);
    for (; count >= TAPS_STEP; count -= TAPS_STEP) {
        taps_prefetch_next(next);
        tile_product(t, outputs, vectors, TAPS_STEP, dy, TILE_ROWS, x, P, P);
        dy += TAPS_STEP * TILE_ROWS, x += TAPS_STEP * P;
    }
    tile_product(t, outputs, vectors, count, dy, TILE_ROWS, x, P, P);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            real *to = dw + i * filter + j * V;
            const int k = tile_lanes(lanes, j);
            v_store_lanes(to, (write ? v_set(0) : v_load_lanes(to, k)) + t[i * vectors + j], k);
        }
    }
}

/* Computes `rows` outputs by the channels of the block, along the rows of dw.  The last panel of
 * the block is the last one of the group; its lanes are computed from the sizes, so that the
 * compiler keeps sums in registers. */
RT_INLINE void conv_dw_taps_row(real *dw, const real *dy, const real *x, int count, Conv c,
                                int rows, int channels, TapsNext *next)
{
    const int inputs = c.c / c.groups;
    const int64_t filter = (int64_t)c.r * c.s * inputs;
    for (; channels >= P; channels -= P, dw += P, x += (int64_t)count * P)
        conv_dw_taps_tile(dw, filter, dy, x, count, rows, P, c.write, next);
    RT_NEEDS(LEFT, inputs % P);
    if (RT_VARIANT(LEFT) && inputs % P && channels)
        conv_dw_taps_tile(dw, filter, dy, x, count, rows, inputs % P, c.write, next);
}

/* Computes a whole block; dw, dy and x point to its first element. */
RT_INLINE void conv_dw_taps_block(real *dw, const real *ys, const real *xs, TapsBlock b, Conv c,
                                  TapsNext next)
{
    const int64_t filter = (int64_t)c.r * c.s * (c.c / c.groups);
    const int left = c.o / c.groups % TILE_ROWS;
    int outputs = b.outputs;
    for (; outputs >= TILE_ROWS; outputs -= TILE_ROWS, dw += TILE_ROWS * filter, ys += TAPS_STRIPE)
        conv_dw_taps_row(dw, ys, xs, b.count, c, TILE_ROWS, b.channels, &next);
    if (left && outputs)
        conv_dw_taps_row(dw, ys, xs, b.count, c, left, b.channels, &next);
}

/* Computes one tap of a group: outputs own_o and inputs own_k, which begin at a tile and at a
 * panel.  x, dy, dw: at the group's first channel and output; dw also at the tap. */
RT_INLINE void conv_dw_taps_one(real *dw, const real *x, const real *dy, Conv c, int r, int s,
                                TeamRange own_o, TeamRange own_k)
{
    real xs[TAPS_COLUMNS] __attribute__((aligned(64)));
    real ys[TAPS_OUTPUTS / TILE_ROWS * TAPS_STRIPE] __attribute__((aligned(64)));
    const ConvWindow w = conv_window(c, r, s);
    const int inputs = c.c / c.groups;
    const int64_t filter = (int64_t)c.r * c.s * inputs;
    const int positions = c.n * w.h * w.w, blocks = conv_ceil(positions, TAPS_POSITIONS);
    const int outputs_end = (int)own_o.end, inputs_end = (int)own_k.end;

    if (c.write && blocks == 0) /* the tap reads only padding */
        for (int o = (int)own_o.first; o < outputs_end; o++)
            memset(dw + o * filter + own_k.first, 0,
                   sizeof(real) * (size_t)(own_k.end - own_k.first));
    for (int b = 0; b < blocks; b++, c.write = false)
        for (int o = (int)own_o.first; o < outputs_end; o += TAPS_OUTPUTS) {
            const int first = (int)((int64_t)positions * b / blocks),
                      count = (int)((int64_t)positions * (b + 1) / blocks) - first;
            const int some = outputs_end - o < TAPS_OUTPUTS ? outputs_end - o : TAPS_OUTPUTS;
            const int most = TAPS_COLUMNS / (count * P) * P;
            conv_dw_taps_dy(ys, dy + o, c, w, first, count, some);
            for (int k = (int)own_k.first; k < inputs_end; k += most) {
                const int channels = inputs_end - k < most ? inputs_end - k : most;
                const TapsBlock block = {first, count, o, some, k, channels};
                if (o == own_o.first || inputs_end - own_k.first > most)
                    conv_dw_taps_x(xs, x + k, c, w, r, s, first, count, channels);
                /* else the last copy is still valid */
                conv_dw_taps_block(dw + o * filter + k, ys, xs, block, c,
                                   conv_dw_taps_next(x, dy, c, block));
            }
        }
}

/* A team shares a table, whose rows are the panels of inputs of all taps, and whose columns are
 * tiles of outputs. */
RT_INLINE void conv_dw_taps(real *restrict dw, const real *restrict x, const real *restrict dy,
                            Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups, panels = conv_ceil(inputs, P);
    const RtGrid grid = team_grid(c.r * c.s * panels, conv_ceil(outputs, TILE_ROWS));
    const TeamRange rows = team_rows(grid, c.r * c.s * panels);
    TeamRange own = team_columns(grid, conv_ceil(outputs, TILE_ROWS));
    own.first *= TILE_ROWS;
    own.end = own.end * TILE_ROWS < outputs ? own.end * TILE_ROWS : outputs;
    for (int group = 0; group < c.groups; group++, x += inputs, dy += outputs)
        for (int tap = 0; tap < c.r * c.s; tap++) {
            const int64_t first = rows.first - tap * panels, end = rows.end - tap * panels;
            const TeamRange channels = {first > 0 ? first * P : 0, end < panels ? end * P : inputs};
            real *to = dw + ((int64_t)group * outputs * c.r * c.s + tap) * inputs;
            if (first < panels && end > 0)
                conv_dw_taps_one(to, x, dy, c, tap / c.s, tap % c.s, own, channels);
        }
}

#endif
