/* loss.h -- softmax, the losses, and what is counted beside them.
 *
 * Row-major in both worlds: x (N, K), a loss a sample.
 *
 *   softmax                y = exp(x - max) / sum exp(x - max)
 *                          dx = y (dy - sum y dy)
 *   softmax_cross_entropy  log sum exp(x - max) - (x[label] - max)
 *                          dx = dloss (softmax(x) - onehot(label))
 *   sigmoid_cross_entropy  max(x, 0) - x label + log(1 + exp(-|x|))
 *                          dx = dloss (sigmoid(x) - label)
 *   mse                    mean (x - t)^2     dx = dloss 2 (x - t) / K
 *   l2                     sum x^2 / 2        dx = dloss x
 */
#ifndef CPU_LOSS_H
#define CPU_LOSS_H

/* -------------------------------------------------------------------------------------- softmax */
RT_INLINE real row_max_plain(const real *x, int k)
{
    real top = x[0];
    for (int j = 1; j < k; j++)
        top = x[j] > top ? x[j] : top;
    return top;
}

/* y = exp(x - max); returns the sum. */
RT_INLINE real row_exp_plain(real *y, const real *x, int k)
{
    const real top = row_max_plain(x, k);
    real sum = 0;
    for (int j = 0; j < k; j++)
        sum += y[j] = s_exp(x[j] - top);
    return sum;
}

RT_INLINE void softmax_plain(real *y, const real *x, int n, int k)
{
    for (int i = 0; i < n; i++, y += k, x += k) {
        const real sum = row_exp_plain(y, x, k);
        for (int j = 0; j < k; j++)
            y[j] /= sum;
    }
}

RT_INLINE void softmax_dx_plain(real *dx, const real *y, const real *dy, int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, y += k, dy += k) {
        real dot = 0;
        for (int j = 0; j < k; j++)
            dot += y[j] * dy[j];
        for (int j = 0; j < k; j++)
            dx[j] = y[j] * (dy[j] - dot);
    }
}

/* Squares of K rows: row i counts numbers 0 to i, the others become 0. */
RT_INLINE void softmax_causal_plain(real *y, const real *x, int n, int k)
{
    for (int i = 0; i < n; i++, y += k, x += k) {
        const int seen = i % k + 1;
        const real sum = row_exp_plain(y, x, seen);
        for (int j = 0; j < k; j++)
            y[j] = j < seen ? y[j] / sum : 0;
    }
}

/* The K numbers that sum to 1 lie `inner` apart. */
RT_INLINE void softmax_along_plain(real *y, const real *x, int outer, int k, int inner)
{
    for (int i = 0; i < outer; i++, y += (int64_t)k * inner, x += (int64_t)k * inner)
        for (int c = 0; c < inner; c++) {
            real top = x[c], sum = 0;
            for (int j = 1; j < k; j++)
                top = x[(int64_t)j * inner + c] > top ? x[(int64_t)j * inner + c] : top;
            for (int j = 0; j < k; j++)
                sum += y[(int64_t)j * inner + c] = s_exp(x[(int64_t)j * inner + c] - top);
            for (int j = 0; j < k; j++)
                y[(int64_t)j * inner + c] /= sum;
        }
}

RT_INLINE void softmax_dx_along_plain(real *dx, const real *y, const real *dy, int outer, int k,
                                      int inner)
{
    for (int i = 0; i < outer * inner; i++) {
        const int64_t at = (int64_t)(i / inner) * k * inner + i % inner;
        real dot = 0;
        for (int64_t j = 0; j < k; j++)
            dot += y[at + j * inner] * dy[at + j * inner];
        for (int64_t j = 0; j < k; j++)
            dx[at + j * inner] = y[at + j * inner] * (dy[at + j * inner] - dot);
    }
}

/* Lanes behind the end of a row neither win its maximum nor add to its sum. */
RT_INLINE vec row_load(const real *x, int lanes)
{
    return lanes == V ? v_load(x) : v_load_fill(x, lanes, -INFINITY);
}

