/* rank_sum.cu -- see rank_sum.h. */
#include "cuda/rank_sum.h"

#include "cuda/launch.cuh"
#include "cuda/threads.cuh"
#include "cuda/tree.cuh"

KERNEL rank_sum(real *x, const real *others, int64_t next, int64_t n, int rank, int ranks)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * THREADS)
        x[i] = tree_sum(ranks, [=](int r) { return r == rank ? x[i] : others[r * next + i]; });
}

void rt_rank_sum(cudaStream_t stream, real *x, const real *others, int64_t next, int64_t n,
                 int rank, int ranks)
{
    const int blocks = each_blocks(n < INT32_MAX ? (int)n : INT32_MAX);
    launch_in(stream, "rank_sum", rank_sum, blocks, 0, x, others, next, n, rank, ranks);
}
