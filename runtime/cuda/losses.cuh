/* losses.cuh -- losses that are not in loss.cuh, and losses with a class for each position
 * (formulas: runtime/cpu/loss.h). */
#ifndef CUDA_LOSSES_CUH
#define CUDA_LOSSES_CUH

/* ---------------------------------------------- sigmoid cross entropy: a thread for each sample */

SIZE int sigmoid_cross_entropy_blocks(int n)
{
    return each_blocks(n);
}
DEVICE void sigmoid_cross_entropy(real *loss, const real *x, const int32_t *label, int n)
{
    FOR_EACH(i, n)
        loss[i] = s_max(x[i], 0) - x[i] * (real)label[i] + s_log(1 + s_exp(-s_abs(x[i])));
}

SIZE int sigmoid_cross_entropy_dx_blocks(int n)
{
    return each_blocks(n);
}
template <class D>
DEVICE void sigmoid_cross_entropy_dx(real *dx, const real *x, const int32_t *label, D dloss, int n)
{
    FOR_EACH(i, n)
        dx[i] = (1 / (1 + s_exp(-x[i])) - (real)label[i]) * dloss[i];
}

SIZE int binary_accuracy_blocks(int n)
{
    return each_blocks(n);
}
DEVICE void binary_accuracy(real *correct, const real *x, const int32_t *label, int n)
{
    FOR_EACH(i, n)
        correct[i] = label[i] == 1 ? x[i] > 0 : x[i] <= 0;
}

/* ---------------------------------------------------------------- squares: a warp for each row */

SIZE int mse_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
template <class T> DEVICE void mse(real *loss, const real *x, T t, int n, int k)
{
    FOR_ROWS(row, n) {
        real sum = 0;
        for (int j = threadIdx.x % WARP; j < k; j += WARP) {
            const real d = x[row * k + j] - t[row * k + j];
            sum = s_fma(d, d, sum);
        }
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            loss[row] = sum / (real)k;
    }
}

SIZE int mse_dx_blocks(int n, int k)
{
    return each_blocks(n * k);
}
template <class T, class D> DEVICE void mse_dx(real *dx, const real *x, T t, D dloss, int n, int k)
{
    FOR_EACH(at, n * k)
        dx[at] = dloss[at / k] * 2 * (x[at] - t[at]) / (real)k;
}

/* A sum for each row, divided by `divisor`: a warp for each row. */
template <class Of> DEVICE void sum_of_row(real *y, int n, int k, real divisor, Of of)
{
    FOR_ROWS(row, n) {
        real sum = 0;
        for (int j = threadIdx.x % WARP; j < k; j += WARP)
            sum += of(row * k + j);
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            y[row] = sum / divisor;
    }
}
template <class Of> DEVICE void mean_of_row(real *y, int n, int k, Of of)
{
    sum_of_row(y, n, k, (real)k, of);
}

/* The absolute error, and Huber's loss. */
SIZE int l1_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
template <class T> DEVICE void l1(real *loss, const real *x, T t, int n, int k)
{
    mean_of_row(loss, n, k, [=](int64_t at) { return s_abs(x[at] - t[at]); });
}

SIZE int l1_dx_blocks(int n, int k)
{
    return each_blocks(n * k);
}
template <class T, class D> DEVICE void l1_dx(real *dx, const real *x, T t, D dloss, int n, int k)
{
    FOR_EACH(at, n * k)
        dx[at] = dloss[at / k] / (real)k * (real)((x[at] > t[at]) - (x[at] < t[at]));
}

SIZE int huber_blocks(int n, int, double)
{
    return ceil_div(n, WARPS);
}
template <class T> DEVICE void huber(real *loss, const real *x, T t, int n, int k, double delta)
{
    const real most = (real)delta;
    mean_of_row(loss, n, k, [=](int64_t at) {
        const real d = s_abs(x[at] - t[at]), m = d > most ? most : d;
        return m * m / 2 + most * (d - m);
    });
}

SIZE int huber_dx_blocks(int n, int k, double)
{
    return each_blocks(n * k);
}
template <class T, class D>
DEVICE void huber_dx(real *dx, const real *x, T t, D dloss, int n, int k, double delta)
{
    const real most = (real)delta;
    FOR_EACH(at, n * k) {
        const real d = x[at] - t[at];
        dx[at] = dloss[at / k] / (real)k * (d > most ? most : d < -most ? -most : d);
    }
}

