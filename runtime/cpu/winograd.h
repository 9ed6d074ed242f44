/* winograd.h -- convolution with stride 1 through fewer multiplications: F(m x m, r x r).
 *
 *   y = A' [ (G w G') .* (B' d B) ] A    d: a x a inputs of a tile, a = m + r - 1; y: m x m outputs
 *
 * An output tile costs a^2 multiplications for each pair of channels instead of m^2 r^2: 2.25 times
 * fewer for F(2x2, 3x3), 4 for F(4x4, 3x3), 2.8 for F(2x2, 5x5).  There are a^2 products
 * M[e] (tiles x O) = V[e] (tiles x C) U[e] (C x O), one for each element e of the transformed tile.
 * Tiles are processed in blocks, so that V and one panel of M stay in the L2 cache.
 * Points 0, 1, -1, infinity for a = 4 and 0, 1, -1, 2, -2, infinity for a = 6.  Error compared with
 * direct convolution: F(2x2) about the same, F(4x4) 3-4 times as large.
 * Source: Winograd 1980; Lavin & Gray 2016, "Fast algorithms for convolutional neural networks".
 */
#ifndef CPU_WINOGRAD_H
#define CPU_WINOGRAD_H
#include "cpu/conv_pool_lanes.h"
#include "cpu/winograd_pack.h"
#include "cpu/winograd_transform.h"

/* ----------------------------------------------------------------------------- a block of tiles */

/* Speed of a 3x3 convolution of 512 channels at 7 x 7, relative to oneDNN's, on a Xeon: 1.2 with
 * WINO_BUDGET_FAR, 1.0 with half of it. */
enum {
    WINO_SCRATCH = RT_WINO_BYTES / sizeof(real),  /* V and one panel of M, at most */
    WINO_BUDGET = RT_WINO_NEAR / sizeof(real),    /* of these, if U stays in a core's L2 cache */
    WINO_BUDGET_FAR = RT_WINO_FAR / sizeof(real), /* of these, if U is read again for each block */
    WINO_BLOCK = RT_WINO_BLOCK,                   /* tiles of a block, at most */
    WINO_GAP = 64 / sizeof(real) /* between points: one line, so that they share no cache sets */
};

/* Whether the filters do not fit the L2 cache. */
RT_LEAF bool wino_far(Conv c, int m)
{
    return tile_far((int64_t)wino_side(c, m) * wino_side(c, m) * c.c * c.o);
}

/* Tiles of a block: whole register tiles, as many as fit, in blocks of nearly equal size. */
RT_LEAF int wino_block(Conv c, int m)
{
    const int a = wino_side(c, m),
              fit = (wino_far(c, m) ? WINO_BUDGET_FAR : WINO_BUDGET) / (a * a * (c.c + P)),
              most = fit < WINO_BLOCK ? fit : WINO_BLOCK,
              whole = most < TILE_ROWS ? TILE_ROWS : most / TILE_ROWS * TILE_ROWS,
              tiles = c.n * conv_ceil(c.oh, m) * conv_ceil(c.ow, m);
    return conv_ceil(conv_ceil(tiles, conv_ceil(tiles, whole)), TILE_ROWS) * TILE_ROWS;
}

/* Whether the scratch holds one register tile of these channels.  The compiler tests the same, with
 * eight rows, before it chooses this kernel (compiler/passes/choose.c). */
#define WINO_FITS(q, m)                                                                            \
    (((m) + (q).r - 1) * ((m) + (q).r - 1) * ((q).c + P) * TILE_ROWS <= WINO_SCRATCH)

/* The position of a tile: sample, first output row and column. */
typedef struct WinoTile {
    int n, y, x;
} WinoTile;
RT_LEAF WinoTile wino_tile(int tile, Conv c, int m)
{
    const int across = conv_ceil(c.ow, m), down = conv_ceil(c.oh, m);
    return (WinoTile){tile / (across * down), tile / across % down * m, tile % across * m};
}

/* Computes V[e] for `lanes` channels of one tile: a x a positions, zeros outside of the image,
 * transformed in both directions.  x: the first of these channels in the first sample.  Tiles at
 * the border are unrolled, too: a loop over d keeps it in memory, and a convolution of 14 x 14 with
 * padding took an eighth longer. */
