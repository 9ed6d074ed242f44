/* launch.cuh -- starts kernels: in the one stream, with a check of each launch.
 *
 * LAUNCH(dense_1, y, x, w) runs dense_1 in dense_1_blocks blocks of THREADS threads.  Arguments are
 * first converted to the types of the kernel's parameters, as in any call.  The tests define
 * RT_SHIM and run kernels in their own way (tests/cuda/shim.h).
 */
#ifndef CUDA_LAUNCH_CUH
#define CUDA_LAUNCH_CUH
#include "cuda/gpu.h"

enum { THREADS = RT_THREADS, WARP = RT_WARP, WARPS = THREADS / WARP }; /* of a block */

#define LAUNCH(kernel, ...) launch(#kernel, kernel, kernel##_blocks, __VA_ARGS__)

template <class T> struct Own {
    using type = T;
};

template <class... P>
static void launch_in(cudaStream_t stream, const char *name, void (*kernel)(P...), int blocks,
                      int bytes, typename Own<P>::type... p)
{
#ifdef RT_SHIM
    rt_cuda_check(shim_enqueue(
                      stream, (const void *)kernel, name, blocks, THREADS, [=] { kernel(p...); },
                      bytes),
                  name);
#else
    void *arguments[] = {(void *)&p...};
    rt_cuda_check(cudaLaunchKernel((const void *)kernel, dim3(blocks), dim3(THREADS), arguments,
                                   bytes, stream),
                  name);
#endif
}

template <class... P>
static void launch(const char *name, void (*kernel)(P...), int blocks, typename Own<P>::type... p)
{
    launch_in(rt_cuda_stream, name, kernel, blocks, 0, p...);
}

/* The same with `bytes` of dynamic shared memory for each block. */
template <class... P>
static void launch_sharing(const char *name, void (*kernel)(P...), int blocks, int bytes,
                           typename Own<P>::type... p)
{
    rt_cuda_shared(cudaFuncSetAttribute((const void *)kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                   name, bytes);
    launch_in(rt_cuda_stream, name, kernel, blocks, bytes, p...);
}

#endif
