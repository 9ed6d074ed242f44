/* constants.cu -- measures what the predictions of a step assume (compiler/ir/gpu.c), and prints
 * it as JSON: microseconds, bytes/s and FLOP/s, medians of nine measurements.
 *
 * Barriers are those of the programs (runtime/cuda/barriers.cuh).  Each rate is of a loop long
 * enough that launches do not count.  nvcc -arch=sm_90 -O3 -o constants constants.cu
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define DEVICE       static __device__ __forceinline__
#define block_sync() __syncthreads()
#include "../../runtime/cuda/barriers.cuh"

enum { THREADS = 256, TRIES = 9 };
static cudaStream_t stream;
static cudaEvent_t from, to;
static int processors;

#define CHECK(call) check(call, #call)
static void check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "constants: %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

/* Median milliseconds of what `work` enqueues; one run before does not count. */
static double milliseconds(const std::function<void()> &work)
{
    std::vector<double> all;
    work();
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < TRIES; i++) {
        float ms = 0;
        CHECK(cudaEventRecord(from, stream));
        work();
        CHECK(cudaEventRecord(to, stream));
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaEventElapsedTime(&ms, from, to));
        all.push_back(ms);
    }
    std::sort(all.begin(), all.end());
    return all[TRIES / 2];
}

static bool first = true;
static void say(const char *name, double value)
{
    printf("%s\n  \"%s\": %.6g", first ? "{" : ",", name, value);
    first = false;
    fflush(stdout);
}

/* ---- launches */

__global__ void nothing(int *p)
{
    if (p && threadIdx.x == 9999)
        *p = 1;
}

static cudaGraphExec_t graph_of(int n, int blocks)
{
    cudaGraph_t graph;
    cudaGraphExec_t kept;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < n; i++)
        nothing<<<blocks, THREADS, 0, stream>>>(nullptr);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&kept, graph, 0));
    return kept;
}

static void launches(void)
{
    enum { N = 200 };
    const cudaGraphExec_t one = graph_of(N, 1), full = graph_of(N, processors), empty = graph_of(1, 1);
    say("graph_kernel_us", 1e3 / N * milliseconds([=] { CHECK(cudaGraphLaunch(one, stream)); }));
    say("graph_kernel_all_processors_us", 1e3 / N * milliseconds([=] { CHECK(cudaGraphLaunch(full, stream)); }));
    say("stream_kernel_us", 1e3 / N * milliseconds([=] { for (int i = 0; i < N; i++) nothing<<<1, THREADS, 0, stream>>>(nullptr); }));
    say("graph_launch_and_wait_us", 1e3 / N * milliseconds([=] {
        for (int i = 0; i < N; i++) {
            CHECK(cudaGraphLaunch(empty, stream));
            CHECK(cudaStreamSynchronize(stream));
        }
    }));
}

/* ---- barriers */

__global__ void grid_barriers(unsigned *arrived, int n)
{
    for (int i = 0; i < n; i++)
        grid_barrier(arrived);
}
__global__ void cluster_barriers(int n)
{
    for (int i = 0; i < n; i++)
        cluster_barrier(nullptr);
}
__global__ void block_barriers(int n)
{
    for (int i = 0; i < n; i++)
        __syncthreads();
}

static double cluster_us(int blocks, int n)
{
    cudaLaunchAttribute a = {};
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(blocks), c.blockDim = dim3(THREADS), c.stream = stream, c.attrs = &a, c.numAttrs = 1;
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = blocks, a.val.clusterDim.y = a.val.clusterDim.z = 1;
    CHECK(cudaFuncSetAttribute((const void *)cluster_barriers, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    return 1e3 / n * milliseconds([=] { CHECK(cudaLaunchKernelEx(&c, cluster_barriers, n)); });
}

static void barriers(void)
{
    enum { N = 2000 };
    unsigned *arrived;
    int n = N;
    CHECK(cudaMalloc(&arrived, sizeof *arrived));
    CHECK(cudaMemset(arrived, 0, sizeof *arrived));
    for (int each = 1; each <= 2; each++) {
        void *args[] = {&arrived, &n};
        const int blocks = each * processors;
        say(each == 1 ? "grid_barrier_us" : "grid_barrier_two_blocks_each_us", 1e3 / N * milliseconds([&] {
            CHECK(cudaMemsetAsync(arrived, 0, sizeof *arrived, stream));
            CHECK(cudaLaunchCooperativeKernel((const void *)grid_barriers, dim3(blocks), dim3(THREADS), args, 0, stream));
        }));
    }
    say("cluster_barrier_8_us", cluster_us(8, N));
    say("cluster_barrier_16_us", cluster_us(16, N));
    say("block_barrier_us", 1e3 / N * milliseconds([=] { block_barriers<<<1, THREADS, 0, stream>>>(N); }));
}

/* ---- memory */

__global__ void copy4(float4 *y, const float4 *x, int64_t n)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        y[i] = x[i];
}
__global__ void copy1(float *y, const float *x, int64_t n)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        y[i] = x[i];
}
__global__ void read4(float *y, const float4 *x, int64_t n, int times)
{
    float s = 0;
    for (int t = 0; t < times; t++)
        for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
            const float4 v = __ldcg(x + i);
            s += v.x + v.y + v.z + v.w;
        }
    if (s == 1.5f)
        *y = s;
}

