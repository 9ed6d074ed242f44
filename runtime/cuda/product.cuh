/* product.cuh -- y(m, n) = sum over k of a(m, k) b(k, n): the product from which dense layers and
 * convolutions are made.
 *
 * A block computes a tile of results, whose size depends on m and n (rt_tile in constants.h).  For
 * some steps of k at a time, it copies a strip of a and a strip of b into shared memory.  Copies
 * are asynchronous, and the next strips are on their way while the threads multiply: a strip costs
 * one barrier, and a wait only if the copies take longer than the arithmetic.
 *
 * A thread keeps up to 4 x 8 sums in registers.  In large tiles it reads, for each step of k,
 * adjacent rows and adjacent columns with loads of 16 bytes: 3 of them for 32 multiply-adds.  In
 * small tiles a load of 16 bytes brings four steps of one row or column.  The 32 threads of a warp
 * stand as 4 rows of 8, so that these loads read few different addresses.  k goes in order, one FMA
 * after another: the bits depend on k only, not on the tile.
 *
 * The caller gives a and b as functions that return the address of a number, or nullptr where the
 * number is 0, and y as a function that takes the sum.  They contain the geometry of a layer, and
 * literal sizes turn their divisions into multiplications.  They are called for positions inside of
 * the matrices only.  Plain SIMT: no tensor cores, exact f32.
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
        depth = 1024 / columns,                                 /* steps of k of a strip */
        stages = sizeof(real) == 8 ? 2 : 4;                     /* strips in shared memory */
    static constexpr bool along_k = down < 4;   /* steps of k are adjacent in shared memory */
    static constexpr int run = along_k ? 1 : 4; /* adjacent rows, and columns, of a thread */
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
    return warp * (T::rows / T::warps_down) + i / T::run * (T::lanes_down * T::run) +
           lane * T::run + i % T::run;
}
template <int tile> DEVICE int product_column(int j)
{
    using T = Tile<tile>;
    const int warp = threadIdx.x / WARP % T::warps_across,
              lane = threadIdx.x % WARP % T::lanes_across;
    return warp * (T::columns / T::warps_across) + j / T::run * (T::lanes_across * T::run) +
           lane * T::run + j % T::run;
}

/* One strip, by step and result or by result and step.  Its rows are a little longer than needed:
 * then threads that store, or load, one below the other meet different banks. */
template <int tile, int side> struct Strip {
    using T = Tile<tile>;
    static constexpr int rows = T::along_k ? side : T::depth, width = T::along_k ? T::depth : side;
    alignas(16) real at[rows][width + 4];

    __device__ __forceinline__ real *place(int result, int step)
    {
        return T::along_k ? &at[result][step] : &at[step][result];
    }
};
template <int tile> struct Strips {
    Strip<tile, Tile<tile>::rows> a[Tile<tile>::stages];
    Strip<tile, Tile<tile>::columns> b[Tile<tile>::stages];
};

/* Four adjacent numbers, read at once. */
struct alignas(16) Four {
    real at[4];
};
DEVICE Four four(const real *p)
{
    return *(const Four *)p;
}

/* ------------------------------------------------------------------------------- copies */

/* Starts the copy of a number to shared memory; from: nullptr for 0.  Numbers of another type are
 * converted, and the thread waits for them. */
template <class T> DEVICE void copy_start(real *to, const T *from)
{
    *to = from ? (real)*from : (real)0;
}
/* The copies so far are one group.  copy_wait: until at most `groups` groups are on their way. */
#ifdef RT_SHIM
DEVICE void copy_group()
{
}
template <int groups> DEVICE void copy_wait()
{
}
#else
DEVICE void copy_start(real *to, const real *from)
{
    const unsigned there = (unsigned)__cvta_generic_to_shared(to), bytes = from ? sizeof *from : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(there),
                 "l"(__cvta_generic_to_global(from)), "n"(sizeof *from), "r"(bytes));
}
DEVICE void copy_group()
{
    asm volatile("cp.async.commit_group;");
}
template <int groups> DEVICE void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}
#endif

/* The direction in which adjacent threads read an operand: along k, or along the results. */
enum Along { ALONG_K, ALONG_RESULT };

