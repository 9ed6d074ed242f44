/* threads.c -- fork and join by two atomic counters; see threads.h. */
#define _GNU_SOURCE
#include "base/threads.h"
#include "base/error.h"
#include "rt.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIN_NS = 3000000, /* a thread without a job looks for one this long, then sleeps */
    SPIN_ROUNDS = 1024 /* looks (20 us in all) before it lets others have the processor */
};

/* A thread's share of the current job: units next .. end - 1 are free to take. */
typedef struct Share {
    alignas(64) atomic_int next;
    int end;
} Share;

typedef struct Helper {
    Pool *pool;
    int thread;
    pthread_t id;
} Helper;

struct Pool {
    int threads;
    Helper *helper; /* of threads 1, 2, ... */
    bool crowded;   /* more threads than processors: give way instead of spinning */
    PoolWork work;
    void *arg;
    Share *share;
    alignas(64) atomic_uint job; /* counts jobs; sleepers wait for it to change */
    alignas(64) atomic_int busy; /* helpers not yet done with the job */
    alignas(64) atomic_int sleepers;
};

void threads_flush_denormals(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u); /* FTZ, DAZ */
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1u << 24)); /* FZ */
#endif
}

int threads_available(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t spin_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The own range first, then what the others have left. */
static void take_units(Pool *p, int thread)
{
    for (int k = 0; k < p->threads; k++) {
        Share *s = &p->share[(thread + k) % p->threads];
        while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
            const int unit = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
            if (unit >= s->end)
                break;
            p->work(p->arg, thread, unit);
        }
    }
}

/* One look after another; `round` counts them. */
static void wait_a_little(const Pool *p, unsigned round)
{
    if (p->crowded || round >= SPIN_ROUNDS)
        sched_yield();
    else
        relax();
}

/* Waits for the job after `seen` and returns its number. */
static unsigned await_job(Pool *p, unsigned seen)
{
    const int64_t until = spin_clock() + SPIN_NS;
    for (unsigned round = 0; round % 64 || spin_clock() < until; round++) {
        const unsigned job = atomic_load_explicit(&p->job, memory_order_acquire);
        if (job != seen)
            return job;
        wait_a_little(p, round);
    }
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->job) == seen)
        syscall(SYS_futex, &p->job, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&p->sleepers, 1);
    return atomic_load(&p->job);
}

static void *help(void *arg)
{
    const Helper *h = arg;
    Pool *p = h->pool;
    threads_flush_denormals();
    for (unsigned seen = 0;;) {
        seen = await_job(p, seen);
        if (!p->work)
            return NULL;
        take_units(p, h->thread);
        atomic_fetch_sub_explicit(&p->busy, 1, memory_order_release);
    }
}

static int64_t stack_bytes = RT_STACK;

void threads_stack(int64_t bytes)
{
    stack_bytes = bytes;
}

int threads_start(pthread_t *id, void *(*run)(void *), void *arg)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    int error = pthread_attr_setstacksize(&attr, (size_t)((stack_bytes + page - 1) / page * page));
    if (!error)
        error = pthread_create(id, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return error;
}

typedef struct Call {
    int (*run)(void *);
    void *arg;
    sigset_t mask;
    int result;
} Call;

static void *call_on_stack(void *arg)
{
    Call *c = arg;
    pthread_sigmask(SIG_SETMASK, &c->mask, NULL);
    c->result = c->run(c->arg);
    return NULL;
}

/* Arguments and environment take a quarter of the first thread's stack at most. */
int threads_run(int (*run)(void *), void *arg)
{
    struct rlimit limit;
    Call c = {.run = run, .arg = arg};
    sigset_t all;
    pthread_t id;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / 4 * 3 >= (rlim_t)stack_bytes)
        return run(arg);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &c.mask); /* the other thread is to get them */
    const int error = threads_start(&id, call_on_stack, &c);
    if (error)
        rt_die("a thread with a stack of %lld bytes could not be started (%s), and this one's has "
               "%lld (ulimit -s): raise that limit",
               (long long)stack_bytes, strerror(error), (long long)limit.rlim_cur);
    pthread_join(id, NULL);
    return c.result;
}

static void start_helper(Pool *p, int thread)
{
    Helper *h = &p->helper[thread];
    *h = (Helper){.pool = p, .thread = thread};
    const int error = threads_start(&h->id, help, h);
    if (error)
        rt_die("thread %d of %d could not be started: %s", thread + 1, p->threads, strerror(error));
}

Pool *pool_new(int threads)
{
    Pool *p = aligned_alloc(64, sizeof *p);
    Share *share = aligned_alloc(64, sizeof *share * (size_t)threads);
    if (!p || !share)
        rt_die("out of memory for %d threads", threads);
    memset(p, 0, sizeof *p);
    memset(share, 0, sizeof *share * (size_t)threads);
    p->threads = threads;
    p->crowded = threads > threads_available();
    p->share = share;
    p->helper = rt_alloc(sizeof *p->helper * (size_t)threads);
    threads_flush_denormals();
    for (int t = 1; t < threads; t++)
        start_helper(p, t);
    return p;
}

int pool_threads(const Pool *p)
{
    return p->threads;
}

/* A new job for the helpers; NULL sends them home. */
static void announce(Pool *p, PoolWork work, void *arg)
{
    p->work = work;
    p->arg = arg;
    atomic_store_explicit(&p->busy, p->threads - 1, memory_order_relaxed);
    atomic_fetch_add(&p->job, 1);
    if (atomic_load(&p->sleepers) > 0)
        syscall(SYS_futex, &p->job, FUTEX_WAKE_PRIVATE, p->threads, NULL, NULL, 0);
}

void pool_free(Pool *p)
{
    announce(p, NULL, NULL);
    for (int t = 1; t < p->threads; t++)
        pthread_join(p->helper[t].id, NULL);
    free(p->helper);
    free(p->share);
    free(p);
}

/* Thread t's range ends before end[t], or end NULL: ranges of as many units each. */
static void run_job(Pool *p, PoolWork work, void *arg, int units, const int *end)
{
    if (p->threads == 1) {
        for (int unit = 0; unit < units; unit++)
            work(arg, 0, unit);
        return;
    }
    for (int t = 0, first = 0; t < p->threads; t++) {
        p->share[t].end = end ? end[t] : (int)((int64_t)units * (t + 1) / p->threads);
        atomic_store_explicit(&p->share[t].next, first, memory_order_relaxed);
        first = p->share[t].end;
    }
    announce(p, work, arg);
    take_units(p, 0);
    for (unsigned round = 0; atomic_load_explicit(&p->busy, memory_order_acquire) > 0; round++)
        wait_a_little(p, round);
}

void pool_run(Pool *p, PoolWork work, void *arg, int units)
{
    run_job(p, work, arg, units, NULL);
}

void pool_run_shares(Pool *p, PoolWork work, void *arg, const int *end)
{
    run_job(p, work, arg, end[p->threads - 1], end);
}
