/* gpu.h -- the GPU as launches see it: one stream, and a check of each call. */
#ifndef CUDA_GPU_H
#define CUDA_GPU_H
#include "rt.h"
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

extern cudaStream_t rt_cuda_stream;

/* After a call of the CUDA runtime: dies unless error is cudaSuccess.  what: "dense_1", "copying to
 * the GPU". */
void rt_cuda_check(cudaError_t error, const char *what);
/* The same for a kernel that needs `bytes` of shared memory: says what the GPU allows. */
void rt_cuda_shared(cudaError_t error, const char *what, int bytes);
/* Notes that a launch has fewer blocks than intended, because no more run at the same time. */
void rt_cuda_fewer(int intended, int blocks);
void rt_cuda_await(bool (*done)(void));         /* waits as RtDevice.waits has set */
void rt_cuda_clear(void *there, int64_t bytes); /* to 0, in the stream */
/* RtDevice.begin.  It is a kernel (begin.cuh), so the program defines it. */
void rt_cuda_begin(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int n,
                   int *clear, int64_t bytes);
bool rt_cuda_finite(const void *there, int64_t count); /* whether all reals are finite; waits */
bool rt_cuda_finite_bf16(const void *there, int64_t count); /* the same for bf16, below for f16 */
bool rt_cuda_finite_f16(const void *there, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
