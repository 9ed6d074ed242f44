/* launch.cpp -- a launch that CUDA rejects is reported with the kernel's name:
 * runtime/cuda/launch.cuh with CUDA's own header, over a runtime that rejects all launches.
 *
 * Status 0 if it is.
 */
#include <cstring>
#include <cuda_runtime_api.h>
#include "cuda/launch.cuh"

cudaStream_t rt_cuda_stream;
static const char *refused;

extern "C" cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t)
{
    return cudaErrorInvalidValue;
}

void rt_cuda_check(cudaError_t error, const char *what)
{
    if (error == cudaErrorInvalidValue)
        refused = what;
}

static void dense_1(float *, int)
{
}
constexpr int dense_1_blocks = 1;

int main()
{
    LAUNCH(dense_1, nullptr, 4);
    return !(refused && !strcmp(refused, "dense_1"));
}
