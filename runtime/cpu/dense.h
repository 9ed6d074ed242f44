/* dense.h -- y = x W^T + b, and its gradients.
 *
 *   x (N, K)   y (N, O)   W (O, K) in files and in the plain kernels
 *
 * In the fast kernels W lies in panels [ceil(O / P)][K][P], the last one filled up with zeros: what
 * one tile reads is one stream.  Gradient and optimizer state of W have the same layout.
 */
#ifndef CPU_DENSE_H
#define CPU_DENSE_H
#include "cpu/tile.h"
#include "cpu/update.h"

typedef struct Dense {
    int n, k, o;
} Dense;

enum { DENSE_UNIT_ROWS = 48 }; /* rows of a panel in one unit of dense_dw_update */
#define DENSE_PANELS(o)   (((o) + P - 1) / P)
#define DENSE_COUNT(k, o) ((int64_t)DENSE_PANELS(o) * (k)*P)
#define DENSE_BLOCKS(k)   (((k) + DENSE_UNIT_ROWS - 1) / DENSE_UNIT_ROWS)
#define DENSE_UNITS(k, o) (DENSE_PANELS(o) * DENSE_BLOCKS(k))

/* -------------------------------------------------------------------------------------- forward */

/* y[n][o] = sum over k of x[n][k] w[o][k] */
RT_INLINE void dense_plain(real *y, const real *x, const real *w, Dense d)
{
    for (int n = 0; n < d.n; n++)
        for (int o = 0; o < d.o; o++) {
            real sum = 0;
            for (int k = 0; k < d.k; k++)
                sum += x[(int64_t)n * d.k + k] * w[(int64_t)o * d.k + k];
            y[(int64_t)n * d.o + o] = sum;
        }
}

RT_INLINE void dense_tile(real *y, const real *x, const real *w, const real *bias, Act act, Dense d,
                          int rows, int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    vec c[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            c[i * vectors + j] = bias ? v_load_lanes(bias + j * V, tile_lanes(lanes, j)) : v_set(0);
    }
    tile_product(c, (TileRows){.count = rows, .step = d.k}, vectors, d.k, x, 1, w, P, P);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store_lanes(y + (int64_t)i * d.o + j * V, act(c[i * vectors + j]),
                          tile_lanes(lanes, j));
    }
}

/* One panel of outputs for all samples. */
RT_INLINE void dense_panel(real *y, const real *x, const real *w, const real *bias, Act act,
                           Dense d, int lanes)
{
    const TileSplit t = tile_split(d.n, lanes > V ? TILE_ROWS : TILE_ROWS_1);
    for (int i = 0; i < t.bigs; i++, y += (int64_t)t.big * d.o, x += (int64_t)t.big * d.k)
        dense_tile(y, x, w, bias, act, d, t.big, lanes);
    for (int i = 0; i < t.smalls; i++, y += (int64_t)t.small * d.o, x += (int64_t)t.small * d.k)
        dense_tile(y, x, w, bias, act, d, t.small, lanes);
}

/* y = act(x W^T + bias); bias may be NULL. */
RT_INLINE void dense(real *restrict y, const real *restrict x, const real *restrict w,
                     const real *restrict bias, Act act, Dense d)
{
    const int full = d.o / P * P;
    for (int o = 0; o < full; o += P)
        dense_panel(y + o, x, w + (int64_t)o * d.k, bias ? bias + o : NULL, act, d, P);
    if (full < d.o)
        dense_panel(y + full, x, w + (int64_t)full * d.k, bias ? bias + full : NULL, act, d,
                    d.o - full);
}

/* ------------------------------------------------------------------------ gradient of the input */

/* dx[n][k] = sum over o of dy[n][o] w[o][k] */
RT_INLINE void dense_dx_plain(real *dx, const real *w, const real *dy, Dense d)
{
    for (int n = 0; n < d.n; n++)
        for (int k = 0; k < d.k; k++) {
            real sum = 0;
            for (int o = 0; o < d.o; o++)
                sum += dy[(int64_t)n * d.o + o] * w[(int64_t)o * d.k + k];
            dx[(int64_t)n * d.k + k] = sum;
        }
}

