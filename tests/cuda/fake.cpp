/* fake.cpp -- a stand-in for the CUDA runtime: memory between red zones, poisoned; streams whose
 * work runs only when the program waits for it.
 *
 * Work in a stream runs when the program waits, never before, so a buffer that is changed too early
 * gives a wrong result.  Streams take turns at random (seed: SHIM_ORDER), so a missing event
 * between two streams shows.  Memory begins as NaN, and is NaN while a copy to it is not complete.  A
 * write outside of it ends the program at the next synchronisation.  Launches have the limits of the
 * GPU (limits.h).
 *
 *   FAKE_CUDA=no-driver | stub | no-device | old-driver | memory | pinned | lost   the fault
 *   FAKE_ROOM=BYTES      memory of the GPU
 *   FAKE_LATE=1          work of a stream runs only when the program or another stream waits for it
 *   FAKE_ARCH=80         another GPU than sm_90
 *   FAKE_MULTIPROCESSORS=5   instead of 3
 *   FAKE_SHARED=BYTES    shared memory of a multiprocessor instead of that of the GPU (limits.h)
 *   FAKE_PTXAS=FILE      registers and shared memory of kernels, as ptxas has printed them (resources.h)
 *   FAKE_TOGETHER=2      blocks of a launch whose blocks run together, as with MPS fewer than the multiprocessors say
 *   FAKE_LOG=1           prints launches and allocations to stderr
 *   FAKE_ARENA=FILE      gets the content of the first allocation when the program dies
 *   FAKE_HOSTS=2         number of hosts, among which the ranks of TENON_RANKS are divided equally
 */
#include "fake.h"
#include "fiber.h"
#include "resources.h"
#include "shim.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

enum { ZONE = 256, POISON = 0xff, GUARD = 0xa5 };

struct Memory {
    unsigned char *begin;
    size_t bytes;
};
std::map<void *, Memory> memory;
long launches;

bool wrong(const char *what)
{
    const char *how = getenv("FAKE_CUDA");
    return how && !strcmp(how, what);
}

void check_zones()
{
    for (const auto &m : memory)
        for (size_t i = 0; i < ZONE; i++)
            if (m.second.begin[i] != GUARD || m.second.begin[ZONE + m.second.bytes + i] != GUARD) {
                fprintf(stderr, "fake: something wrote outside of its memory\n");
                exit(3);
            }
}

/* Whether an address is in memory that a program has asked for, of the GPU or pinned. */
bool allocated(const void *at)
{
    auto after = memory.upper_bound((void *)at);
    return after != memory.begin() && (const char *)at < (const char *)std::prev(after)->first + std::prev(after)->second.bytes;
}

/* New memory has no defined content (CUDA's manual, cudaMalloc: "The memory is not cleared"; cudaMallocHost promises none). */
cudaError_t allocate(void **at, size_t bytes)
{
    unsigned char *begin = (unsigned char *)aligned_alloc(ZONE, (bytes + 3 * ZONE - 1) / ZONE * ZONE);
    memset(begin, GUARD, ZONE);
    memset(begin + ZONE, POISON, bytes);
    memset(begin + ZONE + bytes, GUARD, ZONE);
    *at = begin + ZONE;
    memory[*at] = Memory{begin, bytes};
    return cudaSuccess;
}

} // namespace

using Work = std::function<bool()>;

/* Progress of one launch of a graph. */
struct Instance {
    bool begun;
    size_t done; /* number of finished lanes after the first */
    std::map<FakeEvent *, long> reached;
};
using Item = std::function<Work(Instance *)>;