static void memory(void)
{
    const int64_t large = 1LL << 30, small = 16 << 20;
    char *x, *y, *pinned;
    CHECK(cudaMalloc(&x, large));
    CHECK(cudaMalloc(&y, large));
    CHECK(cudaMemset(x, 1, large));
    CHECK(cudaMallocHost((void **)&pinned, 256 << 20));
    char *pageable = (char *)calloc(1, 256 << 20);
    const int blocks = 8 * processors;
    say("copy_by_driver_bytes_per_s", 2e3 * large / milliseconds([=] { CHECK(cudaMemcpyAsync(y, x, large, cudaMemcpyDeviceToDevice, stream)); }));
    say("copy_16_bytes_a_thread_bytes_per_s", 2e3 * large / milliseconds([=] { copy4<<<blocks, THREADS, 0, stream>>>((float4 *)y, (float4 *)x, large / 16); }));
    say("copy_4_bytes_a_thread_bytes_per_s", 2e3 * large / milliseconds([=] { copy1<<<blocks, THREADS, 0, stream>>>((float *)y, (float *)x, large / 4); }));
    say("read_bytes_per_s", 1e3 * large / milliseconds([=] { read4<<<blocks, THREADS, 0, stream>>>((float *)y, (float4 *)x, large / 16, 1); }));
    say("read_l2_bytes_per_s", 1e3 * 64 * small / milliseconds([=] { read4<<<blocks, THREADS, 0, stream>>>((float *)y, (float4 *)x, small / 16, 64); }));
    say("host_to_gpu_pinned_bytes_per_s", 1e3 * (256 << 20) / milliseconds([=] { CHECK(cudaMemcpyAsync(x, pinned, 256 << 20, cudaMemcpyHostToDevice, stream)); }));
    say("gpu_to_host_pinned_bytes_per_s", 1e3 * (256 << 20) / milliseconds([=] { CHECK(cudaMemcpyAsync(pinned, x, 256 << 20, cudaMemcpyDeviceToHost, stream)); }));
    say("host_to_gpu_pageable_bytes_per_s", 1e3 * (256 << 20) / milliseconds([=] { CHECK(cudaMemcpyAsync(x, pageable, 256 << 20, cudaMemcpyHostToDevice, stream)); }));
    const auto back = [=](char *there) {
        return 1e3 / 100 * milliseconds([=] {
            for (int i = 0; i < 100; i++) {
                CHECK(cudaMemcpyAsync(there, x, 1024, cudaMemcpyDeviceToHost, stream));
                CHECK(cudaStreamSynchronize(stream));
            }
        });
    };
    say("kilobyte_back_and_wait_pinned_us", back(pinned));
    say("kilobyte_back_and_wait_pageable_us", back(pageable));
}

/* ---- arithmetic */

__global__ void __launch_bounds__(THREADS) fma_rate(float *y, int n, float a)
{
    float s[16];
    for (int i = 0; i < 16; i++)
        s[i] = a * i + threadIdx.x;
    for (int t = 0; t < n; t++)
#pragma unroll
        for (int i = 0; i < 16; i++)
            s[i] = __fmaf_rn(s[i], a, a);
    for (int i = 1; i < 16; i++)
        s[0] += s[i];
    if (s[0] == 1.5f)
        *y = s[0];
}
/* Eight chains of products on tensor cores: 16 x 8 results, 16 bf16 or 8 tf32 numbers deep. */
template <bool bf16> __global__ void __launch_bounds__(THREADS) mma_rate(float *y, int n, unsigned a)
{
    float c[8][4] = {};
    for (int t = 0; t < n; t++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (bf16)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                             : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3]) : "r"(a));
            else
                asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                             : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3]) : "r"(a));
    for (int i = 0; i < 8; i++)
        if (c[i][0] + c[i][1] + c[i][2] + c[i][3] == 1.5f)
            *y = 1;
}
__global__ void clocks(long long *c, int n)
{
    const long long began = clock64();
    unsigned long long a, b;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b));
    while ((long long)(b - a) < n);
    c[0] = clock64() - began, c[1] = (long long)(b - a);
}

static void arithmetic(void)
{
    float *y;
    long long *c, host[2];
    CHECK(cudaMalloc(&y, sizeof *y));
    CHECK(cudaMalloc(&c, sizeof host));
    const int blocks = 8 * processors, n = 4096;
    const double threads = (double)blocks * THREADS, warps = threads / 32;
    say("f32_flop_per_s", 1e3 * threads * n * 16 * 2 / milliseconds([=] { fma_rate<<<blocks, THREADS, 0, stream>>>(y, n, .5f); }));
    say("tf32_mma_sync_flop_per_s", 1e3 * warps * n * 8 * 16 * 8 * 8 * 2 / milliseconds([=] { mma_rate<false><<<blocks, THREADS, 0, stream>>>(y, n, 0x3f812345u); }));
    say("bf16_mma_sync_flop_per_s", 1e3 * warps * n * 8 * 16 * 8 * 16 * 2 / milliseconds([=] { mma_rate<true><<<blocks, THREADS, 0, stream>>>(y, n, 0x3f813f83u); }));
    clocks<<<1, 1, 0, stream>>>(c, 10000000);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host, c, sizeof host, cudaMemcpyDeviceToHost));
    say("clock_hz_after_load", 1e9 * host[0] / host[1]);
}

int main(void)
{
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    say("processors", processors);
    launches();
    barriers();
    arithmetic();
    memory();
    printf("\n}\n");
    return 0;
}
