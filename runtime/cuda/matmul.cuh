/* matmul.cuh -- products of two matrices for each sample; either matrix can be stored transposed.
 *
 *   c (count, M, N) = a (count, M, K; transposed: K, M) b (count, K, N; transposed: N, K)
 */
#ifndef CUDA_MATMUL_CUH
#define CUDA_MATMUL_CUH

struct Gemm {
    int count, m, n, k;
    bool transpose_a, transpose_b;
};

SIZE int matmul_blocks(Gemm g)
{
    return g.count * product_blocks(g.m, g.n);
}
template <Along a_along, Along b_along>
DEVICE void matmul_tile(unsigned block, real *c, const real *a, const real *b, Gemm g)
{
    const int tiles = product_blocks(g.m, g.n);
    const int64_t which = block / tiles;
    a += which * g.m * g.k, b += which * g.k * g.n, c += which * g.m * g.n;
    product(block % tiles, g.m, g.n, g.k, matrix<a_along>(a, a_along == ALONG_K ? g.k : g.m),
            matrix<b_along>(b, b_along == ALONG_K ? g.k : g.n),
            [=](int i, int j, real sum, int) { c[(int64_t)i * g.n + j] = sum; });
}
template <Along a_along, Along b_along>
DEVICE void matmul_tiles(real *c, const real *a, const real *b, Gemm g)
{
    FOR_BLOCKS(block, matmul_blocks(g))
        matmul_tile<a_along, b_along>(block, c, a, b, g);
}
DEVICE void matmul(real *c, const real *a, const real *b, Gemm g)
{
    if (g.transpose_a && g.transpose_b)
        matmul_tiles<ALONG_RESULT, ALONG_K>(c, a, b, g);
    else if (g.transpose_a)
        matmul_tiles<ALONG_RESULT, ALONG_RESULT>(c, a, b, g);
    else if (g.transpose_b)
        matmul_tiles<ALONG_K, ALONG_K>(c, a, b, g);
    else
        matmul_tiles<ALONG_K, ALONG_RESULT>(c, a, b, g);
}

#endif
