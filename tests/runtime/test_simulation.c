/* test_simulation.c -- simulated pools and machines: every unit and every member of a team runs once and in order; the layout of known
 * times on a machine; dearer barriers and slower memory; the choice of teams. */
#include "base/machine.h"
#include "base/simulation.h"
#include "base/team.h"
#include "base/threads.h"
#include "rt.h"
#include "step/step.h"
#include "suite.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

/* --- work of a known length --- */

/* The clock of the simulation: work takes exactly as long as it says, on a loaded machine too. */
static int64_t time_ns;

static int64_t now(void)
{
    return time_ns;
}

static void work_for(double seconds)
{
    time_ns += (int64_t)(1e9 * seconds + 0.5);
}

enum { UNIT_US = 200 }; /* long against a barrier */

typedef struct Work {
    int units, ran, order[64];
    int (*length)(int unit); /* in UNIT_US */
} Work;

static void run_unit(void *arg, int thread, int unit)
{
    Work *w = arg;
    (void)thread;
    ck_assert_int_lt(w->ran, 64);
    w->order[w->ran++] = unit;
    work_for(1e-6 * UNIT_US * w->length(unit));
}

static int length_one(int unit)
{
    (void)unit;
    return 1;
}
static int length_first(int unit)
{
    return unit == 0 ? 8 : 1;
}

static Simulated simulate(const Machine *m, int threads, int units, int (*length)(int), double bytes)
{
    Pool *p = pool_simulated(threads);
    Simulation *s = pool_simulation(p);
    for (int i = 0; i < SIMULATION_STEPS; i++) {
        Work w = {.length = length};
        simulation_step_begin(s);
        pool_next(p, "work", bytes, 0);
        pool_run(p, run_unit, &w, units);
        simulation_step_end(s);
        ck_assert_int_eq(w.ran, units);
        for (int u = 0; u < units; u++)
            ck_assert_int_eq(w.order[u], u);
    }
    const Simulated r = simulation_result(s, m, 1, true, false, 0);
    pool_free(p);
    return r;
}

static void result_free(Simulated r)
{
    free(r.job), free(r.call);
}

/* Seconds of a step. */
static double step_of(const Machine *m, int threads, int units, int (*length)(int))
{
    const Simulated r = simulate(m, threads, units, length, 0);
    result_free(r);
    return r.step;
}

/* A step has barriers, too: a hundredth of these units. */
#define NEAR(value, want) ck_assert_msg((value) > .999 * (want) && (value) < 1.03 * (want), "%g, not about %g", (double)(value), (double)(want))

START_TEST(layout)
{
    const Machine *m = machine_named("56-core");
    const double unit = 1e-6 * UNIT_US;
    NEAR(step_of(m, 1, 12, length_one), 12 * unit);
    NEAR(step_of(m, 4, 12, length_one), 3 * unit);
    NEAR(step_of(m, 5, 12, length_one), 3 * unit);   /* 2, 2, 3, 2, 3 */
    NEAR(step_of(m, 56, 12, length_one), 1 * unit);  /* 44 threads have no unit */
    NEAR(step_of(m, 2, 12, length_first), 10 * unit); /* 8 and 11: thread 1 takes units of thread 0 */
    const Simulated r = simulate(m, 4, 12, length_one, 0);
    NEAR(r.work, 12 * unit);
    ck_assert_int_eq(r.njob, 1);
    ck_assert_str_eq(r.job[0].what, "work");
    ck_assert_int_eq(r.job[0].units, 12);
    ck_assert_int_eq(r.job[0].parallel, 4);
    ck_assert_int_eq(r.barriers, 1);
    ck_assert_int_eq(r.units_least, 4);
    result_free(r);
}
END_TEST