RT_INLINE real row_max(const real *x, int k)
{
    vec top = v_set(-INFINITY);
    RT_MAP(k, top = v_max(top, row_load(x + AT, rt_lanes)));
    return v_top(top);
}

/* y = exp(x - max); returns the sum.  y and x may be the same row. */
RT_INLINE real row_exp(real *y, const real *x, int k)
{
    const vec top = v_set(row_max(x, k));
    vec sum = v_set(0);
    RT_MAP(k, vec e = v_exp(row_load(x + AT, rt_lanes) - top); STORE(y, e); sum += e);
    return v_sum(sum);
}

RT_INLINE void softmax(real *restrict y, const real *restrict x, int n, int k)
{
    for (int i = 0; i < n; i++, y += k, x += k) {
        const vec share = v_set(1 / row_exp(y, x, k));
        RT_MAP(k, STORE(y, LOAD(y) * share));
    }
}

RT_INLINE void softmax_dx(real *restrict dx, const real *restrict y, const real *restrict dy, int n,
                          int k)
{
    for (int i = 0; i < n; i++, dx += k, y += k, dy += k) {
        vec dot = v_set(0);
        RT_MAP(k, dot += LOAD(y) * LOAD(dy));
        const vec sum = v_set(v_sum(dot));
        RT_MAP(k, STORE(dx, LOAD(y) * (LOAD(dy) - sum)));
    }
}

RT_INLINE void softmax_causal(real *restrict y, const real *restrict x, int n, int k)
{
    for (int i = 0; i < n; i++, y += k, x += k) {
        const int seen = i % k + 1;
        const vec share = v_set(1 / row_exp(y, x, seen));
        RT_MAP(seen, STORE(y, LOAD(y) * share));
        memset(y + seen, 0, sizeof(real) * (size_t)(k - seen));
    }
}

/* Lanes are neighbours that have nothing to do with each other: V softmaxes at a time. */
RT_INLINE void softmax_along(real *restrict y, const real *restrict x, int outer, int k, int inner)
{
    for (int i = 0; i < outer; i++, y += (int64_t)k * inner, x += (int64_t)k * inner)
        RT_MAP(
            inner, vec top = LOAD(x); vec sum = v_set(0);
            for (int64_t j = 1; j < k; j++) top = v_max(top, LOAD(x + j * inner));
            for (int64_t j = 0; j < k; j++) {
                const vec e = v_exp(LOAD(x + j * inner) - top);
                STORE(y + j * inner, e);
                sum += e;
            } const vec share = v_set(1) / sum;
            for (int64_t j = 0; j < k; j++) STORE(y + j * inner, LOAD(y + j * inner) * share));
}

RT_INLINE void softmax_dx_along(real *restrict dx, const real *restrict y, const real *restrict dy,
                                int outer, int k, int inner)
{
    const int64_t size = (int64_t)k * inner;
    for (int i = 0; i < outer; i++, dx += size, y += size, dy += size)
        RT_MAP(inner, vec dot = v_set(0); for (int64_t j = 0; j < k; j++) dot =
                                              v_fma(LOAD(y + j * inner), LOAD(dy + j * inner), dot);
               for (int64_t j = 0; j < k; j++)
                   STORE(dx + j * inner, LOAD(y + j * inner) * (LOAD(dy + j * inner) - dot)));
}

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

/* What smoothing by s adds: s (x[label] - mean of x), and s (onehot(label) - 1 / K) dloss. */
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

/* 1 where the first of the largest x is the label, else 0. */
RT_INLINE void accuracy_plain(real *correct, const real *x, const int32_t *label, int n, int k)
{
    for (int i = 0; i < n; i++, x += k) {
        int best = 0;
        for (int j = 1; j < k; j++)
            best = x[j] > x[best] ? j : best;
        correct[i] = best == label[i];
    }
}

/* Every number before the label's must be smaller than it, none behind it larger. */
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

/* ------------------------------------------------------------------------------ a class a position
 *
 * x (N, T, K), label (N, T): sums over the positions with a class, not -1, in their order, divided by `scored`, the positions
 * with a class that a sample of the batch has in the mean: the mean over samples is that over positions. */
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
