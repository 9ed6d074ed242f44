/* winograd_dw.h -- gradient of a convolution's weights with fewer multiplications: F(m x m, r x r).
 *
 *   dw += G' [ sum over tiles of (B' d B) .* (A dy A') ] G
 *
 * This is the adjoint of y = A' [(G w G') .* (B' d B)] A for w.  A tile of dy, m x m, is
 * transformed to a x a points, a = m + r - 1, and so is a tile of x.  Each point e is a separate
 * product, sums[e] (O x C) = Z[e]' (O x tiles) V[e] (tiles x C): a^2 multiplications instead of
 * m^2 r^2.  The kernel goes through blocks of output and input channels, whose sums stay in the L2
 * cache while all tiles are added, about fifty at a time.  Then one transform leads back to the
 * taps.  A block of inputs is transformed again for each block of outputs, and a block of outputs
 * for each block of inputs; with 64 channels in the other block this costs a tenth of the products.
 * Each sum adds its tiles in order, in blocks that depend on sizes only.  Relative L2 error in f32
 * (direct sum 2e-7 to 5e-7): F(2x2, 3x3) 2.5e-7 to 3e-7, F(2x2, 5x5) 1.8e-6, F(4x4, 3x3) 1.4e-6.
 * Measured on Zen 4, nominal share of the FMA peak with AVX-512 (AVX2), 3 x 3: 64 channels at 56 x
 * 56 178 % (169), direct 95 (90); 256 at 14 x 14 178 (157), direct 96 (87); 128 at 4 x 4 175 (159),
 * direct 130 (128).
 * Source: Lavin & Gray 2016, "Fast algorithms for convolutional neural networks".
 */
#ifndef CPU_WINOGRAD_DW_H
#define CPU_WINOGRAD_DW_H
#include "cpu/winograd.h"

enum {
    WINO_DW_SCRATCH = 704 * 1024 / sizeof(real), /* sums, V and Z: most of a core's L2 cache */
    WINO_DW_SUMS = 264 * 1024 / sizeof(real),    /* of these, sums */
};

/* The division of the work.  in, out: channels of a block, in whole register tiles (the last block
 * can have fewer); tiles: tiles of a product; row: reals from one row of Z to the next. */
typedef struct WinoBlock {
    int in, out, tiles, row;
} WinoBlock;
RT_INLINE WinoBlock wino_dw_block(Conv c, int m)
{
    const int a = wino_side(c, m), tiles = c.n * conv_ceil(c.oh, m) * conv_ceil(c.ow, m);
    const int most = (a == 4 ? 256 : 128) / sizeof(real), all = conv_ceil(c.c, V) * V,
              in = all < most ? all : most, rows = conv_ceil(c.o, TILE_ROWS),
              fit_rows = WINO_DW_SUMS / (a * a * in * TILE_ROWS),
              out = (rows < fit_rows ? rows : fit_rows) * TILE_ROWS, row = conv_ceil(out, V) * V,
              fit = (WINO_DW_SCRATCH / (a * a) - out * in - 3 * WINO_GAP) / (in + row);
    return (WinoBlock){in, out, conv_ceil(tiles, conv_ceil(tiles, fit)), row};
}

/* Computes Z[e] for V outputs of one tile: transforms m x m gradients, with zeros outside of the
 * image, to a x a points. */
RT_INLINE void wino_dw_gradient(vec *z, const real *dy, WinoTile at, Conv c, int a, int m,
                                int lanes)
{
    vec y[16], h[4 * WINO_A];

    for (int k = 0; k < m * m; k++) {
        const int oy = at.y + k / m, ox = at.x + k % m;
        y[k] = lanes > 0 && oy < c.oh && ox < c.ow
                   ? v_load_lanes(dy + (((int64_t)at.n * c.oh + oy) * c.ow + ox) * c.o, lanes)
                   : v_set(0);
    }
    RT_UNROLL
    for (int i = 0; i < m; i++)
        wino_gradient_1d(h + i * a, 1, y + i * m, 1, a, m);
    RT_UNROLL
    for (int j = 0; j < a; j++)
        wino_gradient_1d(z + j, a, h + j, a, a, m);
}

/* t[e * step + k] for the first `there` channels; zeros up to a multiple of `unit`.  The body
 * computes the points d of a vector of `lanes` channels from k on. */
