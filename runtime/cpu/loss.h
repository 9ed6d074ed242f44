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
#include "cpu/loss_rows.h"
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

RT_INLINE real softmax_cross_entropy_row(const real *restrict x, int label, int k)
{
    const real top = row_max(x, k);
    vec sum = v_set(0);
    RT_MAP(k, sum += v_exp(row_load(x + AT, rt_lanes) - v_set(top)));
    return s_log(v_sum(sum)) - (x[label] - top);
}

RT_INLINE void softmax_cross_entropy_dx_row(real *restrict dx, const real *restrict x, int label,
                                            real dloss, int k)
{
    const vec share = v_set(dloss / row_exp(dx, x, k));
    RT_MAP(k, STORE(dx, LOAD(dx) * share));
    dx[label] -= dloss;
}

/* The terms of label smoothing by s: s (x[label] - mean of x), and
 * s (onehot(label) - 1 / K) dloss. */
RT_INLINE real smooth_loss(const real *restrict x, int label, int k, real s)
{
    real sum = 0;
    for (int j = 0; j < k; j++)
        sum += x[j] - x[label];
    return s * (sum / (real)k);
}

RT_INLINE void smooth_dx(real *restrict dx, int label, real dloss, int k, real s)
{
    const real each = dloss * (s / (real)k);
    for (int j = 0; j < k; j++)
        dx[j] -= each;
    dx[label] += dloss * s;
}

RT_INLINE real softmax_cross_entropy_smooth_row(const real *x, int label, int k, real s)
{
    return softmax_cross_entropy_row(x, label, k) - smooth_loss(x, label, k, s);
}

RT_INLINE void softmax_cross_entropy_dx_smooth_row(real *dx, const real *x, int label, real dloss,
                                                   int k, real s)
{
    softmax_cross_entropy_dx_row(dx, x, label, dloss, k);
    smooth_dx(dx, label, dloss, k, s);
}

RT_INLINE void softmax_cross_entropy_smooth_plain(real *loss, const real *x, const int32_t *label,
                                                  int n, int k, real s)
{
    softmax_cross_entropy_plain(loss, x, label, n, k);
    for (int i = 0; i < n; i++, x += k)
        loss[i] -= smooth_loss(x, label[i], k, s);
}

RT_INLINE void softmax_cross_entropy_dx_smooth_plain(real *dx, const real *x, const int32_t *label,
                                                     const real *dloss, int n, int k, real s)
{
    softmax_cross_entropy_dx_plain(dx, x, label, dloss, n, k);
    for (int i = 0; i < n; i++, dx += k)
        smooth_dx(dx, label[i], dloss[i], k, s);
}

/* ------------------------------------------------------------------------ sigmoid cross entropy */
RT_INLINE void sigmoid_cross_entropy(real *restrict loss, const real *restrict x,
                                     const int32_t *restrict label, int n)
{
    TEAM_FOR(i, n)
        loss[i] = s_max(x[i], 0) - x[i] * (real)label[i] + s_log(1 + s_exp(-s_abs(x[i])));
}

RT_INLINE void sigmoid_cross_entropy_dx(real *restrict dx, const real *restrict x,
                                        const int32_t *restrict label, const real *restrict dloss,
                                        int n)
{
    TEAM_FOR(i, n)
        dx[i] = (1 / (1 + s_exp(-x[i])) - (real)label[i]) * dloss[i];
}

/* An x of NaN is right for no label. */
RT_INLINE void binary_accuracy(real *restrict correct, const real *restrict x,
                               const int32_t *restrict label, int n)
{
    TEAM_FOR(i, n)
        correct[i] = label[i] == 1 ? x[i] > 0 : x[i] <= 0;
}

/* ------------------------------------------------------------------------- counts and encodings */

/* 1 if the first of the largest x is the label, else 0.  0 if one of them is NaN. */
RT_INLINE void accuracy_plain(real *correct, const real *x, const int32_t *label, int n, int k)
{
    for (int i = 0; i < n; i++, x += k) {
        int best = 0;
        bool numbers = x[0] == x[0];
        for (int j = 1; j < k; j++) {
            best = x[j] > x[best] ? j : best;
            numbers = numbers && x[j] == x[j];
        }
        correct[i] = numbers && best == label[i];
    }
}

/* Returns 1 if the label's number is the first of the largest numbers: each number before it is
 * smaller, and each one after it is at most as large.  So the result is 0 if a number is NaN. */