RT_LEAF void wino_input_vector(vec *d, const real *x, WinoTile at, Conv c, int a, int lanes)
{
    const int top = at.y - c.pad_h, left = at.x - c.pad_w;
    const real *from = x + (((int64_t)at.n * c.h + top) * c.w + left) * c.c;

    if (lanes > 0 && top >= 0 && left >= 0 && top + a <= c.h && left + a <= c.w) {
        RT_UNROLL
        for (int i = 0; i < a; i++) {
            RT_UNROLL
            for (int j = 0; j < a; j++)
                d[i * a + j] = v_load_lanes(from + ((int64_t)i * c.w + j) * c.c, lanes);
        }
    } else {
        RT_UNROLL
        for (int i = 0; i < a; i++) {
            const bool row = lanes > 0 && top + i >= 0 && top + i < c.h;
            RT_UNROLL
            for (int j = 0; j < a; j++)
                d[i * a + j] = row && left + j >= 0 && left + j < c.w
                                   ? v_load_lanes(from + ((int64_t)i * c.w + j) * c.c, lanes)
                                   : v_set(0);
        }
    }
    RT_UNROLL
    for (int j = 0; j < a; j++)
        wino_input_1d(d + j, a, a);
    RT_UNROLL
    for (int i = 0; i < a; i++)
        wino_input_1d(d + i * a, 1, a);
}

/* Computes V[e][C] of one tile, `lanes` channels. */
RT_LEAF void wino_input_lanes(real *v, int64_t v_step, const real *x, WinoTile at, Conv c, int a,
                              int lanes)
{
    vec d[WINO_A * WINO_A];
    wino_input_vector(d, x, at, c, a, lanes);
    RT_UNROLL
    for (int i = 0; i < a; i++) {
        RT_UNROLL
        for (int j = 0; j < a; j++)
            v_store_lanes(v + (i * a + j) * v_step, d[i * a + j], lanes);
    }
}

/* Computes V[e] for all channels; the last few (of LeNet's 20) have separate code. */
RT_LEAF void wino_input(real *v, int64_t v_step, const real *x, WinoTile at, Conv c, int a)
{
    const int full = c.c / V * V;
    for (int k = 0; k < full; k += V)
        wino_input_lanes(v + k, v_step, x + k, at, c, a, V);
    if (full < c.c)
        wino_input_lanes(v + full, v_step, x + full, at, c, a, c.c - full);
}

/* Computes a tile of M[e]: `rows` tiles of the image by `lanes` outputs, in whole vectors and a
 * half. */
RT_LEAF void wino_product_tile(real *restrict t, const real *restrict v, const real *restrict u,
                               int channels, int rows, int lanes, bool far)
{
    const TileRows r = {.count = rows, .step = channels};
    const bool half = lanes > V && lanes <= V + VH && V / VH == 2;
    const int vectors = lanes > V && !half ? 2 : 1;
    vec s[TILE_MAX];
    hvec h[TILE_MAX];
    RT_UNROLL
    for (int k = 0; k < rows * vectors; k++)
        s[k] = v_set(0);
    RT_UNROLL
    for (int k = 0; k < rows; k++)
        h[k] = h_low(v_set(0));
    if (half)
        tile_product_half(s, h, r, channels, v, 1, u, P);
    else if (far)
        tile_product_far(s, r, vectors, channels, v, 1, u, P, vectors * V);
    else
        tile_product(s, r, vectors, channels, v, 1, u, P, vectors * V);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store(t + i * P + j * V, s[i * vectors + j]);
        if (half)
            h_store(t + i * P + V, h[i]);
    }
}

/* M[e] (rows x P) = V[e] (rows x C) U[e] (C x P) for all e, for the first `rows` tiles of a block,
 * in whole register tiles; lanes: outputs of the panel that are needed.  With the half vector, a
 * panel of 18 outputs (LeNet's 50) takes 0.75 of the time of 32: conv2 takes 4 % less, on Zen 4. */
RT_LEAF void wino_product(real *restrict t, const real *restrict v, const real *restrict u,
                          int block, int rows, int channels, int points, int lanes, bool far)
{
    const int64_t v_step = (int64_t)block * channels + WINO_GAP,
                  t_step = (int64_t)block * P + WINO_GAP;
    for (int e = 0; e < points; e++, u += (int64_t)channels * P, v += v_step, t += t_step)
        for (int i = 0; i < rows; i += TILE_ROWS)
            wino_product_tile(t + i * P, v + (int64_t)i * channels, u, channels, TILE_ROWS, lanes,
                              far);
}

