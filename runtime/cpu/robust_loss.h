/* robust_loss.h -- losses that bound the weight of a single large error.
 *
 * x, t (N, K) are row-major; a loss has a value for each sample.  d = x - t.
 *
 *   l1      mean |d|                            dx = dloss sign(d) / K
 *   huber   mean of m^2 / 2 + D (|d| - m)       dx = dloss clamp(d, -D, D) / K
 *           m = min(|d|, D)
 */
#ifndef CPU_ROBUST_LOSS_H
#define CPU_ROBUST_LOSS_H
#include "cpu/loss_rows.h"

RT_INLINE void l1_plain(real *loss, const real *x, const real *t, int n, int k)
{
    LOSS_MEAN_PLAIN(loss, x, t, n, k, sum += s_abs(d));
}

RT_INLINE void l1_dx_plain(real *dx, const real *x, const real *t, const real *dloss, int n, int k)
{
    LOSS_DX_PLAIN(n, k, dx[at] = dloss[i] / (real)k * (real)((x[at] > t[at]) - (x[at] < t[at])));
}

RT_INLINE void huber_plain(real *loss, const real *x, const real *t, int n, int k, real delta)
{
    LOSS_MEAN_PLAIN(loss, x, t, n, k, const real e = s_abs(d), m = e > delta ? delta : e;
                    sum += m * m / 2 + delta * (e - m));
}

RT_INLINE void huber_dx_plain(real *dx, const real *x, const real *t, const real *dloss, int n,
                              int k, real delta)
{
    LOSS_DX_PLAIN(n, k, const real d = x[at] - t[at]; const real most = d > delta ? delta : d;
                  dx[at] = dloss[i] / (real)k * (d < -delta ? -delta : most));
}

RT_INLINE void l1(real *restrict loss, const real *restrict x, const real *restrict t, int n, int k)
{
    LOSS_MEAN(loss, x, t, n, k, sum += v_abs(d));
}

RT_INLINE void l1_dx(real *restrict dx, const real *restrict x, const real *restrict t,
                     const real *restrict dloss, int n, int k)
{
    LOSS_DX(dx, x, t, n, k, dloss[i] / (real)k, v_sign(d));
}

RT_INLINE void huber(real *restrict loss, const real *restrict x, const real *restrict t, int n,
                     int k, real delta)
{
    const vec half = v_set((real)0.5), most = v_set(delta);
    LOSS_MEAN(loss, x, t, n, k, const vec e = v_abs(d); const vec m = v_min(most, e);
              sum += half * m * m + most * (e - m));
}

RT_INLINE void huber_dx(real *restrict dx, const real *restrict x, const real *restrict t,
                        const real *restrict dloss, int n, int k, real delta)
{
    const vec most = v_set(delta), least = v_set(-delta);
    LOSS_DX(dx, x, t, n, k, dloss[i] / (real)k, v_max(least, v_min(most, d)));
}

#endif