/* The work of a stream that was captured. */
struct FakeLane {
    std::vector<Item> items;
    FakeStream *origin, *plays;
    bool left; /* no stream has waited for its last item */
};
struct FakeGraph {
    std::vector<FakeLane *> lanes; /* the first is that of the stream in which the capture began */
    cudaStreamCaptureMode mode;
    std::thread::id thread; /* that began the capture */
    bool invalid;
};
struct FakeEvent {
    long recorded, reached; /* how often */
    FakeGraph *graph;       /* of the capture in which it was recorded last, or NULL; then lane and number of items before it */
    size_t lane, behind;
};
struct FakeStream {
    std::deque<Work> work;
    FakeGraph *captures; /* graph that gets the work instead, or NULL; and the lane in it */
    size_t lane;
    void add_item(const Item &item)
    {
        captures->lanes[lane]->items.push_back(item);
        captures->lanes[lane]->left = true;
    }
    void add_work(const Work &w) /* each launch of a graph begins with a fresh copy */
    {
        if (captures)
            add_item([=](Instance *) { return w; });
        else
            work.push_back(w);
    }
    void add(std::function<void()> one)
    {
        add_work([=] { one(); return true; });
    }
};

static std::vector<FakeStream *> streams;

/* ---- what a capture forbids */

static std::vector<FakeGraph *> captures; /* under way */
static std::mutex captures_lock;

/* A call that could synchronise, such as an allocation, makes captures of its own thread invalid, and those of other threads in mode
 * Global; in mode Relaxed it is allowed. */
static bool forbidden_now()
{
    const std::lock_guard<std::mutex> lock(captures_lock);
    bool forbidden = false;
    for (FakeGraph *g : captures)
        if (g->mode == cudaStreamCaptureModeGlobal || (g->mode == cudaStreamCaptureModeThreadLocal && g->thread == std::this_thread::get_id()))
            g->invalid = forbidden = true;
    return forbidden;
}

/* Waiting for a captured stream, or asking whether its work is done. */
static bool forbidden_for(FakeStream *s)
{
    if (s->captures)
        s->captures->invalid = true;
    return s->captures != nullptr;
}

void fake_enqueue(cudaStream_t s, const Work &work)
{
    s->add_work(work);
}

static bool late()
{
    return getenv("FAKE_LATE") && *getenv("FAKE_LATE");
}

static bool can_go_on(FakeStream *s)
{
    return !s->work.empty() && s->work.front()();
}

/* Does the next piece of work of a stream that can continue; false: there is none. */
static bool some_work(FakeStream *awaited)
{
    if (late() && can_go_on(awaited)) {
        awaited->work.pop_front();
        return true;
    }
    static unsigned state = 2463534242u + (getenv("SHIM_ORDER") ? 7919u * (unsigned)atoi(getenv("SHIM_ORDER")) : 0);
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    for (size_t i = 0; i < streams.size(); i++) {
        FakeStream *s = streams[(state + i) % streams.size()];
        if (!can_go_on(s))
            continue;
        s->work.pop_front();
        return true;
    }
    return false;
}

/* The first launch of a kernel: loads it. */
static void load_kernel(FakeStream *stream, const char *kernel)
{
    static std::set<std::string> loaded;
    if (!getenv("FAKE_LAZY") || !loaded.insert(kernel).second || stream->captures)
        return;
    const auto pending = [](FakeStream *s) { return !s->work.empty(); };
    while (std::any_of(streams.begin(), streams.end(), pending))
        if (!some_work(stream))
            usleep(50);
}

/* ---- limits of launches */

static int arch()
{
    return getenv("FAKE_ARCH") ? atoi(getenv("FAKE_ARCH")) : 90;
}

static int number(const char *variable, int otherwise)
{
    return getenv(variable) ? atoi(getenv(variable)) : otherwise;
}

/* GPCs of an H100 have 16 or 18 multiprocessors. */
static GpuLimits gpu_limits()
{
    const bool known = arch() == 80 || arch() == 90 || arch() == 100;
    if (!known)
        fprintf(stderr, "fake: limits of sm_%d are unknown\n", arch()), exit(3);
    return GpuLimits{number("FAKE_MULTIPROCESSORS", 3), number("FAKE_SHARED", arch() == 80 ? 164 * 1024 : 228 * 1024), arch() == 80 ? 0 : 16};
}

