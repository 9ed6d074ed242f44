/* product.cuh -- y(m, n) = sum over k of a(m, k) b(k, n): the product from which dense layers and
 * convolutions are made.
 *
 * A block computes a tile of results, whose size depends on m and n (rt_tile in constants.h).  For
 * some steps of k at a time, its threads load a strip of a and a strip of b into shared memory.
 * There are two pairs of strips: while the threads multiply the numbers of one pair, the loads of
 * the next are on their way, so that a strip costs one barrier and no wait for memory.
 *
 * A thread keeps up to 8 x 8 sums in registers.  For each step of k it reads its rows and columns
 * with loads of 16 bytes: 4 of them for 64 multiply-adds in the largest tile.  The 32 threads of a
 * warp stand as 4 rows of 8, so that these loads read few different addresses.  k goes in order,
 * one FMA after another: the bits depend on k only, not on the tile.
 *
 * The caller gives a, b and y as functions of the position.  They contain the geometry of a layer,
 * and literal sizes turn their divisions into multiplications.  They are called for positions
 * inside of the matrices only.  Plain SIMT: no tensor cores, exact f32.
 */
#ifndef CUDA_PRODUCT_CUH
#define CUDA_PRODUCT_CUH

/* How a tile's rows and columns are divided among warps and threads. */
template <int tile> struct Tile {
    static constexpr int rows = RT_TILE_ROWS(tile), columns = RT_TILE_COLUMNS(tile),
                         warps_down = rows == 32 && columns == 128 ? 2 : 4,
                         warps_across = WARPS / warps_down, lanes_down = 4,
                         lanes_across = WARP / lanes_down,
                         down = rows / warps_down / lanes_down, /* rows of a thread */
        across = columns / warps_across / lanes_across,         /* its columns */
        run_down = down < 4 ? down : 4,                         /* adjacent rows */
        run_across = across < 4 ? across : 4,                   /* adjacent columns */
        depth = 1024 / columns;                                 /* steps of k of a strip */
};

/* The number of results of a thread. */
SIZE int product_each(int m, int n)
{
    return RT_TILE_ROWS(rt_tile(m, n)) * RT_TILE_COLUMNS(rt_tile(m, n)) / THREADS;
}
SIZE int product_tile(int m, int n)
{
    return rt_tile(m, n);
}
SIZE int product_blocks(int m, int n)
{
    return (int)rt_tile_blocks(product_tile(m, n), m, n);
}

/* Row i of a thread's rows, and column j of its columns, in the tile. */
template <int tile> DEVICE int product_row(int i)
{
    using T = Tile<tile>;
    const int warp = threadIdx.x / WARP / T::warps_across,
              lane = threadIdx.x % WARP / T::lanes_across;
    return warp * (T::rows / T::warps_down) + i / T::run_down * (T::lanes_down * T::run_down) +
           lane * T::run_down + i % T::run_down;
}
template <int tile> DEVICE int product_column(int j)
{
    using T = Tile<tile>;
    const int warp = threadIdx.x / WARP % T::warps_across,
              lane = threadIdx.x % WARP % T::lanes_across;
    return warp * (T::columns / T::warps_across) +
           j / T::run_across * (T::lanes_across * T::run_across) + lane * T::run_across +
           j % T::run_across;
}

/* Two pairs of strips.  Rows of a strip are a little longer than the tile: then the threads that
 * store along k meet different banks, and runs stay aligned. */
template <int tile> struct Strips {
    using T = Tile<tile>;
    alignas(16) real a[2][T::depth][T::rows + T::run_down];
    alignas(16) real b[2][T::depth][T::columns + T::run_across];
};

/* `count` adjacent numbers, read at once. */
template <int count> struct alignas(count * sizeof(real) > 16 ? 16 : count * sizeof(real)) Run {
    real at[count];
};

/* The direction in which adjacent threads read an operand: along k, or along the results. */
enum Along { ALONG_K, ALONG_RESULT };

/* Numbers of a strip of `side` results, from step k0 on: into a thread's registers, and from there
 * to shared memory. */
template <Along along, int side, int depth> struct Fetch {
    static constexpr int count = (side * depth + THREADS - 1) / THREADS;
    real kept[count];

    static __device__ __forceinline__ int result(int i)
    {
        return along == ALONG_K ? i / depth : i % side;
    }
    static __device__ __forceinline__ int step(int i)
    {
        return along == ALONG_K ? i % depth : i / side;
    }
    template <class Read>
    __device__ __forceinline__ void load(int first, int most, int k0, int k, Read read)
    {
        RT_UNROLL
        for (int q = 0; q < count; q++) {
            const int i = threadIdx.x + q * THREADS, at = first + result(i), of = k0 + step(i);
            kept[q] = at < most && of < k && step(i) < depth ? read(at, of) : 0;
        }
    }
    template <int width> __device__ __forceinline__ void store(real (&strip)[depth][width]) const
    {
        RT_UNROLL
        for (int q = 0; q < count; q++) {
            const int i = threadIdx.x + q * THREADS;
            if (side * depth % THREADS == 0 || i < side * depth)
                strip[step(i)][result(i)] = kept[q];
        }
    }
};

