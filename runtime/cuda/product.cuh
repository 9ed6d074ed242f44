/* product.cuh -- y(m, n) = sum over k of a(m, k) b(k, n): the product from which dense layers and
 * convolutions are made.
 *
 * A block computes a square of results: 64 by 64, or 32 or 16 if there would be too few blocks for
 * the GPU.  For some steps of k at a time, its threads load a strip of a and a strip of b into
 * shared memory, where each number is read 16 times.  A thread keeps 4 x 4, 2 x 2 or 1 sums in
 * registers, with rows and columns 16 apart.  k goes in order, one FMA after another: the bits
 * depend on k only.
 *
 * The caller gives a, b and y as functions of the position.  They contain the geometry of a layer,
 * and literal sizes turn their divisions into multiplications.  They are called for positions
 * inside of the matrices only.  Plain SIMT: no tensor cores, exact f32.
 */
#ifndef CUDA_PRODUCT_CUH
#define CUDA_PRODUCT_CUH

enum { TILE = RT_TILE, SIDE = RT_TILE_SIDE };
enum { STRIP = 1024 };               /* numbers of a strip, for each size of the tile */
enum { FEW_BLOCKS = RT_FEW_BLOCKS }; /* fewer use less than half of a GPU */

template <int tile> struct Strips {
    real a[STRIP / tile][tile + 1], b[STRIP / tile][tile + 1]; /* + 1: distinct banks for columns */
};

SIZE int product_tiles(int m, int n, int tile)
{
    return ceil_div(m, tile) * ceil_div(n, tile);
}
SIZE int product_tile(int m, int n)
{
    return product_tiles(m, n, TILE) >= FEW_BLOCKS       ? TILE
           : product_tiles(m, n, TILE / 2) >= FEW_BLOCKS ? TILE / 2
                                                         : TILE / 4;
}
SIZE int product_blocks(int m, int n)
{
    return product_tiles(m, n, product_tile(m, n));
}

/* The direction in which adjacent threads read an operand: along k, or along the results. */
enum Along { ALONG_K, ALONG_RESULT };

template <Along along, int tile, class Read>
DEVICE void product_fetch(real (*strip)[tile + 1], int first, int count, int k0, int k, Read read)
{
    constexpr int depth = STRIP / tile;
    for (int i = threadIdx.x; i < STRIP; i += THREADS) {
        const int at = along == ALONG_K ? i / depth : i % tile,
                  step = along == ALONG_K ? i % depth : i / tile;
        strip[step][at] = first + at < count && k0 + step < k ? read(first + at, k0 + step) : 0;
    }
}

template <int tile, Along a_along, Along b_along, class A, class B, class Write>
DEVICE void product_of(int block, int m, int n, int k, A a, B b, Write write)
{
    constexpr int depth = STRIP / tile, each = tile / SIDE;
    SHARED(Strips<tile>, s);
    const int across = ceil_div(n, tile), m0 = block / across * tile, n0 = block % across * tile;
    const int row = threadIdx.x / SIDE, column = threadIdx.x % SIDE;
    real sum[each][each] = {};

    for (int k0 = 0; k0 < k; k0 += depth) {
        product_fetch<a_along, tile>(s.a, m0, m, k0, k, a);
        product_fetch<b_along, tile>(s.b, n0, n, k0, k, b);
        block_sync(); /* the strips are complete */
        RT_UNROLL_16
        for (int step = 0; step < depth; step++) {
            RT_UNROLL
            for (int i = 0; i < each; i++) {
                RT_UNROLL
                for (int j = 0; j < each; j++)
                    sum[i][j] =
                        s_fma(s.a[step][row + i * SIDE], s.b[step][column + j * SIDE], sum[i][j]);
            }
        }
        block_sync(); /* all threads have read them */
    }
    RT_UNROLL
    for (int i = 0; i < each; i++) {
        RT_UNROLL
        for (int j = 0; j < each; j++)
            if (m0 + row + i * SIDE < m && n0 + column + j * SIDE < n)
                write(m0 + row + i * SIDE, n0 + column + j * SIDE, sum[i][j]);
    }
}

/* a(row, step), b(column, step), write(row, column, sum); block: one of product_blocks(m, n). */
template <Along a_along, Along b_along, class A, class B, class Write>
DEVICE void product(int block, int m, int n, int k, A a, B b, Write write)
{
    const int tile = product_tile(m, n);
    if (tile == TILE)
        product_of<TILE, a_along, b_along>(block, m, n, k, a, b, write);
    else if (tile == TILE / 2)
        product_of<TILE / 2, a_along, b_along>(block, m, n, k, a, b, write);
    else
        product_of<TILE / 4, a_along, b_along>(block, m, n, k, a, b, write);
}

/* All tiles, a block each. */
template <Along a_along, Along b_along, class A, class B, class Write>
DEVICE void all_products(int m, int n, int k, A a, B b, Write write)
{
    FOR_BLOCKS(block, product_blocks(m, n))
        product<a_along, b_along>(block, m, n, k, a, b, write);
}

#endif
