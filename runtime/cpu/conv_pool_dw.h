/* conv_pool_dw.h -- gradient of the weights of a convolution with a fused 2x2 max-pool.
 *
 * One of three implementations: runs of the image's frame (many channels); whole patches (one to
 * three channels: a run would fill a fraction of a vector); one position at a time (groups and
 * dilated columns, which have no runs).
 */
#ifndef CPU_CONV_POOL_DW_H
#define CPU_CONV_POOL_DW_H
#include "cpu/conv_pool_take.h"

RT_INLINE void pool_dw_positions(real *dw, const real *x, const real *dy, const uint8_t *index,
                                 Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int py = 0; py < c.oh / 2; py++)
        for (int px = 0; px < c.ow / 2; px++, dy += c.o, index += c.o)
            for (int o = 0; o < c.o; o++)
                conv_dw_position(dw + (int64_t)o * c.r * c.s * inputs, x + o / outputs * inputs,
                                 dy[o], c, 2 * py + index[o] / 2, 2 * px + index[o] % 2);
}

/* ---------------------------------------------------------------------------------- run by run */

/* A run of c that begins with a half vector and ends where a run without this half ends. */
RT_INLINE Run run_headed(Conv c, int rows)
{
    const int vectors = run_split(c).vectors;
    return (Run){rows, vectors, c.s * c.c - VH - (vectors - 2) * V, true};
}

/* t += dy x over a list of outputs.  x: at the first kernel row. */
RT_INLINE void pool_dw_list(RunSum *t, const real *x, int64_t row, const PoolTaken *k, int o, Run u)
{
    const int count = k->count[u.head][o];
    const real *const g = k->g[u.head][o];
    const RtInt *const at = k->at[u.head][o];
    for (int i = 0; i < count; i++)
        run_add(t, g[i], x + at[i], row, u);
}

/* The same for both lists; first the runs that begin in the middle of a line. */
RT_INLINE void pool_dw_run(real *dw, const real *x, PoolFrame f, const PoolTaken *k, int o, Conv c,
                           Run u)
{
    RunSum t;
    if (pool_middle(c)) {
        const Run h = run_headed(c, u.rows);
        run_load(&t, dw, c.s * c.c, h);
        pool_dw_list(&t, x, c.dil_h * f.row, k, o, h);
        run_settle(&t, u);
    } else {
        run_load(&t, dw, c.s * c.c, u);
    }
    pool_dw_list(&t, x, c.dil_h * f.row, k, o, u);
    run_store(dw, &t, c.s * c.c, u);
}

RT_INLINE void pool_dw_rows(real *dw, const real *x, PoolFrame f, const PoolTaken *k, int o, Conv c,
                            int rows)
{
    const RunSplit s = run_split(c);
    for (int i = 1; i < s.parts; i++, dw += s.vectors * V, x += s.vectors * V)
        pool_dw_run(dw, x, f, k, o, c, (Run){rows, s.vectors, V, false});
    pool_dw_run(dw, x, f, k, o, c, (Run){rows, s.last, s.lanes, false});
}

RT_INLINE void pool_dw_taken(real *dw, const real *x, PoolFrame f, const PoolTaken *t, Conv c,
                             int outputs)
{
    const TileSplit k = tile_split(c.r, run_rows(c));
    const int64_t length = c.s * c.c, filter = c.r * length, down = c.dil_h * f.row;
    for (int i = 0; i < k.bigs; i++, dw += k.big * length, x += k.big * down)
        for (int o = 0; o < outputs; o++)
            pool_dw_rows(dw + o * filter, x, f, t, o, c, k.big);
    for (int i = 0; i < k.smalls; i++, dw += k.small * length, x += k.small * down)
        for (int o = 0; o < outputs; o++)
            pool_dw_rows(dw + o * filter, x, f, t, o, c, k.small);
}

RT_INLINE void pool_dw_band(real *dw, const real *x, PoolFrame f, const real *dy,
                            const uint8_t *index, Conv c, int bands)
{
    const int windows = bands * (c.ow / 2);
    const TeamRange part = team_range(c.o); /* outputs */
    PoolWindow w;
    PoolTaken t;
    for (int first = 0; first < windows; first += TAKEN_WINDOWS) {
        pool_windows(&w, f, c, first,
                     windows - first < TAKEN_WINDOWS ? windows - first : TAKEN_WINDOWS);
        for (int o = (int)part.first; o < part.end; o += TAKEN_OUTPUTS) {
            const int outputs = part.end - o < TAKEN_OUTPUTS ? (int)part.end - o : TAKEN_OUTPUTS;
            pool_take(&t, &w, f, dy + o, index + o, c, outputs);
            pool_dw_taken(dw + (int64_t)o * c.r * c.s * c.c, x, f, &t, c, outputs);
        }
    }
}

