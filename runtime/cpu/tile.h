/* tile.h -- the inner loop of every dense product: a tile of accumulators that stays in registers.
 *
 *     c[i][j] += sum over k of a[row i][k] * b[k][j]        i < rows, j < vectors (1 or 2)
 *
 * Per k: `vectors` loads and `rows` broadcasts for rows * vectors FMA.  Twelve accumulators or more
 * reach 97 % of the FMA peak on AVX-512 (8 x 2 takes 19 of 32 registers), 6 x 2 on AVX2 (15 of 16).
 */
#ifndef CPU_TILE_H
#define CPU_TILE_H
#include "cpu/half.h"

#if defined(RT_AVX2)
enum { TILE_ROWS = 6, TILE_ROWS_1 = 12 }; /* rows of a tile two vectors and one vector wide */
#elif defined(RT_SCALAR)
enum { TILE_ROWS = 4, TILE_ROWS_1 = 6 };
#else
enum { TILE_ROWS = RT_TILE_ROWS_MOST, TILE_ROWS_1 = 16 };
#endif
enum { TILE_WINDOWS = TILE_ROWS == 8 ? 3 : 1 }; /* 2x2 windows in a pooled tile */
enum { TILE_MAX = 32 };                         /* accumulators, for array sizes */
enum { TILE_FAR = 64 };                         /* steps by which b is prefetched if it is far */
enum { TILE_FAR_REALS = 2048 * 1024 / sizeof(real) }; /* weights of more reals are far */

/* Whether this number of weights is too large for the L2 cache. */
RT_LEAF bool tile_far(int64_t weights)
{
    return weights > TILE_FAR_REALS;
}

/* Stands before the accumulators of a tile: no vector stays in a register across this macro.
 * Otherwise gcc moves constants of a tile's end, such as masks of lanes and the 0 of a ReLU, out of
 * the loop over tiles.  Then AVX2's registers do not suffice in the inner loop, and
 * accumulators lie on the stack.  Zen 4, AVX2: 1x1 layers of DenseNet, backward, with a last panel
 * that is not full, take 0.83 to 0.94 of the time; LeNet's conv1 takes 0.925. */
#if defined(RT_AVX2) && defined(__GNUC__) && !defined(__clang__)
#define TILE_BEGIN                                                                                 \
    __asm__ volatile("" ::                                                                         \
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
#else
#define TILE_BEGIN (void)0
#endif

/* Where the rows of a tile start: `step` apart, or at the four corners of 2x2 windows, `down` from
 * one image row to the next. */
typedef struct TileRows {
    int count;
    int64_t step, down;
    bool windows;
} TileRows;
RT_LEAF int64_t tile_row(TileRows t, int i)
{
    return t.windows ? i / 4 * (2 * t.step) + i / 2 % 2 * t.down + i % 2 * t.step : i * t.step;
}

/* How many of `lanes` lanes lie in vector j. */
RT_LEAF int tile_lanes(int lanes, int j)
{
    return lanes - j * V < V ? lanes - j * V : V;
}

/* a: row i at a + tile_row(i), element k at k * a_step.  b: k * b_step; the first `lanes` reals may
 * be read.  far: prefetches b into the L1 cache, TILE_FAR steps ahead. */
RT_LEAF void tile_product_of(vec *restrict c, TileRows rows, int vectors, int count, const real *a,
                             int64_t a_step, const real *b, int64_t b_step, int lanes, bool far)
{
    RT_UNROLL_4
    for (int k = 0; k < count; k++) {
        vec w[2];
        if (far) {
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                __builtin_prefetch(b + TILE_FAR * b_step + j * V);
        }
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            w[j] = tile_lanes(lanes, j) == V ? v_load_opaque(b + j * V)
                                             : v_load_n(b + j * V, tile_lanes(lanes, j));
        RT_UNROLL
        for (int i = 0; i < rows.count; i++) {
            const vec s = v_broadcast(a + tile_row(rows, i));
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                c[i * vectors + j] = v_fma(s, w[j], c[i * vectors + j]);
        }
        a += a_step;
        b += b_step;
    }
}

RT_LEAF void tile_product(vec *restrict c, TileRows rows, int vectors, int count, const real *a,
                          int64_t a_step, const real *b, int64_t b_step, int lanes)
{
    tile_product_of(c, rows, vectors, count, a, a_step, b, b_step, lanes, false);
}

/* The same if b is a long run that comes from beyond the L2 cache, whose own prefetcher stops at
 * each page: Winograd's filters of 512 channels are 15 % faster on a processor with a slow L3. */
RT_LEAF void tile_product_far(vec *restrict c, TileRows rows, int vectors, int count, const real *a,
                              int64_t a_step, const real *b, int64_t b_step, int lanes)
{
    tile_product_of(c, rows, vectors, count, a, a_step, b, b_step, lanes, true);
}

/* The same for tiles that are one vector and a half wide; h[i]: the half. */
RT_LEAF void tile_product_half(vec *restrict c, hvec *restrict h, TileRows rows, int count,
                               const real *a, int64_t a_step, const real *b, int64_t b_step)
{
    RT_UNROLL_4
    for (int k = 0; k < count; k++) {
        const vec w = v_load_opaque(b);
        const hvec wh = h_load_opaque(b + V);
        RT_UNROLL
        for (int i = 0; i < rows.count; i++) {
            const vec s = v_broadcast(a + tile_row(rows, i));
            c[i] = v_fma(s, w, c[i]);
            h[i] = h_fma(h_low(s), wh, h[i]);
        }
        a += a_step;
        b += b_step;
    }
}

/* Divides n rows into as few tiles of at most `most` rows as possible, of nearly equal size: 16 by
 * 6 is 6 + 5 + 5. */
typedef struct TileSplit {
    int big, bigs, small, smalls;
} TileSplit;
RT_LEAF TileSplit tile_split(int n, int most)
{
    const int tiles = (n + most - 1) / most, small = tiles ? n / tiles : 0;
    return (TileSplit){small + 1, n - tiles * small, small, tiles - (n - tiles * small)};
}
/* The first row of tile i. */
RT_LEAF int tile_first(TileSplit t, int i)
{
    return i < t.bigs ? i * t.big : t.bigs + i * t.small;
}

#endif
