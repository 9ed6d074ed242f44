/* bf16_dense.h -- y = act(x W^T + b) and its gradients, with factors in bf16 and sums in f32.
 *
 *   x (N, K) bf16   y (N, O) bf16 or f32   w f32, in the panels of dense.h
 *
 * The forward pass and the gradient of the input read weights that bf16_pack.h has packed.  Each
 * sum has the order of bf16.h; the bias is added to the complete sum.  In the gradient of the
 * weights, the factors are the samples of the call, in order.
 */
#ifndef CPU_BF16_DENSE_H
#define CPU_BF16_DENSE_H
#include "cpu/bf16_pack.h"
#include "cpu/math.h"

/* ------------------------------------------------------------------------------------ reference
 * w (O, K), f32. */
RT_INLINE void bf16_dense_plain(real *y, const bf16 *x, const real *w, Dense d)
{
    for (int n = 0; n < d.n; n++)
        for (int o = 0; o < d.o; o++) {
            Bf16Sum s = {0};
            for (int k = 0; k < d.k; k++)
                bf16_sum_add(&s, bf16_wide(x[(int64_t)n * d.k + k]),
                             bf16_wide(bf16_narrow((float)w[(int64_t)o * d.k + k])));
            bf16_sum_end(&s);
            y[(int64_t)n * d.o + o] = s.sum;
        }
}

RT_INLINE void bf16_dense_dx_plain(real *dx, const real *w, const bf16 *dy, Dense d)
{
    for (int n = 0; n < d.n; n++)
        for (int k = 0; k < d.k; k++) {
            Bf16Sum s = {0};
            for (int o = 0; o < d.o; o++)
                bf16_sum_add(&s, bf16_wide(dy[(int64_t)n * d.o + o]),
                             bf16_wide(bf16_narrow((float)w[(int64_t)o * d.k + k])));
            bf16_sum_end(&s);
            dx[(int64_t)n * d.k + k] = s.sum;
        }
}

/* dw += dy^T x: each block of 32 samples is added to dw. */
RT_INLINE void bf16_dense_dw_plain(real *dw, const bf16 *x, const bf16 *dy, Dense d)
{
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++) {
            Bf16Sum s = {.sum = (float)dw[(int64_t)o * d.k + k]};
            for (int n = 0; n < d.n; n++)
                bf16_sum_add(&s, bf16_wide(x[(int64_t)n * d.k + k]),
                             bf16_wide(dy[(int64_t)n * d.o + o]));
            bf16_sum_end(&s);
            dw[(int64_t)o * d.k + k] = s.sum;
        }
}

#ifndef RT_DOUBLE
/* -------------------------------------------------------------------------------------- forward */

/* y = act(x W^T + bias); bias may be NULL.  p from bf16_dense_pack. */
RT_INLINE void bf16_dense(bf16 *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                          const real *restrict bias, Act act, Dense d);
/* The same with y in f32, for an output of the network. */
RT_INLINE void bf16_dense_f32(real *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                              const real *restrict bias, Act act, Dense d);

/* ------------------------------------------------------------------------ gradient of the input */

/* dx = mask(dy W, y); p from bf16_dense_pack_back.  y (N, K): the output of the activation whose
 * derivative `mask` applies, or NULL. */
RT_INLINE void bf16_dense_dx(bf16 *restrict dx, const bf16 *restrict p, const bf16 *restrict dy,
                             Mask mask, const bf16 *restrict y, Dense d);

/* ---------------------------------------------------------------------- gradient of the weights */

/* dw += dy^T x, in the panels of dense.h. */
RT_INLINE void bf16_dense_dw(real *restrict dw, const bf16 *restrict x, const bf16 *restrict dy,
                             Dense d);

/* One value by the reference, until the forms of each processor are here. */
RT_INLINE float bf16_dot(const bf16 *a, int64_t a_step, const bf16 *b, int64_t b_step, int count,
                         float sum)
{
    Bf16Sum s = {.sum = sum};
    for (int k = 0; k < count; k++)
        bf16_sum_add(&s, bf16_wide(a[k * a_step]), bf16_wide(b[k * b_step]));
    bf16_sum_end(&s);
    return s.sum;
}
RT_INLINE float bf16_dot_packed(const bf16 *a, const bf16 *p, int count)
{
    Bf16Sum s = {0};
    for (int k = 0; k < count; k++)
        bf16_sum_add(&s, bf16_wide(a[k]), bf16_wide(p[k / 2 * 2 * BF16_LANES + k % 2]));
    bf16_sum_end(&s);
    return s.sum;
}
RT_INLINE vec bf16_dot_vector(const bf16 *a, const bf16 *p, int count, int first, int outputs)
{
    vec z = v_set(0);
    for (int j = 0; j < V && first + j < outputs; j++) {
        const int o = first + j;
        V_LANE(z, j) =
            bf16_dot_packed(a, p + o / BF16_LANES * BF16_PANEL(count) + o % BF16_LANES * 2, count);
    }
    return z;
}

RT_INLINE vec bf16_dense_value(vec z, const real *bias, Act act, int lanes)
{
    return act(bias ? z + v_load_lanes(bias, lanes) : z);
}
RT_INLINE void bf16_dense(bf16 *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                          const real *restrict bias, Act act, Dense d)
{
    const TeamRange rows = team_range(d.n);
    for (int64_t n = rows.first; n < rows.end; n++)
        for (int o = 0; o < d.o; o += V) {
            const int lanes = tile_lanes(d.o - o, 0);
            const vec z = bf16_dot_vector(x + n * d.k, p, d.k, o, d.o);
            v_store_bf16_lanes(y + n * d.o + o,
                               bf16_dense_value(z, bias ? bias + o : NULL, act, lanes), lanes);
        }
}
RT_INLINE void bf16_dense_f32(real *restrict y, const bf16 *restrict x, const bf16 *restrict p,
                              const real *restrict bias, Act act, Dense d)
{
    const TeamRange rows = team_range(d.n);
    for (int64_t n = rows.first; n < rows.end; n++)
        for (int o = 0; o < d.o; o += V) {
            const int lanes = tile_lanes(d.o - o, 0);
            const vec z = bf16_dot_vector(x + n * d.k, p, d.k, o, d.o);
            v_store_lanes(y + n * d.o + o, bf16_dense_value(z, bias ? bias + o : NULL, act, lanes),
                          lanes);
        }
}
RT_INLINE void bf16_dense_dx(bf16 *restrict dx, const bf16 *restrict p, const bf16 *restrict dy,
                             Mask mask, const bf16 *restrict y, Dense d)
{
    const TeamRange rows = team_range(d.n);
    for (int64_t n = rows.first; n < rows.end; n++)
        for (int k = 0; k < d.k; k += V) {
            const int lanes = tile_lanes(d.k - k, 0);
            const vec z = bf16_dot_vector(dy + n * d.o, p, d.o, k, d.k);
            v_store_bf16_lanes(dx + n * d.k + k,
                               y ? mask(z, v_load_bf16_lanes(y + n * d.k + k, lanes)) : z, lanes);
        }
}
RT_INLINE void bf16_dense_dw(real *restrict dw, const bf16 *restrict x, const bf16 *restrict dy,
                             Dense d)
{
    const TeamRange columns = team_range(d.o);
    for (int64_t o = columns.first; o < columns.end; o++)
        for (int k = 0; k < d.k; k++) {
            real *to = dw + (o / P * d.k + k) * P + o % P;
            *to = bf16_dot(x + k, d.k, dy + o, d.o, d.n, *to);
        }
}
#endif

#endif
