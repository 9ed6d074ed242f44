/* threads.h -- a pool of threads that lives as long as the program and runs the units of a phase.
 *
 * Each thread starts with its own contiguous range of units, the same in every step, so that weights
 * stay in its caches; a thread that finishes early takes units of other ranges.  Ranges have equal
 * numbers of units, or end where the caller says.  No result depends on the thread that runs a unit,
 * because units share nothing that they write.  Between jobs, threads spin for a while (a barrier
 * costs 0.2 us), then sleep.
 */
#ifndef THREADS_H
#define THREADS_H
#include <pthread.h>
#include <stdint.h>

/* Each thread's stack has RT_STACK bytes, or what threads_stack() has set before.  With the shell's
 * limit (ulimit -s), threads would get 2 MB if the limit is "unlimited". */
void  threads_stack(int64_t bytes);
int   threads_start(pthread_t *id, void *(*run)(void *), void *arg);   /* 0, or the number of an error */
/* run(arg) on this thread, the program's first, if its stack is large enough; else on another thread,
 * while this one waits and blocks signals. */
int   threads_run(int (*run)(void *), void *arg);

enum { THREADS_MOST = 1024 };                         /* that --threads accepts */

typedef struct Pool Pool;
typedef void (*PoolWork)(void *arg, int thread, int unit);

Pool *pool_new(int threads);                          /* the caller is thread 0 */
void  pool_free(Pool *p);                             /* programs keep theirs to the end */
int   pool_threads(const Pool *p);
void  pool_run(Pool *p, PoolWork work, void *arg, int units);  /* returns when all units are done */
void  pool_run_shares(Pool *p, PoolWork work, void *arg, const int *end);  /* [threads]: thread t's range ends before end[t] */

int   threads_available(void);                        /* processors that this process may use */
void  threads_flush_denormals(void);  /* part of the numerics: in every thread that computes */

#endif