#define WINO_DW_EACH(t_, step_, there_, unit_, a_, ...)                                            \
    for (int k = 0; k < conv_ceil(there_, unit_) * (unit_); k += V) {                              \
        const int lanes = (there_)-k < V ? (there_)-k : V;                                         \
        vec d[WINO_A * WINO_A];                                                                    \
        __VA_ARGS__;                                                                               \
        RT_UNROLL                                                                                  \
        for (int e = 0; e < (a_) * (a_); e++)                                                      \
            v_store((t_) + e * (step_) + k, d[e]);                                                 \
    }

/* Whole vectors have separate code. */
RT_INLINE void wino_dw_input(vec *d, const real *x, WinoTile at, Conv c, int a, int lanes)
{
    if (lanes == V)
        wino_input_vector(d, x, at, c, a, V);
    else
        wino_input_vector(d, x, at, c, a, lanes);
}

/* Computes a register tile of sums[e], TILE_ROWS outputs by `vectors` vectors of inputs: = (fresh)
 * or += over `tiles` tiles. */
RT_INLINE void wino_dw_tile(real *restrict sums, const real *restrict z, const real *restrict v,
                            WinoBlock b, int vectors, int tiles, bool fresh)
{
    vec s[TILE_MAX];
    RT_UNROLL
    for (int k = 0; k < TILE_ROWS * vectors; k++)
        s[k] = v_set(0);
    tile_product(s, (TileRows){.count = TILE_ROWS, .step = 1}, vectors, tiles, z, b.row, v, b.in,
                 vectors * V);
    RT_UNROLL
    for (int k = 0; k < TILE_ROWS * vectors; k++) {
        real *const to = sums + (int64_t)(k / vectors) * b.in + k % vectors * V;
        v_store(to, fresh ? s[k] : v_load(to) + s[k]);
    }
}

/* sums[e] (outs x ins) = or += Z[e]' V[e] over `tiles` tiles.  The last inputs, if they are at most
 * a vector, go in tiles half as wide: 16 channels at 32 x 32 take 0.76 of the time on AVX-512, 48
 * at 16 x 16 take 0.88. */
RT_INLINE void wino_dw_product(real *restrict sums, const real *restrict z, const real *restrict v,
                               WinoBlock b, int ins, int outs, int tiles, int points, bool fresh,
                               TeamRange own, TeamRange own_points)
{
    const int pairs = conv_ceil(ins, V) / 2 * P;
    for (int e = 0; e < points; e++, sums += (int64_t)b.out * b.in + WINO_GAP,
             z += (int64_t)b.tiles * b.row + WINO_GAP, v += (int64_t)b.tiles * b.in + WINO_GAP)
        for (int o = 0; o < outs && team_has(own_points, e); o += TILE_ROWS) {
            real *const to = sums + (int64_t)o * b.in;
            if (!team_has(own, o))
                continue;
            for (int i = 0; i < pairs; i += P)
                wino_dw_tile(to + i, z + o, v + i, b, 2, tiles, fresh);
            if (pairs < ins)
                wino_dw_tile(to + pairs, z + o, v + pairs, b, 1, tiles, fresh);
        }
}

/* dw: r x s taps, `step` apart, of V inputs to one output; = (write) or += the points of t. */
RT_INLINE void wino_dw_taps(real *dw, int64_t step, const real *t, int64_t t_step, int taps, int a,
                            int lanes, bool write)
{
    vec h[5 * WINO_A], g[5];

    RT_UNROLL
    for (int j = 0; j < a; j++) {
        vec x[WINO_A];
        RT_UNROLL
        for (int i = 0; i < a; i++)
            x[i] = v_load(t + (i * a + j) * t_step);
        wino_filter_back(h + j, a, x, taps, a);
    }
    RT_UNROLL
    for (int i = 0; i < taps; i++) {
        wino_filter_back(g, 1, h + i * a, taps, a);
        RT_UNROLL
        for (int j = 0; j < taps; j++) {
            real *const to = dw + (i * taps + j) * step;
            v_store_lanes(to, (write ? v_set(0) : v_load_lanes(to, lanes)) + g[j], lanes);
        }
    }
}

/* How a team shares the kernel.  together = false: members have blocks and rows of their own, and
 * transform what they need.  together = true: the blocks are too few, and members compute each
 * block together: tiles of the transforms, then points and rows of the products, then outputs of
 * the last transform, in the scratch of the first member, with barriers between. */