/* The same recorded times: a machine with other figures changes exactly what the figures mean. */
START_TEST(machines)
{
    Machine m = *machine_named("2x56-core"), dear = m, slow = m;
    const double bytes = 1e9; /* 2.7 ms at 2 x 186 GB/s */
    for (int i = 0; i < 3; i++)
        dear.line_ns[i] *= 10;
    slow.memory_gbs /= 2;
    Pool *p = pool_simulated(112);
    Simulation *s = pool_simulation(p);
    for (int i = 0; i < 3; i++) {
        Work w = {.length = length_one};
        simulation_step_begin(s);
        pool_next(p, "work", bytes, 0);
        pool_run(p, run_unit, &w, 64);
        simulation_step_end(s);
    }
    const Simulated cache = simulation_result(s, &m, 1, false, false, 0),
                    bound = simulation_result(s, &m, 1, true, false, 0),
                    half = simulation_result(s, &slow, 1, true, false, 0),
                    waits = simulation_result(s, &dear, 1, false, false, 0);
    ck_assert(cache.job[0].memory == 0);
    /* 64 threads are on both sockets: the pool has 112 */
    ck_assert_double_eq_tol(bound.step - bound.alone, bytes / (2 * 186e9), 1e-9);
    ck_assert_double_eq_tol(half.step - half.alone, 2 * bytes / (2 * 186e9), 1e-9);
    ck_assert_double_eq_tol(waits.job[0].barriers, 10 * cache.job[0].barriers, 1e-3 * waits.job[0].barriers);
    ck_assert(waits.step > cache.step);
    /* with free barriers, a step is work, idle time and the time alone */
    const double all = 112 * (cache.step - cache.alone);
    ck_assert_double_eq_tol(cache.job[0].work + cache.job[0].idle + cache.job[0].barriers, all, 1e-9 * all + 1e-12);
    ck_assert(cache.job[0].barriers > 0);
    result_free(cache), result_free(bound), result_free(half), result_free(waits);
    pool_free(p);
}
END_TEST

/* --- teams --- */

enum { MEMBERS = 12 };

typedef struct Meeting {
    Barrier *barrier;
    int teams, seen[MEMBERS], shared[MEMBERS];
} Meeting;

/* Each member adds what the others have left before the barrier; the second part is longer on one member. */
static void run_member(void *arg, int thread, int unit)
{
    Meeting *m = arg;
    const int each = MEMBERS / m->teams, first = thread / each * each;
    static real room[MEMBERS];
    ck_assert_int_eq(thread, unit);
    rt_team = (RtTeam){thread - first, each, barriers_at(m->barrier, thread, 1), NULL};
    m->seen[thread] = 1;
    work_for(1e-6 * UNIT_US);
    rt_team_wait();
    for (int i = first; i < first + each; i++)
        ck_assert_int_eq(m->seen[i], 1);
    real *const from = rt_team_share(&room[thread]);
    m->shared[thread] = (int)(from - room);
    work_for(1e-6 * UNIT_US * (thread % each == 1 ? 3 : 1));
    rt_team_wait();
    rt_team = (RtTeam){.of = 1};
}

START_TEST(teams)
{
    const Machine *m = machine_named("56-core");
    Pool *p = pool_simulated(MEMBERS);
    Simulation *s = pool_simulation(p);
    Simulated r = {0};
    for (int i = 0; i < 5; i++) {
        Meeting x = {.barrier = barriers_new(MEMBERS), .teams = 3};
        simulation_step_begin(s);
        pool_next(p, "teams", 0, 0);
        pool_each(p, run_member, &x);
        simulation_step_end(s);
        for (int t = 0; t < MEMBERS; t++) {
            ck_assert_int_eq(x.seen[t], 1);
            ck_assert_int_eq(x.shared[t], t / 4 * 4);
        }
        barriers_free(x.barrier);
    }
    r = simulation_result(s, m, 1, false, false, 0);
    NEAR(r.step, 4e-6 * UNIT_US);       /* 1 + 3: the slowest member of each part */
    NEAR(r.work, (12 + 18) * 1e-6 * UNIT_US);
    ck_assert_int_eq(r.barriers, 1 + 3); /* of the pool; of a team */
    ck_assert_int_eq(r.job[0].parallel, MEMBERS);
    result_free(r);
    pool_free(p);
}
END_TEST

typedef struct Rounds {
    Barrier *barrier;
    int job, teams, count[2];
} Rounds;

static void run_rounds(void *arg, int thread, int unit)
{
    Rounds *x = arg;
    const int each = 2 / x->teams, first = thread / each * each;
    (void)unit;
    rt_team = (RtTeam){thread - first, each, barriers_at(x->barrier, thread, (uint64_t)x->job), NULL};
    for (int i = 0; i < x->job % 4 + thread * (x->teams == 2); i++) { /* teams of one need no barrier */
        __atomic_add_fetch(&x->count[i & 1], 1, __ATOMIC_RELAXED);
        rt_team_wait();
        ck_assert_int_eq(__atomic_load_n(&x->count[i & 1], __ATOMIC_RELAXED) % each, 0);
        rt_team_wait();
    }
    rt_team = (RtTeam){.of = 1};
}

/* Real threads: between jobs, the threads reach different numbers of barriers. */
START_TEST(barriers)
{
    Pool *p = pool_new(2);
    Barrier *all = barriers_new(2);
    for (int job = 1; job < 2000 && !pool_crowded(p); job++) {
        Rounds x = {.barrier = all, .job = job, .teams = 1 + job % 2};
        pool_each(p, run_rounds, &x);
    }
    barriers_free(all);
    pool_free(p);
}
END_TEST

