/* product.cuh -- y(m, n) = sum over k of a(m, k) b(k, n): the product from which dense layers and
 * convolutions are made.
 *
 * A block computes a tile of results, whose size depends on m and n (rt_tile in constants.h).  For
 * some steps of k at a time, it copies a strip of a and a strip of b into shared memory.  Copies
 * are asynchronous, and the next strips are on their way while the threads multiply: a strip costs
 * one barrier, and a wait only if the copies take longer than the arithmetic.
 *
 * A thread keeps up to 8 x 8 sums in registers.  In large tiles it reads, for each step of k,
 * adjacent rows and adjacent columns with loads of 16 bytes: 4 of them for 64 multiply-adds.  In
 * small tiles a load of 16 bytes brings four steps of one row or column.  The 32 threads of a warp
 * form 4 rows of 8, so that these loads read few different addresses.  k goes in order, one FMA
 * after another: the bits depend on k only, not on the tile.
 *
 * An operand's address is the sum of two parts, one of a result and one of a step of k.  A thread
 * computes the parts of its results once.  Parts of steps that take divisions are computed once a
 * strip, by one thread each, and shared (Operand).  A function `write` takes each sum.  These
 * functions contain the geometry of a layer, and literal sizes turn their divisions into
 * multiplications.  Plain SIMT: no tensor cores, exact f32.
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
        depth = RT_TILE_DEPTH(tile),                            /* steps of k of a strip */
        stages = sizeof(real) == 8 ? 2 : 4;                     /* strips in shared memory */
    static constexpr bool along_k = down < 4;   /* steps of k are adjacent in shared memory */
    static constexpr int run = along_k ? 1 : 4; /* adjacent rows, and columns, of a thread */
};

/* first: the largest tile that may be used. */
SIZE int product_tile(int m, int n, int first = 0)
{
#ifdef RT_PERSISTENT
    return rt_tile(RT_TILE_ONE_LAUNCH > first ? RT_TILE_ONE_LAUNCH : first, m, n);
#else
    return rt_tile(first, m, n);
#endif
}
/* The number of results of a thread. */
SIZE int product_each(int m, int n, int first = 0)
{
    const int tile = product_tile(m, n, first);
    return RT_TILE_ROWS(tile) * RT_TILE_COLUMNS(tile) / THREADS;
}
SIZE int product_blocks(int m, int n, int first = 0)
{
    return (int)rt_tile_blocks(product_tile(m, n, first), m, n);
}

/* The 4 x 8 lanes of a warp.  Lanes i and i ^ 1 have the same column, lanes i and i ^ 2 the same
 * row.  On an H100, shared memory serves such loads of 16 bytes in fewer turns than with rows of
 * eight adjacent lanes: LeNet's first dense layer took 115 us instead of 130 (4096 samples). */
DEVICE int lane_row(unsigned lane)
{
    return (lane & 1) | (lane >> 3 & 2);
}
DEVICE int lane_column(unsigned lane)
{
    return lane >> 1 & 7;
}

/* Row i of a thread's rows, and column j of its columns, in the tile. */
template <int tile> DEVICE int product_row(int i)
{
    using T = Tile<tile>;
    const int warp = threadIdx.x / WARP / T::warps_across, lane = lane_row(threadIdx.x % WARP);
    return warp * (T::rows / T::warps_down) + i / T::run * (T::lanes_down * T::run) +
           lane * T::run + i % T::run;
}
template <int tile> DEVICE int product_column(int j)
{
    using T = Tile<tile>;
    const int warp = threadIdx.x / WARP % T::warps_across, lane = lane_column(threadIdx.x % WARP);
    return warp * (T::columns / T::warps_across) + j / T::run * (T::lanes_across * T::run) +
           lane * T::run + j % T::run;
}

/* One strip, [step][result] or [result][step].  Its rows are padded: then threads that store, or
 * load, in the same column use different banks. */