typedef struct WinoTeam {
    bool together;
    TeamRange blocks, own; /* together = false: blocks of inputs; outputs */
} WinoTeam;
RT_INLINE WinoTeam wino_dw_team(Conv c, WinoBlock b)
{
    const int blocks = conv_ceil(c.c, b.in), rows = conv_ceil(c.o, TILE_ROWS);
    RtGrid part = team_grid(blocks, rows);
    WinoTeam t = {.together = false};
    if (__builtin_expect(rt_team.of > 1, 0)) {
        const RtGrid all = rt_team_shape(blocks, rows);
        const int down = conv_ceil(blocks, all.rows), across = conv_ceil(rows, all.columns);
        /* the largest part has more than 9 / 8 of an equal part */
        t.together = 8 * down * across * rt_team.of > 9 * blocks * rows;
        part = t.together ? (RtGrid){0, 1, 0, 1} : part;
    }
    t.blocks = team_rows(part, blocks), t.own = team_columns(part, rows);
    t.own = (TeamRange){t.own.first * TILE_ROWS, t.own.end * TILE_ROWS};
    return t;
}

/* dw (O, R, S, C) += over samples and positions of dy x; with c.write it is =.  F(m x m). */
RT_INLINE void conv2d_winograd_dw(real *restrict dw, const real *restrict x,
                                  const real *restrict dy, Conv c, int m)
{
    const int a = wino_side(c, m), points = a * a,
              tiles = c.n * conv_ceil(c.oh, m) * conv_ceil(c.ow, m);
    const WinoBlock b = wino_dw_block(c, m);
    const int64_t s_step = (int64_t)b.out * b.in + WINO_GAP,
                  v_step = (int64_t)b.tiles * b.in + WINO_GAP,
                  z_step = (int64_t)b.tiles * b.row + WINO_GAP;
    real own_scratch[WINO_DW_SCRATCH] __attribute__((aligned(64)));
    const WinoTeam team = wino_dw_team(c, b);
    real *const scratch = team_scratch(own_scratch, team.together),
                *const v = scratch + points * s_step, *const z = v + points * v_step;
    int there = -1; /* the block of inputs whose V is in the scratch */

    for (int i = 0; i < c.c; i += b.in)
        for (int o = 0; o < c.o; o += b.out) {
            const int ins = c.c - i < b.in ? c.c - i : b.in,
                      outs = c.o - o < b.out ? c.o - o : b.out;
            const bool transform = there != i || b.tiles < tiles;
            if (!team_has(team.blocks, i / b.in) || o + outs <= team.own.first || o >= team.own.end)
                continue;
            there = i;
            const RtGrid parts = team_grid_if(team.together, points, conv_ceil(outs, TILE_ROWS)),
                         last = team_grid_if(team.together, outs, conv_ceil(ins, V));
            const TeamRange shared = team_columns(parts, conv_ceil(outs, TILE_ROWS)),
                            rows = {team.together ? shared.first * TILE_ROWS : team.own.first - o,
                                    team.together ? shared.end * TILE_ROWS : team.own.end - o},
                            filters = team_rows(last, outs),
                            vectors = team_columns(last, conv_ceil(ins, V));
            for (int first = 0; first < tiles; first += b.tiles) {
                const int count = tiles - first < b.tiles ? tiles - first : b.tiles;
                const TeamRange own_tiles = team_range_if(team.together, count);
                for (int t = (int)own_tiles.first; t < own_tiles.end; t++) {
                    const WinoTile at = wino_tile(first + t, c, m);
                    if (transform)
                        WINO_DW_EACH(v + (int64_t)t * b.in, v_step, ins, V, a,
                                     wino_dw_input(d, x + i + k, at, c, a, lanes))
                    WINO_DW_EACH(z + (int64_t)t * b.row, z_step, outs, TILE_ROWS, a,
                                 if (o + k + V <= team.own.first || o + k >= team.own.end) continue;
                                 wino_dw_gradient(d, dy + o + k, at, c, a, m, lanes))
                }
                if (team.together)
                    TEAM_BARRIER;
                wino_dw_product(scratch, z, v, b, ins, outs, count, points, first == 0, rows,
                                team_rows(parts, points));
                if (team.together)
                    TEAM_BARRIER;
            }
            for (int j = 0; j < outs; j++)
                for (int k = 0; k < ins && team_has(team.own, o + j) && team_has(filters, j);
                     k += V)
                    if (team_has(vectors, k / V))
                        wino_dw_taps(dw + (int64_t)(o + j) * c.r * c.s * c.c + i + k, c.c,
                                     scratch + (int64_t)j * b.in + k, s_step, c.r, a,
                                     ins - k < V ? ins - k : V, c.write);
            if (team.together)
                TEAM_BARRIER;
        }
}

#endif
