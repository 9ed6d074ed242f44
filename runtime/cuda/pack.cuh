/* pack.cuh -- adjacent numbers that a thread reads or writes at once.
 *
 * A multiprocessor has at most 2,048 threads.  If each of them waits for one read of two bytes, an
 * H100 moves half of what its memory could: a step of ResNet-50 in bf16 had kernels of 1.5 to
 * 1.8 TB/s.
 */
#ifndef CUDA_PACK_CUH
#define CUDA_PACK_CUH

enum { PACK = RT_PACK }; /* numbers of a pack: 16 bytes of f32, 8 of bf16 */

template <class T> struct alignas(PACK * sizeof(T)) Pack {
    T at[PACK];
};
template <class T> DEVICE bool pack_aligned(const T *p)
{
    return (uintptr_t)p % sizeof(Pack<T>) == 0;
}
/* The pack that begins at p[i]. */
template <class T> DEVICE Pack<T> pack_read(const T *p, int64_t i)
{
    return *(const Pack<T> *)(p + i);
}
template <class T> DEVICE void pack_write(T *p, int64_t i, const Pack<T> &x)
{
    *(Pack<T> *)(p + i) = x;
}

/* The same for operands that are no arrays: nullptr, and one number in place of all. */
struct NoPack {
    static constexpr decltype(nullptr) at = nullptr;
};
DEVICE bool pack_aligned(decltype(nullptr))
{
    return true;
}
DEVICE NoPack pack_read(decltype(nullptr), int64_t)
{
    return {};
}
DEVICE bool pack_aligned(Constant)
{
    return true;
}
DEVICE Pack<real> pack_read(Constant x, int64_t)
{
    return {x.value, x.value, x.value, x.value};
}
/* Whether packs of all operands can be read and written. */
template <class... P> DEVICE bool packs_aligned(P... p)
{
    return (pack_aligned(p) && ...);
}

/* Calls write(i, read(i)) for the packs 0 .. packs - 1, which begin at numbers i.  They are divided
 * among the first `threads` threads of the launch.  A thread reads AHEAD packs before it writes the
 * first of them. */
template <int AHEAD, class Read, class Write>
DEVICE void for_packs(int packs, int threads, Read read, Write write)
{
    const int thread = blockIdx.x * THREADS + threadIdx.x;
    if (thread >= threads)
        return;
    for (int first = thread; first < packs; first += AHEAD * threads) {
        decltype(read(first)) x[AHEAD];
        RT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            x[k] = read(PACK * (packs - first > k * threads ? first + k * threads : first));
        RT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            if (packs - first > k * threads)
                write(PACK * (first + k * threads), x[k]);
    }
}

/* A number of an array in place of the array: the index is ignored. */
template <class T> struct PackNumber {
    T &x;
    __device__ T &operator[](int64_t) const
    {
        return x;
    }
};

/* Calls f(at, y, a...) for each of the PACK numbers from `at` on, then writes y.  In f, y and a...
 * stand for the number at `at` only. */
template <class F, class Y, class... A>
DEVICE void one_pack(unsigned at, F f, Y *y, const Pack<A> &...a)
{
    Pack<Y> results;
    RT_UNROLL
    for (int k = 0; k < PACK; k++)
        f(at + k, PackNumber<Y>{results.at[k]}, PackNumber<const A>{a.at[k]}...);
    pack_write(y, at, results);
}

/* The same for 0 .. count - 1, divided among all threads of the launch.  A thread reads its pack of
 * each a before it writes its pack of y, so y can be one of them.  The addresses of all arrays are
 * multiples of the size of a pack. */
SIZE int pack_blocks(int count)
{
    return each_blocks(ceil_div(count, PACK));
}
template <class F, class Y, class... A>
DEVICE void each_pack(unsigned count, F f, Y *y, const A *...a)
{
    FOR_EACH(pack, count / PACK)
        one_pack(PACK * pack, f, y, pack_read(a, PACK * pack)...);
    FOR_EACH(rest, count % PACK) {
        const unsigned at = count - 1 - rest;
        f(at, PackNumber<Y>{y[at]}, PackNumber<const A>{a[at]}...);
    }
}

#endif