/* Adds steps first .. end - 1 of a pair of strips to a thread's sums. */
template <int tile>
DEVICE void product_steps(real (&sum)[Tile<tile>::down][Tile<tile>::across], const Strips<tile> &s,
                          int now, int first, int end)
{
    using T = Tile<tile>;
    const int row = product_row<tile>(0), column = product_column<tile>(0);
    RT_UNROLL_16
    for (int step = first; step < end; step++) {
        Run<T::run_down> x[T::down / T::run_down];
        Run<T::run_across> y[T::across / T::run_across];
        RT_UNROLL
        for (int i = 0; i < T::down / T::run_down; i++)
            x[i] =
                *(const Run<T::run_down> *)&s.a[now][step][row + i * T::lanes_down * T::run_down];
        RT_UNROLL
        for (int j = 0; j < T::across / T::run_across; j++)
            y[j] = *(const Run<T::run_across> *)&s
                        .b[now][step][column + j * T::lanes_across * T::run_across];
        RT_UNROLL
        for (int i = 0; i < T::down; i++) {
            RT_UNROLL
            for (int j = 0; j < T::across; j++)
                sum[i][j] = s_fma(x[i / T::run_down].at[i % T::run_down],
                                  y[j / T::run_across].at[j % T::run_across], sum[i][j]);
        }
    }
}

/* The sums over steps first .. k - 1 of the results of one tile.
 *
 * The numbers of the next pair wait in registers until they are stored.  In the largest tile, those
 * of a are stored before those of b are loaded: 128 registers have no room for both. */
template <int tile, Along a_along, Along b_along, class A, class B, class Write>
DEVICE void product_of(int block, int m, int n, int first, int k, A a, B b, Write write)
{
    using T = Tile<tile>;
    constexpr int a_until = tile == RT_TILE_128_128 ? T::depth / 2 : 0;
    SHARED(Strips<tile>, s);
    const int tiles = ceil_div(n, T::columns), m0 = block / tiles * T::rows,
              n0 = block % tiles * T::columns;
    Fetch<a_along, T::rows, T::depth> next_a;
    Fetch<b_along, T::columns, T::depth> next_b;
    real sum[T::down][T::across] = {};
    int now = 0;

    next_a.load(m0, m, first, k, a);
    next_b.load(n0, n, first, k, b);
    next_a.store(s.a[0]);
    next_b.store(s.b[0]);
    block_sync(); /* the first pair is complete */
    for (int k0 = first; k0 < k; k0 += T::depth, now ^= 1) {
        const bool more = k0 + T::depth < k;
        if (more)
            next_a.load(m0, m, k0 + T::depth, k, a);
        if (a_until) {
            product_steps<tile>(sum, s, now, 0, a_until);
            if (more)
                next_a.store(s.a[now ^ 1]);
        }
        if (more)
            next_b.load(n0, n, k0 + T::depth, k, b);
        product_steps<tile>(sum, s, now, a_until, T::depth);
        if (more && !a_until)
            next_a.store(s.a[now ^ 1]);
        if (more)
            next_b.store(s.b[now ^ 1]);
        block_sync(); /* the next pair is complete, and all threads have read this one */
    }
    RT_UNROLL
    for (int i = 0; i < T::down; i++) {
        RT_UNROLL
        for (int j = 0; j < T::across; j++)
            if (m0 + product_row<tile>(i) < m && n0 + product_column<tile>(j) < n)
                write(m0 + product_row<tile>(i), n0 + product_column<tile>(j), sum[i][j],
                      i * T::across + j);
    }
}

/* Calls f.operator()<tile>() for the tile of a product of m x n results. */
template <class F> DEVICE void for_tile(int tile, F f)
{
    switch (tile) {
    case RT_TILE_128_128:
        return f.template operator()<RT_TILE_128_128>();
    case RT_TILE_64_128:
        return f.template operator()<RT_TILE_64_128>();
    case RT_TILE_32_128:
        return f.template operator()<RT_TILE_32_128>();
    case RT_TILE_64_64:
        return f.template operator()<RT_TILE_64_64>();
    case RT_TILE_32_32:
        return f.template operator()<RT_TILE_32_32>();
    default:
        return f.template operator()<RT_TILE_16_16>();
    }
}

/* a(row, step), b(column, step), write(row, column, sum, slot); slot: which of the thread's results
 * this is (results.cuh); block: one of product_blocks(m, n). */
template <Along a_along, Along b_along, class A, class B, class Write>
DEVICE void product(int block, int m, int n, int k, A a, B b, Write write)
{
    for_tile(product_tile(m, n), [=]<int tile>() {
        product_of<tile, a_along, b_along>(block, m, n, 0, k, a, b, write);
    });
}

/* All tiles, a block each. */
template <Along a_along, Along b_along, class A, class B, class Write>
DEVICE void all_products(int m, int n, int k, A a, B b, Write write)
{
    FOR_BLOCKS(block, product_blocks(m, n))
        product<a_along, b_along>(block, m, n, k, a, b, write);
}

#endif
