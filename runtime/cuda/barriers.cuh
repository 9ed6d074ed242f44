/* barriers.cuh -- barriers of several blocks: of all blocks of a launch, and of one cluster.
 *
 * A file that includes this one must have DEVICE and block_sync: threads.cuh defines both for
 * programs, and bench/day/constants.cu, which measures the barriers, defines its own.
 */
#ifndef CUDA_BARRIERS_CUH
#define CUDA_BARRIERS_CUH

/* Waits at a barrier over the grid: writes before it are visible to all threads after it.  arrived:
 * number of blocks that have arrived, at all barriers of the launch. */
DEVICE void grid_barrier(unsigned *arrived)
{
    block_sync();
    if (threadIdx.x == 0) {
        __threadfence();
        const unsigned all = (atomicAdd(arrived, 1) / gridDim.x + 1) * gridDim.x;
        while (*(volatile unsigned *)arrived < all)
            ;
        __threadfence();
    }
    block_sync();
}

DEVICE void cluster_barrier(unsigned *)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

#endif
