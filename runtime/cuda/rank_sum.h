/* rank_sum.h -- the one kernel of sums over ranks: what the others have sent, added in the fixed
 * tree. */
#ifndef CUDA_RANK_SUM_H
#define CUDA_RANK_SUM_H
#include "rt.h"
#include <cuda_runtime_api.h>
#ifdef __cplusplus
extern "C" {
#endif

/* x (n) holds the node of rank `rank`, others + r * next that of every other rank r < ranks; x gets
 * their sum. */
void rt_rank_sum(cudaStream_t stream, real *x, const real *others, int64_t next, int64_t n,
                 int rank, int ranks);

#ifdef __cplusplus
}
#endif
#endif
