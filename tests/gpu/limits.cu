/* limits.cu -- compares the limits of launches over the stand-in (tests/cuda/limits.h, fake.cpp) with those of a GPU.
 *
 * It prints a line for each difference; status 0: none.
 */
#include "../cuda/limits.h"
#include <cstdio>
#include <cstdlib>

static int differences;

static void same(const char *what, int gpu, int ours)
{
    if (gpu != ours)
        printf("%s: %d on the GPU, %d over the stand-in\n", what, gpu, ours), differences++;
}

/* The same for an error, which is then cleared. */
static void refused(const char *what, cudaError_t error, cudaError_t ours)
{
    same(what, (int)error, (int)ours);
    cudaGetLastError();
}

/* A kernel of about N registers and of BYTES bytes of shared memory. */
template <int N, int BYTES> static __device__ void work(float *x)
{
    __shared__ float shared[BYTES / 4 + 1];
    float v[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = x[i * 1024 + threadIdx.x];
    shared[threadIdx.x % (BYTES / 4 + 1)] = v[0];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i * 1024 + threadIdx.x] = v[i] * v[N - 1 - i] + shared[i % (BYTES / 4 + 1)];
}
static __global__ void __launch_bounds__(256, 2) bounded(float *x)
{
    work<8, 43008>(x);
}
static __global__ void __launch_bounds__(1024) large(float *x)
{
    work<24, 1000>(x);
}
static __global__ void heavy(float *x)
{
    work<150, 0>(x);
}

typedef void Kernel(float *);

static int attribute(cudaDeviceAttr a)
{
    int value = 0;
    cudaDeviceGetAttribute(&value, a, 0);
    return value;
}

static KernelLimits limits_of(Kernel *kernel)
{
    cudaFuncAttributes of = {};
    cudaFuncGetAttributes(&of, (const void *)kernel);
    return KernelLimits{of.numRegs, of.maxThreadsPerBlock, (int)of.sharedSizeBytes, of.maxDynamicSharedSizeBytes, false};
}

static int allow(Kernel *kernel, int bytes)
{
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

/* Blocks on a multiprocessor, for each number of warps. */
static void occupancy(const char *name, Kernel *kernel, const GpuLimits &g)
{
    const KernelLimits k = limits_of(kernel);
    char what[160];
    for (int bytes = 0; bytes <= k.dynamic + 1; bytes += bytes == k.dynamic ? 1 : std::max(1, std::min(k.dynamic - bytes, k.dynamic / 8)))
        for (int threads = WARP_THREADS; threads <= k.threads; threads += WARP_THREADS) {
            int blocks = -1;
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)kernel, threads, (size_t)bytes);
            snprintf(what, sizeof what, "%s, %d registers, %d + %d bytes, %d threads", name, k.registers, k.fixed, bytes, threads);
            same(what, blocks, blocks_on_one(g, k, threads, bytes));
        }
    cudaGetLastError();
}

static cudaError_t launch(Kernel *kernel, int blocks, int threads, int bytes, cudaLaunchAttributeID id, int size)
{
    cudaLaunchAttribute a = {};
    cudaLaunchConfig_t c = {};
    a.id = id;
    if (id == cudaLaunchAttributeCooperative)
        a.val.cooperative = 1;
    else
        a.val.clusterDim.x = (unsigned)size, a.val.clusterDim.y = a.val.clusterDim.z = 1;
    c.gridDim = dim3((unsigned)blocks), c.blockDim = dim3((unsigned)threads), c.dynamicSmemBytes = (size_t)bytes, c.attrs = &a, c.numAttrs = 1;
    return cudaLaunchKernelEx(&c, kernel, (float *)nullptr);
}

static cudaError_t plain(Kernel *kernel, int blocks, int threads, int bytes)
{
    float *none = nullptr;
    void *arguments[] = {&none};
    return cudaLaunchKernel((const void *)kernel, dim3((unsigned)blocks), dim3((unsigned)threads), arguments, (size_t)bytes, 0);
}

/* Only launches that are refused, because the kernels have no memory. */
static void errors(const GpuLimits &g, int most)
{
    const KernelLimits k = limits_of(heavy);
    const int threads = MULTI_REGISTERS / (units(k.registers, 8) * 8), fit = blocks_on_one(g, limits_of(bounded), 256, 0) * g.multiprocessors;
    refused("no blocks", plain(bounded, 0, 256, 0), cudaErrorInvalidValue);
    refused("no threads", plain(bounded, 1, 0, 0), cudaErrorInvalidValue);
    refused("more than 1024 threads", plain(large, 1, 1025, 0), cudaErrorInvalidValue);
    refused("more threads than the launch bounds", plain(bounded, 1, 257, 0), cudaErrorInvalidValue);
    refused("more threads than registers", plain(heavy, 1, threads / 32 * 32 + 128, 0), cudaErrorLaunchOutOfResources);
    refused("more than 48 KB that nothing has allowed", plain(bounded, 1, 256, 48 * 1024 - limits_of(bounded).fixed + 1), cudaErrorInvalidValue);
    refused("more shared memory than a block can have", (cudaError_t)allow(bounded, most + 1), cudaErrorInvalidValue);
    refused("too many blocks together", launch(bounded, fit + 1, 256, 0, cudaLaunchAttributeCooperative, 0), cudaErrorCooperativeLaunchTooLarge);
    if (attribute(cudaDevAttrComputeCapabilityMajor) >= 9) {
        refused("16 blocks of a cluster that the kernel does not allow", launch(bounded, 16, 256, 0, cudaLaunchAttributeClusterDimension, 16), cudaErrorInvalidClusterSize);
        refused("a part of a cluster", launch(bounded, 3, 256, 0, cudaLaunchAttributeClusterDimension, 2), cudaErrorInvalidClusterSize);
    }
    refused("all shared memory", (cudaError_t)allow(bounded, most), cudaSuccess);
    refused("a lower limit", (cudaError_t)allow(bounded, 100), cudaSuccess);
    refused("more than the lower limit", plain(bounded, 1, 256, 101), cudaErrorInvalidValue);
}

int main()
{
    const GpuLimits g = {attribute(cudaDevAttrMultiProcessorCount), attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor), 16};
    const int most = g.shared - SHARED_RESERVED - limits_of(bounded).fixed;
    same("reserved bytes of a block", attribute(cudaDevAttrReservedSharedMemoryPerBlock), SHARED_RESERVED);
    same("bytes of a block", attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), g.shared - SHARED_RESERVED);
    same("bytes of a block that nothing has allowed", limits_of(bounded).dynamic, SHARED_PLAIN - limits_of(bounded).fixed);
    errors(g, most);
    for (int bytes : {0, 100, most}) {
        allow(bounded, bytes);
        occupancy("bounded", bounded, g);
    }
    occupancy("large", large, g);
    occupancy("heavy", heavy, g);
    return differences != 0;
}
