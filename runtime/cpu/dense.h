/* dense.h -- y = x W^T + b, and its gradients.
 *
 *   x (N, K)   y (N, O)   W (O, K) in files and in the plain kernels
 *
 * In the fast kernels W is stored in panels [ceil(O / P)][K][P], the last one padded with zeros: a
 * tile reads one stream.  Gradient and optimizer state of W have the same layout.
 */
#ifndef CPU_DENSE_H
#define CPU_DENSE_H
#include "cpu/team.h"
#include "cpu/tile.h"
#include "cpu/transpose.h"

typedef struct Dense {
    int n, k, o;
} Dense;

#define DENSE_PANELS(o)   (((o) + P - 1) / P)
#define DENSE_COUNT(k, o) ((int64_t)DENSE_PANELS(o) * (k)*P)

/* Whether the weights have more than 1 MB and are prefetched: they share the L2 cache with all that
 * a chunk writes.  LeNet's 800 x 500 take 0.23 instead of 0.28 ms for 64 samples on two threads of
 * a Xeon with 2 MB. */
RT_INLINE bool dense_far(Dense d)
{
    return (int64_t)d.k * d.o > TILE_FAR_REALS / 2;
}

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

/* y = mask(act(sum), seen).  seen has the layout of y; NULL: no mask.  far: prefetch the
 * weights. */
RT_INLINE void dense_tile(real *y, const real *x, const real *w, const real *bias, Act act,
                          Mask mask, const real *seen, Dense d, int rows, int lanes, bool far)
{
    const int vectors = lanes > V ? 2 : 1;
    vec c[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            c[i * vectors + j] = bias ? v_load_lanes(bias + j * V, tile_lanes(lanes, j)) : v_set(0);
    }
    tile_product_of(c, (TileRows){.count = rows, .step = d.k}, vectors, d.k, x, 1, w, P, P, far);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            const int64_t at = (int64_t)i * d.o + j * V;
            const int n = tile_lanes(lanes, j);
            const vec z = act(c[i * vectors + j]);
            v_store_lanes(y + at, seen ? mask(z, v_load_lanes(seen + at, n)) : z, n);
        }
    }
}

/* Computes one panel of outputs, for the samples of a team member. */
RT_INLINE void dense_panel(real *y, const real *x, const real *w, const real *bias, Act act,
                           Mask mask, const real *seen, Dense d, int lanes, RtGrid part)
{
    const TileSplit t = tile_split(d.n, lanes > V ? TILE_ROWS : TILE_ROWS_1);
    const TeamRange tiles = team_rows(part, t.bigs + t.smalls);
    TEAM_IN(i, t.bigs + t.smalls, tiles) {
        const int64_t row = tile_first(t, i);
        const real *at = seen ? seen + row * d.o : NULL;
        if (i < t.bigs)
            dense_tile(y + row * d.o, x + row * d.k, w, bias, act, mask, at, d, t.big, lanes,
                       dense_far(d));
        else
            dense_tile(y + row * d.o, x + row * d.k, w, bias, act, mask, at, d, t.small, lanes,
                       dense_far(d));
    }
}

RT_INLINE void dense_panels(real *restrict y, const real *restrict x, const real *restrict w,
                            const real *restrict bias, Act act, Mask mask,
                            const real *restrict seen, Dense d)
{
    const RtGrid part = team_grid((d.n + TILE_ROWS - 1) / TILE_ROWS, DENSE_PANELS(d.o));
    const TeamRange panels = team_columns(part, DENSE_PANELS(d.o));
    const int full = d.o / P * P;
    TEAM_IN(i, d.o / P, panels) {
        const int o = i * P;
        dense_panel(y + o, x, w + (int64_t)o * d.k, bias ? bias + o : NULL, act, mask,
                    seen ? seen + o : NULL, d, P, part);
    }
    if (full < d.o && team_has(panels, d.o / P))
        dense_panel(y + full, x, w + (int64_t)full * d.k, bias ? bias + full : NULL, act, mask,
                    seen ? seen + full : NULL, d, d.o - full, part);
}

