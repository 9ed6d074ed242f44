/* threads.h -- a pool of threads that lives as long as the program: the units of a phase, shared
 * out.
 *
 * Each thread starts on its own contiguous range of the units, the same in every step, so that
 * weights stay in its caches; one that is done early takes from the others.  Ranges are of as many units
 * each, or where the caller says. Who runs a unit
 * never changes a result: units share nothing that they write. Threads spin for a while between
 * jobs (a barrier costs 0.2 us), then sleep.
 */
#ifndef THREADS_H
#define THREADS_H
#include <pthread.h>
#include <stdint.h>

/* Every thread has a stack of a size that the program knows: RT_STACK bytes, or what threads_stack() has said before it starts.  The
 * limit of the shell (ulimit -s) would give threads 2 MB where it is "unlimited". */
void  threads_stack(int64_t bytes);
int   threads_start(pthread_t *id, void *(*run)(void *), void *arg);   /* 0, or the number of an error */
/* run(arg) on this thread, the program's first, where its stack has room for as much; else on one that has, while this one waits
 * without signals. */
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