template <int tile, int side> struct Strip {
    using T = Tile<tile>;
    static constexpr int rows = T::along_k ? side : T::depth, width = T::along_k ? T::depth : side;
    alignas(16) real at[rows][width + 4];

    __device__ __forceinline__ real *place(int result, int step)
    {
        return T::along_k ? &at[result][step] : &at[step][result];
    }
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

/* Starts the copy of a number to shared memory.  If it is not `there`, the copy is 0, and `from` is
 * not read.  Numbers of another type are converted, and the thread waits for them. */
template <class T> DEVICE void copy_start(real *to, const T *from, bool there)
{
    *to = there ? (real)*from : (real)0;
}
/* copy_group: the copies so far are one group.  copy_wait: until at most `groups` are pending. */
#ifdef RT_SHIM
DEVICE void copy_start(real *to, const real *from, bool there)
{
    shim_copy_start(to, there ? from : nullptr, sizeof *from);
}
DEVICE void copy_group()
{
    shim_copy_group();
}
template <int groups> DEVICE void copy_wait()
{
    shim_copy_wait(groups);
}
#else
DEVICE void copy_start(real *to, const real *from, bool there)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = there ? sizeof *from : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at),
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

/* Keeps the address p in a register.  Without this, the compiler adds for each copy the offset of
 * the result to that of the step, and then the sum to the first address. */
template <class T> DEVICE const T *kept(const T *p)
{
#ifndef RT_SHIM
    asm("" : "+l"(p));
#endif
    return p;
}

/* The direction in which adjacent threads read an operand: along k, or along the results. */
enum Along { ALONG_K, ALONG_RESULT };

/* An operand: at(result(i), step(k)) is its Number for result i and step k.  The functions `result`
 * and `step` return parts of the address.  They are also called outside of the matrix, where
 * nothing is read. */
template <Along way, class R, class S, class A> struct Operand {
    static constexpr Along along = way;
    R result;
    S step;
    A at;
};
template <class T> struct Number {
    const T *at;
    bool there; /* else it is 0 */
};
template <Along along, class R, class S, class A> DEVICE auto operand(R result, S step, A at)
{
    return Operand<along, R, S, A>{result, step, at};
}

/* A row-major matrix with `width` columns.  ALONG_K: its rows are the results, and its columns the
 * steps; ALONG_RESULT: its rows are the steps. */
template <Along along, class X> DEVICE auto matrix(const X *p, int width)
{
    const auto result = [=](int i) {
        return kept(p + (along == ALONG_K ? (int64_t)i * width : i));
    };
    const auto step = [=](int k) { return along == ALONG_K ? k : (int64_t)k * width; };
    const auto at = [](const X *row, int64_t step) { return Number<X>{row + step, true}; };
    return operand<along>(result, step, at);
}

/* How a thread copies an operand to a strip of `side` results.  shared: one thread computes the
 * address part of each step, because all threads need several of these parts. */
template <int tile, int side, class O> struct Copies {
    using Result = decltype(((O *)nullptr)->result(0));
    using Step = decltype(((O *)nullptr)->step(0));
    static constexpr bool along_k = O::along == ALONG_K, shared = !along_k && sizeof(Step) > 8;
    static constexpr int depth = Tile<tile>::depth, each = side * depth / THREADS,
                         results = along_k ? each : 1;
    static_assert(side * depth % THREADS == 0 && THREADS % side == 0 && THREADS % depth == 0);
    struct Table {
        alignas(16) Step of[shared ? Tile<tile>::stages : 1][shared ? depth : 1];
    };

    /* copy q of this thread: its result and its step in the strip */
    static __device__ __forceinline__ int result(int q)
    {
        return along_k ? threadIdx.x / depth + q * (THREADS / depth) : threadIdx.x % side;
    }
    static __device__ __forceinline__ int step(int q)
    {
        return along_k ? threadIdx.x % depth : threadIdx.x / side + q * (THREADS / side);
    }

    /* Computes the parts of this thread's results.  Those after the last of the matrix are never
     * written, so they may be computed from any numbers. */
    static __device__ __forceinline__ void begin(Result (&part)[results], int first, int most,
                                                 const O &o)
    {
        RT_UNROLL
        for (int q = 0; q < results; q++) {
            const int i = first + result(q);
            part[q] = o.result(most % side == 0 || i < most ? i : most - 1);
        }
    }
    /* Computes the parts of the steps from k0 on, with the threads from `thread` on. */
    static __device__ __forceinline__ void prepare(Table &table, unsigned stage, int k0,
                                                   unsigned thread, const O &o)
    {
        if constexpr (shared)
            if (threadIdx.x - thread < (unsigned)depth)
                table.of[stage][threadIdx.x - thread] = o.step(k0 + (int)(threadIdx.x - thread));
    }
    /* Starts to copy steps k0 to k - 1. */
    static __device__ __forceinline__ void start(Strip<tile, side> &s,
                                                 const Result (&part)[results], const Table &table,
                                                 unsigned stage, int k0, int k, const O &o)
    {
        decltype(o.at(part[0], o.step(0))) number[each];
        RT_UNROLL
        for (int q = 0; q < each; q++) {
            const int at = step(q);
            number[q] =
                o.at(part[along_k ? q : 0],
                     shared ? table.of[shared ? stage : 0][shared ? at : 0] : o.step(k0 + at));
            number[q].there = number[q].there && at < k - k0;
        }
        RT_UNROLL
        for (int q = 0; q < each; q++)
            copy_start(s.place(result(q), step(q)), number[q].at, number[q].there);
    }
};