static int shared_of_block()
{
    return gpu_limits().shared - SHARED_RESERVED;
}

/* What cudaFuncSetAttribute has set. */
static std::map<const void *, KernelLimits> changed;

static KernelLimits limits_of(const void *kernel)
{
    KernelLimits k = kernel_limits(kernel, arch());
    const auto found = changed.find(kernel);
    if (found != changed.end())
        k.dynamic = found->second.dynamic, k.large_clusters = found->second.large_clusters;
    return k;
}

/* Why a GPU never runs such a launch, or cudaSuccess.
 *
 *   a number of blocks or threads that no kernel can have, or more threads than __launch_bounds__ says (measured on an H100 with CUDA 13.0;
 *   cudaError_t names cudaErrorInvalidConfiguration for too many threads or blocks)
 *                                                           cudaErrorInvalidValue
 *   more dynamic shared memory than cudaFuncSetAttribute has allowed; without it, 48 KB with the fixed part (Programming Guide, "Shared Memory":
 *   "require an explicit opt-in")                           cudaErrorInvalidValue
 *   more threads than there are registers for (cudaError_t: "the kernel launch specifies too many threads for the kernel's register count")
 *                                                           cudaErrorLaunchOutOfResources
 */
static cudaError_t refusal(const void *kernel, long blocks, long threads, size_t dynamic)
{
    const KernelLimits k = limits_of(kernel);
    if (blocks < 1 || blocks > 0x7fffffff || threads < 1 || threads > BLOCK_THREADS || threads > k.threads)
        return cudaErrorInvalidValue;
    if (dynamic > (size_t)k.dynamic)
        return cudaErrorInvalidValue;
    return blocks_on_one(gpu_limits(), k, (int)threads, (int)dynamic) ? cudaSuccess : cudaErrorLaunchOutOfResources;
}

cudaError_t shim_enqueue(FakeStream *stream, const void *kernel, const char *name, int blocks, int threads, Task thread, int bytes)
{
    const cudaError_t error = refusal(kernel, blocks, threads, (size_t)bytes);
    if (error != cudaSuccess)
        return error;
    load_kernel(stream, name);
    stream->add([=] {
        if (getenv("FAKE_LOG"))
            fprintf(stderr, "fake: %s, %d blocks\n", name, blocks);
        fiber_run(name, blocks, threads, thread, bytes);
    });
    launches++;
    return cudaSuccess;
}

/* ---- launches whose blocks run at the same time */

/* A cooperative launch has at most as many blocks as run at the same time: cudaOccupancyMaxActiveBlocksPerMultiprocessor times the number of
 * multiprocessors (CUDA's manual, cudaErrorCooperativeLaunchTooLarge). */