/* Fills the frame for `rows` rows of outputs from oy on: the image with its padding, and a second
 * copy for odd columns. */
RT_INLINE void pool_framed(real *restrict t, const real *restrict x, PoolFrame f, Conv c, int oy,
                           int rows)
{
    const int64_t count = conv_reach_h(c, rows) * f.row;
    FrameRow q;
    if (conv_padded(c))
        memset(t, 0, sizeof(real) * count);
    for (int i = 0; i < conv_reach_h(c, rows); i++)
        if (frame_row(&q, c, oy, i))
            memcpy(t + i * f.row + q.left * c.c, x + (int64_t)q.y * c.w * c.c,
                   sizeof(real) * q.columns * c.c);
    if (f.odd)
        memcpy(t + f.odd, t, sizeof(real) * count);
}

/* Computes the products of one sample. */
RT_INLINE void pool_dw_runs(real *dw, const real *x, const real *dy, const uint8_t *index,
                            PoolFrame f, Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    for (int oy = 0; oy + 2 <= c.oh; oy += f.band) {
        const int rows = c.oh - oy < f.band ? c.oh - oy : f.band;
        const int64_t at = (int64_t)(oy / 2) * (c.ow / 2) * c.o;
        pool_framed(scratch, x, f, c, oy, rows);
        pool_dw_band(dw, scratch, f, dy + at, index + at, c, rows / 2);
    }
}

/* ------------------------------------------------------------------------------ patch by patch
 * The R * S * C taps of a position are copied side by side, PATCHES reals at a time.  The gradient
 * of an output channel is then a few full vectors.  All outputs share the copy.  Windows that see
 * only zeros add nothing and are skipped: a third of the windows of MNIST, half where images are
 * padded. */
enum { PATCHES = 16 * 1024 / sizeof(real), PATCH_MAX = 8, PATCH_WINDOWS = PATCHES / 4 };
RT_INLINE int pool_patch_vectors(Conv c)
{
    return conv_ceil(c.r * c.s * c.c, V);
}

/* Rows of windows whose patches fit; 0: runs are faster.  One of four positions wins in a window,
 * so that a patch is used O / 4 times. */
RT_INLINE int pool_patch_bands(Conv c)
{
    const int vectors = pool_patch_vectors(c), halves = vectors * (V / VH),
              runs = c.r * conv_ceil(c.s * c.c, VH);
    const int64_t row = (int64_t)(c.ow / 2) * 4 * vectors * V;
    const bool better = 2 * c.stride_w * c.c % VH && 4 * halves < 5 * runs && c.o >= 8;
    if (!better || vectors > PATCH_MAX || row > PATCHES || c.groups > 1 || c.dil_w > 1)
        return 0;
    return conv_padded(c) && !conv_band(c, 2) ? 0 : (int)(PATCHES / row);
}

/* Bit k: number k is not 0 in at least one of the rows that a row of windows reads.  All bits are
 * set if a row has more than 64 numbers. */
RT_INLINE uint64_t pool_seen(const real *x, int64_t row, Conv c)
{
    const int rows = c.stride_h + (c.r - 1) * c.dil_h + 1,
              length = ((c.ow / 2 * 2 - 1) * c.stride_w + c.s) * c.c;
    uint64_t seen = 0;
    if (length > 64)
        return ~(uint64_t)0;
    for (int i = 0; i < rows; i++)
        seen |= v_nonzeros(x + i * row, length);
    return seen;
}

/* Windows whose patches were copied, in order, counted from the band's first window. */
typedef struct PoolWindows {
    int count;
    uint16_t at[PATCH_WINDOWS];
} PoolWindows;

/* Copies whole vectors; the next copy overwrites the surplus. */
RT_INLINE void pool_patches(real *t, PoolWindows *w, ConvImage m, Conv c, int bands)
{
    const int length = c.s * c.c, width = (c.stride_w + c.s) * c.c;
    const uint64_t window = width < 64 ? ((uint64_t)1 << width) - 1 : ~(uint64_t)0;
    w->count = 0;
    for (int py = 0; py < bands; py++) {
        const real *rows = m.x + 2 * py * c.stride_h * m.row;
        const uint64_t seen = pool_seen(rows, m.row, c);
        for (int px = 0; px < c.ow / 2; px++) {
            const int at = 2 * px * c.stride_w * c.c;
            if (at < 64 && !(seen >> at & window))
                continue;
            w->at[w->count++] = (uint16_t)(py * (c.ow / 2) + px);
            for (int k = 0; k < 4; k++, t += pool_patch_vectors(c) * V) {
                const real *from =
                    rows + k / 2 * c.stride_h * m.row + at + k % 2 * c.stride_w * c.c;
                RT_UNROLL
                for (int r = 0; r < c.r; r++) {
                    RT_UNROLL
                    for (int i = 0; i < length; i += VH)
                        h_store(t + r * length + i, h_load(from + r * c.dil_h * m.row + i));
                }
            }
        }
    }
}

