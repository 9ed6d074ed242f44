/* show_threads.c -- the step of many threads, as the prices predict it: `tenon show --threads T`.
 *
 * The time of a slice phase follows from the formula with which the program chooses teams
 * (runtime/constants.h).  Units of other phases go to the thread that is free first, as in the
 * pool.  Each phase begins and ends along a tree of threads.  A phase takes at least the time in
 * which the memory moves its bytes, if these are larger than the caches.  `PROG bench --simulate`
 * measures the units instead.
 */
#include "base/text.h"
#include "ops/price.h"
#include "runtime/constants.h"
#include "tool/show.h"
#include <stdio.h>
#include <string.h>

/* One core's share of a server whose cores are all busy: GB/s of the memory, bytes of the
 * third-level cache. Medians of the large machines in runtime/base/machine.c: 186 GB/s for 56
 * cores, 375 for 96; 32 MB for 8 cores (EPYC), 105 MB for 56 (8480+). */
static const double MEMORY_GBS = 4, SHARED_CACHE = 4 << 20;

/* Microseconds in which one thread works alone: between two phases, and once in a step.  The column
 * `alone` of the simulated steps in bench/SCALING.md: 3.5 us with 6 phases, 93 us with 113. */
static const double PHASE_ALONE_US = 0.8, STEP_ALONE_US = 2;

/* The phases of one name, with microseconds of a step. units: those of the phase with the most
 * units. */
typedef struct PhaseRow {
    const char *what, *how;
    int count, units;
    double one, many, barriers, memory;
} PhaseRow;

static int at_least_1(int n)
{
    return n > 1 ? n : 1;
}

static PhaseRow *row_of(PhaseRow *row, int *n, const EmitPhase *p)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(row[i].what, p->what))
            return &row[i];
    row[*n] = (PhaseRow){.what = p->what, .how = ""};
    return &row[(*n)++];
}

/* Barriers of the slowest team in a phase. */
static double barrier_us(const EmitPhase *p, RtTeamPlan plan, int threads)
{
    const int rest = p->units - plan.whole, members = threads / at_least_1(plan.teams);
    const int rounds = (rest + plan.teams - 1) / at_least_1(plan.teams);
    int levels = 0;
    for (int n = 1; n < members; n *= 2)
        levels++;
    return rest > 0 ? rounds * p->barriers * 2 * levels * RT_TEAM_LINE_US : 0;
}

/* Microseconds of the phase: units in order, each on the thread that is free first. */
static double units_us(Arena *a, const EmitPhase *p, int threads)
{
    const EmitRange equal = {p->units, p->us}, *range = p->units ? &equal : p->range;
    const int nrange = p->units ? 1 : p->nrange;
    double *busy = arena_alloc(a, sizeof *busy * (size_t)threads), last = 0, sum = 0;
    for (int i = 0; i < nrange; i++)
        sum += range[i].us;
    for (int i = 0; i < nrange; i++)
        for (int64_t k = 0; k < range[i].units; k++) {
            int first = 0;
            for (int t = 1; t < threads; t++)
                first = busy[t] < busy[first] ? t : first;
            busy[first] += range[i].us / (double)range[i].units;
            last = busy[first] > last ? busy[first] : last;
        }
    return sum > 0 ? last * p->us / sum : p->us / threads;
}

/* Microseconds to begin and end a phase: messages along the tree of threads
 * (runtime/base/pool.c). */
static double tree_us(int threads)
{
    int levels = 0;
    for (int n = 1; n < threads; n *= 2)
        levels++;
    return 2 * levels * RT_TEAM_LINE_US;
}

static const char *how_text(Arena *a, const EmitPhase *p, RtTeamPlan plan, int threads)
{
    if (!p->slices)
        return "";
    if (plan.whole == p->units)
        return arena_printf(a, "a slice a thread");
    return arena_printf(a, "%s%d team%s of %d", plan.whole ? "slices, then " : "", plan.teams,
                        plan.teams == 1 ? "" : "s", threads / plan.teams);
}

static RtTeamCost cost_of(const EmitPhase *p)
{
    return (RtTeamCost){p->us / at_least_1(p->units), p->alone_us, p->barriers};
}

