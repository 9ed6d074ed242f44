/* nccl.c -- sums over the GPUs of a run, and rows that all GPUs need, with NCCL's messages and one
 * kernel of our own.
 *
 * NCCL's all-reduce adds in an order that depends on the ranks, the size and the machine.  So NCCL
 * only transfers: each rank adds one piece of the vector, which the others send it, in the tree of
 * runtime/comm/tree.h, and sends the sum back.  These are two all-to-all exchanges, 2 (R - 1) / R
 * of the vector to and from each rank: as many bytes as halving and doubling, in 2 launches instead
 * of 2 log2(R), and for any number of ranks.  With --reduce=nccl, ncclAllReduce does everything.
 *
 * If each of N hosts has g = 2, 4, 8 ... consecutive ranks, this is done twice: first inside each
 * host, then for a g-th of the vector between hosts.  One all-to-all over N hosts would send
 * 2 g (N - 1) / N of the vector out of each host; this sends 2 (N - 1) / N, for 2 more launches.
 *
 * Sums have a stream of their own.  An event orders each sum after the step's operations, and
 * another event orders the update after the sum: the host does not wait.  Messages in the middle of
 * a step (rows of statistics) go in the same stream, after pending sums, because one communicator
 * runs one operation after another anyway.  The communicator is non-blocking: pending calls are
 * polled until they are done, with the run's time limit.  Everything can be captured in a graph:
 * the stream of sums joins the capture with the first event and leaves it with the last.
 *
 * Compiled with each program for several GPUs; the library is opened if there is more than one
 * rank.
 */
#include "base/clock.h"
#include "base/error.h"
#include "cuda/gpu.h"
#include "cuda/nccl_api.h"
#include "cuda/rank_sum.h"
#include "device/device.h"
#include "device/link.h"
#include <stdio.h>
#include <string.h>

enum {
    GRAIN = 32, /* pieces are multiples of this many reals */
    EVENTS = 2  /* an event before a sum or a gather, and one after it */
};

static const double BLAME = 2; /* seconds that comm/watch.c has to name a lost rank */

static NcclApi nccl;
static NcclComm comm;
static cudaStream_t stream;
static cudaEvent_t (*event)[EVENTS], told[EVENTS];
static real *scratch;
static bool any_order;
static int rank;
static const char *under_way = "joining the other GPUs";
static char description[64];

static const int type = sizeof(real) == sizeof(float) ? NCCL_FLOAT32 : NCCL_FLOAT64;

static void nccl_check(NcclResult result, const char *what)
{
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        rt_lost("NCCL failed at %s: %s (%s)", what, nccl.GetErrorString(result),
                nccl.GetLastError(comm));
}

/* ---- start */

static void open_nccl(void)
{
    char why[NCCL_WHY];
    if (!nccl.handle && !nccl_open(&nccl, why))
        rt_die("%s", why);
    snprintf(description, sizeof description, "NCCL %d.%d.%d", nccl.version / 10000,
             nccl.version / 100 % 100, nccl.version % 100);
}

static void identify(char id[LINK_ID])
{
    NcclId made;
    _Static_assert(sizeof made == LINK_ID, "an id of NCCL's has 128 bytes");
    open_nccl();
    nccl_check(nccl.GetUniqueId(&made), "making an id");
    memcpy(id, &made, sizeof made);
}

/* Ranks first, first + step, ... that exchange pieces; self: number of this rank among them. */
typedef struct Group {
    int first, step, size, self;
} Group;

static Group group[2]; /* in order; size 0: there is no second one */

/* Reals of a piece of n reals, which is also the distance of pieces in scratch. */
static int64_t piece_size(const Group *g, int64_t n)
{
    return ((n + g->size - 1) / g->size + GRAIN - 1) / GRAIN * GRAIN;
}

/* The first real of piece r of n reals. */
static int64_t group_cut(const Group *g, int64_t n, int r)
{
    const int64_t at = r * piece_size(g, n);
    return at < n ? at : n;
}

/* Number of consecutive ranks on each host; 1 if hosts have 3, or 2 and 4, or alternate. */
static int ranks_a_host(const Comm *c)
{
    int each = 1;
    while (each < c->size && strcmp(comm_host(c, each), comm_host(c, 0)) == 0)
        each++;
    if (c->size % each != 0 || (each & (each - 1)) != 0)
        return 1;
    for (int r = 0; r < c->size; r++)
        for (int k = 0; k < r; k++)
            if ((strcmp(comm_host(c, r), comm_host(c, k)) == 0) != (r / each == k / each))
                return 1;
    return each;
}

