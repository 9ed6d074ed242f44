/* gpu.c -- the GPU of a program: finds it or explains why there is none; its memory, and copies in
 * one stream.
 *
 * CUDA's messages can mislead ("driver version is insufficient" if there is no driver), so each
 * reason for not having a GPU has its own message.  Nothing here runs before a command needs the
 * GPU: --help and info work on any machine.
 *
 * Compiled with each program, like comm/mpi.c: the runtime library has no CUDA.
 */
#include "cuda/gpu.h"
#include "base/error.h"
#include "device/device.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudaStream_t rt_cuda_stream;

enum { STAGING = 4 << 20 }; /* bytes of pinned memory for copies to and from the GPU */
static char *staging;
static char description[320];

void rt_cuda_check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        rt_die("the GPU failed at %s: %s (%s)", what, cudaGetErrorString(error),
               cudaGetErrorName(error));
}

void rt_cuda_fewer(int intended, int blocks)
{
    rt_note("%d blocks cannot run at the same time on this GPU: %d do, with the same results",
            intended, blocks);
}

/* ---- which GPU */

/* Whether libcuda.so.1 exists; asked after CUDA has reported an error. */
static bool driver_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (library)
        dlclose(library);
    return library != NULL;
}

static void __attribute__((noreturn)) no_gpu(cudaError_t error)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    switch (error) {
    case cudaErrorStubLibrary:
        rt_die("the libcuda.so.1 that was found is the toolkit's stub, not a driver: take its "
               "directory out of LD_LIBRARY_PATH, and run this on a machine with an NVIDIA GPU");
    case cudaErrorNoDevice:
        rt_die("the NVIDIA driver is there, but no GPU: none in this machine, or "
               "CUDA_VISIBLE_DEVICES hides it");
    case cudaErrorInsufficientDriver:
        if (driver == 0 && !driver_library())
            rt_die("no NVIDIA driver on this machine (libcuda.so.1 was not found): this program "
                   "needs an NVIDIA GPU; build it without --target cuda to run it here");
        rt_die("the NVIDIA driver is for CUDA %d.%d, and this program needs %d.%d: install a newer "
               "driver; or, on a data-centre GPU, NVIDIA's package cuda-compat-%d-%d, and put its "
               "directory (/usr/local/cuda-%d.%d/compat) first in LD_LIBRARY_PATH",
               driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
               runtime / 1000, runtime % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    default:
        rt_die("no GPU can be used: %s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
    }
}

static int attribute(enum cudaDeviceAttr a, int device)
{
    int value = 0;
    rt_cuda_check(cudaDeviceGetAttribute(&value, a, device), "asking what the GPU can do");
    return value;
}

/* A GPU that is newer than the program can allow less shared memory: 99 KB for a block on sm_120,
 * 227 KB on sm_90. */
void rt_cuda_shared(cudaError_t error, const char *what, int bytes)
{
    int device = 0;
    if (error == cudaErrorInvalidValue) {
        rt_cuda_check(cudaGetDevice(&device), what);
        const int most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        if (bytes > most)
            rt_die("%s keeps weights of a loop over time in %d bytes of shared memory for a block, "
                   "and this GPU allows %d: build the program with --arch sm_80, whose loops need "
                   "at most %d",
                   what, bytes, most, RT_SHARED_SM_80);
    }
    rt_cuda_check(error, what);
}

/* Chooses the GPU of this process.  A launcher can make only one GPU visible to each process. */
static int choose_gpu(int count, int local)
{
    if (count > 1 && local >= count)
        rt_die("this is process %d of this machine, and it has %d GPUs: start one process a GPU",
               local + 1, count);
    return count > 1 ? local : 0;
}

/* "sm_90" runs on 9.0 and, through its PTX, on newer GPUs. */
static void open_gpu(const RtProgram *p, int local)
{
    int count = 0, runtime = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        no_gpu(error == cudaSuccess ? cudaErrorNoDevice : error);
    const int device = choose_gpu(count, local),
              major = attribute(cudaDevAttrComputeCapabilityMajor, device),
              minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
    const int needs = atoi(p->cpu + strlen("sm_"));
    if (major * 10 + minor < needs)
        rt_die("this program is for GPUs from sm_%d on, and the one here is sm_%d%d: build it with "
               "--arch sm_%d%d",
               needs, major, minor, major, minor);
    rt_cuda_check(cudaSetDevice(device), "taking the GPU");
    rt_cuda_check(cudaStreamCreateWithFlags(&rt_cuda_stream, cudaStreamNonBlocking),
                  "making a stream");
    rt_cuda_check(cudaMallocHost((void **)&staging, STAGING), "asking for pinned memory");
    cudaRuntimeGetVersion(&runtime);
    snprintf(description, sizeof description, "sm_%d%d, %d multiprocessors, CUDA %d.%d", major,
             minor, attribute(cudaDevAttrMultiProcessorCount, device), runtime / 1000,
             runtime % 1000 / 10);
}

static const char *gpu_describe(void)
{
    return description;
}

/* ---- memory */

static void (*waiter)(bool (*done)(void)); /* NULL: there are no other ranks */

static void set_waiter(void (*wait)(bool (*done)(void)))
{
    waiter = wait;
}

void rt_cuda_await(bool (*done)(void))
{
    if (waiter)
        waiter(done);
    while (!waiter && !done())
        ;
}

static bool idle(void)
{
    const cudaError_t error = cudaStreamQuery(rt_cuda_stream);
    if (error != cudaErrorNotReady)
        rt_cuda_check(error, "the step");
    return error == cudaSuccess;
}

static void wait(void)
{
    if (waiter)
        waiter(idle);
    else
        rt_cuda_check(cudaStreamSynchronize(rt_cuda_stream), "the step");
}

static void *memory(int64_t bytes, const char *what)
{
    void *there = NULL;
    const cudaError_t error = cudaMalloc(&there, (size_t)bytes);
    if (error == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, all = 0;
        cudaMemGetInfo(&free_bytes, &all);
        rt_die("no room on the GPU for %s: %.1f MB are needed, %.1f of %.1f MB are free; a smaller "
               "--batch needs less",
               what, (double)bytes / 1e6, (double)free_bytes / 1e6, (double)all / 1e6);
    }
    rt_cuda_check(error, what);
    return there;
}

/* Copies through pinned memory.  When the stream is empty, the last copy no longer uses this
 * memory. */
static void gpu_put(void *there, const void *here, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += STAGING) {
        const int64_t n = bytes - at < STAGING ? bytes - at : STAGING;
        wait();
        memcpy(staging, (const char *)here + at, (size_t)n);
        rt_cuda_check(cudaMemcpyAsync((char *)there + at, staging, (size_t)n,
                                      cudaMemcpyHostToDevice, rt_cuda_stream),
                      "copying to the GPU");
    }
}