START_TEST(table)
{
    ck_assert_int_eq(machine_cores(machine_for(57)), 112);
    ck_assert_int_eq(machine_cores(machine_for(1)), 2);
    ck_assert_int_eq(machine_cores(machine_for(1000)), MACHINE_CORES_MOST);
    ck_assert_ptr_eq(machine_named("abacus"), NULL);
    ck_assert(strstr(machine_names(), "c5.18xlarge") != NULL);
    const Machine *two = machine_named("2x96-core");
    ck_assert_int_eq(machine_distance(two, 0, 7), MACHINE_CORE);
    ck_assert_int_eq(machine_distance(two, 7, 8), MACHINE_CACHE);
    ck_assert_int_eq(machine_distance(two, 95, 96), MACHINE_SOCKET);
}
END_TEST

/* --- the choice of teams --- */

static RtTeamPlan plan(int units, int threads, double barriers)
{
    return teams_plan(&(RtPhase){.unit_us = 1000, .barriers = barriers}, units, threads, threads);
}

START_TEST(choice)
{
    RtTeamPlan t = plan(8, 8, 10);
    ck_assert_int_eq(t.whole, 8); /* a unit a thread */
    t = plan(8, 2, 10);
    ck_assert_int_eq(t.whole, 8); /* four rounds */
    t = plan(8, 16, 10);
    ck_assert(t.whole == 0 && t.teams == 8);
    t = plan(64, 56, 10);
    ck_assert(t.whole == 56 && t.teams == 8); /* a whole round, then eight teams of seven */
    t = plan(8, 12, 10);
    ck_assert(t.whole == 0 && t.teams == 4); /* two rounds on four teams of three, not one round on eight teams of one or two */
    t = plan(8, 12, 1e6);
    ck_assert_int_eq(t.teams == 0 ? t.whole : t.teams, 8); /* barriers cost more than the units */
    t = plan(2, 56, 10);
    ck_assert(t.whole == 0 && t.teams == 2);
    t = plan(0, 56, 10);
    ck_assert_int_eq(t.whole, 0);
    for (int units = 1; units < 40; units++)
        for (int threads = 1; threads < 40; threads++) {
            t = plan(units, threads, units * 3.0);
            ck_assert(t.whole >= 0 && t.whole <= units);
            ck_assert(t.whole == units || (t.teams > 0 && t.teams <= threads && t.teams <= units - t.whole));
        }
}
END_TEST

/* --- the number of thread regions --- */

static int regions(int64_t other, int64_t region, int slices, int threads, double barriers)
{
    const RtTeamCost phase = {.unit_us = 1000, .barriers = barriers};
    return rt_regions(other, region, 0, slices, threads, &phase, 1);
}

START_TEST(few_regions)
{
    ck_assert_int_eq(regions(0, 100, 8, 8, 1), 8);     /* a region a thread, whatever it costs */
    ck_assert_int_eq(regions(0, 100, 4, 64, 1), 2);    /* as with two threads */
    ck_assert_int_eq(regions(700, 100, 8, 64, 1), 4);  /* at most 1170 bytes: four regions, not eight */
    ck_assert_int_eq(regions(3000, 100, 8, 64, 1), 8); /* eight regions are less than 1.3 times as much */
    ck_assert_int_eq(regions(0, 100, 8, 64, 1), 8);    /* two teams of 32 are too slow */
    ck_assert_int_eq(regions(0, 100, 4, 64, 1000), 4); /* small calls: so are two teams in barriers */
    ck_assert_int_eq(regions(0, 100, 1, 64, 1), 1);
    ck_assert_int_eq(rt_regions(0, 100, 0, 8, 64, NULL, 0), 8); /* unknown times */
    for (int slices = 1; slices < 40; slices++)
        for (int threads = 1; threads < 80; threads++) {
            const int r = regions(500, 100, slices, threads, 1);
            ck_assert(r > 0 && r <= slices && r <= threads);
            const RtTeamPlan t = teams_plan(&(RtPhase){.unit_us = 1000, .barriers = 1}, slices, threads, r);
            ck_assert(r == threads || r == slices || (t.whole == 0 && t.teams > 0 && t.teams <= r));
        }
}
END_TEST

int main(void)
{
    simulation_clock = now;
    Suite *s = suite_create("simulation");
    TCase *t = tcase_create("simulation");
    tcase_add_test(t, layout);
    tcase_add_test(t, machines);
    tcase_add_test(t, teams);
    tcase_add_test(t, barriers);
    tcase_add_test(t, table);
    tcase_add_test(t, choice);
    tcase_add_test(t, few_regions);
    suite_add_tcase(s, t);
    return suite_run(s);
}
