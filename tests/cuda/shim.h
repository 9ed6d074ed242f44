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
 * source, to test this.  Blocks with a common barrier take turns, too: in step, or one runs ahead
 * as far as it can, from the last to the first or at random.
 */
#ifndef SHIM_H
#define SHIM_H
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)

struct ShimIndex {
    unsigned x;
};
extern ShimIndex threadIdx, blockIdx, gridDim;

/* Shared memory: one place for all that a kernel asks for, which it must be done with before it asks for something else. */
void *shim_shared(size_t bytes);
#define SHARED(type, name) type &name = *(type *)shim_shared(sizeof(type))

void shim_barrier(int site); /* of the block; site: which in the source */
#define block_sync() shim_barrier(__COUNTER__)

/* The 64 bits that lane `from` of this thread's warp brings; all lanes that still run come here. */
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

/* A launch: `thread` once for every thread, when the stream gets to it. */
void shim_enqueue(struct FakeStream *stream, const char *kernel, int blocks, int threads, std::function<void()> thread);
/* A launch whose blocks run side by side and meet at shim_meet: SHIM_BLOCKS of them, 3 where nobody says.  Each has chip_bytes of its own for all of
 * the launch, of SHIM_CHIP at most: a million where nobody says. */
void shim_enqueue_together(struct FakeStream *stream, const char *kernel, int threads, int chip_bytes, std::function<void()> thread);
int shim_blocks_together();
int64_t shim_chip_limit();
void *shim_chip(); /* this block's */
void shim_meet(int site); /* of all blocks; site: which in the source */
#define grid_meet(arrived) ((void)(arrived), shim_meet(__COUNTER__))
#define cluster_meet(arrived) grid_meet(arrived)

/* What a library does, when the stream gets to it. */
void shim_work(struct FakeStream *stream, std::function<void()> work);

#endif
