/* simulation.h -- the time of a step on a machine with many cores, from units that are timed alone.
 *
 * A simulated pool (pool_simulated) stands for T threads, but has one.  It runs the units of a job
 * one after another on the calling thread, and records the time of each.  The members of a
 * team run as coroutines: a barrier of the team passes the processor to the next member, so each
 * part of a call is timed alone, too.  All results are those of real threads.
 *
 * simulation_result() then lays the medians of several steps out on the cores of a machine: the
 * threads start along the tree of the pool (fanout.h), take units by the rule of the pool, and
 * answer along the tree.  A phase takes at least the time in which the memory of the sockets can
 * move its bytes.
 *
 * The simulation simplifies the machine: shared caches get no slower with more cores, two units
 * never write one cache line, and the clock of all cores is the clock of the machine's peak.
 */
#ifndef SIMULATION_H
#define SIMULATION_H
#include "base/machine.h"
#include "base/threads.h"

typedef struct Simulation Simulation;

enum { SIMULATION_STEPS = 9 }; /* steps of which medians are taken, at most */

/* backwards: the last unit or thread comes first, and the first one last.  Results are the same, if
 * no barrier is missing. */
Simulation *simulation_new(int threads, bool backwards);
void simulation_free(Simulation *s); /* s can be NULL */

/* Called by the pool: runs the units of a job.  end, each: as in pool.c. */
void simulation_run(Simulation *s, PoolWork work, void *arg, int units, const int *end, bool each);
/* Describes the next job.  bytes, local: bytes of the values outside of thread regions, and of the
 * values inside of them, counted as in RtPhase (rt.h). */
void simulation_next(Simulation *s, const char *what, double bytes, double local);
/* Called after the barrier that follows a call of the step (TICK in rt.h). */
bool simulation_tick(int call);
bool simulation_runs(void); /* whether the caller is a member of a simulated team */

/* For tests: a clock in nanoseconds; NULL: the clocks of the machine and of the thread. */
extern int64_t (*simulation_clock)(void);

/* For tests (tests/tools/lines.c); NULL: nothing.  Called at the start of each job with team,
 * thread and part -1, and after each part of a unit.  Teams compute at the same time; in a team,
 * parts with the same number do.  A thread without a team is a team of its own, in part 0. */
extern void (*simulation_watch)(const char *what, int team, int thread, int part);

/* To be called before and after each recorded step.  Jobs outside of a step are not recorded.  All
 * steps have the same jobs. */
void simulation_step_begin(Simulation *s);
void simulation_step_end(Simulation *s);

/* Seconds of a job.  step: its duration.  work, barriers, memory, idle: added over the threads;
 * together they are the duration times the number of threads. */
typedef struct SimulatedJob {
    const char *what;
    int count;           /* jobs of this name in a step */
    int units, parallel; /* largest number in a job: units; threads with work */
    double step, work, barriers, memory, idle;
} SimulatedJob;

/* Seconds of a call in teams, added over the threads.  step: in each part, every thread counts with
 * the time of its team's slowest member; work: with its own time.  parts: number of consecutive
 * parts. */
typedef struct SimulatedCall {
    double step, work, barriers;
    int parts;
} SimulatedCall;

typedef struct Simulated {
    double step;     /* seconds on the machine */
    double alone;    /* seconds of the step in which one thread works between jobs */
    double work;     /* seconds of all units, on one core */
    int barriers;    /* consecutive barriers of a step: of the pool, and of the slowest team */
    int units_least; /* fewest threads with work in a job of at least 1 % of the step */
    int njob;
    SimulatedJob *job;   /* [njob], by name, in the order of the step */
    SimulatedCall *call; /* [ncall] */
} Simulated;

/* faster: time of a core of m, divided by the time of a core here; below 1 if m is faster.
 * in_memory, local_in_memory: whether the values of `bytes` and of `local` (simulation_next) lie in
 * memory and not in a cache. */
Simulated simulation_result(const Simulation *s, const Machine *m, double faster, bool in_memory,
                            bool local_in_memory, int ncall);

#endif
