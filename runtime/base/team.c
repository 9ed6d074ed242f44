/* team.c -- teams of threads: parts of a result, and the barrier after each call; see rt.h.
 *
 * The barrier counts arrivals; the last one starts the next round.  Arrivals and the round lie in
 * cache lines of their own, so that a thread that waits does not slow one that arrives.
 */
#include "base/team.h"
#include "base/relax.h"
#include "rt.h"
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SPIN_ROUNDS = 4096 }; /* polls before a waiting thread calls sched_yield */

struct Barrier {
    alignas(64) atomic_int arrived;
    alignas(64) atomic_uint round;
};

_Thread_local RtTeam rt_team = {.of = 1};

Barrier *barriers_new(int count)
{
    Barrier *all = aligned_alloc(64, sizeof *all * (size_t)count);
    if (!all)
        return NULL;
    memset(all, 0, sizeof *all * (size_t)count);
    return all;
}

Barrier *barriers_at(Barrier *all, int i)
{
    return all + i;
}

void barriers_free(Barrier *all)
{
    free(all);
}

void rt_team_wait(void)
{
    Barrier *b = rt_team.barrier;
    const unsigned round = atomic_load_explicit(&b->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) == rt_team.of - 1) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&b->round, round + 1, memory_order_release);
        return;
    }
    for (int i = 0; atomic_load_explicit(&b->round, memory_order_acquire) == round; i++)
        if (i >= SPIN_ROUNDS)
            sched_yield();
        else
            relax();
}

/* This member's part of the best grid with at most `of` parts.  Best is the grid whose largest part
 * is smallest; among equals the one with the fewest columns, because parts of one column read the
 * same weights. */
RtGrid rt_team_grid(int64_t rows, int64_t columns)
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
    if (rt_team.at >= g.rows * g.columns)
        return (RtGrid){0};
    g.row = rt_team.at / g.columns, g.column = rt_team.at % g.columns;
    return g;
}
