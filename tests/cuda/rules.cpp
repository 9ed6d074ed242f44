/* rules.cpp -- breaks rules of CUDA: see rules.h and fake.cpp.
 *
 * Error numbers are those of CUDA's runtime API.
 */
#include "shim.h"
#include "rules.h"
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

static void together(cudaStream_t s)
{
    cudaLaunchAttribute attribute = {cudaLaunchAttributeCooperative, {{0, 0, 0}, 1}};
    cudaLaunchConfig_t config = {4, 32, 0, s, &attribute, 1};
    void (*const nothing)(int) = [](int) {};
    expect("more blocks than run at the same time", cudaLaunchKernelEx(&config, nothing, 0), cudaErrorCooperativeLaunchTooLarge);
    attribute.id = cudaLaunchAttributeClusterDimension;
    expect("a cluster that does not fit", cudaLaunchKernelEx(&config, nothing, 0), cudaErrorInvalidValue);
    config.gridDim = 3, config.dynamicSmemBytes = 1000001;
    expect("too much shared memory", cudaLaunchKernelEx(&config, nothing, 0), cudaErrorInvalidValue);
    expect("too much shared memory as an attribute", cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 1000001), cudaErrorInvalidValue);
}

/* New memory has no defined content. */
static void new_memory_is_undefined()
{
    void *pinned = nullptr;
    hold("memory of the GPU", undefined(new_memory<char>(1000), 1000));
    cudaMallocHost(&pinned, 1000);
    hold("pinned memory", undefined(pinned, 1000));
}

/* The first launch of a kernel returns when all work is done; a copy to memory that is not pinned, too. */
static void waits(cudaStream_t s)
{
    static int device = 0;
    int here = 0;
    setenv("FAKE_LAZY", "1", 1);
    shim_enqueue(s, "first", 1, 32, [] { device = 1; });
    shim_enqueue(s, "second", 1, 32, [] {});
    hold("a kernel that is loaded while another one runs", device == 1);
    shim_enqueue(s, "first", 1, 32, [] { device = 2; });
    hold("a kernel that is loaded does not wait", device == 1);
    cudaMemcpyAsync(&here, &device, sizeof here, cudaMemcpyDeviceToHost, s);
    hold("a copy to memory that is not pinned", here == 2);
}

int main()
{
    cudaStream_t s, other;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    captures(s);
    together(s);
    waits(s);
    new_memory_is_undefined();
    two_streams(s, other);
    return unnoticed != 0;
}