/* ------------------------------------------------- masks: formulas of runtime/cpu/mask_loss.h */

SIZE int sigmoid_cross_entropy_numbers_blocks(int n, int, double)
{
    return ceil_div(n, WARPS);
}
template <class T>
DEVICE void sigmoid_cross_entropy_numbers(real *loss, const real *x, T t, int n, int k,
                                          double weight)
{
    const real more = (real)(weight - 1);
    mean_of_row(loss, n, k, [=](int64_t at) {
        const real v = x[at], truth = t[at];
        return s_softplus(v) - v * truth + more * truth * s_softplus(-v);
    });
}

SIZE int sigmoid_cross_entropy_numbers_dx_blocks(int n, int k, double)
{
    return each_blocks(n * k);
}
template <class T, class D>
DEVICE void sigmoid_cross_entropy_numbers_dx(real *dx, const real *x, T t, D dloss, int n, int k,
                                             double weight)
{
    const real more = (real)(weight - 1);
    FOR_EACH(at, n * k) {
        const real s = 1 / (1 + s_exp(-x[at])), truth = t[at];
        dx[at] = dloss[at / k] / (real)k * (s - truth + more * truth * (s - 1));
    }
}

SIZE int sigmoid_cross_entropy_numbers_dt_blocks(int n, int k, double)
{
    return each_blocks(n * k);
}
template <class T, class D>
DEVICE void sigmoid_cross_entropy_numbers_dt(real *dt, const real *x, T, D dloss, int n, int k,
                                             double weight)
{
    const real more = (real)(weight - 1);
    FOR_EACH(at, n * k)
        dt[at] = dloss[at / k] / (real)k * (more * s_softplus(-x[at]) - x[at]);
}

SIZE int numbers_accuracy_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
template <class T> DEVICE void numbers_accuracy(real *y, const real *x, T t, int n, int k)
{
    mean_of_row(y, n, k, [=](int64_t at) {
        return (real)(t[at] > (real)0.5 ? x[at] > 0 : x[at] <= 0); /* of NaN 0 */
    });
}

/* For each sample, how many of its numbers the function `of` counts. */
template <class Of> DEVICE void count_of_row(real *y, int n, int k, Of of)
{
    sum_of_row(y, n, k, (real)1, [=](int64_t at) { return (real)of(at); });
}

SIZE int mask_overlap_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
template <class T> DEVICE void mask_overlap(real *y, const real *x, T t, int n, int k)
{
    count_of_row(y, n, k, [=](int64_t at) { return x[at] > 0 && t[at] > (real)0.5; });
}

SIZE int mask_union_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
template <class T> DEVICE void mask_union(real *y, const real *x, T t, int n, int k)
{
    count_of_row(y, n, k, [=](int64_t at) { return !(x[at] <= 0) || t[at] > (real)0.5; });
}

SIZE int l2_blocks(int n, int)
{
    return sum_blocks(n);
}
DEVICE void l2(real *loss, const real *x, int n, int k)
{
    block_sums(
        n, k, [=](int i, int j) { return x[(int64_t)i * k + j] * x[(int64_t)i * k + j]; },
        [=](int i, real sum) { loss[i] = sum / 2; });
}

SIZE int l2_dx_blocks(int n, int k)
{
    return each_blocks(n * k);
}
template <class D> DEVICE void l2_dx(real *dx, const real *x, D dloss, int n, int k)
{
    FOR_EACH(at, n * k)
        dx[at] = dloss[at / k] * x[at];
}

/* ---------------------------------------------------------------- a class for each position
 *
 * x (N, T, K), label (N, T): sums over the positions with a class (not -1), divided by `scored`,
 * the mean number of such positions a sample.
 */

/* A block for each sample, a warp for each position.  Adds of(row of x, label), one number in each
 * lane, over the positions. */
