/* loss.h -- losses, accuracy and encodings of labels.
 *
 * x (N, K) is row-major in plain and fast kernels; a loss has a value for each sample.
 *
 *   softmax_cross_entropy  log sum exp(x - max) - (x[label] - max)
 *                          dx = dloss (softmax(x) - onehot(label))
 *   sigmoid_cross_entropy  max(x, 0) - x label + log(1 + exp(-|x|))
 *                          dx = dloss (sigmoid(x) - label)
 *   mse                    mean (x - t)^2     dx = dloss 2 (x - t) / K
 *   l2                     sum x^2 / 2        dx = dloss x
 */
#ifndef CPU_LOSS_H
#define CPU_LOSS_H
#include "cpu/softmax.h"

/* ------------------------------------------------------------------------ softmax cross entropy */
RT_INLINE void softmax_cross_entropy_plain(real *loss, const real *x, const int32_t *label, int n,
                                           int k)
{
    for (int i = 0; i < n; i++, x += k) {
        const real top = row_max_plain(x, k);
        real sum = 0;
        for (int j = 0; j < k; j++)
            sum += s_exp(x[j] - top);
        loss[i] = s_log(sum) - (x[label[i]] - top);
    }
}

RT_INLINE void softmax_cross_entropy_dx_plain(real *dx, const real *x, const int32_t *label,
                                              const real *dloss, int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, x += k) {
        const real sum = row_exp_plain(dx, x, k);
        for (int j = 0; j < k; j++)
            dx[j] = dloss[i] * (dx[j] / sum - (j == label[i]));
    }
}

RT_INLINE void softmax_cross_entropy(real *restrict loss, const real *restrict x,
                                     const int32_t *restrict label, int n, int k)
{
    for (int i = 0; i < n; i++, x += k) {
        const real top = row_max(x, k);
        vec sum = v_set(0);
        RT_MAP(k, sum += v_exp(row_load(x + AT, rt_lanes) - v_set(top)));
        loss[i] = s_log(v_sum(sum)) - (x[label[i]] - top);
    }
}

RT_INLINE void softmax_cross_entropy_dx(real *restrict dx, const real *restrict x,
                                        const int32_t *restrict label, const real *restrict dloss,
                                        int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, x += k) {
        const vec share = v_set(dloss[i] / row_exp(dx, x, k));
        RT_MAP(k, STORE(dx, LOAD(dx) * share));
        dx[label[i]] -= dloss[i];
    }
}

/* Adds the terms of label smoothing by s: s (x[label] - mean of x), and
 * s (onehot(label) - 1 / K) dloss. */
RT_INLINE void smooth_loss(real *restrict loss, const real *restrict x,
                           const int32_t *restrict label, int n, int k, real s)
{
    for (int i = 0; i < n; i++, x += k) {
        real sum = 0;
        for (int j = 0; j < k; j++)
            sum += x[j] - x[label[i]];
        loss[i] -= s * (sum / (real)k);
    }
}

RT_INLINE void smooth_dx(real *restrict dx, const int32_t *restrict label,
                         const real *restrict dloss, int n, int k, real s)
{
    for (int i = 0; i < n; i++, dx += k) {
        const real each = dloss[i] * (s / (real)k);
        for (int j = 0; j < k; j++)
            dx[j] -= each;
        dx[label[i]] += dloss[i] * s;
    }
}

#define SMOOTH(suffix)                                                                             \
    RT_INLINE void softmax_cross_entropy_smooth##suffix(real *loss, const real *x,                 \
                                                        const int32_t *label, int n, int k,        \
                                                        real s)                                    \
    {                                                                                              \
        softmax_cross_entropy##suffix(loss, x, label, n, k);                                       \
        smooth_loss(loss, x, label, n, k, s);                                                      \
    }                                                                                              \
    RT_INLINE void softmax_cross_entropy_dx_smooth##suffix(real *dx, const real *x,                \
                                                           const int32_t *label,                   \
                                                           const real *dloss, int n, int k,        \
                                                           real s)                                 \
    {                                                                                              \
        softmax_cross_entropy_dx##suffix(dx, x, label, dloss, n, k);                               \
        smooth_dx(dx, label, dloss, n, k, s);                                                      \
    }
