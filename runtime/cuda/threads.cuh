/* threads.cuh -- how the threads of a block divide work, share memory, and add in a fixed order. */
#ifndef CUDA_THREADS_CUH
#define CUDA_THREADS_CUH
#include <math.h>

/* At least two blocks fit on a multiprocessor.  Without this bound, ptxas once spilled a word to
 * stay within 32 or 64 registers. */
#define KERNEL static __global__ void __launch_bounds__(THREADS, RT_RESIDENT)
#define SIZE   static constexpr __host__ __device__ /* of a layer or a launch, at compile time */
#define DEVICE static __device__ __forceinline__
#ifdef __CUDACC__
#define RT_UNROLL    _Pragma("unroll")
#define RT_UNROLL_4  _Pragma("unroll 4")
#define RT_UNROLL_16 _Pragma("unroll 16")
#define RT_NO_UNROLL _Pragma("unroll 1")
#else
#define RT_UNROLL
#define RT_UNROLL_4
#define RT_UNROLL_16
#define RT_NO_UNROLL
#endif
#define RT_TABLE __constant__ const
#ifndef RT_SHIM
static __shared__ __align__(16) unsigned char shared_memory[RT_SHARED];
#define SHARED(type, name)                                                                         \
    static_assert(sizeof(type) <= RT_SHARED, "RT_SHARED is too small for " #type);                 \
    type &name = *(type *)shared_memory
#define block_sync() __syncthreads() /* a barrier for all threads of the block */
#endif

/* The shared memory of a block whose size the launch sets. */
#ifdef RT_SHIM
DEVICE real *dynamic_memory()
{
    return (real *)shim_chip();
}
#else
extern __shared__ __align__(16) unsigned char dynamic_shared[];
DEVICE real *dynamic_memory()
{
    return (real *)dynamic_shared;
}
#endif

SIZE int ceil_div(int n, int unit)
{
    return n / unit + (n % unit != 0);
}

/* The numbers 0 .. count - 1, divided among all threads of the launch. */
#define FOR_EACH(i, count)                                                                         \
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < (unsigned)(count);                   \
         i += gridDim.x * THREADS)
SIZE int each_blocks(int count)
{
    return count < 4096 * THREADS ? ceil_div(count, THREADS) : 4096;
}

/* Parts of a kernel's work, 0 .. count - 1, a block each; rows, 0 .. count - 1, a warp each.  A
 * launch has as many blocks as its largest kernel has parts.  If one launch is many steps
 * (persistent.cuh), there are fewer blocks, and each takes one part after another.  Shared memory
 * must be read completely before the next part, or the next kernel, begins.  FOR_BLOCKS_LAST: the
 * last blocks of the launch, which run beside those of other kernels. */
#ifdef RT_PERSISTENT
#define FOR_BLOCKS_LAST FOR_BLOCKS
#define FOR_BLOCKS(block, count)                                                                   \
    for (unsigned block = blockIdx.x; block < (unsigned)(count); block += gridDim.x)
#define FOR_ROWS(row, count)                                                                       \
    for (int64_t row = blockIdx.x * WARPS + threadIdx.x / WARP; row < (count);                     \
         row += gridDim.x * WARPS)
#else
#define FOR_BLOCKS(block, count) if (const unsigned block = blockIdx.x; block < (unsigned)(count))
#define FOR_BLOCKS_LAST(block, count)                                                              \
    if (const unsigned block = gridDim.x - 1 - blockIdx.x; block < (unsigned)(count))
#define FOR_ROWS(row, count)                                                                       \
    if (const int64_t row = blockIdx.x * WARPS + threadIdx.x / WARP; row < (count))
#endif

/* Channels, 0 .. count - 1, a thread each: the first thread of the block that has the channel in
 * other kernels, so that these kernels can share a launch with this one without a barrier. */
#define FOR_CHANNELS(c, count)                                                                     \
    for (unsigned c = blockIdx.x; c < (unsigned)(count) && threadIdx.x == 0; c += gridDim.x)

/* The largest argument: the blocks of a launch that runs several kernels. */
SIZE int most(int blocks)
{
    return blocks;
}
template <class... More> SIZE int most(int blocks, int other, More... more)
{
    return most(blocks > other ? blocks : other, more...);
}

/* A number that is used as an array of equal numbers. */
struct Constant {
    real value;
    __device__ real operator[](int64_t) const
    {
        return value;
    }
};

/* ------------------------------------------------------------------- sums of a warp, of a block */

/* Bit l: the argument of lane l. */
DEVICE unsigned warp_votes(bool yes)
{
    return __ballot_sync(0xffffffffu, yes);
}

/* The sum, or the maximum, of a warp's 32 numbers, in each lane: combines lanes at distances 16, 8,
 * 4, 2, 1. */
