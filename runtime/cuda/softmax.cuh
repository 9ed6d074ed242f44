/* softmax.cuh -- softmax and its gradient: a warp for each row of K numbers (formulas:
 * runtime/cpu/softmax.h). */
#ifndef CUDA_SOFTMAX_CUH
#define CUDA_SOFTMAX_CUH

/* Computes the softmax of the first `seen` numbers of a row; the others become 0. */
DEVICE void softmax_row(real *y, const real *x, int seen, int k)
{
    const real top = row_max(x, seen), sum = row_exp(x, seen, top);
    for (int j = threadIdx.x % WARP; j < k; j += WARP)
        y[j] = j < seen ? s_exp(x[j] - top) / sum : 0;
}

SIZE int softmax_blocks(int n, int)
{
    return ceil_div(n, WARPS);
}
DEVICE void softmax(real *y, const real *x, int n, int k)
{
    FOR_ROWS(row, n)
        softmax_row(y + row * k, x + row * k, k, k);
}

/* x consists of squares of K rows; row i of a square is a softmax over elements 0 .. i. */
SIZE int softmax_causal_blocks(int n, int k)
{
    return softmax_blocks(n, k);
}
DEVICE void softmax_causal(real *y, const real *x, int n, int k)
{
    FOR_ROWS(row, n)
        softmax_row(y + row * k, x + row * k, (int)(row % k) + 1, k);
}

SIZE int softmax_dx_blocks(int n, int k)
{
    return softmax_blocks(n, k);
}
DEVICE void softmax_dx(real *dx, const real *y, const real *dy, int n, int k)
{
    FOR_ROWS(row, n) {
        const int64_t at = row * k;
        real dot = 0;
        for (int j = threadIdx.x % WARP; j < k; j += WARP)
            dot = s_fma(y[at + j], dy[at + j], dot);
        dot = warp_sum(dot);
        for (int j = threadIdx.x % WARP; j < k; j += WARP)
            dx[at + j] = y[at + j] * (dy[at + j] - dot);
    }
}

/* Softmax over K numbers that are `inner` apart: a thread for each, adjacent threads for adjacent
 * numbers. */
SIZE int softmax_along_blocks(int outer, int, int inner)
{
    return each_blocks(outer * inner);
}
DEVICE void softmax_along(real *y, const real *x, int outer, int k, int inner)
{
    FOR_EACH(i, outer * inner) {
        const int64_t at = (int64_t)(i / inner) * k * inner + i % inner;
        real top = x[at], sum = 0;
        for (int64_t j = 1; j < k; j++)
            top = s_max(x[at + j * inner], top);
        for (int64_t j = 0; j < k; j++)
            sum += s_exp(x[at + j * inner] - top);
        for (int64_t j = 0; j < k; j++)
            y[at + j * inner] = s_exp(x[at + j * inner] - top) / sum;
    }
}

SIZE int softmax_dx_along_blocks(int outer, int k, int inner)
{
    return softmax_along_blocks(outer, k, inner);
}
DEVICE void softmax_dx_along(real *dx, const real *y, const real *dy, int outer, int k, int inner)
{
    FOR_EACH(i, outer * inner) {
        const int64_t at = (int64_t)(i / inner) * k * inner + i % inner;
        real dot = 0;
        for (int64_t j = 0; j < k; j++)
            dot = s_fma(y[at + j * inner], dy[at + j * inner], dot);
        for (int64_t j = 0; j < k; j++)
            dx[at + j * inner] = y[at + j * inner] * (dy[at + j * inner] - dot);
    }
}

#endif