/* The lowest levels of the tree are those of a host: first its ranks, then the ranks with the same
 * piece on all hosts. */
static void find_groups(const Comm *c)
{
    const int each = ranks_a_host(c);
    if (each == 1 || each == c->size) {
        group[0] = (Group){0, 1, c->size, c->rank};
        return;
    }
    group[0] = (Group){c->rank / each * each, 1, each, c->rank % each};
    group[1] = (Group){c->rank % each, each, c->size / each, c->rank / each};
}

static int64_t scratch_room(int64_t most)
{
    const int64_t inner = group[0].size * piece_size(&group[0], most),
                  outer = group[1].size
                              ? group[1].size * piece_size(&group[1], piece_size(&group[0], most))
                              : 0;
    return inner > outer ? inner : outer;
}

static void make_events(cudaEvent_t pair[EVENTS])
{
    for (int k = 0; k < EVENTS; k++)
        rt_cuda_check(cudaEventCreateWithFlags(&pair[k], cudaEventDisableTiming),
                      "making an event");
}

static void open_link(const char id[LINK_ID], const Comm *c, const RtDevice *d, int64_t most,
                      int sums)
{
    NcclId made;
    NcclConfig config = {.size = sizeof config,
                         .magic = NCCL_MAGIC,
                         .version = NCCL_CONFIG_VERSION,
                         .blocking = 0,
                         .cgaClusterSize = NCCL_UNDEFINED,
                         .minCTAs = NCCL_UNDEFINED,
                         .maxCTAs = NCCL_UNDEFINED,
                         .splitShare = NCCL_UNDEFINED,
                         .trafficClass = NCCL_UNDEFINED};
    any_order = c->any_order;
    rank = c->rank;
    find_groups(c);
    open_nccl();
    memcpy(&made, id, sizeof made);
    rt_cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    event = rt_alloc(sizeof *event * (size_t)sums);
    for (int i = 0; i < sums; i++)
        make_events(event[i]);
    make_events(told);
    if (!any_order)
        scratch = d->memory(scratch_room(most) * (int64_t)sizeof(real), "sums over ranks");
    nccl_check(nccl.CommInitRankConfig(&comm, c->size, made, c->rank, &config),
               "joining the other GPUs");
}

/* Whether the pending part of a call is done; until then, the communicator accepts no other call.
 * NCCL cannot say which rank caused a failure, but the caller, which polls, can if a rank is lost
 * (comm/watch.c).  So this function reports a failure only after BLAME seconds. */
static bool settled(void)
{
    static double failed;
    NcclResult state = NCCL_SUCCESS;
    nccl_check(nccl.CommGetAsyncError(comm, &state), "asking for the state of pending calls");
    if (state == NCCL_SUCCESS || state == NCCL_IN_PROGRESS)
        return state == NCCL_SUCCESS;
    if (failed == 0)
        failed = clock_now();
    if (clock_now() - failed > BLAME)
        nccl_check(state, under_way);
    return false;
}

static bool opened(void)
{
    return settled();
}

/* Returns memory that the GPUs of a host can access directly, or a network can use without a copy:
 * allocated by NCCL and registered with it.  If NCCL cannot, or is older than 2.19, sums stay in
 * the device's memory. */
static void *shared_memory(int64_t bytes)
{
    void *there = NULL, *handle;
    if (!nccl.MemAlloc || !nccl.CommRegister ||
        nccl.MemAlloc(&there, (size_t)bytes) != NCCL_SUCCESS)
        return NULL;
    const NcclResult result = nccl.CommRegister(comm, there, (size_t)bytes, &handle);
    if (result == NCCL_IN_PROGRESS)
        rt_cuda_await(settled);
    return there; /* also useful if it could not be registered */
}

/* ---- sums */

static int64_t length(const Group *g, int64_t n, int r)
{
    return group_cut(g, n, r + 1) - group_cut(g, n, r);
}

static bool messages_done(void)
{
    const cudaError_t error = cudaStreamQuery(stream);
    if (error != cudaErrorNotReady)
        rt_cuda_check(error, under_way);
    return error == cudaSuccess;
}

/* Waits until the communicator accepts the next call, and, in the first run of a list of launches,
 * until the messages are complete.  CUDA loads a kernel at its first launch, and this launch can
 * return only when all work of the GPU is done (CUDA C++ Programming Guide, "Lazy Loading").  If a
 * rank were lost then, nobody would poll.  Later runs of the list are recorded, with all kernels
 * loaded. */