RT_INLINE real accuracy_row(const real *restrict x, int label, int k)
{
    const vec yes = v_set(1), no = v_set(0), top = v_set(x[label]);
    const real *after = x + label + 1;
    vec beaten = no;
    RT_MAP(label, beaten += v_select_gt(top, row_load(x + AT, rt_lanes), no, yes));
    RT_MAP(k - label - 1, beaten += v_select_ge(top, row_load(after + AT, rt_lanes), no, yes));
    return v_sum(beaten) == 0 && x[label] == x[label];
}

RT_INLINE void one_hot(real *restrict y, const int32_t *restrict label, int n, int k)
{
    TEAM_FOR(i, n)
        for (int j = 0; j < k; j++)
            y[(int64_t)i * k + j] = j == label[i];
}

/* ------------------------------------------------------- a class for each sample or position
 *
 * Kernels of rows make kernels of N rows: fn and, for a class for each position, fn_each.
 *
 *   fn         x (N, K), label (N)
 *   fn_each    x (N, T, K), label (N, T).  Sums over the positions that have a class (not -1), in
 *              order, divided by `scored`, the mean number of such positions a sample.  So the mean
 *              over samples is the mean over positions.
 */
/* clang-format off */
#define ROWS(fn, args, ...)                                                                        \
    RT_INLINE void fn(real *restrict y, const real *restrict x, const int32_t *restrict label,     \
                      int n, int k args)                                                           \
    {                                                                                              \
        TEAM_FOR(i, n)                                                                             \
            y[i] = fn##_row(x + (int64_t)i * k, label[i], k __VA_ARGS__);                          \
    }
#define ROWS_DX(fn, args, ...)                                                                     \
    RT_INLINE void fn(real *restrict dx, const real *restrict x, const int32_t *restrict label,    \
                      const real *restrict dloss, int n, int k args)                               \
    {                                                                                              \
        TEAM_FOR(i, n)                                                                             \
            fn##_row(dx + (int64_t)i * k, x + (int64_t)i * k, label[i], dloss[i], k __VA_ARGS__);  \
    }
#define EACH(fn, args, ...)                                                                        \
    RT_INLINE void fn##_each(real *y, const real *x, const int32_t *label, double scored, int n,   \
                             int t, int k args)                                                    \
    {                                                                                              \
        TEAM_FOR(i, n) {                                                                           \
            real sum = 0;                                                                          \
            for (int64_t j = (int64_t)i * t; j < (int64_t)(i + 1) * t; j++)                        \
                sum += label[j] >= 0 ? fn##_row(x + j * k, label[j], k __VA_ARGS__) : 0;           \
            y[i] = sum / (real)scored;                                                             \
        }                                                                                          \
    }
#define EACH_DX(fn, args, ...)                                                                     \
    RT_INLINE void fn##_each(real *dx, const real *x, const int32_t *label, const real *dloss,     \
                             double scored, int n, int t, int k args)                              \
    {                                                                                              \
        TEAM_FOR(j, n * t) {                                                                       \
            if (label[j] >= 0)                                                                     \
                fn##_row(dx + (int64_t)j * k, x + (int64_t)j * k, label[j],                        \
                         dloss[j / t] / (real)scored, k __VA_ARGS__);                              \
            else                                                                                   \
                memset(dx + (int64_t)j * k, 0, sizeof *dx * (size_t)k);                            \
        }                                                                                          \
    }
/* Plain kernels, one row at a time. */
#define PLAIN_ROW(fn, args, ...)                                                                   \
    RT_INLINE real fn##_row(const real *x, int label, int k args)                                  \
    {                                                                                              \
        real y;                                                                                    \
        fn(&y, x, &(int32_t){label}, 1, k __VA_ARGS__);                                            \
        return y;                                                                                  \
    }
#define PLAIN_ROW_DX(fn, args, ...)                                                                \
    RT_INLINE void fn##_row(real *dx, const real *x, int label, real dloss, int k args)            \
    {                                                                                              \
        fn(dx, x, &(int32_t){label}, &dloss, 1, k __VA_ARGS__);                                    \
    }