/* The same for a whole panel, as a separate function: gcc 12 moves the constants of an activation
 * (gelu has 30) out of all loops, and keeps them in AVX2's 16 registers, which the sums of the
 * product need. */
static RT_SEPARATE void wino_product_panel(real *restrict t, const real *restrict v,
                                           const real *restrict u, int block, int rows,
                                           int channels, int points, bool far)
{
    wino_product(t, v, u, block, rows, channels, points, P, far);
}

/* A vector of M with at least the lanes that are needed; products write halves if these suffice. */
RT_LEAF vec wino_load(const real *t, int lanes)
{
    return V / VH == 2 ? v_load_n(t, lanes) : v_load(t);
}

/* y[m][m] of one tile, `lanes` outputs: t at element 0 of the tile, elements t_step apart. */
RT_LEAF void wino_output(vec *y, const real *t, int64_t t_step, vec bias, int a, int m, int lanes)
{
    vec x[WINO_A * WINO_A], h[4 * WINO_A];

    RT_UNROLL
    for (int i = 0; i < a; i++) {
        RT_UNROLL
        for (int j = 0; j < a; j++)
            x[i * a + j] = wino_load(t + (i * a + j) * t_step, lanes);
    }
    RT_UNROLL
    for (int j = 0; j < a; j++)
        wino_output_1d(h + j, a, x + j, a, a, m);
    RT_UNROLL
    for (int i = 0; i < m; i++) {
        wino_output_1d(y + i * m, 1, h + i * a, 1, a, m);
        RT_UNROLL
        for (int j = 0; j < m; j++)
            y[i * m + j] = y[i * m + j] + bias;
    }
}

/* ------------------------------------------------------------------------------- the kernels */

/* A team member's tiles of `all`: whole register tiles. */
RT_LEAF TeamRange wino_part(RtGrid part, int all)
{
    TeamRange r = team_rows(part, conv_ceil(all, TILE_ROWS));
    r.first *= TILE_ROWS;
    r.end = r.end * TILE_ROWS < all ? r.end * TILE_ROWS : all;
    return r;
}

/* Runs a body for each vector of outputs of each tile: `out` [m * m], tile `at`, output channel
 * `o`, `lanes` lanes. */