/* Dot products over the outputs, lanes = outputs: `rows` samples by `columns` inputs, one
 * accumulator each. */
#ifdef RT_AVX2
enum { DENSE_DX_ROWS = 4, DENSE_DX_COLUMNS = 3 };
#else
enum { DENSE_DX_ROWS = 8, DENSE_DX_COLUMNS = 3 };
#endif

RT_INLINE void dense_dx_step(vec *c, const real *w, const real *dy, Dense d, int rows, int columns,
                             int lanes)
{
    vec b[DENSE_DX_COLUMNS];
    RT_UNROLL
    for (int j = 0; j < columns; j++)
        b[j] = v_load_opaque(w + j * P);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        const vec a = lanes == V ? v_load_opaque(dy + (int64_t)i * d.o)
                                 : v_load_n(dy + (int64_t)i * d.o, lanes);
        RT_UNROLL
        for (int j = 0; j < columns; j++)
            c[i * columns + j] = v_fma(a, b[j], c[i * columns + j]);
    }
}

RT_INLINE void dense_dx_tile(real *dx, const real *w, const real *dy, Dense d, int rows,
                             int columns)
{
    vec c[DENSE_DX_ROWS * DENSE_DX_COLUMNS];
    RT_UNROLL
    for (int i = 0; i < rows * columns; i++)
        c[i] = v_set(0);
    const int full = d.o / V * V;
    for (int o = 0; o < full; o += V)
        dense_dx_step(c, w + (int64_t)(o / P) * d.k * P + o % P, dy + o, d, rows, columns, V);
    if (full < d.o)
        dense_dx_step(c, w + (int64_t)(full / P) * d.k * P + full % P, dy + full, d, rows, columns,
                      d.o - full);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < columns; j++)
            dx[(int64_t)i * d.k + j] = v_sum(c[i * columns + j]);
    }
}

RT_INLINE void dense_dx_columns(real *dx, const real *w, const real *dy, Dense d, int columns)
{
    const TileSplit t = tile_split(d.n, DENSE_DX_ROWS);
    for (int i = 0; i < t.bigs; i++, dx += (int64_t)t.big * d.k, dy += (int64_t)t.big * d.o)
        dense_dx_tile(dx, w, dy, d, t.big, columns);
    for (int i = 0; i < t.smalls; i++, dx += (int64_t)t.small * d.k, dy += (int64_t)t.small * d.o)
        dense_dx_tile(dx, w, dy, d, t.small, columns);
}

/* Few outputs: the dot products would be shorter than the sums of their lanes.  W is turned over to
 * [O][K] on the stack, so that lanes = inputs. */
enum { DENSE_SCRATCH = 128 * 1024 / sizeof(real) };
RT_INLINE bool dense_dx_turns(Dense d)
{
    return d.o <= 4 * V && (int64_t)d.o * d.k + 2 * V <= DENSE_SCRATCH;
}

RT_INLINE void dense_dx_few_tile(real *dx, const real *w, const real *dy, Dense d, int rows,
                                 int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    vec c[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        c[i] = v_set(0);
    tile_product(c, (TileRows){.count = rows, .step = d.o}, vectors, d.o, dy, 1, w, d.k, P);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store_lanes(dx + (int64_t)i * d.k + j * V, c[i * vectors + j], tile_lanes(lanes, j));
    }
}

RT_INLINE void dense_dx_few_rows(real *dx, const real *w, const real *dy, Dense d, int rows)
{
    const int full = d.k / P * P;
    for (int k = 0; k < full; k += P)
        dense_dx_few_tile(dx + k, w + k, dy, d, rows, P);
    if (full < d.k)
        dense_dx_few_tile(dx + full, w + full, dy, d, rows, d.k - full);
}