/* ------------------------------------------------------------------------------- sums */

/* Adds the steps of a pair of strips to a thread's sums. */
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

/* The strips of a tile, and the parts of their steps. */
template <int tile, class A, class B> struct Strips {
    Strip<tile, Tile<tile>::rows> a[Tile<tile>::stages];
    Strip<tile, Tile<tile>::columns> b[Tile<tile>::stages];
    typename A::Table a_steps;
    typename B::Table b_steps;
};

/* Computes the sums over steps first .. k - 1 of the results of one tile. */
template <int tile, class A, class B, class Write>
DEVICE void product_of(int block, int m, int n, int first, int k, A a, B b, Write write)
{
    using T = Tile<tile>;
    using CopyA = Copies<tile, T::rows, A>;
    using CopyB = Copies<tile, T::columns, B>;
    using Both = Strips<tile, CopyA, CopyB>;
    SHARED(Both, s);
    const int tiles = ceil_div(n, T::columns), m0 = block / tiles * T::rows,
              n0 = block % tiles * T::columns;
    real sum[T::down][T::across] = {};
    typename CopyA::Result rows[CopyA::results];
    typename CopyB::Result columns[CopyB::results];
    const auto prepare = [&](int k0, unsigned stage) {
        CopyA::prepare(s.a_steps, stage, k0, 0, a);
        CopyB::prepare(s.b_steps, stage, k0, THREADS / 2, b);
    };
    const auto start = [&](int k0, unsigned stage) {
        if (k0 < k) {
            CopyA::start(s.a[stage], rows, s.a_steps, stage, k0, k, a);
            CopyB::start(s.b[stage], columns, s.b_steps, stage, k0, k, b);
        }
        copy_group();
    };

    CopyA::begin(rows, m0, m, a);
    CopyB::begin(columns, n0, n, b);
    if (CopyA::shared || CopyB::shared) {
        for (int i = 0; i < T::stages; i++)
            prepare(first + i * T::depth, i);
        block_sync(); /* the parts of the first steps are complete */
    }
    for (int i = 0; i < T::stages - 1; i++)
        start(first + i * T::depth, i);
    RT_NO_UNROLL
    for (int k0 = first; k0 < k; k0 += T::depth) {
        const unsigned stage = (unsigned)(k0 - first) / T::depth % T::stages;
        copy_wait<T::stages - 2>();
        block_sync(); /* this pair is complete, and all threads have read the one before it */
        start(k0 + (T::stages - 1) * T::depth, (stage + T::stages - 1) % T::stages);
        prepare(k0 + T::stages * T::depth, stage);
        product_steps<tile>(sum, s.a[stage], s.b[stage]);
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

/* Computes a product. a, b: operands, of rows and of columns; write(row, column, sum, slot); slot:
 * which of the thread's results this is (results.cuh); block: one of product_blocks(m, n). */
template <class A, class B, class Write>
DEVICE void product(int block, int m, int n, int k, A a, B b, Write write, int first = 0)
{
    for_tile(product_tile(m, n, first),
             [=]<int tile>() { product_of<tile>(block, m, n, 0, k, a, b, write); });
}

/* Computes all tiles, each in a block of its own. */
template <class A, class B, class Write>
DEVICE void all_products(int m, int n, int k, A a, B b, Write write)
{
    FOR_BLOCKS(block, product_blocks(m, n))
        product(block, m, n, k, a, b, write);
}

#endif
