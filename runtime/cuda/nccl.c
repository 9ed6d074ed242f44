/* nccl.c -- sums over the GPUs of a run, by NCCL's messages and one kernel of our own.
 *
 * NCCL's all-reduce adds in an order that depends on the ranks, the size and the machine.  So it only carries: each rank adds one
 * piece of the vector, which the others send it, in the tree of runtime/tree.h, and sends the sum back.  Those are two
 * exchanges of all with all, 2 (R - 1) / R of the vector to and from each rank: as many bytes as halving and doubling
 * take, in 2 launches instead of 2 log2(R), and for any number of ranks.  --reduce=nccl leaves it all to ncclAllReduce.
 *
 * Sums have a stream of their own, behind the step's by an event each, and the update comes behind them by another: the host waits
 * for none.  The communicator does not block: what is under way is asked for until it is there, with the run's limit.  All of it can be
 * captured in a graph: the stream of sums joins the capture by the first event and leaves it by the last.
 *
 * Compiled with each program for several GPUs; the library is opened when there is more than one rank.
 */
#include "clock.h"
#include "cuda/gpu.h"
#include "cuda/nccl_api.h"
#include "cuda/rank_sum.h"
#include "device.h"
#include "error.h"
#include "link.h"
#include <stdio.h>
#include <string.h>

enum {
    GRAIN = 32,
    EVENTS = 2
}; /* reals that pieces are multiples of; an event before a sum, one behind */

static const double BLAME = 2; /* seconds */

static NcclApi nccl;
static NcclComm comm;
static bool joined;
static cudaStream_t stream;
static cudaEvent_t (*event)[EVENTS];
static real *scratch;
static int rank, ranks;
static bool any_order;
static char description[64];

static const int type = sizeof(real) == sizeof(float) ? NCCL_FLOAT32 : NCCL_FLOAT64;

static void check(NcclResult result, const char *what)
{
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        rt_lost("NCCL failed at %s: %s (%s)", what, nccl.GetErrorString(result),
                nccl.GetLastError(comm));
}

/* ---- joining */

static void open_library(void)
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
    open_library();
    check(nccl.GetUniqueId(&made), "making an id");
    memcpy(id, &made, sizeof made);
}

/* Where piece r of n reals begins; pieces of the largest sum are `piece(n)` apart in scratch. */
static int64_t piece(int64_t n)
{
    return ((n + ranks - 1) / ranks + GRAIN - 1) / GRAIN * GRAIN;
}

static int64_t cut(int64_t n, int r)
{
    const int64_t at = r * piece(n);
    return at < n ? at : n;
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
    rank = c->rank, ranks = c->size, any_order = c->any_order;
    open_library();
    memcpy(&made, id, sizeof made);
    rt_cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    event = rt_alloc(sizeof *event * (size_t)sums);
    for (int i = 0; i < sums; i++)
        for (int k = 0; k < EVENTS; k++)
            rt_cuda_check(cudaEventCreateWithFlags(&event[i][k], cudaEventDisableTiming),
                          "making an event");
    if (!any_order)
        scratch = d->memory(ranks * piece(most) * (int64_t)sizeof(real), "sums over ranks");
    check(nccl.CommInitRankConfig(&comm, ranks, made, rank, &config), "joining the other GPUs");
}

/* What a call has left under way is there; nothing else may be asked of the communicator before.  NCCL cannot say who is to blame for a
 * failure: where a rank is lost the wait that asks here soon can (comm/watch.c), and is given the time. */
static bool settled(void)
{
    static double failed;
    NcclResult state = NCCL_SUCCESS;
    check(nccl.CommGetAsyncError(comm, &state), "asking how it goes");
    if (state == NCCL_SUCCESS || state == NCCL_IN_PROGRESS)
        return state == NCCL_SUCCESS;
    if (failed == 0)
        failed = clock_now();
    if (clock_now() - failed > BLAME)
        check(state, joined ? "a sum of gradients" : "joining the other GPUs");
    return false;
}

static bool opened(void)
{
    return joined = settled();
}

/* Memory that the GPUs of a host can reach in each other, or a network without a copy: NCCL's own, made known to it.  What it cannot
 * give, and libraries before 2.19, leave the sums where the device puts them. */
static void *shared_memory(int64_t bytes)
{
    void *there = NULL, *handle;
    if (!nccl.MemAlloc || !nccl.CommRegister ||
        nccl.MemAlloc(&there, (size_t)bytes) != NCCL_SUCCESS)
        return NULL;
    const NcclResult result = nccl.CommRegister(comm, there, (size_t)bytes, &handle);
    if (result == NCCL_IN_PROGRESS)
        rt_cuda_await(settled);
    return there; /* as good as any other when it could not be registered */
}

/* ---- sums */

static int64_t length(int64_t n, int r)
{
    return cut(n, r + 1) - cut(n, r);
}

static void end_group(void)
{
    check(nccl.GroupEnd(), "a sum of gradients");
    rt_cuda_await(settled);
}

/* Piece r of x goes to rank r, whose own goes to scratch; or, back: this rank's piece to all, theirs to where they belong. */
static void exchange(real *x, int64_t n, bool back)
{
    check(nccl.GroupStart(), "a sum of gradients");
    for (int d = 1; d < ranks; d++) {
        const int to = (rank + d) % ranks, from = (rank + ranks - d) % ranks;
        const int out = back ? rank : to, in = back ? from : rank;
        real *place = back ? x + cut(n, from) : scratch + from * piece(n);
        if (length(n, out) > 0)
            check(nccl.Send(x + cut(n, out), (size_t)length(n, out), type, to, comm, stream),
                  "sending gradients");
        if (length(n, in) > 0)
            check(nccl.Recv(place, (size_t)length(n, in), type, from, comm, stream),
                  "receiving gradients");
    }
    end_group();
}

static void add_all(real *x, int64_t n)
{
    if (any_order) {
        check(nccl.AllReduce(x, x, (size_t)n, type, NCCL_SUM, comm, stream), "a sum of gradients");
        rt_cuda_await(settled);
        return;
    }
    exchange(x, n, false);
    if (length(n, rank) > 0)
        rt_rank_sum(stream, x + cut(n, rank), scratch, piece(n), length(n, rank), rank, ranks);
    exchange(x, n, true);
}

static void sum(int number, void *there, int64_t n)
{
    rt_cuda_check(cudaEventRecord(event[number][0], rt_cuda_stream), "a sum of gradients");
    rt_cuda_check(cudaStreamWaitEvent(stream, event[number][0], 0), "a sum of gradients");
    add_all(there, n);
    rt_cuda_check(cudaEventRecord(event[number][1], stream), "a sum of gradients");
}

static void await(int number)
{
    rt_cuda_check(cudaStreamWaitEvent(rt_cuda_stream, event[number][1], 0), "a sum of gradients");
}

static void look(void)
{
    settled();
}

/* Its kernels wait for a rank that does not come any more. */
static void let_go(void)
{
    if (comm)
        nccl.CommAbort(comm);
}

static const char *describe(void)
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
                        .look = look,
                        .let_go = let_go,
                        .describe = describe};