SMOOTH(_plain)
SMOOTH()
#undef SMOOTH

/* ------------------------------------------------------------------------ sigmoid cross entropy */
RT_INLINE void sigmoid_cross_entropy(real *restrict loss, const real *restrict x,
                                     const int32_t *restrict label, int n)
{
    for (int i = 0; i < n; i++)
        loss[i] = s_max(x[i], 0) - x[i] * (real)label[i] + s_log(1 + s_exp(-s_abs(x[i])));
}

RT_INLINE void sigmoid_cross_entropy_dx(real *restrict dx, const real *restrict x,
                                        const int32_t *restrict label, const real *restrict dloss,
                                        int n)
{
    for (int i = 0; i < n; i++)
        dx[i] = (1 / (1 + s_exp(-x[i])) - (real)label[i]) * dloss[i];
}

RT_INLINE void binary_accuracy(real *restrict correct, const real *restrict x,
                               const int32_t *restrict label, int n)
{
    for (int i = 0; i < n; i++)
        correct[i] = (x[i] > 0) == (label[i] == 1);
}

/* ------------------------------------------------------------------------- counts and encodings */

/* 1 if the first of the largest x is the label, else 0. */
RT_INLINE void accuracy_plain(real *correct, const real *x, const int32_t *label, int n, int k)
{
    for (int i = 0; i < n; i++, x += k) {
        int best = 0;
        for (int j = 1; j < k; j++)
            best = x[j] > x[best] ? j : best;
        correct[i] = best == label[i];
    }
}

/* Each number before the label's must be smaller than it, and none after it larger. */
RT_INLINE void accuracy(real *restrict correct, const real *restrict x,
                        const int32_t *restrict label, int n, int k)
{
    const vec yes = v_set(1), no = v_set(0);
    for (int i = 0; i < n; i++, x += k) {
        const real *behind = x + label[i] + 1;
        const vec top = v_set(x[label[i]]);
        vec beaten = no;
        RT_MAP(label[i], beaten += v_select_gt(top, row_load(x + AT, rt_lanes), no, yes));
        RT_MAP(k - label[i] - 1,
               beaten += v_select_gt(row_load(behind + AT, rt_lanes), top, yes, no));
        correct[i] = v_sum(beaten) == 0;
    }
}

RT_INLINE void one_hot(real *restrict y, const int32_t *restrict label, int n, int k)
{
    for (int i = 0; i < n; i++, y += k)
        for (int j = 0; j < k; j++)
            y[j] = j == label[i];
}

/* --------------------------------------------------------------------- a class for each position
 *
 * x (N, T, K), label (N, T).  Sums over the positions that have a class (not -1), in order, divided
 * by `scored`, the mean number of such positions a sample.  So the mean over samples is the mean
 * over positions. */
/* clang-format off */
#define EACH(fn, args, ...)                                                                        \
    RT_INLINE void fn##_each(real *y, const real *x, const int32_t *label, double scored, int n,   \
                             int t, int k args)                                                    \
    {                                                                                              \
        for (int i = 0; i < n; i++, label += t) {                                                  \
            real sum = 0;                                                                          \
            for (int j = 0; j < t; j++, x += k) {                                                  \
                real one = 0;                                                                      \
                if (label[j] >= 0)                                                                 \
                    fn(&one, x, label + j, 1, k __VA_ARGS__);                                      \
                sum += one;                                                                        \
            }                                                                                      \
            y[i] = sum / (real)scored;                                                             \
        }                                                                                          \
    }