/* Copies through pinned memory, too: a copy to other memory would return only when all work before
 * it is complete, and meanwhile nobody would see that another rank is gone. */
static void get(void *here, const void *there, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += STAGING) {
        const int64_t n = bytes - at < STAGING ? bytes - at : STAGING;
        rt_cuda_check(cudaMemcpyAsync(staging, (const char *)there + at, (size_t)n,
                                      cudaMemcpyDeviceToHost, rt_cuda_stream),
                      "copying from the GPU");
        wait();
        memcpy((char *)here + at, staging, (size_t)n);
    }
}

/* ---- samples that stay in the host's memory (feed.h): copies in a stream of their own */

static cudaStream_t sending;
static cudaEvent_t sent;

/* A 64th of the memory is left to CUDA, for graphs and the stacks of kernels. */
static int64_t gpu_room(void)
{
    size_t free_bytes = 0, all = 0;
    rt_cuda_check(cudaMemGetInfo(&free_bytes, &all), "asking for free memory");
    return (int64_t)free_bytes - (int64_t)(all / 64);
}

static void *pinned(int64_t bytes, const char *what)
{
    void *here = NULL;
    const cudaError_t error = cudaMallocHost(&here, (size_t)bytes);
    if (error == cudaErrorMemoryAllocation)
        rt_die("no pinned memory for %s: %.1f MB that the machine must not page out are needed; a "
               "smaller --batch or --launch-steps needs less",
               what, (double)bytes / 1e6);
    rt_cuda_check(error, what);
    if (!sending) {
        rt_cuda_check(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking),
                      "making a stream");
        rt_cuda_check(cudaEventCreateWithFlags(&sent, cudaEventDisableTiming), "making an event");
    }
    return here;
}

