/* rules.cpp -- breaks rules of CUDA: see rules.h and fake.cpp.
 *
 *   rules FILE      FILE: scratch
 *
 * Error numbers are those of CUDA's runtime API.  With CUDA_OCCUPANCY, limits.h is compared with the toolkit's cuda_occupancy.h.
 */
#include "shim.h"
#include "../../runtime/constants.h"
#include "limits.h"
#include "rules.h"
#ifdef CUDA_OCCUPANCY
#include <cuda_occupancy.h>
#endif
#include <cstdlib>
#include <thread>

static void expect(const char *what, cudaError_t got, cudaError_t want)
{
    if (got != want)
        printf("%s: error %d, not %d\n", what, (int)got, (int)want), unnoticed++;
}

template <class F> static cudaError_t in_thread(F f)
{
    cudaError_t error;
    std::thread([&] { error = f(); }).join();
    return error;
}

static cudaError_t allocate()
{
    void *at;
    return cudaMalloc(&at, 1);
}

/* The error of f in a capture of `s`, and then that of its end. */
template <class F> static void capture(const char *what, cudaStream_t s, cudaStreamCaptureMode mode, F f, cudaError_t then, cudaError_t end)
{
    cudaGraph_t graph;
    expect(what, cudaStreamBeginCapture(s, mode), cudaSuccess);
    expect(what, f(), then);
    expect(what, cudaStreamEndCapture(s, &graph), end);
}

static void captures(cudaStream_t s)
{
    const cudaError_t no = cudaErrorStreamCaptureUnsupported, invalid = cudaErrorStreamCaptureInvalidated;
    void *pinned;
    cudaGraph_t graph;
    capture("an allocation", s, cudaStreamCaptureModeThreadLocal, allocate, no, invalid);
    capture("pinned memory", s, cudaStreamCaptureModeThreadLocal, [&] { return cudaMallocHost(&pinned, 1); }, no, invalid);
    capture("an allocation, mode Relaxed", s, cudaStreamCaptureModeRelaxed, allocate, cudaSuccess, cudaSuccess);
    capture("in another thread", s, cudaStreamCaptureModeThreadLocal, [] { return in_thread(allocate); }, cudaSuccess, cudaSuccess);
    capture("in another thread, mode Global", s, cudaStreamCaptureModeGlobal, [] { return in_thread(allocate); }, no, invalid);
    capture("waiting for a captured stream", s, cudaStreamCaptureModeRelaxed, [=] { return cudaStreamSynchronize(s); }, no, invalid);
    capture("asking a captured stream", s, cudaStreamCaptureModeRelaxed, [=] { return cudaStreamQuery(s); }, no, invalid);
    expect("a capture", cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    expect("the end in another thread", in_thread([&] { return cudaStreamEndCapture(s, &graph); }), cudaErrorStreamCaptureWrongThread);
    expect("the end", cudaStreamEndCapture(s, &graph), cudaSuccess);
}

/* A stream that joined a capture must be joined again, and waits for nothing outside of it. */
static void two_streams(cudaStream_t s, cudaStream_t other)
{
    cudaEvent_t inside, outside;
    cudaGraph_t graph;
    cudaEventCreateWithFlags(&inside, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&outside, cudaEventDisableTiming);
    cudaEventRecord(outside, other);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    expect("an event outside", cudaStreamWaitEvent(s, outside, 0), cudaErrorStreamCaptureIsolation);
    cudaEventRecord(inside, s);
    cudaStreamWaitEvent(other, inside, 0);
    cudaMemsetAsync(&graph, 0, 0, other);
    expect("a stream that is not joined", cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureUnjoined);
}

/* ---- limits of launches: three multiprocessors of sm_90, unless a rule says otherwise */

static void __launch_bounds__(256, 2) bounded(int) /* 128 registers: two blocks on a multiprocessor */
{
}
static void __launch_bounds__(1024) large(int) /* 64 registers */
{
}
static void unbounded(int) /* 255 registers */
{
}

typedef void Kernel(int);
static const int most = 227 * 1024 - RT_SHARED; /* bytes of dynamic shared memory */

static cudaError_t launch(cudaStream_t s, Kernel *kernel, int blocks, int threads)
{
    return shim_enqueue(s, (const void *)kernel, "a kernel", blocks, threads, [] {});
}

static cudaError_t together(cudaStream_t s, Kernel *kernel, int blocks, int threads, int bytes)
{
    cudaLaunchAttribute attribute = {cudaLaunchAttributeCooperative, {{0, 0, 0}, 1}};
    const cudaLaunchConfig_t config = {dim3((unsigned)blocks), dim3((unsigned)threads), (size_t)bytes, s, &attribute, 1};
    return cudaLaunchKernelEx(&config, kernel, 0);
}

/* clusters: number of clusters that run at the same time */
static cudaError_t in_clusters(cudaStream_t s, Kernel *kernel, int blocks, int size, int *clusters)
{
    cudaLaunchAttribute attribute = {cudaLaunchAttributeClusterDimension, {{(unsigned)size, 1, 1}, 0}};
    const cudaLaunchConfig_t config = {dim3((unsigned)blocks), dim3(256), 0, s, &attribute, 1};
    const cudaError_t asked = cudaOccupancyMaxActiveClusters(clusters, (const void *)kernel, &config), error = cudaLaunchKernelEx(&config, kernel, 0);
    hold("a launch of clusters without room for one", error != cudaSuccess || (asked == cudaSuccess && *clusters > 0));
    return error;
}

static int on_one(Kernel *kernel, int threads, int bytes)
{
    int blocks = -1;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)kernel, threads, (size_t)bytes);
    return blocks;
}

