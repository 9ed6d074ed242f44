/* fake_nccl.cpp -- a stand-in for NCCL, as a library: messages between the processes of one machine
 * through a shared file.
 *
 * It uses all freedom that the real library has: calls of a non-blocking communicator answer "in
 * progress", nothing is in the stream before the program has polled twice, and a program that
 * continues without polling gets an error.  A connection to another rank is made at the first message, with an allocation, which a
 * capture forbids (NCCL's user guide, NCCL_RUNTIME_CONNECT).
 *
 *   FAKE_NCCL=never     the communicator never becomes ready
 *   FAKE_NCCL=old       version 2.10
 *   FAKE_NCCL=error     the third exchange fails, as if a connection broke
 *   FAKE_NCCL=stops     rank 1 stops at its second exchange
 *   FAKE_NCCL=no-memory allocations fail
 *   FAKE_NCCL_LOG=FILE  FILE.RANK gets one line for each call
 *
 * Compiled with FAKE_NCCL_18 it lacks functions that are newer than version 2.18.
 */
#include "cuda/nccl_api.h"
#include "fake.h"
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

enum { MOST = 8, ROOM = 1 << 16, UNDEFINED = 0xff, UNHANDLED_CUDA_ERROR = 1, INVALID_USAGE = 5, REMOTE_ERROR = 6 };

struct Ring {
    std::atomic<uint64_t> written, read;
    char bytes[ROOM];
};
struct Shared {
    std::atomic<int> joined;
    Ring ring[MOST][MOST]; /* from, to */
};
struct Message {
    bool sent;
    char *at;
    size_t bytes;
    int peer;
};

bool wrong(const char *what)
{
    const char *how = getenv("FAKE_NCCL");
    return how && !strcmp(how, what);
}

size_t size_of(int type)
{
    return type == NCCL_FLOAT32 ? 4 : type == NCCL_FLOAT64 ? 8 : (fprintf(stderr, "fake: no such type\n"), exit(3), 0);
}

} // namespace

struct ncclComm {
    Shared *shared;
    int rank, ranks, asked, exchanges;
    bool ready, grouping;
    FILE *log;
    cudaStream_t stream;
    std::vector<Message> group;
    std::function<bool()> begun; /* work that is not in the stream yet */

    void note(const char *fmt, size_t count, int peer)
    {
        if (log)
            fprintf(log, fmt, count, peer), fflush(log);
    }
    bool in_progress() const
    {
        return !ready || begun;
    }

    /* Does a part of the work; true: nothing is left. */
    bool move(Message &m)
    {
        Ring &r = m.sent ? shared->ring[rank][m.peer] : shared->ring[m.peer][rank];
        for (; m.bytes > 0; m.at++, m.bytes--) {
            std::atomic<uint64_t> &mine = m.sent ? r.written : r.read;
            const uint64_t at = mine.load(std::memory_order_relaxed);
            if (m.sent ? at - r.read.load(std::memory_order_acquire) == ROOM : at == r.written.load(std::memory_order_acquire))
                return false;
            if (m.sent)
                r.bytes[at % ROOM] = *m.at;
            else
                *m.at = r.bytes[at % ROOM];
            mine.store(at + 1, std::memory_order_release);
        }
        return true;
    }

    /* A buffer that receives is undefined until the whole group is done: messages arrive in any pieces and any order (NCCL's user guide, "Group
     * Calls"), and buffers that send must not overlap it (only collectives work in place: "In-place Operations"). */
    std::function<bool()> moving(std::vector<Message> all)
    {
        return [this, all, undefined = false]() mutable {
            bool done = true;
            for (const Message &m : all)
                if (!undefined && !m.sent)
                    memset(m.at, UNDEFINED, m.bytes);
            undefined = true;
            for (Message &m : all) {
                bool behind = false; /* an earlier message to the same rank is pending */
                for (const Message *k = all.data(); k < &m; k++)
                    behind |= k->bytes > 0 && k->sent == m.sent && k->peer == m.peer;
                done &= !behind && move(m);
            }
            return done;
        };
    }

    NcclResult begin(std::function<bool()> work)
    {
        static void *connection;
        if (!connection && cudaMalloc(&connection, 1) != cudaSuccess)
            return (NcclResult)UNHANDLED_CUDA_ERROR;
        begun = work;
        asked = 0;
        exchanges++;
        if (wrong("stops") && rank == 1 && exchanges == 2)
            raise(SIGSTOP);
        return NCCL_IN_PROGRESS;
    }
};

static ncclComm *the_one; /* group calls do not name it */

/* Makes its state when it begins, because each launch of a graph begins with a new state. */
template <class T> struct Sum {
    std::vector<std::vector<T>> parts;
    std::function<bool()> moving;
    Sum(ncclComm *c, const void *from, size_t count) : parts(c->ranks, std::vector<T>(count))
    {
        std::vector<Message> all;
        memcpy(parts[c->rank].data(), from, count * sizeof(T));
        for (int r = 0; r < c->ranks; r++)
            if (r != c->rank) {
                all.push_back({true, (char *)parts[c->rank].data(), count * sizeof(T), r});
                all.push_back({false, (char *)parts[r].data(), count * sizeof(T), r});
            }
        moving = c->moving(all);
    }
};

template <class T> static std::function<bool()> sum_of_all(ncclComm *c, const void *from, void *to, size_t count)
{
    std::shared_ptr<Sum<T>> sum;
    return [=]() mutable {
        if (!sum) {
            sum = std::make_shared<Sum<T>>(c, from, count);
            memset(to, UNDEFINED, count * sizeof(T)); /* also in place: partial sums stand there until the end */
        }
        if (!sum->moving())
            return false;
        for (size_t i = 0; i < count; i++) {
            T all = 0; /* adds in another order than the tree */
            for (int r = c->ranks - 1; r >= 0; r--)
                all += sum->parts[r][i];
            ((T *)to)[i] = all;
        }
        return true;
    };
}