/* Starts to copy the numbers of a strip: results first to most - 1, steps k0 to k - 1. */
template <Along along, int tile, int side, class Read>
DEVICE void strip_start(Strip<tile, side> &s, int first, int most, int k0, int k, Read read)
{
    constexpr int depth = Tile<tile>::depth, count = side * depth;
    RT_UNROLL
    for (int q = 0; q < (count + THREADS - 1) / THREADS; q++) {
        const int i = threadIdx.x + q * THREADS, result = along == ALONG_K ? i / depth : i % side,
                  step = along == ALONG_K ? i % depth : i / side;
        if (count % THREADS == 0 || i < count)
            copy_start(s.place(result, step), first + result < most && k0 + step < k
                                                  ? read(first + result, k0 + step)
                                                  : nullptr);
    }
}

/* ------------------------------------------------------------------------------- sums */

/* Adds the steps of a pair of strips to a thread's sums; by row and column, adjacent rows and
 * columns at a time. */
template <int tile>
DEVICE void product_steps(real (&sum)[Tile<tile>::down][Tile<tile>::across],
                          Strip<tile, Tile<tile>::rows> &a, Strip<tile, Tile<tile>::columns> &b)
{
    using T = Tile<tile>;
    constexpr int each = T::along_k ? 4 : 1, downs = T::along_k ? T::down : T::down / 4,
                  acrosses = T::along_k ? T::across : T::across / 4;
    RT_UNROLL_16
    for (int step = 0; step < T::depth; step += each) {
        Four x[downs], y[acrosses];
        RT_UNROLL
        for (int i = 0; i < downs; i++)
            x[i] = four(a.place(product_row<tile>(i * T::run), step));
        RT_UNROLL
        for (int j = 0; j < acrosses; j++)
            y[j] = four(b.place(product_column<tile>(j * T::run), step));
        RT_UNROLL
        for (int u = 0; u < each; u++) {
            RT_UNROLL
            for (int i = 0; i < T::down; i++) {
                RT_UNROLL
                for (int j = 0; j < T::across; j++)
                    sum[i][j] =
                        s_fma(T::along_k ? x[i % downs].at[u] : x[i / 4 % downs].at[i % 4],
                              T::along_k ? y[j % acrosses].at[u] : y[j / 4 % acrosses].at[j % 4],
                              sum[i][j]);
            }
        }
    }
}

/* The sums over steps first .. k - 1 of the results of one tile. */
template <int tile, Along a_along, Along b_along, class A, class B, class Write>
DEVICE void product_of(int block, int m, int n, int first, int k, A a, B b, Write write)
{
    using T = Tile<tile>;
    SHARED(Strips<tile>, s);
    const int tiles = ceil_div(n, T::columns), m0 = block / tiles * T::rows,
              n0 = block % tiles * T::columns;
    real sum[T::down][T::across] = {};
    const auto start = [&](int k0, int stage) {
        if (k0 < k) {
            strip_start<a_along, tile>(s.a[stage], m0, m, k0, k, a);
            strip_start<b_along, tile>(s.b[stage], n0, n, k0, k, b);
        }
        copy_group();
    };

    for (int i = 0; i < T::stages - 1; i++)
        start(first + i * T::depth, i);
    int stage = 0;
    for (int k0 = first; k0 < k; k0 += T::depth) {
        copy_wait<T::stages - 2>();
        block_sync(); /* this pair is complete, and all threads have read the one before it */
        start(k0 + (T::stages - 1) * T::depth, (stage + T::stages - 1) % T::stages);
        product_steps<tile>(sum, s.a[stage], s.b[stage]);
        stage = (stage + 1) % T::stages;
    }
    block_sync(); /* all threads have read the last pair */
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

/* Readers of a row-major matrix with `width` columns, whose rows are the results, or the steps of
 * the sum. */
DEVICE auto results_down(const real *p, int width)
{
    return [=](int result, int step) { return &p[(int64_t)result * width + step]; };
}
DEVICE auto steps_down(const real *p, int width)
{
    return [=](int result, int step) { return &p[(int64_t)step * width + result]; };
}

/* All tiles, a block each. */
template <Along a_along, Along b_along, class A, class B, class Write>
DEVICE void all_products(int m, int n, int k, A a, B b, Write write)
{
    FOR_BLOCKS(block, product_blocks(m, n))
        product<a_along, b_along>(block, m, n, k, a, b, write);
}

#endif
