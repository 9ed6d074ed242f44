/* rank_sum.h -- adds what the other ranks have sent, in the fixed tree: the only kernel of sums
 * over ranks. */
#ifndef CUDA_RANK_SUM_H
#define CUDA_RANK_SUM_H
#include "rt.h"
#include <cuda_runtime_api.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Before: x (n) has the sums of rank `rank`, and others + r * next (n) has those of each other rank
 * r.  After: x has the sums over all ranks. */
void rt_rank_sum(cudaStream_t stream, real *x, const real *others, int64_t next, int64_t n,
                 int rank, int ranks);

#ifdef __cplusplus
}
#endif
#endif