#define EACH_DX(fn, args, ...)                                                                     \
    RT_INLINE void fn##_each(real *dx, const real *x, const int32_t *label, const real *dloss,     \
                             double scored, int n, int t, int k args)                              \
    {                                                                                              \
        for (int i = 0; i < n; i++, label += t) {                                                  \
            const real each = dloss[i] / (real)scored;                                             \
            for (int j = 0; j < t; j++, x += k, dx += k)                                           \
                if (label[j] >= 0)                                                                 \
                    fn(dx, x, label + j, &each, 1, k __VA_ARGS__);                                 \
                else                                                                               \
                    memset(dx, 0, sizeof *dx * (size_t)k);                                         \
        }                                                                                          \
    }
#define COMMA ,
#define SMOOTHING COMMA real s
EACH(accuracy, )
EACH(softmax_cross_entropy_plain, )
EACH(softmax_cross_entropy, )
EACH(softmax_cross_entropy_smooth_plain, SMOOTHING, COMMA s)
EACH(softmax_cross_entropy_smooth, SMOOTHING, COMMA s)
EACH_DX(softmax_cross_entropy_dx_plain, )
EACH_DX(softmax_cross_entropy_dx, )
EACH_DX(softmax_cross_entropy_dx_smooth_plain, SMOOTHING, COMMA s)
EACH_DX(softmax_cross_entropy_dx_smooth, SMOOTHING, COMMA s)
#undef SMOOTHING
#undef COMMA
#undef EACH_DX
#undef EACH
/* clang-format on */

/* ----------------------------------------------------------------------------------- mse and l2 */
RT_INLINE void mse_plain(real *loss, const real *x, const real *t, int n, int k)
{
    for (int i = 0; i < n; i++, x += k, t += k) {
        real sum = 0;
        for (int j = 0; j < k; j++)
            sum += (x[j] - t[j]) * (x[j] - t[j]);
        loss[i] = sum / (real)k;
    }
}

RT_INLINE void mse_dx_plain(real *dx, const real *x, const real *t, const real *dloss, int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, x += k, t += k)
        for (int j = 0; j < k; j++)
            dx[j] = dloss[i] * 2 * (x[j] - t[j]) / (real)k;
}

RT_INLINE void l2_plain(real *loss, const real *x, int n, int k)
{
    for (int i = 0; i < n; i++, x += k) {
        real sum = 0;
        for (int j = 0; j < k; j++)
            sum += x[j] * x[j];
        loss[i] = sum / 2;
    }
}

RT_INLINE void l2_dx_plain(real *dx, const real *x, const real *dloss, int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, x += k)
        for (int j = 0; j < k; j++)
            dx[j] = dloss[i] * x[j];
}

RT_INLINE void mse(real *restrict loss, const real *restrict x, const real *restrict t, int n,
                   int k)
{
    for (int i = 0; i < n; i++, x += k, t += k) {
        vec sum = v_set(0);
        RT_MAP(k, vec d = LOAD(x) - LOAD(t); sum = v_fma(d, d, sum));
        loss[i] = v_sum(sum) / (real)k;
    }
}

RT_INLINE void mse_dx(real *restrict dx, const real *restrict x, const real *restrict t,
                      const real *restrict dloss, int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, x += k, t += k) {
        const vec scale = v_set(dloss[i] * 2 / (real)k);
        RT_MAP(k, STORE(dx, scale * (LOAD(x) - LOAD(t))));
    }
}

RT_INLINE void l2(real *restrict loss, const real *restrict x, int n, int k)
{
    for (int i = 0; i < n; i++, x += k) {
        vec sum = v_set(0);
        RT_MAP(k, sum = v_fma(LOAD(x), LOAD(x), sum));
        loss[i] = v_sum(sum) / 2;
    }
}

RT_INLINE void l2_dx(real *restrict dx, const real *restrict x, const real *restrict dloss, int n,
                     int k)
{
    for (int i = 0; i < n; i++, dx += k, x += k)
        RT_MAP(k, STORE(dx, v_set(dloss[i]) * LOAD(x)));
}

#endif