template <class T> DEVICE T warp_sum(T x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    return x;
}
DEVICE real warp_max(real x)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        const real other = __shfl_xor_sync(0xffffffffu, x, lanes);
        x = other > x ? other : x;
    }
    return x;
}

/* Lane l gets, in x[0], the sum of x[l] over all lanes.  At each distance a lane sends half of its
 * numbers and keeps the others: 31 exchanges instead of 32 times 5.  The distance is a constant, so
 * that x stays in registers. */
template <int half = WARP / 2> DEVICE void warp_sums(real (&x)[WARP])
{
    const bool upper = threadIdx.x & half;
    RT_UNROLL
    for (int i = 0; i < half; i++) {
        const real give = upper ? x[i] : x[i + half], keep = upper ? x[i + half] : x[i];
        x[i] = keep + __shfl_xor_sync(0xffffffffu, give, half);
    }
    if constexpr (half > 1)
        warp_sums<half / 2>(x);
}

template <class T> struct Parts {
    T of_warp[WARPS];
};

/* The sum of all threads' numbers, in each thread: warps in order.  The second barrier: no thread
 * writes parts of the next sum before all threads have read these. */
template <class T> DEVICE T block_sum(Parts<T> &s, T x)
{
    x = warp_sum(x);
    if (threadIdx.x % WARP == 0)
        s.of_warp[threadIdx.x / WARP] = x;
    block_sync();
    x = 0;
    for (int i = 0; i < WARPS; i++)
        x += s.of_warp[i];
    block_sync();
    return x;
}
DEVICE real block_max(Parts<real> &s, real x)
{
    x = warp_max(x);
    if (threadIdx.x % WARP == 0)
        s.of_warp[threadIdx.x / WARP] = x;
    block_sync();
    for (int i = 0; threadIdx.x == 0 && i < WARPS; i++)
        x = s.of_warp[i] > x ? s.of_warp[i] : x;
    block_sync();
    return x;
}

/* Calls add(load(i)) for i = first, first + step ... < end, in this order.  AHEAD loads are issued
 * before the first of their results is added: a load takes about 0.7 us, and few warps of a
 * multiprocessor run such a loop.  At the end, loads that would be outside repeat a number, whose
 * value is not used. */
template <int AHEAD, class Index, class Load, class Add>
DEVICE void load_ahead(Index first, Index end, Index step, Load load, Add add)
{
    decltype(load(first)) x[AHEAD];
    Index i = first;
    for (; end - i > (AHEAD - 1) * step; i += AHEAD * step) {
        RT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            x[k] = load(i + k * step);
        RT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            add(x[k]);
    }
    if (i >= end)
        return;
    RT_UNROLL
    for (int k = 0; k < AHEAD; k++)
        x[k] = load(end - i > k * step ? i + k * step : i);
    RT_UNROLL
    for (int k = 0; k < AHEAD; k++)
        if (end - i > k * step)
            add(x[k]);
}

/* The same for this thread's numbers of 0 .. count - 1, which a block divides among its threads.
 * count is a literal number, so one of the calls remains.  4 loads at a time took 20 us for sums of
 * 36,864 numbers on an H100. */
template <class Load, class Add> DEVICE void load_shares(int count, Load load, Add add)
{
    const int thread = threadIdx.x, step = THREADS;
    if (count <= step)
        load_ahead<1>(thread, count, step, load, add);
    else if (count <= 4 * step)
        load_ahead<4>(thread, count, step, load, add);
    else if (count <= 8 * step)
        load_ahead<8>(thread, count, step, load, add);
    else
        load_ahead<16>(thread, count, step, load, add);
}

/* Calls store(at, sum over of < summed of value(at, of)) for each at < kept: a block for each
 * sum. */
template <class Value, class Store>
DEVICE void block_sums(int kept, int summed, Value value, Store store)
{
    SHARED(Parts<real>, parts);
    for (int at = blockIdx.x; at < kept; at += gridDim.x) {
        real sum = 0;
        load_shares(
            summed, [=](int of) { return (real)value(at, of); }, [&](real x) { sum += x; });
        sum = block_sum(parts, sum);
        if (threadIdx.x == 0)
            store(at, sum);
    }
}
template <class Value, class Store>
DEVICE void block_maxima(int kept, int summed, Value value, Store store)
{
    SHARED(Parts<real>, parts);
    for (int at = blockIdx.x; at < kept; at += gridDim.x) {
        real top = -INFINITY;
        load_shares(
            summed, [=](int of) { return (real)value(at, of); },
            [&](real x) { top = x > top ? x : top; });
        top = block_max(parts, top);
        if (threadIdx.x == 0)
            store(at, top);
    }
}
SIZE int sum_blocks(int kept)
{
    return kept < 65536 ? kept : 65536;
}

#endif