RT_INLINE void dense_dx_few(real *restrict dx, const real *restrict w, const real *restrict dy,
                            Dense d)
{
    real turned[DENSE_SCRATCH] __attribute__((aligned(64)));
    const TileSplit t = tile_split(d.n, TILE_ROWS);
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++)
            turned[(int64_t)o * d.k + k] = w[((int64_t)(o / P) * d.k + k) * P + o % P];
    for (int i = 0; i < t.bigs; i++, dx += (int64_t)t.big * d.k, dy += (int64_t)t.big * d.o)
        dense_dx_few_rows(dx, turned, dy, d, t.big);
    for (int i = 0; i < t.smalls; i++, dx += (int64_t)t.small * d.k, dy += (int64_t)t.small * d.o)
        dense_dx_few_rows(dx, turned, dy, d, t.small);
}

RT_INLINE void dense_dx_many(real *restrict dx, const real *restrict w, const real *restrict dy,
                             Dense d)
{
    const int full = d.k / DENSE_DX_COLUMNS * DENSE_DX_COLUMNS;
    for (int k = 0; k < full; k += DENSE_DX_COLUMNS)
        dense_dx_columns(dx + k, w + (int64_t)k * P, dy, d, DENSE_DX_COLUMNS);
    if (full < d.k)
        dense_dx_columns(dx + full, w + (int64_t)full * P, dy, d, d.k - full);
}

/* dx = mask(dy W, y); y (N, K) is the value whose activation is undone, or NULL. */
RT_INLINE void dense_dx(real *restrict dx, const real *restrict w, const real *restrict dy,
                        Mask mask, const real *restrict y, Dense d)
{
    if (dense_dx_turns(d))
        dense_dx_few(dx, w, dy, d);
    else
        dense_dx_many(dx, w, dy, d);
    if (y)
        RT_MAP((int64_t)d.n * d.k, STORE(dx, mask(LOAD(dx), LOAD(y))));
}

/* ---------------------------------------------------------------------- gradient of the weights */

/* dw[o][k] += sum over n of dy[n][o] x[n][k] */
RT_INLINE void dense_dw_plain(real *dw, const real *x, const real *dy, Dense d)
{
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++) {
            real sum = 0;
            for (int n = 0; n < d.n; n++)
                sum += dy[(int64_t)n * d.o + o] * x[(int64_t)n * d.k + k];
            dw[(int64_t)o * d.k + k] += sum;
        }
}

/* c[i][j] = sum over the samples of x[.][i] dy[.][panel]: `rows` inputs by one panel of outputs. */
RT_INLINE void dense_dw_tile(vec *c, const real *x, const real *dy, int samples, Dense d, int rows,
                             int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        c[i] = v_set(0);
    tile_product(c, (TileRows){.count = rows, .step = 1}, vectors, samples, x, d.k, dy, d.o, lanes);
}

RT_INLINE void dense_dw_rows(real *dw, const real *x, const real *dy, Dense d, int rows, int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    vec c[TILE_MAX];
    dense_dw_tile(c, x, dy, d.n, d, rows, lanes);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store(dw + i * P + j * V, v_load(dw + i * P + j * V) + c[i * vectors + j]);
    }
}

RT_INLINE void dense_dw_panel(real *dw, const real *x, const real *dy, Dense d, int lanes)
{
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    for (int i = 0; i < t.bigs; i++, dw += t.big * P, x += t.big)
        dense_dw_rows(dw, x, dy, d, t.big, lanes);
    for (int i = 0; i < t.smalls; i++, dw += t.small * P, x += t.small)
        dense_dw_rows(dw, x, dy, d, t.small, lanes);
}

/* dw += dy^T x, in panels. */
RT_INLINE void dense_dw(real *restrict dw, const real *restrict x, const real *restrict dy, Dense d)
{
    const int full = d.o / P * P;
    for (int o = 0; o < full; o += P)
        dense_dw_panel(dw + (int64_t)o * d.k, x, dy + o, d, P);
    if (full < d.o)
        dense_dw_panel(dw + (int64_t)full * d.k, x, dy + full, d, d.o - full);
}

/* What a unit of dense_dw_update works on: `at` is where its tile begins in w, the states and the
 * gradient. */
typedef struct DenseUpdate {
    const Rt *r;
    const RtOpt *o;
    int64_t grad;
    real *w, *s0, *s1;
    const char *x, *dy;
    int samples;
} DenseUpdate;