const RtTeamCost *show_team_costs(Arena *a, const EmitPhase *all, int nall, int *n)
{
    RtTeamCost *cost = arena_alloc(a, sizeof *cost * (size_t)(nall + 1));
    *n = 0;
    for (int i = 0; i < nall; i++)
        if (all[i].slices)
            cost[(*n)++] = cost_of(&all[i]);
    return cost;
}

/* What the caches of all threads cannot hold. */
typedef struct Moved {
    bool kept, local; /* values outside and inside of thread regions */
} Moved;

static void add_phase(Arena *a, PhaseRow *r, const EmitPhase *p, int threads, int regions,
                      Moved moved)
{
    const double bytes = (moved.kept ? p->bytes : 0) + (moved.local ? p->local_bytes : 0),
                 least = bytes / (1e3 * MEMORY_GBS * threads), tree = tree_us(threads);
    double us, wait = tree;
    if (p->slices) {
        const RtTeamCost c = cost_of(p);
        const RtTeamPlan plan =
            rt_team_plan(c.unit_us, c.alone_us, c.barriers, p->units, threads, regions);
        us = plan.us + tree, wait += barrier_us(p, plan, threads);
        r->how = how_text(a, p, plan, threads);
    } else {
        us = units_us(a, p, threads) + tree;
    }
    int units = p->units;
    for (int i = 0; i < p->nrange; i++)
        units += (int)p->range[i].units;
    r->units = units > r->units ? units : r->units;
    r->count++;
    r->one += p->us, r->many += us > least ? us : least, r->barriers += wait;
    r->memory += least > us ? least - us : 0;
}

static void print_threads_row(const PhaseRow *r, int threads)
{
    const double idle = r->many - r->barriers - r->memory - r->one / threads;
    printf("  %10.3f ms %10.3f ms %10.3f %10.3f %10.3f   %-*s", 1e-3 * r->one, 1e-3 * r->many,
           1e-3 * r->barriers, idle > 0 ? 1e-3 * idle : 0, 1e-3 * r->memory, r->count ? 32 : 0,
           r->what);
    if (r->count)
        printf(" %d phase%s", r->count, r->count == 1 ? "" : "s");
    if (r->units)
        printf(", %d units", r->units);
    printf("%s%s\n", *r->how ? ", " : "", r->how);
}

void show_threads(Arena *a, const Graph *g, const EmitInput *in, const EmitPhase *phase, int nphase,
                  int threads)
{
    const Market m = market_of(g, in->options, g->step->chunk);
    int ncost;
    const RtTeamCost *cost = show_team_costs(a, phase, nphase, &ncost);
    const int regions = step_regions_of(g->step, threads, cost, ncost);
    const double caches = ((double)m.core->l2 + SHARED_CACHE) * threads;
    const Moved moved = {(double)step_bytes_of(g->step, threads, regions) > caches,
                         (double)step_thread_bytes(g->step, threads, regions) > caches};
    PhaseRow *row = arena_alloc(a, sizeof *row * (size_t)(nphase + 1)), all = {.what = "in all"};
    int n = 0;
    for (int i = 0; i < nphase; i++)
        add_phase(a, row_of(row, &n, &phase[i]), &phase[i], threads, regions, moved);
    printf("\npredicted step of %d thread%s on cores like a %s\n  %13s %13s %10s %10s %10s\n",
           threads, threads == 1 ? "" : "s", m.core->like, "one thread", "all threads", "barriers",
           "idle", "memory");
    for (int i = 0; i < n; i++) {
        print_threads_row(&row[i], threads);
        all.one += row[i].one, all.many += row[i].many;
        all.barriers += row[i].barriers, all.memory += row[i].memory;
    }
    const double alone = STEP_ALONE_US + PHASE_ALONE_US * nphase;
    print_threads_row(&(PhaseRow){.what = "between phases, one thread",
                                  .how = "",
                                  .one = alone,
                                  .many = alone},
                      threads);
    all.how = "", all.one += alone, all.many += alone;
    print_threads_row(&all, threads);
    printf("  %s samples/s; %.1f times the speed of one thread, efficiency %.2f\n",
           text_commas(a, (int64_t)(1e6 * (double)g->step->batch / all.many)), all.one / all.many,
           all.one / all.many / threads);
}
