/* tune.c -- rt_tune: compares kernels for `tenon build --tune`.
 *
 * The kernels run in turns, so other load of the machine affects all of them. A turn takes about
 * half a millisecond, and the median of the turns counts. Each line of standard output is:
 *
 *     0 12.345        number of the kernel, microseconds a call
 *     peak 118.2      GFLOP/s of FMA in registers, one thread, measured in the same run
 */
#include "base/ascending.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/processor.h"
#include "measure/fma_peak.h"
#include <stdio.h>
#include <time.h>

enum { TURNS = 15 };
static const double TURN_SECONDS = 5e-4;

/* Fills memory with numbers of the size of activations: zeros and denormals would give wrong
 * times. */
static void fill_trials(const RtProgram *p, char *m, int64_t bytes)
{
    uint32_t r[4];
    for (int64_t i = 0; i < bytes / p->real_bytes; i++) {
        if (i % 4 == 0)
            rt_philox(r, 1, (uint32_t)(i / 4), 0, 0, 0);
        const double v = (double)r[i % 4] / 4294967296.0 - 0.5;
        if (p->real_bytes == 8)
            ((double *)m)[i] = v;
        else
            ((float *)m)[i] = (float)v;
    }
}

/* Processor seconds of this thread: time of other programs does not count. */
static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds_of(const RtTrial *t, char *m, int calls)
{
    const double began = processor_seconds();
    for (int i = 0; i < calls; i++)
        t->run(m);
    return processor_seconds() - began;
}

/* Makes enough calls for a turn; the first call also warms the caches. */
static int calls_of(const RtTrial *t, char *m)
{
    int calls = 1;
    seconds_of(t, m, 1);
    for (double s = seconds_of(t, m, 1); s < TURN_SECONDS && calls < 1 << 20;
         s = seconds_of(t, m, calls))
        calls *= 2;
    return calls;
}

typedef struct Trials {
    const RtProgram *p;
    const RtTrial *trial;
    int n;
    int64_t bytes;
} Trials;

static int run_trials(void *arg)
{
    const Trials *t = arg;
    const RtProgram *p = t->p;
    const RtTrial *trial = t->trial;
    const int n = t->n;
    Pool *pool = pool_new(1);
    char *m = memory_map(t->bytes, false, "the trials");
    double *time = rt_alloc(sizeof *time * (size_t)n * TURNS);
    int *calls = rt_alloc(sizeof *calls * (size_t)n);

    processor_check(p);
    fill_trials(p, m, t->bytes);
    for (int i = 0; i < n; i++)
        calls[i] = calls_of(&trial[i], m);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < n; i++)
            time[i * TURNS + turn] = seconds_of(&trial[i], m, calls[i]) / calls[i];
    for (int i = 0; i < n; i++) {
        sort_ascending(time + i * TURNS, TURNS);
        printf("%d %.3f\n", i, 1e6 * time[i * TURNS + TURNS / 2]);
    }
    printf("peak %.1f\n", fma_peak(p, pool));
    return fflush(stdout) != 0;
}

int rt_tune(const RtProgram *p, const RtTrial *trial, int n, int64_t bytes)
{
    return threads_run(run_trials, &(Trials){p, trial, n, bytes});
}