static void await_call(void)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    rt_cuda_await(settled);
    rt_cuda_check(cudaStreamIsCapturing(stream, &status), under_way);
    if (status == cudaStreamCaptureStatusNone)
        rt_cuda_await(messages_done);
}

static void end_group(void)
{
    nccl_check(nccl.GroupEnd(), under_way);
    await_call();
}

/* Sends piece r of x to number r of the group, whose own pieces go to scratch.  back: sends this
 * rank's piece to all, and receives theirs in place. */
static void exchange_pieces(const Group *g, real *x, int64_t n, bool back)
{
    const int self = g->self, size = g->size;
    nccl_check(nccl.GroupStart(), under_way);
    for (int d = 1; d < size; d++) {
        const int to = (self + d) % size, from = (self + size - d) % size;
        const int out = back ? self : to, in = back ? from : self;
        real *place = back ? x + group_cut(g, n, from) : scratch + from * piece_size(g, n);
        if (length(g, n, out) > 0)
            nccl_check(nccl.Send(x + group_cut(g, n, out), (size_t)length(g, n, out), type,
                                 g->first + to * g->step, comm, stream),
                       "sending gradients");
        if (length(g, n, in) > 0)
            nccl_check(nccl.Recv(place, (size_t)length(g, n, in), type, g->first + from * g->step,
                                 comm, stream),
                       "receiving gradients");
    }
    end_group();
}

/* The result of a group is one node of the tree; the next group adds the nodes of its ranks. */
static void add_groups(int level, real *x, int64_t n)
{
    const Group *g = &group[level];
    real *own = x + group_cut(g, n, g->self);
    const int64_t mine = length(g, n, g->self);
    exchange_pieces(g, x, n, false);
    if (mine > 0)
        rt_rank_sum(stream, own, scratch, piece_size(g, n), mine, g->self, g->size);
    if (mine > 0 && level == 0 && group[1].size > 0)
        add_groups(1, own, mine);
    exchange_pieces(g, x, n, true);
}

static void sum_by_nccl(real *x, int64_t n)
{
    nccl_check(nccl.AllReduce(x, x, (size_t)n, type, NCCL_SUM, comm, stream), under_way);
    await_call();
}

/* Orders the stream of sums after the step's stream; the next function does the reverse. */
static void begin_events(cudaEvent_t pair[EVENTS], const char *what)
{
    under_way = what;
    rt_cuda_check(cudaEventRecord(pair[0], rt_cuda_stream), what);
    rt_cuda_check(cudaStreamWaitEvent(stream, pair[0], 0), what);
}
static void end_events(cudaEvent_t pair[EVENTS])
{
    rt_cuda_check(cudaEventRecord(pair[1], stream), under_way);
}
static void join_events(cudaEvent_t pair[EVENTS])
{
    rt_cuda_check(cudaStreamWaitEvent(rt_cuda_stream, pair[1], 0), under_way);
}

static void sum(int number, void *there, int64_t n)
{
    begin_events(event[number], "a sum of gradients");
    if (any_order)
        sum_by_nccl(there, n);
    else
        add_groups(0, there, n);
    end_events(event[number]);
}

static void await(int number)
{
    join_events(event[number]);
}

/* ---- rows that all ranks need */

static void gather(char *there, const RtKnown *row, int n, int shards)
{
    begin_events(told, "the statistics of the batch");
    nccl_check(nccl.GroupStart(), under_way);
    for (int i = 0; i < n; i++) {
        char *const all = there + row[i].offset;
        const int64_t each = shards * row[i].bytes;
        nccl_check(nccl.AllGather(all + rank * each, all, (size_t)each / sizeof(real), type, comm,
                                  stream),
                   under_way);
    }
    end_group();
    end_events(told);
    join_events(told);
}

static void nccl_look(void)
{
    settled();
}

/* Aborts NCCL's kernels, which would wait for ever for a rank that no longer exists. */
static void let_go(void)
{
    if (comm)
        nccl.CommAbort(comm);
}

static const char *nccl_describe(void)
{
    return description;
}

const RtLink rt_nccl = {.name = "nccl",
                        .identify = identify,
                        .open = open_link,
                        .opened = opened,
                        .memory = shared_memory,
                        .sum = sum,
                        .await = await,
                        .gather = gather,
                        .look = nccl_look,
                        .let_go = let_go,
                        .describe = nccl_describe};
