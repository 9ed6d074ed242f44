/* simulation.h -- the time of a step on a machine with many cores, from units that are timed alone.
 *
 * A simulated pool (pool_simulated) has T threads in name and one in fact.  It runs the units of a
 * job one after another on the calling thread, and records the time of each.  The members of a
 * team run as coroutines: a barrier of the team passes the processor to the next member, so each
 * part of a call is timed alone, too.  All results are those of real threads.
 *
 * simulation_result() then lays the medians of several steps out on the cores of a machine: the
 * threads start along the tree of the pool (fanout.h), take units by the rule of the pool, and
 * answer along the tree.  A phase takes at least the time in which the memory of the sockets can
 * move its bytes.
 *
 * What this leaves out: shared levels of caches get no slower with more cores, two units never
 * write one cache line, and the clock of all cores is that of the machine's peak.
 */
#ifndef SIMULATION_H
#define SIMULATION_H
#include "base/machine.h"
#include "base/threads.h"

typedef struct Simulation Simulation;

enum { SIMULATION_STEPS = 9 }; /* steps of which medians are taken, at most */

Simulation *simulation_new(int threads);
void simulation_free(Simulation *s); /* s can be NULL */

/* Called by the pool: runs the units of a job.  end, each: as in pool.c. */
void simulation_run(Simulation *s, PoolWork work, void *arg, int units, const int *end, bool each);
/* What the next job is, and how many bytes it reads and writes that lie in memory at its begin or
 * at its end, and of values that no other phase reads. */
void simulation_next(Simulation *s, const char *what, double bytes, double local);
/* Called after the barrier that follows a call of the step (TICK in rt.h). */
bool simulation_tick(int call);
bool simulation_runs(void); /* whether the caller is a member of a simulated team */

/* For tests: nanoseconds, instead of the clocks of the machine and of the thread; NULL: those. */
extern int64_t (*simulation_clock)(void);

/* For tests (tests/tools/lines.c); NULL: nothing.  Called at the begin of each job with team,
 * thread and part -1, and after each part of a unit.  Teams compute at the same time; in a team,
 * equal parts of its threads do.  A thread without a team is a team of its own, in part 0. */
extern void (*simulation_watch)(const char *what, int team, int thread, int part);

/* Around each recorded step; jobs outside of a step are not recorded.  All steps have the same
 * jobs. */
void simulation_step_begin(Simulation *s);
void simulation_step_end(Simulation *s);

/* Seconds of a job: its length, and the parts of it in seconds of all threads. */
typedef struct SimulatedJob {
    const char *what;
    int count;           /* jobs of this name in a step */
    int units, parallel; /* of the largest: units; threads that have work */
    double step, work, barriers, memory, idle;
} SimulatedJob;

/* Seconds of a call in teams, of all threads: the time that its parts take, and the sum of their
 * own times; number of parts that follow each other. */
typedef struct SimulatedCall {
    double step, work, barriers;
    int parts;
} SimulatedCall;

typedef struct Simulated {
    double step;  /* seconds on the machine */
    double alone; /* seconds of the step in which one thread works between jobs */
    double work;  /* seconds of all units, on one core */
    int barriers; /* barriers of a step that follow each other: of the pool, of the slowest team */
    int units_least; /* fewest threads with work in a job of at least 1 % of the step */
    int njob;
    SimulatedJob *job;   /* [njob], by name, in the order of the step */
    SimulatedCall *call; /* [ncall] */
} Simulated;

/* faster: time of a core of m, divided by that of a core here.  in_memory: whether values that a
 * phase leaves, and values inside of a phase, are in memory rather than in a cache. */
Simulated simulation_result(const Simulation *s, const Machine *m, double faster, bool in_memory,
                            bool local_in_memory, int ncall);

#endif
