/* dense.cuh -- y = x W^T and its gradients, as products.
 *
 *   x (N, K)   y (N, O)   W (O, K) as in files
 */
#ifndef CUDA_DENSE_CUH
#define CUDA_DENSE_CUH

struct Dense {
    int n, k, o;
};

/* y[n][o] = sum over k of x[n][k] w[o][k] */
SIZE int dense_blocks(Dense d)
{
    return product_blocks(d.n, d.o);
}
DEVICE void dense(real *y, const real *x, const real *w, Dense d)
{
    all_products(d.n, d.o, d.k, matrix<ALONG_K>(x, d.k), matrix<ALONG_K>(w, d.k),
                 [=](int n, int o, real sum, int) { y[(int64_t)n * d.o + o] = sum; });
}

/* dx[n][k] = sum over o of dy[n][o] w[o][k] */
SIZE int dense_dx_blocks(Dense d)
{
    return product_blocks(d.n, d.k);
}
DEVICE void dense_dx(real *dx, const real *w, const real *dy, Dense d)
{
    all_products(d.n, d.k, d.o, matrix<ALONG_K>(dy, d.o), matrix<ALONG_RESULT>(w, d.k),
                 [=](int n, int k, real sum, int) { dx[(int64_t)n * d.k + k] = sum; });
}

/* dw[o][k] = sum over n of dy[n][o] x[n][k]; added to dw unless `write`. */
SIZE int dense_dw_blocks(Dense d)
{
    return product_blocks(d.o, d.k);
}
DEVICE void dense_dw(real *dw, const real *x, const real *dy, Dense d, bool write)
{
    all_products(d.o, d.k, d.n, matrix<ALONG_RESULT>(dy, d.o), matrix<ALONG_RESULT>(x, d.k),
                 [=](int o, int k, real sum, int) {
                     real *to = dw + (int64_t)o * d.k + k;
                     *to = write ? sum : *to + sum;
                 });
}

/* The gradient of a relu, in place, after a dense layer or a convolution: 0 where its output y is
 * not above 0. */
template <class D, class Y> DEVICE void relu_undone(D *dx, const Y *y, int count)
{
    const auto undo = [](unsigned i, auto to, auto y, auto d) {
        to[i] = s_select_gt((real)y[i], (real)0, (real)d[i], (real)0);
    };
    if (pack_aligned(dx) && pack_aligned(y))
        each_pack(count, undo, dx, y, (const D *)dx);
    else
        FOR_EACH(i, count)
            undo(i, dx, y, dx);
}

#endif
