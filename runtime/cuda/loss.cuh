/* loss.cuh -- softmax cross-entropy and accuracy: a warp for each row of K numbers (formulas:
 * runtime/cpu/loss.h).
 *
 * All lanes of a warp return together, so that sums over a warp have all lanes.
 */
#ifndef CUDA_LOSS_CUH
#define CUDA_LOSS_CUH

DEVICE real row_max(const real *x, int k)
{
    real top = -INFINITY;
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        top = x[j] > top ? x[j] : top;
    return warp_max(top);
}

/* sum of exp(x - top) */
DEVICE real row_exp(const real *x, int k, real top)
{
    real sum = 0;
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        sum += s_exp(x[j] - top);
    return warp_sum(sum);
}

/* log sum exp(x - top) - (x[own] - top), in each lane. */
DEVICE real row_loss(const real *x, int own, int k)
{
    const real top = row_max(x, k), sum = row_exp(x, k, top);
    return s_log(sum) - (x[own] - top);
}

/* The term of label smoothing: a share s of the true class is spread over all k classes. */
DEVICE real row_smooth(const real *x, int own, int k, real s)
{
    real sum = 0;
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        sum += x[j] - x[own];
    return s * (warp_sum(sum) / (real)k);
}

DEVICE void row_loss_dx(real *dx, const real *x, int own, real dloss, int k, real s)
{
    const real top = row_max(x, k), sum = row_exp(x, k, top);
    for (int j = threadIdx.x % WARP; j < k; j += WARP) {
        const real d = dloss * (s_exp(x[j] - top) / sum - (j == own));
        dx[j] = s > 0 ? d + dloss * ((j == own ? s : 0) - s / (real)k) : d;
    }
}

/* Returns 1 if the label's number is the first of the largest x, else 0.  It is the first if no
 * number before it is as large, and no number after it is larger.  0 if a number is NaN. */
DEVICE real row_correct(const real *x, int own, int k)
{
    real beaten = 0;
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        beaten += j < own ? !(x[own] > x[j]) : !(x[j] <= x[own]);
    return warp_sum(beaten) == 0;
}

/* ---------------------------------------------------------------------- a class for each sample */

SIZE int softmax_cross_entropy_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
DEVICE void softmax_cross_entropy(real *loss, const real *x, const int32_t *label, int n, int k)
{
    FOR_ROWS(i, n) {
        const real one = row_loss(x + i * k, label[i], k);
        if (threadIdx.x % WARP == 0)
            loss[i] = one;
    }
}

SIZE int softmax_cross_entropy_dx_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
template <class D>
DEVICE void softmax_cross_entropy_dx(real *dx, const real *x, const int32_t *label, D dloss, int n,
                                     int k)
{
    FOR_ROWS(i, n)
        row_loss_dx(dx + i * k, x + i * k, label[i], dloss[i], k, 0);
}

SIZE int softmax_cross_entropy_smooth_blocks(int n, int k, double)
{
    return softmax_cross_entropy_blocks(n, k);
}
DEVICE void softmax_cross_entropy_smooth(real *loss, const real *x, const int32_t *label, int n,
                                         int k, double s)
{
    FOR_ROWS(i, n) {
        const real one = row_loss(x + i * k, label[i], k),
                   less = row_smooth(x + i * k, label[i], k, (real)s);
        if (threadIdx.x % WARP == 0)
            loss[i] = one - less;
    }
}

SIZE int softmax_cross_entropy_dx_smooth_blocks(int n, int k, double)
{
    return softmax_cross_entropy_dx_blocks(n, k);
}
template <class D>
DEVICE void softmax_cross_entropy_dx_smooth(real *dx, const real *x, const int32_t *label, D dloss,
                                            int n, int k, double s)
{
    FOR_ROWS(i, n)
        row_loss_dx(dx + i * k, x + i * k, label[i], dloss[i], k, (real)s);
}

SIZE int accuracy_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
DEVICE void accuracy(real *correct, const real *x, const int32_t *label, int n, int k)
{
    FOR_ROWS(i, n) {
        const real one = row_correct(x + i * k, label[i], k);
        if (threadIdx.x % WARP == 0)
            correct[i] = one;
    }
}

#endif
