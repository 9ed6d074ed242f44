/* threads.h -- a pool of threads that lives as long as the program and runs the units of a phase.
 *
 * Each thread starts with its own contiguous range of units, the same in every step, so that
 * weights stay in its caches; a thread that finishes early takes units of other ranges, those of
 * threads on the same cache first.  Ranges have equal numbers of units, or end where the caller
 * says.  No result depends on the thread that runs a unit, because units share nothing that they
 * write.  With fewer units than threads, threads without a unit take no part.  Between jobs,
 * threads spin for 0.1 ms, then sleep.
 */
#ifndef THREADS_H
#define THREADS_H
#include "base/cores.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Sets the bytes of a thread's stack.  Without this call, a stack has RT_STACK bytes.  The default
 * would be the shell's limit (ulimit -s), and only 2 MB if that limit is "unlimited". */
void threads_stack(int64_t bytes);
int64_t threads_stack_bytes(void);
int threads_start(pthread_t *id, void *(*run)(void *),
                  void *arg); /* 0, or the number of an error */
/* Calls run(arg) on this thread, the program's first, if its stack is large enough; else on another
 * thread, while this thread waits and blocks signals. */
int threads_run(int (*run)(void *), void *arg);
/* Makes a condition with time limits by threads_after.  The limits count on CLOCK_MONOTONIC: the
 * default, CLOCK_REALTIME, can be set, and a wait would last longer by the seconds that it is set
 * back. */
void threads_condition(pthread_cond_t *c);
struct timespec threads_after(double seconds); /* from now */
/* Threads that are started from now on have this affinity mask (a cpu_set_t, which must stay
 * valid); NULL: the mask of the thread that starts them. */
void threads_mask(const void *set, size_t size);

typedef struct Pool Pool;
typedef void (*PoolWork)(void *arg, int thread, int unit);

/* Where the threads of a pool run. */
typedef struct Placement {
    int threads;
    const Cores *cores; /* thread t is on processor[first + t]; NULL: not known */
    int first;
    int room;  /* processors of this process; 0: of its affinity mask */
    bool pin;  /* pins each thread to its processor, if there are enough processors */
    int turns; /* not 0: all threads take turns on the processor of the caller (pool_simulated),
                * from first to last (1) or from last to first (-1) */
} Placement;

/* The caller is thread 0.  If there are more threads than processors (`room`), only as many threads
 * as there are processors take units at a time.  If a thread cannot be created, the pool continues
 * with the threads before it, and prints a note. */
Pool *pool_on(const Placement *x);
Pool *pool_new(int threads); /* not pinned; counts as one cache */
void pool_free(Pool *p);     /* a program does not free its pool */
/* Stands for T threads: units run on the caller, and are timed (simulation.h). */
Pool *pool_simulated(int threads);
struct Simulation *pool_simulation(const Pool *p); /* NULL: the threads are real */
/* Describes the next job to a simulation; see simulation_next. */
void pool_next(Pool *p, const char *what, double bytes, double local);
int pool_threads(const Pool *p);
bool pool_crowded(const Pool *p);                            /* more threads than processors */
void pool_run(Pool *p, PoolWork work, void *arg, int units); /* returns when all units are done */
/* end: [threads]; thread t's range ends before end[t] */
void pool_run_shares(Pool *p, PoolWork work, void *arg, const int *end);

/* Runs unit t on thread t, for t < pool_threads, all at the same time: units may wait for each
 * other. Units of the other functions may not, because a thread can run several of them. */
void pool_each(Pool *p, PoolWork work, void *arg);

int threads_available(void);        /* processors that this process may use */
void threads_flush_denormals(void); /* part of the numerics: for each computing thread */

#endif