#define COMMA ,
#define SMOOTHING COMMA real s
ROWS(accuracy, )
EACH(accuracy, )
ROWS(softmax_cross_entropy, )
EACH(softmax_cross_entropy, )
ROWS(softmax_cross_entropy_smooth, SMOOTHING, COMMA s)
EACH(softmax_cross_entropy_smooth, SMOOTHING, COMMA s)
ROWS_DX(softmax_cross_entropy_dx, )
EACH_DX(softmax_cross_entropy_dx, )
ROWS_DX(softmax_cross_entropy_dx_smooth, SMOOTHING, COMMA s)
EACH_DX(softmax_cross_entropy_dx_smooth, SMOOTHING, COMMA s)
PLAIN_ROW(accuracy_plain, )
EACH(accuracy_plain, )
PLAIN_ROW(softmax_cross_entropy_plain, )
EACH(softmax_cross_entropy_plain, )
PLAIN_ROW(softmax_cross_entropy_smooth_plain, SMOOTHING, COMMA s)
EACH(softmax_cross_entropy_smooth_plain, SMOOTHING, COMMA s)
PLAIN_ROW_DX(softmax_cross_entropy_dx_plain, )
EACH_DX(softmax_cross_entropy_dx_plain, )
PLAIN_ROW_DX(softmax_cross_entropy_dx_smooth_plain, SMOOTHING, COMMA s)
EACH_DX(softmax_cross_entropy_dx_smooth_plain, SMOOTHING, COMMA s)
#undef SMOOTHING
#undef COMMA
#undef PLAIN_ROW_DX
#undef PLAIN_ROW
#undef EACH_DX
#undef EACH
#undef ROWS_DX
#undef ROWS
/* clang-format on */

/* ----------------------------------------------------- weights of classes
 *
 * As fn_each, with a weight for each class.  Sums are divided by `weighted`, the mean over samples
 * of the sum of the weights of their labels.
 */
typedef struct ClassWeights {
    double of[RT_CLASS_WEIGHTS];
} ClassWeights;
#define RT_WEIGHTS(...) ((ClassWeights){{__VA_ARGS__}})
#define WEIGHTED(suffix)                                                                           \
    RT_INLINE void softmax_cross_entropy_weighted##suffix##_each(real *y, const real *x,           \
                                                                 const int32_t *label,             \
                                                                 double weighted, int n, int t,    \
                                                                 int k, ClassWeights w)            \
    {                                                                                              \
        TEAM_FOR(i, n) {                                                                           \
            real sum = 0;                                                                          \
            for (int64_t j = (int64_t)i * t; j < (int64_t)(i + 1) * t; j++)                        \
                sum += label[j] >= 0                                                               \
                           ? (real)w.of[label[j]] *                                                \
                                 softmax_cross_entropy##suffix##_row(x + j * k, label[j], k)       \
                           : 0;                                                                    \
            y[i] = sum / (real)weighted;                                                           \
        }                                                                                          \
    }                                                                                              \
    RT_INLINE void softmax_cross_entropy_dx_weighted##suffix##_each(real *dx, const real *x,       \
                                                                    const int32_t *label,          \
                                                                    const real *dloss,             \
                                                                    double weighted, int n, int t, \
                                                                    int k, ClassWeights w)         \
    {                                                                                              \
        TEAM_FOR(j, n * t) {                                                                       \
            if (label[j] >= 0)                                                                     \
                softmax_cross_entropy_dx##suffix##_row(dx + (int64_t)j * k, x + (int64_t)j * k,    \
                                                       label[j],                                   \
                                                       dloss[j / t] * (real)w.of[label[j]] /       \
                                                           (real)weighted,                         \
                                                       k);                                         \
            else                                                                                   \
                memset(dx + (int64_t)j * k, 0, sizeof *dx * (size_t)k);                            \
        }                                                                                          \
    }
WEIGHTED()
WEIGHTED(_plain)
#undef WEIGHTED

/* ----------------------------------------------------------------------------------- mse and l2 */
RT_INLINE void mse_plain(real *loss, const real *x, const real *t, int n, int k)
{
    LOSS_MEAN_PLAIN(loss, x, t, n, k, sum += d * d);
}

RT_INLINE void mse_dx_plain(real *dx, const real *x, const real *t, const real *dloss, int n, int k)
{
    LOSS_DX_PLAIN(n, k, dx[at] = dloss[i] * 2 * (x[at] - t[at]) / (real)k);
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
    LOSS_MEAN(loss, x, t, n, k, sum = v_fma(d, d, sum));
}

RT_INLINE void mse_dx(real *restrict dx, const real *restrict x, const real *restrict t,
                      const real *restrict dloss, int n, int k)
{
    LOSS_DX(dx, x, t, n, k, dloss[i] * 2 / (real)k, d);
}

RT_INLINE void l2(real *restrict loss, const real *restrict x, int n, int k)
{
    TEAM_FOR(i, n) {
        const real *xi = x + (int64_t)i * k;
        vec sum = v_set(0);
        RT_MAP(k, sum = v_fma(LOAD(xi), LOAD(xi), sum));
        loss[i] = v_sum(sum) / 2;
    }
}

RT_INLINE void l2_dx(real *restrict dx, const real *restrict x, const real *restrict dloss, int n,
                     int k)
{
    TEAM_FOR(i, n)
        RT_MAP(k, STORE(dx + (int64_t)i * k, v_set(dloss[i]) * LOAD(x + (int64_t)i * k)));
}

#endif
