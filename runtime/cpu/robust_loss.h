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
#include "cpu/math.h"

RT_INLINE void l1_plain(real *loss, const real *x, const real *t, int n, int k)
{
    for (int i = 0; i < n; i++, x += k, t += k) {
        real sum = 0;
        for (int j = 0; j < k; j++)
            sum += s_abs(x[j] - t[j]);
        loss[i] = sum / (real)k;
    }
}

RT_INLINE void l1_dx_plain(real *dx, const real *x, const real *t, const real *dloss, int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, x += k, t += k)
        for (int j = 0; j < k; j++)
            dx[j] = dloss[i] / (real)k * (real)((x[j] > t[j]) - (x[j] < t[j]));
}

RT_INLINE void huber_plain(real *loss, const real *x, const real *t, int n, int k, real delta)
{
    for (int i = 0; i < n; i++, x += k, t += k) {
        real sum = 0;
        for (int j = 0; j < k; j++) {
            const real d = s_abs(x[j] - t[j]), m = d > delta ? delta : d;
            sum += m * m / 2 + delta * (d - m);
        }
        loss[i] = sum / (real)k;
    }
}

RT_INLINE void huber_dx_plain(real *dx, const real *x, const real *t, const real *dloss, int n,
                              int k, real delta)
{
    for (int i = 0; i < n; i++, dx += k, x += k, t += k)
        for (int j = 0; j < k; j++) {
            const real d = x[j] - t[j];
            dx[j] = dloss[i] / (real)k * (d > delta ? delta : d < -delta ? -delta : d);
        }
}

RT_INLINE void l1(real *restrict loss, const real *restrict x, const real *restrict t, int n, int k)
{
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k, *ti = t + (int64_t)i * k;
        vec sum = v_set(0);
        RT_MAP(k, sum += v_abs(LOAD(xi) - LOAD(ti)));
        loss[i] = v_sum(sum) / (real)k;
    }
}

RT_INLINE void l1_dx(real *restrict dx, const real *restrict x, const real *restrict t,
                     const real *restrict dloss, int n, int k)
{
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k, *ti = t + (int64_t)i * k;
        const vec scale = v_set(dloss[i] / (real)k);
        RT_MAP(k, STORE(dx + (int64_t)i * k, scale * v_sign(LOAD(xi) - LOAD(ti))));
    }
}

RT_INLINE void huber(real *restrict loss, const real *restrict x, const real *restrict t, int n,
                     int k, real delta)
{
    const vec half = v_set((real)0.5), most = v_set(delta);
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k, *ti = t + (int64_t)i * k;
        vec sum = v_set(0);
        RT_MAP(k, const vec d = v_abs(LOAD(xi) - LOAD(ti)); const vec m = v_min(most, d);
               sum += half * m * m + most * (d - m));
        loss[i] = v_sum(sum) / (real)k;
    }
}

RT_INLINE void huber_dx(real *restrict dx, const real *restrict x, const real *restrict t,
                        const real *restrict dloss, int n, int k, real delta)
{
    const vec most = v_set(delta), least = v_set(-delta);
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k, *ti = t + (int64_t)i * k;
        const vec scale = v_set(dloss[i] / (real)k);
        RT_MAP(k, const vec d = LOAD(xi) - LOAD(ti);
               STORE(dx + (int64_t)i * k, scale * v_max(least, v_min(most, d))));
    }
}

#endif