/* y = act(x W^T + bias); bias may be NULL. */
RT_INLINE void dense(real *restrict y, const real *restrict x, const real *restrict w,
                     const real *restrict bias, Act act, Dense d)
{
    dense_panels(y, x, w, bias, act, NULL, NULL, d);
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

/* Dot products over the outputs, with outputs in the lanes: `rows` samples by `columns` inputs, one
 * accumulator each. */
#ifdef RT_AVX2
enum { DENSE_DX_ROWS = 4, DENSE_DX_COLUMNS = RT_DENSE_DX_COLUMNS };
#else
enum { DENSE_DX_ROWS = 8, DENSE_DX_COLUMNS = RT_DENSE_DX_COLUMNS };
#endif

RT_INLINE void dense_dx_step(vec *c, const real *w, const real *dy, Dense d, int rows, int columns,
                             int lanes)
{
    vec b[DENSE_DX_COLUMNS];
    RT_UNROLL
    for (int j = 0; j < columns; j++)
        b[j] = v_load_opaque(w + j * P);
    if (dense_far(d)) { /* prefetch the next columns */
        RT_UNROLL
        for (int j = 0; j < columns; j++)
            __builtin_prefetch(w + (columns + j) * P);
    }
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

/* dx = mask(dx, y), columns first .. end - 1 of all samples: those of a team member. */
RT_INLINE void dense_dx_mask(real *dx, Mask mask, const real *y, Dense d, int first, int end)
{
    for (int i = 0; i < d.n; i++) {
        real *to = dx + (int64_t)i * d.k;
        const real *seen = y + (int64_t)i * d.k;
        RT_MAP_FROM(first, end, STORE(to, mask(LOAD(to), LOAD(seen))));
    }
}

/* dx = mask(dy W, y).  y (N, K): the output of the activation whose derivative `mask` applies, or
 * NULL. */
RT_INLINE void dense_dx(real *restrict dx, const real *restrict w, const real *restrict dy,
                        Mask mask, const real *restrict y, Dense d)
{
    const int full = d.k / DENSE_DX_COLUMNS * DENSE_DX_COLUMNS;
    const TeamRange part = team_range((d.k + DENSE_DX_COLUMNS - 1) / DENSE_DX_COLUMNS);
    const int first = (int)part.first * DENSE_DX_COLUMNS, end = (int)part.end * DENSE_DX_COLUMNS;
    for (int k = first; k < full && k < end; k += DENSE_DX_COLUMNS)
        dense_dx_columns(dx + k, w + (int64_t)k * P, dy, d, DENSE_DX_COLUMNS);
    if (full < d.k && end > full)
        dense_dx_columns(dx + full, w + (int64_t)full * P, dy, d, d.k - full);
    if (y && rt_team.of > 1)
        dense_dx_mask(dx, mask, y, d, first, end < d.k ? end : d.k);
    else if (y)
        RT_MAP((int64_t)d.n * d.k, STORE(dx, mask(LOAD(dx), LOAD(y))));
}

/* The last additions of dense_dx, over the lanes of each dot product, cost as much as four more
 * vectors of outputs.  If that is too much, W is transposed once a step to panels
 * [ceil(K / P)][O][P] of inputs, and the product has inputs in the lanes: a forward pass with K and
 * O exchanged. */
#define DENSE_TRANSPOSED(k, o) ((int64_t)DENSE_PANELS(k) * (o)*P)

/* Transposes V inputs by V outputs to rows of P reals.  Elements outside of W are 0; elements
 * outside of the copy are not stored. */
RT_INLINE void dense_transpose_square(real *to, const real *w, Dense d, int k, int o)
{
    vec x[V];
    RT_UNROLL
    for (int i = 0; i < V; i++)
        x[i] = k + i < d.k ? v_load(w + ((int64_t)(o / P) * d.k + k + i) * P + o % P) : v_set(0);
    v_transpose(x);
    RT_UNROLL
    for (int i = 0; i < V; i++)
        if (o + i < d.o)
            v_store(to + i * P, x[i]);
}

/* This unit of `units` transposes its share: some of the halves of panels. */
RT_INLINE void dense_transpose(real *restrict transposed, const real *restrict w, Dense d, int unit,
                               int units)
{
    const int halves = 2 * DENSE_PANELS(d.k);
    for (int h = halves * unit / units; h < halves * (unit + 1) / units; h++)
        for (int o = 0; o < d.o; o += V)
            dense_transpose_square(transposed + ((int64_t)(h / 2) * d.o + o) * P + h % 2 * V, w, d,
                                   h * V, o);
}

/* The same as dense_dx, with the copy of dense_transpose. */
RT_INLINE void dense_dx_transposed(real *restrict dx, const real *restrict transposed,
                                   const real *restrict dy, Mask mask, const real *restrict y,
                                   Dense d)
{
    dense_panels(dx, dy, transposed, NULL, v_identity, mask, y,
                 (Dense){.n = d.n, .k = d.o, .o = d.k});
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

/* c[i][j] = sum over the samples of x[.][i] dy[.][panel]: `rows` inputs, one panel of outputs. */
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

/* ---- many samples: in blocks, so that dy of a block and x of a tile fit the L1 cache */
enum { DENSE_SAMPLES = 128 };

/* Copies the panel's columns of dy, row after row: in place, rows would share a few cache sets if O
 * is a power of two.  Columns from `lanes` on are 0. */
RT_INLINE void dense_pack_dy(real *restrict to, const real *restrict dy, int samples, Dense d,
                             int vectors, int lanes)
{
    for (int n = 0; n < samples; n++, to += P, dy += d.o) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store(to + j * V, tile_lanes(lanes, j) >= V
                                    ? v_load_opaque(dy + j * V)
                                    : v_load_n(dy + j * V, tile_lanes(lanes, j)));
    }
}

/* sum += x^T dy of one block for one tile, or = if `begin`.  x_row: reals from one sample of x to
 * the next. */
RT_INLINE void dense_tile_block(real *sum, bool begin, const real *x, int64_t x_row, const real *dy,
                                int samples, int rows, int vectors)
{
    vec c[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        c[i] = begin ? v_set(0) : v_load(sum + i / vectors * P + i % vectors * V);
    tile_product(c, (TileRows){.count = rows, .step = 1}, vectors, samples, x, x_row, dy, P,
                 vectors * V);
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        v_store(sum + i / vectors * P + i % vectors * V, c[i]);
}

/* dw += the products of all samples in blocks, for one panel. */
RT_INLINE void dense_dw_blocks(real *dw, const real *x, const real *dy, Dense d, int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    real packed[DENSE_SAMPLES * P] __attribute__((aligned(64)));
    for (int n = 0; n < d.n; n += DENSE_SAMPLES) {
        const int count = d.n - n < DENSE_SAMPLES ? d.n - n : DENSE_SAMPLES;
        const real *block = x + (int64_t)n * d.k;
        dense_pack_dy(packed, dy + (int64_t)n * d.o, count, d, vectors, lanes);
        for (int i = 0; i < t.bigs + t.smalls; i++) {
            const int k = tile_first(t, i);
            if (i < t.bigs)
                dense_tile_block(dw + k * P, false, block + k, d.k, packed, count, t.big, vectors);
            else
                dense_tile_block(dw + k * P, false, block + k, d.k, packed, count, t.small,
                                 vectors);
        }
    }
}

RT_INLINE void dense_dw_panel(real *dw, const real *x, const real *dy, Dense d, int lanes)
{
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    if (d.n > DENSE_SAMPLES) {
        dense_dw_blocks(dw, x, dy, d, lanes);
        return;
    }
    for (int i = 0; i < t.bigs; i++, dw += t.big * P, x += t.big)
        dense_dw_rows(dw, x, dy, d, t.big, lanes);
    for (int i = 0; i < t.smalls; i++, dw += t.small * P, x += t.small)
        dense_dw_rows(dw, x, dy, d, t.small, lanes);
}

/* dw += dy^T x, in panels. */
RT_INLINE void dense_dw(real *restrict dw, const real *restrict x, const real *restrict dy, Dense d)
{
    const int full = d.o / P * P;
    const TeamRange panels = team_range(DENSE_PANELS(d.o));
    TEAM_IN(i, d.o / P, panels)
        dense_dw_panel(dw + (int64_t)i * P * d.k, x, dy + i * P, d, P);
    if (full < d.o && team_has(panels, d.o / P))
        dense_dw_panel(dw + (int64_t)full * d.k, x, dy + full, d, d.o - full);
}

#endif