extern "C" {

NcclResult ncclGetVersion(int *version)
{
    *version = wrong("old") ? 21000 : 22809;
    return NCCL_SUCCESS;
}

NcclResult ncclGetUniqueId(NcclId *id)
{
    const char *dir = getenv("TMPDIR");
    snprintf(id->internal, sizeof id->internal, "%s/fake-nccl-XXXXXX", dir ? dir : "/tmp");
    const int fd = mkstemp(id->internal);
    if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0)
        return (NcclResult)2;
    close(fd);
    return NCCL_SUCCESS;
}

NcclResult ncclCommInitRankConfig(NcclComm *comm, int ranks, NcclId id, int rank, NcclConfig *config)
{
    if (config->size != sizeof *config || config->magic != NCCL_MAGIC || config->blocking != 0 || ranks > MOST)
        return (NcclResult)4;
    const int fd = open(id.internal, O_RDWR);
    void *at = fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return (NcclResult)2;
    close(fd);
    ncclComm *c = the_one = *comm = new ncclComm{};
    c->shared = (Shared *)at, c->rank = rank, c->ranks = ranks;
    if (getenv("FAKE_NCCL_LOG"))
        c->log = fopen((std::string(getenv("FAKE_NCCL_LOG")) + "." + std::to_string(rank)).c_str(), "w");
    if (++c->shared->joined == ranks)
        unlink(id.internal);
    return NCCL_IN_PROGRESS;
}

NcclResult ncclCommGetAsyncError(NcclComm c, NcclResult *state)
{
    *state = NCCL_IN_PROGRESS;
    if (!c->ready) {
        c->ready = c->shared->joined == c->ranks && !wrong("never");
    } else if (wrong("error") && c->exchanges == 3) {
        *state = (NcclResult)REMOTE_ERROR;
    } else if (c->begun && ++c->asked > 2) {
        fake_enqueue(c->stream, c->begun);
        c->begun = nullptr;
    } else if (!c->begun) {
        *state = NCCL_SUCCESS;
    }
    return NCCL_SUCCESS;
}

NcclResult ncclCommAbort(NcclComm c)
{
    c->note("abort\n", 0, 0);
    return NCCL_SUCCESS;
}

#ifndef FAKE_NCCL_18
NcclResult ncclMemAlloc(void **there, size_t bytes)
{
    the_one->note("memory\n", 0, 0);
    return wrong("no-memory") ? (NcclResult)1 : cudaMalloc(there, bytes) == cudaSuccess ? NCCL_SUCCESS : (NcclResult)1;
}

NcclResult ncclCommRegister(NcclComm c, void *, size_t, void **)
{
    c->note("register\n", 0, 0);
    return c->ready ? NCCL_SUCCESS : (NcclResult)INVALID_USAGE;
}
#endif

NcclResult ncclGroupStart(void)
{
    the_one->grouping = true;
    return the_one->in_progress() ? (NcclResult)INVALID_USAGE : NCCL_SUCCESS;
}

NcclResult ncclGroupEnd(void)
{
    ncclComm *c = the_one;
    c->note("end\n", 0, 0);
    c->grouping = false;
    std::vector<Message> all;
    all.swap(c->group);
    return c->begin(c->moving(all));
}

NcclResult ncclSend(const void *from, size_t count, int type, int to, NcclComm c, cudaStream_t stream)
{
    if (!c->grouping || to == c->rank || to >= c->ranks || count == 0)
        return (NcclResult)INVALID_USAGE;
    c->note("send %zu to %d\n", count, to);
    c->stream = stream;
    c->group.push_back({true, (char *)from, count * size_of(type), to});
    return NCCL_SUCCESS;
}

NcclResult ncclRecv(void *to, size_t count, int type, int from, NcclComm c, cudaStream_t stream)
{
    if (!c->grouping || from == c->rank || from >= c->ranks || count == 0)
        return (NcclResult)INVALID_USAGE;
    c->note("receive %zu from %d\n", count, from);
    c->stream = stream;
    c->group.push_back({false, (char *)to, count * size_of(type), from});
    return NCCL_SUCCESS;
}

/* Only in a group, and in place, as programs use it. */
NcclResult ncclAllGather(const void *from, void *to, size_t count, int type, NcclComm c, cudaStream_t stream)
{
    const size_t bytes = count * size_of(type);
    if (!c->grouping || from != (char *)to + c->rank * bytes)
        return (NcclResult)INVALID_USAGE;
    c->note("gather %zu\n", count, 0);
    c->stream = stream;
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank) {
            c->group.push_back({true, (char *)from, bytes, r});
            c->group.push_back({false, (char *)to + r * bytes, bytes, r});
        }
    return NCCL_SUCCESS;
}

NcclResult ncclAllReduce(const void *from, void *to, size_t count, int type, int op, NcclComm c, cudaStream_t stream)
{
    if (c->in_progress() || op != NCCL_SUM)
        return (NcclResult)INVALID_USAGE;
    c->note("sum of %zu\n", count, 0);
    c->stream = stream;
    return c->begin(size_of(type) == 8 ? sum_of_all<double>(c, from, to, count) : sum_of_all<float>(c, from, to, count));
}

const char *ncclGetErrorString(NcclResult result)
{
    return (int)result == INVALID_USAGE ? "invalid usage" : (int)result == REMOTE_ERROR ? "remote process exited or there was a network error" : "an error of the fake NCCL";
}

const char *ncclGetLastError(NcclComm)
{
    return "the fake NCCL says no more";
}

} // extern "C"