RT_INLINE void tile_copy(vec *restrict to, const vec *restrict from, int size)
{
    RT_UNROLL
    for (int i = 0; i < size; i++)
        to[i] = from[i];
}
RT_INLINE void tile_add(vec *restrict to, const vec *restrict from, int size)
{
    RT_UNROLL
    for (int i = 0; i < size; i++)
        to[i] = from[i] + to[i];
}

/* c = the gradient of one tile: a sum over the samples of each shard, the tree over the shards. */
RT_INLINE void dense_update_sum(vec *restrict c, DenseUpdate q, Dense d, int rows, int lanes)
{
    const int size = rows * (lanes > V ? 2 : 1);
    vec stack[TREE_DEPTH][TILE_MAX];
    int depth = 0;
    for (int s = 0; s < q.r->shards; s++) {
        if (s > 0)
            tile_copy(stack[depth++], c, size);
        const int64_t shard = s * q.r->shard_bytes;
        dense_dw_tile(c, (const real *)(q.x + shard), (const real *)(q.dy + shard), q.samples, d,
                      rows, lanes);
        for (int bits = s; bits & 1; bits >>= 1) {
            depth--;
            tile_add(c, stack[depth], size);
        }
    }
    while (depth > 0) {
        depth--;
        tile_add(c, stack[depth], size);
    }
}

/* One tile, then the update (or the store into r->grad).  The weights stream through once a step,
 * however many shards. */
RT_INLINE void dense_update_tile(DenseUpdate q, Update u, Dense d, int64_t at, int rows, int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    vec c[TILE_MAX];
    dense_update_sum(c, q, d, rows, lanes);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < 2; j++) {
            const int64_t e = at + i * P + j * V;
            const vec g = j < vectors ? c[i * vectors + j] : v_set(0);
            if (q.r->grad)
                v_store((real *)(q.r->grad + q.grad) + e, g);
            else if (j < vectors)
                update_clipped(q.w + e, q.s0 ? q.s0 + e : NULL, q.s1 ? q.s1 + e : NULL, g, q.o, u);
        }
    }
}

RT_INLINE void dense_update_rows(DenseUpdate q, Update u, Dense d, int panel, int first, int count,
                                 int lanes)
{
    q.dy += (int64_t)panel * P * (int64_t)sizeof(real);
    for (int k = first; k < first + count;) {
        const int left = first + count - k, rows = left < TILE_ROWS ? left : TILE_ROWS;
        DenseUpdate t = q;
        t.x += k * (int64_t)sizeof(real);
        const int64_t at = ((int64_t)panel * d.k + k) * P;
        if (rows == TILE_ROWS)
            dense_update_tile(t, u, d, at, TILE_ROWS, lanes);
        else
            for (int i = 0; i < rows; i++, t.x += sizeof(real))
                dense_update_tile(t, u, d, at + i * P, 1, lanes);
        k += rows;
    }
}

/* Weight gradient and update in one sweep, unit of DENSE_UNITS(k, o): rows of one panel, over all
 * shards held here.
 *   x, dy   the first local shard's, `samples` rows each; the next shard's lie r->shard_bytes on
 *   grad    bytes: where the sum goes in r->grad when the update has to wait for other processes */
RT_INLINE void dense_dw_update(const Rt *r, int unit, int64_t grad, real *restrict w,
                               real *restrict s0, real *restrict s1, const char *restrict x,
                               const char *restrict dy, int samples, Update u, Dense d)
{
    const RtOpt o = r->opt;
    const DenseUpdate q = {r, &o, grad, w, s0, s1, x, dy, samples};
    const int panel = unit / DENSE_BLOCKS(d.k), first = unit % DENSE_BLOCKS(d.k) * DENSE_UNIT_ROWS;
    const int count = d.k - first < DENSE_UNIT_ROWS ? d.k - first : DENSE_UNIT_ROWS;
    if ((panel + 1) * P <= d.o)
        dense_update_rows(q, u, d, panel, first, count, P);
    else
        dense_update_rows(q, u, d, panel, first, count, d.o % P);
}

#endif