/* dw += dy x for `outputs` output channels over some windows. */
RT_INLINE void pool_dw_patch(real *dw, const real *patch, const PoolWindows *w, const real *dy,
                             const uint8_t *index, Conv c, int outputs)
{
    const int vectors = pool_patch_vectors(c), taps = c.r * c.s * c.c, size = vectors * V,
              last = taps - (vectors - 1) * V;
    vec t[RUN_MAX];
    RT_UNROLL
    for (int i = 0; i < outputs; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            t[i * vectors + j] = v_load_lanes(dw + i * taps + j * V, j + 1 < vectors ? V : last);
    }
    for (int n = 0; n < w->count; n++, patch += 4 * size) {
        const int at = w->at[n] * c.o;
        RT_UNROLL
        for (int i = 0; i < outputs; i++) {
            const real *from = patch + index[at + i] * size;
            const vec g = v_broadcast(dy + at + i);
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                t[i * vectors + j] = v_fma(g, v_load(from + j * V), t[i * vectors + j]);
        }
    }
    RT_UNROLL
    for (int i = 0; i < outputs; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store_lanes(dw + i * taps + j * V, t[i * vectors + j], j + 1 < vectors ? V : last);
    }
}

/* Computes the products of `rows` rows of outputs. */
RT_INLINE void pool_dw_patches(real *dw, ConvImage m, const real *dy, const uint8_t *index, Conv c,
                               int rows)
{
    real patch[PATCHES + V] __attribute__((aligned(64)));
    PoolWindows w;
    const int taps = c.r * c.s * c.c, most = pool_patch_bands(c);
    const TileSplit k = tile_split(c.o, RUN_MAX / pool_patch_vectors(c));
    for (int py = 0; py < rows / 2; py += most) {
        const int bands = rows / 2 - py < most ? rows / 2 - py : most;
        const int64_t at = (int64_t)py * (c.ow / 2) * c.o;
        const TeamRange tiles = team_range(k.bigs + k.smalls);
        pool_patches(patch, &w, (ConvImage){m.x + 2 * py * c.stride_h * m.row, m.row}, c, bands);
        TEAM_IN(i, k.bigs + k.smalls, tiles) {
            const int o = tile_first(k, i);
            if (i < k.bigs)
                pool_dw_patch(dw + o * taps, patch, &w, dy + at + o, index + at + o, c, k.big);
            else
                pool_dw_patch(dw + o * taps, patch, &w, dy + at + o, index + at + o, c, k.small);
        }
    }
}

/* Computes the products of one sample. */
RT_INLINE void pool_dw_by_patch(real *dw, const real *x, const real *dy, const uint8_t *index,
                                Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const int band = conv_padded(c) ? conv_band(c, 2) : c.oh;
    for (int oy = 0; oy + 2 <= c.oh; oy += band) {
        const int rows = c.oh - oy < band ? c.oh - oy : band;
        const int64_t at = (int64_t)(oy / 2) * (c.ow / 2) * c.o;
        const ConvImage m =
            conv_padded(c) ? conv_pad(scratch, x, c, oy, rows) : (ConvImage){x, (int64_t)c.w * c.c};
        pool_dw_patches(dw, m, dy + at, index + at, c, rows);
    }
}

/* dw (O, R, S, C/g) += dy x; dy and index (N, OH/2, OW/2, O). */
RT_INLINE void conv2d_pool_dw(real *restrict dw, const real *restrict x, const real *restrict dy,
                              const uint8_t *restrict index, Conv c)
{
    const int64_t outputs = (int64_t)(c.oh / 2) * (c.ow / 2) * c.o;
    const PoolFrame f = pool_frame(c);
    for (int n = 0; n < c.n; n++, x += (int64_t)c.h * c.w * c.c, dy += outputs, index += outputs) {
        if (c.groups > 1 || c.dil_w > 1 || (conv_padded(c) && !f.band)) {
            if (TEAM_FIRST)
                pool_dw_positions(dw, x, dy, index, c);
        } else if (pool_patch_bands(c))
            pool_dw_by_patch(dw, x, dy, index, c);
        else if (!f.needed || !f.band)
            pool_dw_band(dw, x, pool_no_frame(c), dy, index, c, c.oh / 2);
        else
            pool_dw_runs(dw, x, dy, index, f, c);
    }
}

#endif
