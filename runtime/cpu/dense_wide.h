/* dense_wide.h -- a dense layer, or the gradient of its input, for all shards at once: a unit is
 * one or two panels of the weights.
 *
 * For large layers with small batches (compiler/passes/wide.c): a thread reads its panels once from
 * memory and uses them for all samples.  x, y and their gradients are those of the first shard, d.n
 * rows; the next shard's lie r->shard_bytes later.  Sums have the bits of dense and
 * dense_dx_transposed.
 */
#ifndef CPU_DENSE_WIDE_H
#define CPU_DENSE_WIDE_H
#include "cpu/dense.h"

enum { DENSE_WIDE_PANELS = RT_DENSE_WIDE_PANELS }; /* of a unit; x is read once */
#define DENSE_WIDE_UNITS(o)    ((DENSE_PANELS(o) + DENSE_WIDE_PANELS - 1) / DENSE_WIDE_PANELS)
#define DENSE_WIDE_UNITS_DX(k) DENSE_PANELS(k)

/* The address in shard number `shard` that corresponds to p in the first shard. */
RT_INLINE const real *dense_wide_at(const real *p, const Rt *r, int shard)
{
    return (const real *)(const void *)((const char *)p + shard * r->shard_bytes);
}

/* Computes tile i of a shard's rows, outputs o .. o + lanes - 1, with panel w.  far: prefetch w. */
RT_INLINE void dense_wide_tile(real *y, const real *x, const real *w, const real *bias, Act act,
                               Mask mask, const real *seen, Dense d, TileSplit t, int i, int o,
                               int lanes, bool far)
{
    const int64_t row = tile_first(t, i), at = row * d.o + o;
    const real *const b = bias ? bias + o : NULL, *const s = seen ? seen + at : NULL;
    if (i < t.bigs)
        dense_tile(y + at, x + row * d.k, w, b, act, mask, s, d, t.big, lanes, far);
    else
        dense_tile(y + at, x + row * d.k, w, b, act, mask, s, d, t.small, lanes, far);
}

RT_INLINE void dense_wide_panel(real *y, const real *x, const real *w, const real *bias, Act act,
                                Mask mask, const real *seen, Dense d, TileSplit t, int i, int o,
                                bool far)
{
    if (d.o - o >= P)
        dense_wide_tile(y, x, w, bias, act, mask, seen, d, t, i, o, P, far);
    else if (d.o % P > 0)
        dense_wide_tile(y, x, w, bias, act, mask, seen, d, t, i, o, d.o % P, far);
}

/* y = act(x W^T + bias); bias may be NULL.  Computes one of DENSE_WIDE_UNITS(o) units. */
RT_INLINE void dense_wide(real *y, const real *x, const real *restrict w, const real *restrict bias,
                          Act act, Dense d, const Rt *r, int unit)
{
    const TileSplit t = tile_split(d.n, TILE_ROWS);
    const int first = unit * DENSE_WIDE_PANELS, left = DENSE_PANELS(d.o) - first,
              end = first + (left < DENSE_WIDE_PANELS ? left : DENSE_WIDE_PANELS);
    for (int s = 0; s < r->shards; s++) {
        real *to = (real *)dense_wide_at(y, r, s);
        const real *from = dense_wide_at(x, r, s);
        for (int i = 0; i < t.bigs + t.smalls; i++)
            for (int p = first; p < end; p++)
                dense_wide_panel(to, from, w + (int64_t)p * d.k * P, bias, act, NULL, NULL, d, t, i,
                                 p * P, true);
    }
}

/* dx = mask(dy W, y).  y: the output of the activation whose derivative `mask` applies, or NULL.
 * Computes one of DENSE_WIDE_UNITS_DX(k) units: transposes its panel of inputs once for all
 * samples. */
RT_INLINE void dense_wide_dx(real *dx, const real *restrict w, const real *dy, Mask mask,
                             const real *y, Dense d, const Rt *r, int unit)
{
    const Dense back = {.n = d.n, .k = d.o, .o = d.k};
    const TileSplit t = tile_split(d.n, TILE_ROWS);
    real transposed[d.o * P] __attribute__((aligned(64)));
    for (int h = 0; h < 2; h++)
        for (int o = 0; o < d.o; o += V)
            dense_transpose_square(transposed + o * P + h * V, w, d, unit * P + h * V, o);
    for (int s = 0; s < r->shards; s++) {
        real *to = (real *)dense_wide_at(dx, r, s);
        const real *from = dense_wide_at(dy, r, s), *seen = y ? dense_wide_at(y, r, s) : NULL;
        for (int i = 0; i < t.bigs + t.smalls; i++)
            dense_wide_panel(to, from, transposed, NULL, v_identity, mask, seen, back, t, i,
                             unit * P, false);
    }
}

#endif
