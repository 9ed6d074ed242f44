/* gemm.h -- products of many small matrices: C = A B for each sample and head, A or B transposed.
 *
 *   c[i][j] = sum over k of a[i][k] b[k][j]            i < m, j < n
 *
 * A is read in place, one number at a time: i and k can have any stride.  B is packed first, into
 * panels [ceil(n / P)][k][P] padded with zeros: transposing costs no more than copying, and rows of
 * a larger matrix do not share a few cache sets.  C is computed in register tiles (tile.h).
 */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H
#include "cpu/tile.h"
#include "cpu/transpose.h"

/* `count` matrices.  a (m, k), transposed (k, m); b (k, n), transposed (n, k); c (m, n). */
typedef struct Gemm {
    int count, m, n, k;
    bool transpose_a, transpose_b;
} Gemm;

/* ------------------------------------------------------------------------------------ reference */
RT_INLINE void matmul_plain(real *c, const real *a, const real *b, Gemm g)
{
    for (int s = 0; s < g.count; s++) {
        for (int i = 0; i < g.m; i++)
            for (int j = 0; j < g.n; j++) {
                real sum = 0;
                for (int k = 0; k < g.k; k++)
                    sum += (g.transpose_a ? a[(int64_t)k * g.m + i] : a[(int64_t)i * g.k + k]) *
                           (g.transpose_b ? b[(int64_t)j * g.k + k] : b[(int64_t)k * g.n + j]);
                c[(int64_t)i * g.n + j] = sum;
            }
        a += (int64_t)g.m * g.k, b += (int64_t)g.k * g.n, c += (int64_t)g.m * g.n;
    }
}

/* -------------------------------------------------------------------------------------- packing */

/* Packs one panel of `lanes` columns of b (k, n), whose rows are `step` apart. */
RT_INLINE void gemm_pack_rows(real *restrict to, const real *restrict b, int64_t step, int k,
                              int lanes)
{
    for (int i = 0; i < k; i++, to += P, b += step) {
        RT_UNROLL
        for (int j = 0; j < 2; j++)
            v_store(to + j * V, lanes >= P          ? v_load(b + j * V)
                                : lanes - j * V > 0 ? v_load_n(b + j * V, tile_lanes(lanes, j))
                                                    : v_set(0));
    }
}

/* The same for the transpose of b (n, k): column j is row j of b.  The rows of b are `step`
 * apart. */
RT_INLINE void gemm_pack_transposed(real *restrict to, const real *restrict b, int64_t step, int k,
                                    int lanes)
{
    pack_transposed(to, b, step, k, lanes > V ? V : lanes, false);
    pack_transposed(to + V, b + V * step, step, k, lanes - V, false);
}

/* Number of panels of n columns, and reals of all panels. */
#define GEMM_PANELS(n)    (((n) + P - 1) / P)
#define GEMM_PACKED(n, k) ((int64_t)GEMM_PANELS(n) * (k)*P)

RT_INLINE void gemm_pack(real *restrict to, const real *restrict b, int64_t step, int n, int k,
                         bool transposed)
{
    for (int j = 0; j < n; j += P, to += (int64_t)k * P) {
        const int lanes = n - j < P ? n - j : P;
        if (transposed)
            gemm_pack_transposed(to, b + j * step, step, k, lanes);
        else
            gemm_pack_rows(to, b + j, step, k, lanes);
    }
}

/* -------------------------------------------------------------------------------------- product */

/* The operand A: element (i, k) is at[i * row + k * step]. */
typedef struct GemmA {
    const real *at;
    int64_t row, step;
} GemmA;

/* Computes one tile: c = A panel, or += with `add`. */
RT_INLINE void gemm_tile(real *c, int64_t ldc, GemmA a, const real *panel, int k, int rows,
                         int lanes, bool add)
{
    const int vectors = lanes > V ? 2 : 1;
    vec t[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            t[i * vectors + j] =
                add ? v_load_lanes(c + i * ldc + j * V, tile_lanes(lanes, j)) : v_set(0);
    }
    tile_product(t, (TileRows){.count = rows, .step = a.row}, vectors, k, a.at, a.step, panel, P,
                 P);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store_lanes(c + i * ldc + j * V, t[i * vectors + j], tile_lanes(lanes, j));
    }
}

/* Computes one panel of columns for m rows. */
RT_INLINE void gemm_panel(real *c, int64_t ldc, GemmA a, const real *panel, int m, int k, int lanes,
                          bool add)
{
    const TileSplit t = tile_split(m, lanes > V ? TILE_ROWS : TILE_ROWS_1);
    for (int i = 0; i < t.bigs; i++, c += t.big * ldc, a.at += t.big * a.row)
        gemm_tile(c, ldc, a, panel, k, t.big, lanes, add);
    for (int i = 0; i < t.smalls; i++, c += t.small * ldc, a.at += t.small * a.row)
        gemm_tile(c, ldc, a, panel, k, t.small, lanes, add);
}

/* c (m, n) = A times the first k rows of panels with `depth` rows each; += with `add`. */
RT_INLINE void gemm_panels(real *c, int64_t ldc, GemmA a, const real *panels, int depth, int m,
                           int n, int k, bool add)
{
    const int full = n / P * P;
    for (int j = 0; j < full; j += P)
        gemm_panel(c + j, ldc, a, panels + (int64_t)j * depth, m, k, P, add);
    if (full < n)
        gemm_panel(c + full, ldc, a, panels + (int64_t)full * depth, m, k, n - full, add);
}

/* Rows of B packed at a time: a panel of 128 x P stays in the L1 cache beside the rows of A. */
enum { GEMM_DEPTH = 128 };

/* Computes the columns of one panel. */
RT_INLINE void matmul_panel(real *c, GemmA a, const real *b, Gemm g, int j, int lanes)
{
    real panel[GEMM_DEPTH * P] __attribute__((aligned(64)));
    for (int k = 0; k < g.k; k += GEMM_DEPTH, a.at += GEMM_DEPTH * a.step) {
        const int depth = g.k - k < GEMM_DEPTH ? g.k - k : GEMM_DEPTH;
        if (g.transpose_b)
            gemm_pack_transposed(panel, b + (int64_t)j * g.k + k, g.k, depth, lanes);
        else
            gemm_pack_rows(panel, b + (int64_t)k * g.n + j, g.n, depth, lanes);
        if (k == 0)
            gemm_panel(c + j, g.n, a, panel, g.m, depth, lanes, false);
        else
            gemm_panel(c + j, g.n, a, panel, g.m, depth, lanes, true);
    }
}

RT_INLINE void matmul(real *restrict c, const real *restrict a, const real *restrict b, Gemm g)
{
    const int full = g.n / P * P;
    const RtGrid part = team_grid(g.count, GEMM_PANELS(g.n));
    const TeamRange products = team_rows(part, g.count),
                    panels = team_columns(part, GEMM_PANELS(g.n));
    a += products.first * g.m * g.k, b += products.first * g.k * g.n,
        c += products.first * g.m * g.n;
    for (int64_t s = products.first; s < products.end; s++) {
        const GemmA rows = {a, g.transpose_a ? 1 : g.k, g.transpose_a ? g.m : 1};
        TEAM_IN(j, g.n / P, panels)
            matmul_panel(c, rows, b, g, j * P, P);
        if (full < g.n && team_has(panels, g.n / P))
            matmul_panel(c, rows, b, g, full, g.n - full);
        a += (int64_t)g.m * g.k, b += (int64_t)g.k * g.n, c += (int64_t)g.m * g.n;
    }
}

#endif