static cudaError_t refusal_of_cooperative(const cudaLaunchConfig_t &c, const void *kernel)
{
    const GpuLimits g = gpu_limits();
    const int all = g.multiprocessors * blocks_on_one(g, limits_of(kernel), (int)c.blockDim.x, (int)c.dynamicSmemBytes);
    return (int)c.gridDim.x > std::min(all, number("FAKE_TOGETHER", all)) ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

/* Blocks of a cluster; 0: there is no such cluster.  From sm_90 on, a cluster has at most 8 blocks, or 16 if the kernel allows it
 * (cudaFuncAttributeNonPortableClusterSizeAllowed), and a grid consists of whole clusters (Programming Guide, "Thread Block Clusters"). */
static int cluster_size(const cudaLaunchConfig_t &c, const void *kernel)
{
    const auto &d = c.attrs->val.clusterDim;
    const unsigned size = d.x * d.y * d.z, most = limits_of(kernel).large_clusters ? CLUSTER_MOST : CLUSTER_PORTABLE;
    return gpu_limits().group && size >= 1 && size <= most && c.gridDim.x % size == 0 ? (int)size : 0;
}

/* Clusters that run at the same time (CUDA's manual, cudaOccupancyMaxActiveClusters). */
static cudaError_t count_clusters(int *clusters, const cudaLaunchConfig_t &c, const void *kernel)
{
    const GpuLimits g = gpu_limits();
    const int size = cluster_size(c, kernel);
    *clusters = 0;
    if (size == 0)
        return cudaErrorInvalidClusterSize;
    *clusters = clusters_at_once(g, blocks_on_one(g, limits_of(kernel), (int)c.blockDim.x, (int)c.dynamicSmemBytes), size);
    return cudaSuccess;
}

static cudaError_t refusal_of_cluster(const cudaLaunchConfig_t &c, const void *kernel)
{
    int clusters;
    const cudaError_t error = count_clusters(&clusters, c, kernel);
    if (error == cudaSuccess && clusters > 0 && cluster_size(c, kernel) != (int)c.gridDim.x)
        fprintf(stderr, "fake: a launch of more than one cluster\n"), exit(3); /* fiber.cpp has one barrier for all blocks */
    return error != cudaSuccess ? error : clusters ? cudaSuccess : cudaErrorLaunchOutOfResources;
}

cudaError_t shim_enqueue_together(const cudaLaunchConfig_t &config, const void *kernel, Task thread)
{
    const int blocks = (int)config.gridDim.x, threads = (int)config.blockDim.x, bytes = (int)config.dynamicSmemBytes;
    const bool cooperative = config.numAttrs == 1 && config.attrs->id == cudaLaunchAttributeCooperative,
               cluster = config.numAttrs == 1 && config.attrs->id == cudaLaunchAttributeClusterDimension;
    cudaError_t error = cooperative || cluster ? refusal(kernel, blocks, threads, config.dynamicSmemBytes) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = cluster ? refusal_of_cluster(config, kernel) : refusal_of_cooperative(config, kernel);
    if (error != cudaSuccess)
        return error;
    config.stream->add([=] {
        if (getenv("FAKE_LOG"))
            fprintf(stderr, "fake: %d blocks together, %d bytes on the chip\n", blocks, bytes);
        fiber_run_together("steps", blocks, threads, bytes, thread);
    });
    launches++;
    return cudaSuccess;
}

void shim_work(FakeStream *stream, Task work)
{
    stream->add(work);
    launches++;
}

extern "C" {

int gethostname(char *name, size_t room) noexcept
{
    const char *hosts = getenv("FAKE_HOSTS"), *rank = getenv("TENON_RANK"), *ranks = getenv("TENON_RANKS");
    utsname u = {};
    if (hosts && rank && ranks)
        snprintf(name, room, "host%d", atoi(rank) * atoi(hosts) / atoi(ranks));
    else if (uname(&u) == 0)
        snprintf(name, room, "%s", u.nodename);
    return 0;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    if (wrong("no-driver") || wrong("old-driver"))
        return cudaErrorInsufficientDriver;
    if (wrong("stub"))
        return cudaErrorStubLibrary;
    if (wrong("no-device"))
        return cudaErrorNoDevice;
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = wrong("no-driver") ? 0 : wrong("old-driver") ? 12020 : 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = gpu_limits().multiprocessors;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = arch() / 10;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = arch() % 10;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = gpu_limits().shared;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = shared_of_block();
        return cudaSuccess;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        *value = SHARED_RESERVED;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

/* "The sum of this value and the function attribute sharedSizeBytes cannot exceed the device attribute cudaDevAttrMaxSharedMemoryPerBlockOptin" (CUDA's
 * manual, cudaFuncSetAttribute). */
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    KernelLimits k = limits_of(kernel);
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
        k.large_clusters = value != 0;
    else if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 0 && value <= shared_of_block() - k.fixed)
        k.dynamic = value;
    else
        return cudaErrorInvalidValue;
    changed[kernel] = k;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel)
{
    const KernelLimits k = limits_of(kernel);
    *attributes = cudaFuncAttributes{(size_t)k.fixed, k.threads, k.registers, k.dynamic};
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads, size_t bytes)
{
    *blocks = blocks_on_one(gpu_limits(), limits_of(kernel), threads, (int)bytes);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel, const cudaLaunchConfig_t *config)
{
    return count_clusters(clusters, *config, kernel);
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    *s = new FakeStream{};
    streams.push_back(*s);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    *e = new FakeEvent{};
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    const long number = ++e->recorded;
    e->graph = s->captures;
    if (!s->captures) {
        s->add([=] { e->reached = number; });
        return cudaSuccess;
    }
    s->add_item([=](Instance *i) -> Work { return [=] { i->reached[e] = number; return true; }; });
    e->lane = s->lane;
    e->behind = s->captures->lanes[s->lane]->items.size();
    return cudaSuccess;
}

/* A stream that waits for an event of a capture is captured from then on. */
static void join_capture(cudaStream_t s, FakeGraph *g)
{
    if (s->captures)
        return;
    s->captures = g;
    s->lane = g->lanes.size();
    g->lanes.push_back(new FakeLane{{}, s, nullptr, false});
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    const long number = e->recorded;
    if (!e->graph) {
        if (s->captures)
            return cudaErrorStreamCaptureIsolation; /* a graph cannot wait for work outside of it */
        fake_enqueue(s, [=] { return e->reached >= number; });
        return cudaSuccess;
    }
    join_capture(s, e->graph);
    s->add_item([=](Instance *i) -> Work { return [=] { return i->reached[e] >= number; }; });
    FakeLane *of = e->graph->lanes[e->lane];
    if (s->lane == 0 && e->behind == of->items.size())
        of->left = false;
    return cudaSuccess;
}

/* Each query does a little work, as if the work took time. */
cudaError_t cudaStreamQuery(cudaStream_t s)
{
    if (forbidden_for(s))
        return cudaErrorStreamCaptureUnsupported;
    if (wrong("lost") && launches > 0)
        return cudaErrorLaunchFailure;
    if (!s->work.empty()) {
        some_work(s);
        return cudaErrorNotReady;
    }
    check_zones();
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (forbidden_for(s))
        return cudaErrorStreamCaptureUnsupported;
    if (wrong("lost") && launches > 0)
        return cudaErrorLaunchFailure;
    while (!s->work.empty())
        if (!some_work(s))
            usleep(50);
    check_zones();
    return cudaSuccess;
}

/* The program allocates its arena first. */
static Memory arena;

void _exit(int code)
{
    FILE *f = arena.begin ? fopen(getenv("FAKE_ARENA"), "wb") : nullptr;
    if (arena.begin && (!f || fwrite(arena.begin + ZONE, 1, arena.bytes, f) != arena.bytes || fclose(f) != 0))
        fprintf(stderr, "fake: the arena could not be written\n");
    for (;;)
        syscall(SYS_exit_group, code);
}

static size_t taken;

static size_t room()
{
    return getenv("FAKE_ROOM") ? (size_t)atol(getenv("FAKE_ROOM")) : (size_t)1 << 36;
}

cudaError_t cudaMalloc(void **there, size_t bytes)
{
    if (forbidden_now())
        return cudaErrorStreamCaptureUnsupported;
    if (wrong("memory") || bytes > room() - taken)
        return cudaErrorMemoryAllocation;
    taken += bytes;
    if (getenv("FAKE_LOG"))
        fprintf(stderr, "fake: %zu bytes of memory\n", bytes);
    allocate(there, bytes);
    if (!arena.begin && getenv("FAKE_ARENA"))
        arena = memory[*there];
    return cudaSuccess;
}

/* The first allocation is the 4 MB buffer of copies. */
cudaError_t cudaMallocHost(void **here, size_t bytes)
{
    static int asked;
    if (forbidden_now())
        return cudaErrorStreamCaptureUnsupported;
    if (wrong("pinned") && asked++ > 0)
        return cudaErrorMemoryAllocation;
    return allocate(here, bytes);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all)
{
    *free_bytes = room() - taken, *all = room();
    return cudaSuccess;
}

/* Adds a write of `bytes` bytes, which takes a while: meanwhile the memory is undefined, for other streams and for the host (Programming Guide,
 * "Asynchronous Concurrent Execution": data of an asynchronous copy may be used after a synchronisation). */
static void add_write(cudaStream_t s, void *to, size_t bytes, const std::function<void()> &write)
{
    s->add_work([=, started = false]() mutable {
        if (started)
            write();
        else
            memset(to, POISON, bytes);
        return std::exchange(started, true);
    });
}

/* A copy to memory of the host that is not pinned returns when it is complete, with all work before it (CUDA's manual,
 * "API synchronization behavior", Asynchronous). */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s)
{
    add_write(s, to, bytes, [=] { memcpy(to, from, bytes); });
    return kind == cudaMemcpyDeviceToHost && !s->captures && !allocated(to) ? cudaStreamSynchronize(s) : cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *there, int value, size_t bytes, cudaStream_t s)
{
    add_write(s, there, bytes, [=] { memset(there, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    s->captures = new FakeGraph{{new FakeLane{{}, s, nullptr, false}}, mode, std::this_thread::get_id(), false};
    s->lane = 0;
    const std::lock_guard<std::mutex> lock(captures_lock);
    captures.push_back(s->captures);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status)
{
    *status = !s->captures ? cudaStreamCaptureStatusNone : s->captures->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    FakeGraph *g = *graph = s->captures;
    bool left = false;
    if (g->mode != cudaStreamCaptureModeRelaxed && g->thread != std::this_thread::get_id())
        return cudaErrorStreamCaptureWrongThread;
    {
        const std::lock_guard<std::mutex> lock(captures_lock);
        captures.erase(std::find(captures.begin(), captures.end(), g));
    }
    for (FakeLane *lane : g->lanes) {
        lane->origin->captures = nullptr;
        left |= lane != g->lanes[0] && lane->left;
    }
    return g->invalid ? cudaErrorStreamCaptureInvalidated : left ? cudaErrorStreamCaptureUnjoined : cudaSuccess;
}

/* Each lane after the first has its own stream. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new FakeGraph;
    for (const FakeLane *lane : graph->lanes) {
        (*exec)->lanes.push_back(new FakeLane(*lane));
        if (lane != graph->lanes[0])
            streams.push_back((*exec)->lanes.back()->plays = new FakeStream{});
    }
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    for (FakeLane *lane : graph->lanes)
        delete lane;
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    Instance *i = new Instance{};
    size_t all = 0, others = exec->lanes.size() - 1;
    s->add([=] { i->begun = true; });
    for (const FakeLane *lane : exec->lanes) {
        FakeStream *of = lane->plays ? lane->plays : s;
        if (of != s)
            of->add_work([=] { return i->begun; });
        for (const Item &item : lane->items)
            of->add_work(item(i));
        if (of != s)
            of->add([=] { i->done++; });
        all += lane->items.size();
    }
    s->add_work([=] {
        if (i->done < others)
            return false;
        delete i;
        return true;
    });
    if (getenv("FAKE_LOG"))
        fprintf(stderr, "fake: a graph of %zu\n", all);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorLaunchFailure ? "unspecified launch failure" : "an error of the fake runtime";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorLaunchFailure ? "cudaErrorLaunchFailure" : error == cudaErrorLaunchOutOfResources ? "cudaErrorLaunchOutOfResources" : "cudaErrorFake";
}

} // extern "C"
