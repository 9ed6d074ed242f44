/* product.cuh -- y(m, n) = sum over k of a(m, k) b(k, n): the one product that dense layers and convolutions are made of.
 *
 * A block makes TILE x TILE results.  DEPTH steps of k at a time, its threads bring a strip of a and a strip of b into shared
 * memory, where each number is read 16 times; a thread keeps EACH x EACH sums in registers, its rows and columns 16 apart.
 * k goes in order, one FMA after another: the bits depend on k alone.
 *
 * What a, b and y are is for the caller to say, as functions of the place: a layer's whole geometry is in them, and literal sizes
 * turn their divisions into multiplications.  They are asked inside the matrices only.  Plain SIMT: no tensor cores, exact f32.
 */
#ifndef CUDA_PRODUCT_CUH
#define CUDA_PRODUCT_CUH

enum { TILE = 64, DEPTH = 16, SIDE = 16, EACH = TILE / SIDE };

struct Strips {
    real a[DEPTH][TILE + 1], b[DEPTH][TILE + 1]; /* + 1: columns in different banks */
};

SIZE int product_blocks(int m, int n)
{
    return ceil_div(m, TILE) * ceil_div(n, TILE);
}

/* Which way neighbouring threads read an operand: along k, or along the results. */
enum Along { ALONG_K, ALONG_RESULT };

template <Along along, class Read>
DEVICE void product_fetch(real (*strip)[TILE + 1], int first, int count, int k0, int k, Read read)
{
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        const int at = along == ALONG_K ? i / DEPTH : i % TILE, step = along == ALONG_K ? i % DEPTH : i / TILE;
        strip[step][at] = first + at < count && k0 + step < k ? read(first + at, k0 + step) : 0;
    }
}

/* a(row, step), b(column, step), write(row, column, sum); block: which of product_blocks(m, n). */
template <Along a_along, Along b_along, class A, class B, class Write>
DEVICE void product(int block, int m, int n, int k, A a, B b, Write write)
{
    SHARED(Strips, s);
    const int across = ceil_div(n, TILE), m0 = block / across * TILE, n0 = block % across * TILE;
    const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
    real sum[EACH][EACH] = {};

    for (int k0 = 0; k0 < k; k0 += DEPTH) {
        product_fetch<a_along>(s.a, m0, m, k0, k, a);
        product_fetch<b_along>(s.b, n0, n, k0, k, b);
        block_sync(); /* the strips are whole */
        RT_UNROLL
        for (int step = 0; step < DEPTH; step++)
            RT_UNROLL
            for (int i = 0; i < EACH; i++)
                RT_UNROLL
                for (int j = 0; j < EACH; j++)
                    sum[i][j] = s_fma(s.a[step][row + i * SIDE], s.b[step][column + j * SIDE], sum[i][j]);
        block_sync(); /* nobody reads them any more */
    }
    RT_UNROLL
    for (int i = 0; i < EACH; i++)
        RT_UNROLL
        for (int j = 0; j < EACH; j++)
            if (m0 + row + i * SIDE < m && n0 + column + j * SIDE < n)
                write(m0 + row + i * SIDE, n0 + column + j * SIDE, sum[i][j]);
}

/* All of them, a block each. */
template <Along a_along, Along b_along, class A, class B, class Write>
DEVICE void all_products(int m, int n, int k, A a, B b, Write write)
{
    FOR_BLOCKS(block, product_blocks(m, n))
        product<a_along, b_along>(block, m, n, k, a, b, write);
}

#endif