static void threads_of_blocks(cudaStream_t s)
{
    cudaFuncAttributes of;
    expect("no blocks", launch(s, bounded, 0, 256), cudaErrorInvalidValue);
    expect("no threads", launch(s, bounded, 1, 0), cudaErrorInvalidValue);
    expect("more than 1024 threads", launch(s, large, 1, 1025), cudaErrorInvalidValue);
    expect("1024 threads", launch(s, large, 1, 1024), cudaSuccess);
    expect("more threads than the launch bounds", launch(s, bounded, 1, 257), cudaErrorInvalidValue);
    expect("the launch bounds", launch(s, bounded, 1, 256), cudaSuccess);
    expect("more threads than registers", launch(s, unbounded, 1, 257), cudaErrorLaunchOutOfResources);
    expect("as many threads as registers", launch(s, unbounded, 1, 256), cudaSuccess);
    cudaFuncGetAttributes(&of, (const void *)bounded);
    hold("registers within launch bounds", of.numRegs == 128 && of.maxThreadsPerBlock == 256 && of.sharedSizeBytes == RT_SHARED);
    cudaFuncGetAttributes(&of, (const void *)large);
    hold("registers within launch bounds of 1024 threads", of.numRegs == 64 && of.maxThreadsPerBlock == 1024);
    cudaFuncGetAttributes(&of, (const void *)unbounded);
    hold("registers without launch bounds", of.numRegs == 255);
}