static void gpu_send(void *there, const void *here, int64_t bytes)
{
    rt_cuda_check(cudaMemcpyAsync(there, here, (size_t)bytes, cudaMemcpyHostToDevice, sending),
                  "copying samples to the GPU");
}

static void arrived(void)
{
    rt_cuda_check(cudaEventRecord(sent, sending), "copying samples to the GPU");
    rt_cuda_check(cudaStreamWaitEvent(rt_cuda_stream, sent, 0), "copying samples to the GPU");
}

/* ---- a step as one launch */

static void record(void)
{
    rt_cuda_check(cudaStreamBeginCapture(rt_cuda_stream, cudaStreamCaptureModeThreadLocal),
                  "recording a step");
}

static void *recorded(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t kept;
    rt_cuda_check(cudaStreamEndCapture(rt_cuda_stream, &graph), "recording a step");
    rt_cuda_check(cudaGraphInstantiate(&kept, graph, 0), "making a graph of a step");
    rt_cuda_check(cudaGraphDestroy(graph), "making a graph of a step");
    return kept;
}

static void play(void *recording)
{
    rt_cuda_check(cudaGraphLaunch(recording, rt_cuda_stream), "launching a step");
}

void rt_cuda_clear(void *there, int64_t bytes)
{
    rt_cuda_check(cudaMemsetAsync(there, 0, (size_t)bytes, rt_cuda_stream),
                  "clearing memory of the GPU");
}

bool rt_cuda_finite(const void *there, int64_t count)
{
    enum { AT_ONCE = 1024 };
    real piece[AT_ONCE];
    bool finite = true;
    for (int64_t at = 0; finite && at < count; at += AT_ONCE) {
        const int64_t n = count - at < AT_ONCE ? count - at : AT_ONCE;
        get(piece, (const real *)there + at, n * (int64_t)sizeof(real));
        for (int64_t i = 0; i < n; i++)
            finite &= isfinite(piece[i]) != 0;
    }
    return finite;
}

/* Whether numbers of two bytes are finite: the exponent of the others has all bits set. */
static bool finite_halves(const void *there, int64_t count, uint16_t exponent)
{
    enum { AT_ONCE = 2048 };
    uint16_t piece[AT_ONCE];
    bool finite = true;
    for (int64_t at = 0; finite && at < count; at += AT_ONCE) {
        const int64_t n = count - at < AT_ONCE ? count - at : AT_ONCE;
        get(piece, (const uint16_t *)there + at, n * (int64_t)sizeof *piece);
        for (int64_t i = 0; i < n; i++)
            finite &= (piece[i] & exponent) != exponent;
    }
    return finite;
}

bool rt_cuda_finite_bf16(const void *there, int64_t count)
{
    return finite_halves(there, count, 0x7f80);
}

bool rt_cuda_finite_f16(const void *there, int64_t count)
{
    return finite_halves(there, count, 0x7c00);
}

const RtDevice rt_cuda = {.name = "cuda",
                          .open = open_gpu,
                          .waits = set_waiter,
                          .memory = memory,
                          .put = gpu_put,
                          .get = get,
                          .begin = rt_cuda_begin,
                          .room = gpu_room,
                          .pinned = pinned,
                          .send = gpu_send,
                          .arrived = arrived,
                          .record = record,
                          .recorded = recorded,
                          .play = play,
                          .describe = gpu_describe};
