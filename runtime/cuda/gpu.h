/* gpu.h -- the GPU as launches see it: one stream, and the check of every call. */
#ifndef CUDA_GPU_H
#define CUDA_GPU_H
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include "rt.h"
#ifdef __cplusplus
extern "C" {
#endif

extern cudaStream_t rt_cuda_stream;

/* After a call of the CUDA runtime: ends the program unless error is cudaSuccess; what: "dense_1", "copying to the GPU". */
void rt_cuda_check(cudaError_t error, const char *what);
void rt_cuda_await(bool (*done)(void));               /* as the runtime wants waiting to be done */
void rt_cuda_clear(void *there, int64_t bytes);       /* to 0, in the stream */
/* RtDevice.begin: a kernel (begin.cuh), so it comes with the program. */
void rt_cuda_begin(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int n, int *clear, int64_t bytes);
bool rt_cuda_finite(const void *there, int64_t count);  /* are these reals finite?  Waits; for messages */
bool rt_cuda_finite_bf16(const void *there, int64_t count); /* the same of bf16 */
bool rt_cuda_finite_f16(const void *there, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
