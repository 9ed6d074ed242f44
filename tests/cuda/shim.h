/* shim.h -- CUDA's declarations for a C++ compiler: the source of a kernel runs on the processor,
 * with a fiber for each thread.
 *
 *   g++ -x c++ -DRT_SHIM -include tests/cuda/shim.h -I tests/cuda/include -I runtime lenet.cu
 *
 * Blocks run one after another.  The threads of a block take turns, and switch only where they
 * synchronise: at block_sync and in exchanges of a warp.  SHIM_ORDER selects the order: 0 forward,
 * in step; 1 backward; 2 and more at random, where a warp runs ahead until it must wait.  Results
 * must not depend on the order.  A missing barrier shows, because shared memory begins as NaN and
 * some order reads too early.  SHIM_SKIP=N removes the Nth block_sync or barrier of blocks of the
 * source, to test this.  An asynchronous copy gives NaN until its thread waits for it.  Blocks with a common barrier take turns, too: in step, or one runs ahead
 * as far as it can, from the last to the first or at random.
 */
#ifndef SHIM_H
#define SHIM_H
#include <cstdint>
#include <cstring>
#include "task.h"
#include <cuda_runtime_api.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__

/* The bounds are the name of the section of the kernel: resources.h reads them. */
#define SHIM_BOUNDS(threads, blocks, ...) __attribute__((section("launch_bounds." #threads "." #blocks)))
#define __launch_bounds__(...) SHIM_BOUNDS(__VA_ARGS__, 1, )

struct ShimIndex {
    unsigned x;
};
extern ShimIndex threadIdx, blockIdx, gridDim;

/* Shared memory: all declarations of a kernel share one place, so a kernel must have finished with one before it uses the next. */
void *shim_shared(size_t bytes);
#define SHARED(type, name)                                                                   \
    static_assert(sizeof(type) <= RT_SHARED, "RT_SHARED is too small for " #type); \
    type &name = *(type *)shim_shared(sizeof(type))

/* Asynchronous copies to shared memory: of `bytes` bytes, or of 0 if from is NULL; the copies so far are a group; until at most `groups`
 * groups of this thread are pending. */
void shim_copy_start(void *to, const void *from, size_t bytes);
void shim_copy_group();
void shim_copy_wait(int groups);

void shim_barrier(int site); /* barrier of the block; site: its index in the source */
#define block_sync() shim_barrier(__COUNTER__)

/* Returns the 64 bits of lane `from` of this thread's warp; all running lanes must call it. */
uint64_t shim_exchange(uint64_t mine, int from);
template <class T> T __shfl_xor_sync(unsigned, T x, int distance)
{
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    bits = shim_exchange(bits, (int)(threadIdx.x % 32) ^ distance);
    memcpy(&x, &bits, sizeof x);
    return x;
}

inline unsigned __ballot_sync(unsigned, bool yes)
{
    unsigned votes = (unsigned)yes << threadIdx.x % 32;
    for (int distance = 16; distance > 0; distance /= 2)
        votes |= __shfl_xor_sync(0xffffffffu, votes, distance);
    return votes;
}
#define __ffs __builtin_ffs

/* Adds a launch to a stream, which calls `thread` once for every thread; or returns why the GPU refuses it.  bytes: dynamic shared memory of a block. */
cudaError_t shim_enqueue(struct FakeStream *stream, const void *kernel, const char *name, int blocks, int threads, Task thread, int bytes = 0);
/* The same for a launch whose blocks run at the same time, with a common barrier, shim_grid_barrier. */
cudaError_t shim_enqueue_together(const cudaLaunchConfig_t &config, const void *kernel, Task thread);
template <class... P, class... A> cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), const A &...a)
{
    return shim_enqueue_together(*config, (const void *)kernel, [=] { kernel(a...); });
}
void *shim_chip(); /* dynamic shared memory of this block */
void shim_grid_barrier(int site); /* barrier of all blocks; site: its index in the source */
#define grid_barrier(arrived) ((void)(arrived), shim_grid_barrier(__COUNTER__))
#define cluster_barrier(arrived) grid_barrier(arrived)

/* Adds work of a library to a stream. */
void shim_work(struct FakeStream *stream, Task work);

#endif
