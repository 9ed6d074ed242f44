/* pack.cuh -- adjacent numbers that a thread reads or writes at once.
 *
 * A multiprocessor has at most 2,048 threads.  With one read of two bytes each on its way, an H100
 * moves half of what its memory could: a step of ResNet-50 in bf16 had kernels of 1.5 to 1.8 TB/s.
 */
#ifndef CUDA_PACK_CUH
#define CUDA_PACK_CUH

enum { PACK = RT_PACK }; /* 16 bytes of f32, 8 of bf16 */

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

#endif
