/* loss.cuh -- softmax cross-entropy and accuracy: a warp a row of K numbers (formulas: runtime/cpu/loss.h).
 *
 * All lanes of a warp leave together or not at all, so its sums have all their members.
 */
#ifndef CUDA_LOSS_CUH
#define CUDA_LOSS_CUH

/* The row that this thread's warp works on. */
DEVICE int warp_row()
{
    return blockIdx.x * WARPS + threadIdx.x / WARP;
}

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

SIZE int softmax_cross_entropy_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
DEVICE void softmax_cross_entropy(real *loss, const real *x, const int32_t *label, int n, int k)
{
    const int i = warp_row();
    if (i >= n)
        return;
    x += (int64_t)i * k;
    const real top = row_max(x, k), sum = row_exp(x, k, top);
    if (threadIdx.x % WARP == 0)
        loss[i] = s_log(sum) - (x[label[i]] - top);
}

SIZE int softmax_cross_entropy_dx_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
template <class D>
DEVICE void softmax_cross_entropy_dx(real *dx, const real *x, const int32_t *label, D dloss, int n, int k)
{
    const int i = warp_row();
    if (i >= n)
        return;
    x += (int64_t)i * k, dx += (int64_t)i * k;
    const real top = row_max(x, k), sum = row_exp(x, k, top);
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        dx[j] = dloss[i] * (s_exp(x[j] - top) / sum - (j == label[i]));
}

/* A share s of the true class spread over all of them: the loss of each class counts, one in k parts of s. */
SIZE int softmax_cross_entropy_smooth_blocks(int n, int k, double)
{
    return softmax_cross_entropy_blocks(n, k);
}
DEVICE void softmax_cross_entropy_smooth(real *loss, const real *x, const int32_t *label, int n, int k, double s)
{
    const int i = warp_row();
    if (i >= n)
        return;
    softmax_cross_entropy(loss, x, label, n, k);
    x += (int64_t)i * k;
    real sum = 0;
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        sum += x[j] - x[label[i]];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        loss[i] -= (real)s * (sum / (real)k);
}

SIZE int softmax_cross_entropy_dx_smooth_blocks(int n, int k, double)
{
    return softmax_cross_entropy_dx_blocks(n, k);
}
template <class D>
DEVICE void softmax_cross_entropy_dx_smooth(real *dx, const real *x, const int32_t *label, D dloss, int n, int k, double s)
{
    const int i = warp_row();
    if (i >= n)
        return;
    softmax_cross_entropy_dx(dx, x, label, dloss, n, k);
    dx += (int64_t)i * k;
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        dx[j] += dloss[i] * ((j == label[i] ? (real)s : 0) - (real)s / (real)k);
}

/* 1 where the first of the largest x is the label, else 0: none before the label as large, none behind it larger. */
SIZE int accuracy_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
DEVICE void accuracy(real *correct, const real *x, const int32_t *label, int n, int k)
{
    const int i = warp_row();
    if (i >= n)
        return;
    x += (int64_t)i * k;
    real beaten = 0;
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        beaten += j < label[i] ? !(x[label[i]] > x[j]) : x[j] > x[label[i]];
    beaten = warp_sum(beaten);
    if (threadIdx.x % WARP == 0)
        correct[i] = beaten == 0;
}

#endif
