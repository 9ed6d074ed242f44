/* mask_loss.h -- sigmoid cross-entropy of many numbers, and counts of their truths: masks, and
 * several labels of a sample.
 *
 * x, t (N, K) are row-major; t is from 0 to 1.  A loss has a value for each sample, W is the weight
 * of truths.  sigmoid(x) > 1/2, which is x > 0, says that a truth is predicted; t > 1/2 is a truth.
 *
 *   sigmoid_cross_entropy_numbers   mean of max(x, 0) - x t + e + (W - 1) t (max(-x, 0) + e)
 *                                   e = log(1 + exp(-|x|)) = -log of the larger probability
 *                                   dx = dloss (sigmoid(x) - t + (W - 1) t (sigmoid(x) - 1)) / K
 *                                   dt = dloss ((W - 1) (max(-x, 0) + e) - x) / K
 *   numbers_accuracy                share of right predictions; an x of NaN is not right
 *   mask_overlap, mask_union        number of truths that are predicted; of numbers that are a
 *                                   truth, predicted or NaN.  Exact up to 2^24 numbers a sample.
 */
#ifndef CPU_MASK_LOSS_H
#define CPU_MASK_LOSS_H
#include "cpu/loss_rows.h"

RT_INLINE void sigmoid_cross_entropy_numbers_plain(real *loss, const real *x, const real *t, int n,
                                                   int k, real weight)
{
    for (int i = 0; i < n; i++) {
        real sum = 0;
        for (int64_t at = (int64_t)i * k; at < ((int64_t)i + 1) * k; at++)
            sum += s_softplus(x[at]) - x[at] * t[at] + (weight - 1) * t[at] * s_softplus(-x[at]);
        loss[i] = sum / (real)k;
    }
}

RT_INLINE void sigmoid_cross_entropy_numbers_dx_plain(real *dx, const real *x, const real *t,
                                                      const real *dloss, int n, int k, real weight)
{
    LOSS_DX_PLAIN(n, k, const real s = 1 / (1 + s_exp(-x[at]));
                  dx[at] = dloss[i] / (real)k * (s - t[at] + (weight - 1) * t[at] * (s - 1)));
}

RT_INLINE void sigmoid_cross_entropy_numbers_dt_plain(real *dt, const real *x, const real *t,
                                                      const real *dloss, int n, int k, real weight)
{
    (void)t;
    LOSS_DX_PLAIN(n, k, dt[at] = dloss[i] / (real)k * ((weight - 1) * s_softplus(-x[at]) - x[at]));
}

RT_INLINE void numbers_accuracy_plain(real *y, const real *x, const real *t, int n, int k)
{
    LOSS_MEAN_PLAIN(y, x, t, n, k, (void)d; sum += ti[j] > (real)0.5 ? xi[j] > 0 : xi[j] <= 0);
}

RT_INLINE void mask_overlap_plain(real *y, const real *x, const real *t, int n, int k)
{
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int64_t at = (int64_t)i * k; at < ((int64_t)i + 1) * k; at++)
            y[i] += x[at] > 0 && t[at] > (real)0.5;
    }
}

RT_INLINE void mask_union_plain(real *y, const real *x, const real *t, int n, int k)
{
    for (int i = 0; i < n; i++) {
        y[i] = 0;
        for (int64_t at = (int64_t)i * k; at < ((int64_t)i + 1) * k; at++)
            y[i] += !(x[at] <= 0) || t[at] > (real)0.5;
    }
}

/* Fills the lanes after the end of a row: with t = 0, such a logit has the loss 0. */
#define MASK_LOGIT(x)                                                                              \
    (rt_lanes == V ? v_load((x) + AT) : v_load_fill((x) + AT, rt_lanes, (real)-1000))

RT_INLINE void sigmoid_cross_entropy_numbers(real *restrict loss, const real *restrict x,
                                             const real *restrict t, int n, int k, real weight)
{
    const vec more = v_set(weight - 1), zero = v_set(0);
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k, *ti = t + (int64_t)i * k;
        vec sum = zero;
        RT_MAP(k, const vec v = MASK_LOGIT(xi); const vec truth = LOAD(ti);
               const vec e = v_log1p_exp(-v_abs(v));
               sum += v_max(zero, v) - v * truth + e + more * truth * (v_max(zero, -v) + e));
        loss[i] = v_sum(sum) / (real)k;
    }
}

RT_INLINE void sigmoid_cross_entropy_numbers_dx(real *restrict dx, const real *restrict x,
                                                const real *restrict t, const real *restrict dloss,
                                                int n, int k, real weight)
{
    const vec more = v_set(weight - 1), one = v_set(1);
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k, *ti = t + (int64_t)i * k;
        const vec factor = v_set(dloss[i] / (real)k);
        RT_MAP(k, const vec s = v_sigmoid(LOAD(xi)); const vec truth = LOAD(ti);
               STORE(dx + (int64_t)i * k, factor * (s - truth + more * truth * (s - one))));
    }
}

RT_INLINE void sigmoid_cross_entropy_numbers_dt(real *restrict dt, const real *restrict x,
                                                const real *restrict t, const real *restrict dloss,
                                                int n, int k, real weight)
{
    const vec more = v_set(weight - 1);
    (void)t;
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k;
        const vec factor = v_set(dloss[i] / (real)k);
        RT_MAP(k, const vec v = LOAD(xi);
               STORE(dt + (int64_t)i * k, factor * (more * v_softplus(-v) - v)));
    }
}

/* 1 in each lane whose number is above the bound, else 0. */
RT_INLINE vec mask_above(vec x, real bound)
{
    return v_select_gt(x, v_set(bound), v_set(1), v_set(0));
}

/* The sum over a row of a term of p, what is predicted, q, the truth, and u, what is predicted or
 * NaN: each 0 or 1, and 0 after the end of the row. */
#define MASK_COUNT(i, x, t, k, term)                                                               \
    const real *xi = (x) + (int64_t)(i) * (k), *ti = (t) + (int64_t)(i) * (k);                     \
    vec sum = v_set(0);                                                                            \
    RT_MAP(k, const vec p = mask_above(LOAD(xi), 0);                                               \
           const vec u = v_select_ge(v_set(0), LOAD(xi), v_set(0), v_set(1));                      \
           const vec q = mask_above(LOAD(ti), (real)0.5); (void)p, (void)u; sum += (term));

RT_INLINE void numbers_accuracy(real *restrict y, const real *restrict x, const real *restrict t,
                                int n, int k)
{
    TEAM_FOR(i, n) {
        MASK_COUNT(i, x, t, k, v_max(v_abs(p - q), u - p))
        y[i] = ((real)k - v_sum(sum)) / (real)k;
    }
}

RT_INLINE void mask_overlap(real *restrict y, const real *restrict x, const real *restrict t, int n,
                            int k)
{
    TEAM_FOR(i, n) {
        MASK_COUNT(i, x, t, k, p * q)
        y[i] = v_sum(sum);
    }
}

RT_INLINE void mask_union(real *restrict y, const real *restrict x, const real *restrict t, int n,
                          int k)
{
    TEAM_FOR(i, n) {
        MASK_COUNT(i, x, t, k, v_max(u, q))
        y[i] = v_sum(sum);
    }
}

#endif
