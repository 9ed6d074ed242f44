/* team.c -- teams of threads: parts of a result, and the barrier after each call; see rt.h.
 *
 * The barrier is a binomial tree of members.  A member waits for its children, announces its
 * arrival to its parent, waits for the release, and releases its children.  So a barrier of T
 * members takes at most 2 ceil(log2 T) moves of a cache line, one after another.  The arrival and
 * the release of a member lie in cache lines of their own: no line is written by two members.
 */
#include "base/team.h"
#include "base/relax.h"
#include "rt.h"
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINES = 128,       /* bytes: processors prefetch cache lines in pairs */
    SPIN_ROUNDS = 4096 /* polls before a waiting thread calls sched_yield */
};

/* A word has the number of the last barrier.  The numbers of a job are higher than those of all
 * jobs before it, because the members of a team can come from different teams. */
struct Barrier {
    alignas(LINES) atomic_ullong arrived; /* the member writes it */
    uint64_t number;                      /* of the last barrier that the member has reached */
    void *shared;                         /* of the first member: rt_team_share */
    alignas(LINES) atomic_ullong leave;   /* the parent writes it */
};

_Thread_local RtTeam rt_team = {.of = 1};
bool (*team_wait_instead)(void);

Barrier *barriers_new(int threads)
{
    Barrier *all = aligned_alloc(LINES, sizeof *all * (size_t)threads);
    if (!all)
        return NULL;
    memset(all, 0, sizeof *all * (size_t)threads);
    return all;
}

Barrier *barriers_at(Barrier *all, int thread, uint64_t job)
{
    all[thread].number = job << 32;
    return all + thread;
}

void barriers_free(Barrier *all)
{
    free(all);
}

static void await_number(const atomic_ullong *word, uint64_t number)
{
    for (int i = 0; atomic_load_explicit(word, memory_order_acquire) != number; i++)
        if (i >= SPIN_ROUNDS)
            sched_yield();
        else
            relax();
}

void rt_team_wait(void)
{
    if (team_wait_instead && team_wait_instead())
        return;
    const int at = rt_team.at, of = rt_team.of;
    Barrier *own = rt_team.barrier;
    const uint64_t number = ++own->number;
    int d = 1;
    for (; d < of && !(at & d); d *= 2)
        if (at + d < of)
            await_number(&own[d].arrived, number);
    if (at > 0) {
        atomic_store_explicit(&own->arrived, number, memory_order_release);
        await_number(&own->leave, number);
    }
    while (d > 1) {
        d /= 2;
        if (at + d < of)
            atomic_store_explicit(&own[d].leave, number, memory_order_release);
    }
}

void *rt_team_share(void *own)
{
    Barrier *first = rt_team.barrier - rt_team.at;
    if (TEAM_FIRST)
        first->shared = own;
    rt_team_wait();
    return first->shared;
}

void rt_team_clear(void *at, int64_t bytes)
{
    const int64_t lines = (bytes + RT_ALIGN - 1) / RT_ALIGN,
                  first = lines * rt_team.at / rt_team.of * RT_ALIGN,
                  end = lines * (rt_team.at + 1) / rt_team.of * RT_ALIGN;
    if (end > first)
        memset((char *)at + first, 0, (size_t)((end < bytes ? end : bytes) - first));
}

/* Best is the grid whose largest part is smallest; among equals the one with the fewest columns,
 * because parts of one column read the same weights. */
RtGrid rt_team_shape(int64_t rows, int64_t columns)
{
    const int of = rt_team.of;
    int64_t best = INT64_MAX;
    RtGrid g = {0};
    for (int across = 1; across <= of && across <= columns; across++) {
        const int64_t down = of / across < rows ? of / across : rows;
        const int64_t largest =
            down > 0 ? (rows + down - 1) / down * ((columns + across - 1) / across) : INT64_MAX;
        if (largest < best)
            best = largest, g.rows = (int)down, g.columns = across;
    }
    return g;
}

/* This member's part of the best grid with at most `of` parts. */
RtGrid rt_team_grid(int64_t rows, int64_t columns)
{
    RtGrid g = rt_team_shape(rows, columns);
    if (rt_team.at >= g.rows * g.columns)
        return (RtGrid){0};
    g.row = rt_team.at / g.columns, g.column = rt_team.at % g.columns;
    return g;
}