#define WINO_EACH(c_, m_, x_, u_, bias_, ...)                                                      \
    do {                                                                                           \
        const int wa = wino_side(c_, m_), wb = wino_block(c_, m_);                                 \
        const int all_ = (c_).n * conv_ceil((c_).oh, m_) * conv_ceil((c_).ow, m_);                 \
        const RtGrid part_ = team_grid(conv_ceil(all_, TILE_ROWS), conv_ceil((c_).o, P));          \
        const TeamRange mine_ = wino_part(part_, all_),                                            \
                        panels_ = team_columns(part_, conv_ceil((c_).o, P));                       \
        const int tiles = (int)mine_.end;                                                          \
        real scratch[WINO_SCRATCH + 2 * WINO_A * WINO_A * WINO_GAP] __attribute__((aligned(64)));  \
        const int64_t wv = (int64_t)wb * (c_).c + WINO_GAP, wm = (int64_t)wb * P + WINO_GAP;       \
        real *const wt = scratch + wa * wa * wv;                                                   \
        for (int first_ = (int)mine_.first; first_ < tiles; first_ += wb) {                        \
            const int count_ = tiles - first_ < wb ? tiles - first_ : wb;                          \
            const int rows_ = conv_ceil(count_, TILE_ROWS) * TILE_ROWS;                            \
            for (int i = 0; i < count_; i++)                                                       \
                wino_input(scratch + (int64_t)i * (c_).c, wv, x_, wino_tile(first_ + i, c_, m_),   \
                           c_, wa);                                                                \
            for (int i = count_; i < rows_; i++)                                                   \
                for (int e = 0; e < wa * wa; e++)                                                  \
                    memset(scratch + e * wv + (int64_t)i * (c_).c, 0, sizeof(real) * (c_).c);      \
            for (int panel_ = 0; panel_ * P < (c_).o; panel_++) { /* literal: gcc unrolls it */    \
                if (!team_has(panels_, panel_))                                                    \
                    continue;                                                                      \
                const real *const wu = (u_) + (int64_t)panel_ * wa * wa * (c_).c * P;              \
                if (panel_ < (c_).o / P)                                                           \
                    wino_product_panel(wt, scratch, wu, wb, rows_, (c_).c, wa *wa,                 \
                                       wino_far(c_, m_));                                          \
                else                                                                               \
                    wino_product(wt, scratch, wu, wb, rows_, (c_).c, wa *wa, (c_).o % P,           \
                                 wino_far(c_, m_));                                                \
                for (int i = 0; i < count_; i++)                                                   \
                    for (int o = panel_ * P; o < panel_ * P + P && o < (c_).o; o += V) {           \
                        const int lanes = (c_).o - o < V ? (c_).o - o : V;                         \
                        const WinoTile at = wino_tile(first_ + i, c_, m_);                         \
                        vec out[16];                                                               \
                        wino_output(out, wt + (int64_t)i * P + o % P, wm,                          \
                                    (bias_) ? v_load_lanes((bias_) + o, lanes) : v_set(0), wa, m_, \
                                    lanes);                                                        \
                        __VA_ARGS__                                                                \
                    }                                                                              \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* y (N, OH, OW, O) = act(conv(x) + bias); u from wino_pack. */
RT_LEAF void conv2d_winograd(real *restrict y, const real *restrict x, const real *restrict u,
                             const real *restrict bias, Act act, Conv c, int m)
{
    WINO_EACH(c, m, x, u, bias, {
        for (int k = 0; k < m * m; k++) {
            const int oy = at.y + k / m, ox = at.x + k % m;
            if (oy < c.oh && ox < c.ow)
                v_store_lanes(y + (((int64_t)at.n * c.oh + oy) * c.ow + ox) * c.o + o, act(out[k]),
                              lanes);
        }
    });
}

/* y, index (N, OH/2, OW/2, O): the same with a fused 2x2 max-pool; see conv2d_pool. */
RT_LEAF void conv2d_winograd_pool(real *restrict y, uint8_t *restrict index, const real *restrict x,
                                  const real *restrict u, const real *restrict bias, Act act,
                                  Conv c, int m)
{
    WINO_EACH(c, m, x, u, bias, {
        for (int k = 0; k < m * m / 4; k++) {
            const int i = k / (m / 2) * 2, j = k % (m / 2) * 2;
            const int py = (at.y + i) / 2, px = (at.x + j) / 2;
            const vec corner[4] = {out[i * m + j], out[i * m + j + 1], out[(i + 1) * m + j],
                                   out[(i + 1) * m + j + 1]};
            const int64_t to = (((int64_t)at.n * (c.oh / 2) + py) * (c.ow / 2) + px) * c.o + o;
            vec number;
            if (py < c.oh / 2 && px < c.ow / 2) {
                v_store_lanes(y + to, act(pool_corners(corner, 1, &number)), lanes);
                v_store_bytes(index + to, number, lanes);
            }
        }
    });
}

/* dx (N, H, W, C) = mask(transposed convolution of dy (N, OH, OW, O), y); u from wino_pack_dx. */
RT_LEAF void conv2d_winograd_dx(real *restrict dx, const real *restrict u, const real *restrict dy,
                                Mask mask, const real *restrict y, Conv c, int m)
{
    const Conv b = {.n = c.n,
                    .c = c.o,
                    .h = c.oh,
                    .w = c.ow,
                    .o = c.c,
                    .r = c.r,
                    .s = c.s,
                    .stride_h = 1,
                    .stride_w = 1,
                    .pad_h = c.r - 1 - c.pad_h,
                    .pad_w = c.s - 1 - c.pad_w,
                    .dil_h = 1,
                    .dil_w = 1,
                    .groups = 1,
                    .oh = c.h,
                    .ow = c.w};
    const real *const none = NULL;
    WINO_EACH(b, m, dy, u, none, {
        for (int k = 0; k < m * m; k++) {
            const int oy = at.y + k / m, ox = at.x + k % m;
            const int64_t to = (((int64_t)at.n * b.oh + oy) * b.ow + ox) * b.o + o;
            if (oy < b.oh && ox < b.ow)
                v_store_lanes(dx + to,
                              y ? mask(out[k], v_load_lanes(y + to, lanes))
                                : mask(out[k], v_set(0)),
                              lanes);
        }
    });
}

#endif