static cudaError_t allow(Kernel *kernel, int bytes)
{
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

static void shared_memory(cudaStream_t s)
{
    expect("48 KB", together(s, bounded, 3, 256, 48 * 1024 - RT_SHARED), cudaSuccess);
    expect("more than 48 KB that nothing has allowed", together(s, bounded, 3, 256, 48 * 1024 - RT_SHARED + 1), cudaErrorInvalidValue);
    hold("occupancy of more than 48 KB that nothing has allowed", on_one(bounded, 256, 48 * 1024 - RT_SHARED + 1) == 0);
    expect("more shared memory than a block can have", allow(bounded, most + 1), cudaErrorInvalidValue);
    expect("all shared memory that a block can have", allow(bounded, most), cudaSuccess);
    expect("all shared memory", together(s, bounded, 3, 256, most), cudaSuccess);
    expect("one block more with all shared memory", together(s, bounded, 4, 256, most), cudaErrorCooperativeLaunchTooLarge);
    hold("blocks with a half of the shared memory", on_one(bounded, 256, 113 * 1024 - RT_SHARED) == 2);
    hold("blocks with a byte more than a half", on_one(bounded, 256, 113 * 1024 - RT_SHARED + 1) == 1);
    expect("a lower limit", allow(bounded, 100), cudaSuccess);
    expect("more than the lower limit", together(s, bounded, 3, 256, 101), cudaErrorInvalidValue);
    hold("occupancy of more than the lower limit", on_one(bounded, 256, 101) == 2);
    setenv("FAKE_ARCH", "80", 1);
    expect("more shared memory than a block of sm_80 can have", allow(bounded, 163 * 1024 - RT_SHARED + 1), cudaErrorInvalidValue);
    expect("all shared memory of sm_80", allow(bounded, 163 * 1024 - RT_SHARED), cudaSuccess);
    setenv("FAKE_ARCH", "100", 1);
    expect("all shared memory of sm_100", allow(bounded, most), cudaSuccess);
    unsetenv("FAKE_ARCH");
    allow(bounded, 0);
}

static void blocks_together(cudaStream_t s)
{
    expect("two blocks on each multiprocessor", together(s, bounded, 6, 256, 0), cudaSuccess);
    expect("a block more", together(s, bounded, 7, 256, 0), cudaErrorCooperativeLaunchTooLarge);
    hold("four blocks of half as many threads", on_one(bounded, 128, 0) == 4);
    setenv("FAKE_TOGETHER", "5", 1);
    expect("a part of a GPU", together(s, bounded, 6, 256, 0), cudaErrorCooperativeLaunchTooLarge);
    unsetenv("FAKE_TOGETHER");
}

static void clusters(cudaStream_t s)
{
    int n;
    const cudaError_t size = cudaErrorInvalidClusterSize;
    expect("six blocks", in_clusters(s, bounded, 6, 6, &n), cudaSuccess);
    expect("a cluster that does not fit", in_clusters(s, bounded, 8, 8, &n), cudaErrorLaunchOutOfResources);
    hold("clusters that do not fit", n == 0);
    expect("a part of a cluster", in_clusters(s, bounded, 3, 2, &n), size);
    setenv("FAKE_MULTIPROCESSORS", "8", 1);
    expect("16 blocks that the kernel does not allow", in_clusters(s, bounded, 16, 16, &n), size);
    cudaFuncSetAttribute((const void *)bounded, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    expect("16 blocks", in_clusters(s, bounded, 16, 16, &n), cudaSuccess);
    expect("17 blocks", in_clusters(s, bounded, 17, 17, &n), size);
    setenv("FAKE_MULTIPROCESSORS", "24", 1);
    in_clusters(s, bounded, 16, 16, &n);
    hold("clusters inside of 16 and of 8 multiprocessors", n == 3);
    setenv("FAKE_ARCH", "80", 1);
    expect("a cluster on sm_80", in_clusters(s, bounded, 2, 2, &n), size);
    unsetenv("FAKE_ARCH");
    unsetenv("FAKE_MULTIPROCESSORS");
}

/* Numbers that ptxas has printed replace those of the launch bounds. */
static void printed_by_ptxas(cudaStream_t s, const char *file)
{
    cudaFuncAttributes of;
    FILE *f = fopen(file, "w");
    fprintf(f, "ptxas info    : Compiling entry function '_ZN3one5largeEi' for 'sm_90a'\n"
               "ptxas info    : Function properties for _ZN3one5largeEi\n"
               "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
               "ptxas info    : Used 72 registers, used 1 barriers, 1000 bytes smem, 400 bytes cmem[0]\n"
               "ptxas info    : Compiling entry function '_ZN3one15large_but_otherEi' for 'sm_90a'\n"
               "ptxas info    : Used 8 registers\n"
               "ptxas info    : Compiling entry function '_ZN3one7boundedEi' for 'sm_90a'\n"
               "ptxas info    : Used 16 registers\n"
               "ptxas info    : Compiling entry function '_ZN3one5largeEi' for 'sm_80'\n"
               "ptxas info    : Used 255 registers, used 1 barriers\n");
    fclose(f);
    setenv("FAKE_PTXAS", file, 1);
    cudaFuncGetAttributes(&of, (const void *)large);
    hold("registers and shared memory by ptxas", of.numRegs == 72 && of.sharedSizeBytes == 1000);
    hold("no shared memory by ptxas", on_one(bounded, 32, 0) == 32 && on_one(bounded, 256, 0) == 8);
    expect("896 threads of 72 registers", launch(s, large, 1, 896), cudaSuccess);
    expect("928 threads of 72 registers", launch(s, large, 1, 928), cudaErrorLaunchOutOfResources);
    unsetenv("FAKE_PTXAS");
}

#ifdef CUDA_OCCUPANCY
/* Blocks on a multiprocessor by NVIDIA's own calculator; -1: it refuses. */
static int calculated(int sm, const GpuLimits &g, const KernelLimits &k, int threads, int dynamic)
{
    cudaOccDeviceProp p;
    cudaOccFuncAttributes of;
    const cudaOccDeviceState state;
    cudaOccResult result = {};
    p.computeMajor = sm / 10, p.computeMinor = sm % 10;
    p.maxThreadsPerBlock = 1024, p.maxThreadsPerMultiprocessor = 2048, p.warpSize = 32;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536, p.numSms = 1;
    p.sharedMemPerMultiprocessor = (size_t)g.shared, p.sharedMemPerBlock = 48 * 1024;
    p.sharedMemPerBlockOptin = (size_t)g.shared - 1024, p.reservedSharedMemPerBlock = 1024;
    of.maxThreadsPerBlock = 1024, of.numRegs = k.registers, of.numBlockBarriers = 1;
    of.sharedSizeBytes = (size_t)k.fixed, of.maxDynamicSharedSizeBytes = (size_t)k.dynamic, of.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &p, &of, &state, threads, (size_t)dynamic);
    return error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1;
}

static void compare(int sm, int registers, int fixed, int dynamic)
{
    const GpuLimits g = {1, (sm == 80 ? 164 : 228) * 1024, 0};
    const KernelLimits k = {registers, 1024, fixed, std::min(150000, g.shared - SHARED_RESERVED - fixed), false};
    for (int threads = 1; threads <= 1024; threads++) {
        const int ours = blocks_on_one(g, k, threads, dynamic), theirs = calculated(sm, g, k, threads, dynamic);
        if (ours != theirs)
            printf("sm_%d, %d registers, %d + %d bytes, %d threads: %d blocks, not %d\n", sm, registers, fixed, dynamic, threads, ours, theirs), unnoticed++;
    }
}

static void as_calculated()
{
    for (const int sm : {80, 90, 100})
        for (const int registers : {1, 24, 32, 33, 64, 65, 96, 128, 168, 255})
            for (const int fixed : {0, 1000, (int)RT_SHARED})
                for (const int dynamic : {0, 1, 6143, 20000, 32556, 45666, 72704, 72705, 150000, 150001})
                    compare(sm, registers, fixed, dynamic);
}
#endif

/* New memory has no defined content. */
static void new_memory_is_undefined()
{
    void *pinned = nullptr;
    hold("memory of the GPU", undefined(new_memory<char>(1000), 1000));
    cudaMallocHost(&pinned, 1000);
    hold("pinned memory", undefined(pinned, 1000));
}

/* The destination of a copy, and cleared memory, before the write is complete. */
static void writes_take_a_while(cudaStream_t s)
{
    int *there = new_memory<int>(1), *pinned = nullptr;
    cudaMallocHost((void **)&pinned, sizeof *pinned);
    *there = *pinned = 5;
    cudaMemcpyAsync(pinned, there, sizeof *there, cudaMemcpyDeviceToHost, s);
    cudaStreamQuery(s);
    hold("a copy that is not complete", undefined(pinned, sizeof *pinned));
    cudaStreamSynchronize(s);
    hold("a copy", *pinned == 5);
    cudaMemsetAsync(there, 0, sizeof *there, s);
    cudaStreamQuery(s);
    hold("memory that is not cleared yet", undefined(there, sizeof *there));
    cudaStreamSynchronize(s);
    hold("cleared memory", *there == 0);
}

/* The first launch of a kernel returns when all work is done; a copy to memory that is not pinned, too. */
static void waits(cudaStream_t s)
{
    static int device = 0;
    int here = 0;
    setenv("FAKE_LAZY", "1", 1);
    shim_enqueue(s, nullptr, "first", 1, 32, [] { device = 1; });
    shim_enqueue(s, nullptr, "second", 1, 32, [] {});
    hold("a kernel that is loaded while another one runs", device == 1);
    shim_enqueue(s, nullptr, "first", 1, 32, [] { device = 2; });
    hold("a kernel that is loaded does not wait", device == 1);
    cudaMemcpyAsync(&here, &device, sizeof here, cudaMemcpyDeviceToHost, s);
    hold("a copy to memory that is not pinned", here == 2);
}

int main(int argc, char **argv)
{
    cudaStream_t s, other;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    captures(s);
    threads_of_blocks(s);
    shared_memory(s);
    blocks_together(s);
    clusters(s);
    printed_by_ptxas(s, argv[argc - 1]);
#ifdef CUDA_OCCUPANCY
    as_calculated();
#endif
    waits(s);
    new_memory_is_undefined();
    cudaStreamSynchronize(s);
    writes_take_a_while(s);
    two_streams(s, other);
    return unnoticed != 0;
}