template <class Of>
DEVICE void each_position(real *y, const int32_t *label, double scored, int n, int t, Of of)
{
    SHARED(Parts<real>, parts);
    FOR_BLOCKS(block, n) {
        const int64_t first = (int64_t)block * t;
        real sum = 0;
        for (int j = threadIdx.x / WARP; j < t; j += WARPS)
            if (label[first + j] >= 0)
                sum += of(first + j, label[first + j]);
        sum = block_sum(parts, threadIdx.x % WARP == 0 ? sum : 0);
        if (threadIdx.x == 0)
            y[block] = sum / (real)scored;
    }
}

SIZE int accuracy_each_blocks(int n, int, int)
{
    return n;
}
DEVICE void accuracy_each(real *y, const real *x, const int32_t *label, double scored, int n, int t,
                          int k)
{
    each_position(y, label, scored, n, t,
                  [=](int64_t row, int32_t own) { return row_correct(x + row * k, own, k); });
}

SIZE int softmax_cross_entropy_each_blocks(int n, int, int)
{
    return n;
}
DEVICE void softmax_cross_entropy_each(real *y, const real *x, const int32_t *label, double scored,
                                       int n, int t, int k)
{
    each_position(y, label, scored, n, t,
                  [=](int64_t row, int32_t own) { return row_loss(x + row * k, own, k); });
}

SIZE int softmax_cross_entropy_smooth_each_blocks(int n, int, int, double)
{
    return n;
}
DEVICE void softmax_cross_entropy_smooth_each(real *y, const real *x, const int32_t *label,
                                              double scored, int n, int t, int k, double s)
{
    each_position(y, label, scored, n, t, [=](int64_t row, int32_t own) {
        return row_loss(x + row * k, own, k) - row_smooth(x + row * k, own, k, (real)s);
    });
}

/* A warp for each position. */
template <class D>
DEVICE void position_dx(real *dx, const real *x, const int32_t *label, D dloss, double scored,
                        int rows, int t, int k, real s)
{
    FOR_ROWS(row, rows) {
        const real each = label[row] < 0 ? 0 : dloss[row / t] / (real)scored;
        row_loss_dx(dx + row * k, x + row * k, label[row], each, k, s);
    }
}

SIZE int softmax_cross_entropy_dx_each_blocks(int n, int t, int)
{
    return ceil_div(n * t, WARPS);
}
template <class D>
DEVICE void softmax_cross_entropy_dx_each(real *dx, const real *x, const int32_t *label, D dloss,
                                          double scored, int n, int t, int k)
{
    position_dx(dx, x, label, dloss, scored, n * t, t, k, 0);
}

SIZE int softmax_cross_entropy_dx_smooth_each_blocks(int n, int t, int k, double)
{
    return softmax_cross_entropy_dx_each_blocks(n, t, k);
}
template <class D>
DEVICE void softmax_cross_entropy_dx_smooth_each(real *dx, const real *x, const int32_t *label,
                                                 D dloss, double scored, int n, int t, int k,
                                                 double s)
{
    position_dx(dx, x, label, dloss, scored, n * t, t, k, (real)s);
}

/* Weights of classes: runtime/cpu/loss.h. */
struct ClassWeights {
    double of[RT_CLASS_WEIGHTS];
};
#define RT_WEIGHTS(...)                                                                            \
    ClassWeights                                                                                   \
    {                                                                                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

SIZE int softmax_cross_entropy_weighted_each_blocks(int n, int, int, const ClassWeights &)
{
    return n;
}
DEVICE void softmax_cross_entropy_weighted_each(real *y, const real *x, const int32_t *label,
                                                double weighted, int n, int t, int k,
                                                const ClassWeights &w)
{
    each_position(y, label, weighted, n, t, [=, &w](int64_t row, int32_t own) {
        return (real)w.of[own] * row_loss(x + row * k, own, k);
    });
}

SIZE int softmax_cross_entropy_dx_weighted_each_blocks(int n, int t, int, const ClassWeights &)
{
    return ceil_div(n * t, WARPS);
}
template <class D>
DEVICE void softmax_cross_entropy_dx_weighted_each(real *dx, const real *x, const int32_t *label,
                                                   D dloss, double weighted, int n, int t, int k,
                                                   const ClassWeights &w)
{
    FOR_ROWS(row, n * t) {
        const real each =
            label[row] < 0 ? 0 : dloss[row / t] * (real)w.of[label[row]] / (real)weighted;
        row_loss_dx(dx + row * k, x + row * k, label[row], each, k, (real)0);
    }
}

#endif
