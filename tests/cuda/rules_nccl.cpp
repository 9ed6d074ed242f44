/* rules_nccl.cpp -- breaks rules of NCCL: see rules.h and fake_nccl.cpp.
 *
 * Rank 1 reads its buffers before rank 0 has sent anything, and when everything is done.  Rank 0 waits for that (a pipe).
 */
#include "rules.h"
#include "cuda/nccl_api.h"
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#define NCCL_FUNCTION(name, type, arguments) type nccl##name arguments;
NCCL_SYMBOLS(NCCL_FUNCTION)
}

enum { COUNT = 8 };

static NcclComm comm;
static cudaStream_t stream;

static void settle()
{
    NcclResult state;
    do
        ncclCommGetAsyncError(comm, &state);
    while (state == NCCL_IN_PROGRESS);
    hold("a call of NCCL", state == NCCL_SUCCESS);
}

static float *filled(float x)
{
    float *v = new_memory<float>(COUNT);
    for (int i = 0; i < COUNT; i++)
        v[i] = x;
    return v;
}

/* The exchange is in the stream.  Rank 1: what it receives is undefined until rank 0 sends; rank 0: begins when rank 1 has looked. */
static void look(const char *what, int rank, const float *at, size_t count, int ready[2])
{
    char go = 0;
    settle();
    if (rank == 1) {
        cudaStreamQuery(stream);
        hold(what, undefined(at, count * sizeof *at));
        hold("a pipe", write(ready[1], &go, 1) == 1);
    }
    cudaStreamSynchronize(stream);
}

static void wait_for_the_other(int rank, int ready[2])
{
    char go;
    hold("a pipe", rank == 1 || read(ready[0], &go, 1) == 1);
}

/* Each rank sends `mine` and receives into `theirs`, which can be the same buffer. */
static void exchange(int rank, const float *mine, float *theirs, int ready[2])
{
    wait_for_the_other(rank, ready);
    ncclGroupStart();
    ncclSend(mine, COUNT, NCCL_FLOAT32, 1 - rank, comm, stream);
    ncclRecv(theirs, COUNT, NCCL_FLOAT32, 1 - rank, comm, stream);
    ncclGroupEnd();
}

static void run(int rank, int ready[2])
{
    float *mine = filled(1 + rank), *theirs = filled(7), *rows = filled(7), *sum = filled(7);
    /* rank 0 calls nothing before rank 1 has read its buffer */
    exchange(rank, mine, theirs, ready);
    look("a buffer that receives", rank, theirs, COUNT, ready);
    hold("a message", theirs[0] == 2 - rank && theirs[COUNT - 1] == 2 - rank);

    rows[rank * COUNT / 2] = 3 + rank;
    wait_for_the_other(rank, ready);
    ncclGroupStart();
    ncclAllGather(rows + rank * COUNT / 2, rows, COUNT / 2, NCCL_FLOAT32, comm, stream);
    ncclGroupEnd();
    look("rows of another rank", rank, rows, COUNT / 2, ready);
    hold("rows", rows[0] == 3 && rows[COUNT / 2] == 4);

    wait_for_the_other(rank, ready);
    ncclAllReduce(mine, sum, COUNT, NCCL_FLOAT32, NCCL_SUM, comm, stream);
    look("a sum that is not complete", rank, sum, COUNT, ready);
    hold("a sum", sum[0] == 3 && sum[COUNT - 1] == 3);

    wait_for_the_other(rank, ready);
    ncclAllReduce(mine, mine, COUNT, NCCL_FLOAT32, NCCL_SUM, comm, stream);
    look("a sum in place that is not complete", rank, mine, COUNT, ready);
    hold("a sum in place", mine[0] == 3 && mine[COUNT - 1] == 3);

    exchange(rank, mine, mine, ready);
    look("messages in one buffer", rank, mine, COUNT, ready);
    hold("messages in one buffer", undefined(mine, COUNT * sizeof *mine));
}

int main()
{
    NcclId id;
    int ready[2], status = 0;
    NcclConfig config = {sizeof config, NCCL_MAGIC, NCCL_CONFIG_VERSION, 0, NCCL_UNDEFINED, NCCL_UNDEFINED, NCCL_UNDEFINED, NULL, NCCL_UNDEFINED, NCCL_UNDEFINED};
    alarm(60); /* the other rank may have ended */
    if (ncclGetUniqueId(&id) != NCCL_SUCCESS || pipe(ready) != 0)
        return 1;
    const pid_t child = fork();
    const int rank = child == 0;
    stream = new_stream();
    ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    settle();
    run(rank, ready);
    if (child && (waitpid(child, &status, 0) != child || status != 0))
        return 1;
    return unnoticed != 0;
}
