/* threads.c -- threads and their stacks; see threads.h.  The pool is in pool.c. */
#define _GNU_SOURCE
#include "base/threads.h"
#include "base/error.h"
#include "rt.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

static int64_t stack_bytes = RT_STACK;

void threads_stack(int64_t bytes)
{
    stack_bytes = bytes;
}

int64_t threads_stack_bytes(void)
{
    return stack_bytes;
}

static const cpu_set_t *mask;
static size_t mask_size;

void threads_mask(const void *set, size_t size)
{
    mask = set;
    mask_size = size;
}

/* Starts a thread.  If the processors of the mask have left the cpuset in the meantime, the thread
 * keeps the mask of its creator. */
int threads_start(pthread_t *id, void *(*run)(void *), void *arg)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    int error = pthread_attr_setstacksize(&attr, (size_t)((stack_bytes + page - 1) / page * page));
    const bool bound = !error && mask && pthread_attr_setaffinity_np(&attr, mask_size, mask) == 0;
    if (!error)
        error = pthread_create(id, &attr, run, arg);
    pthread_attr_destroy(&attr);
    if (error != EINVAL || !bound)
        return error;
    const cpu_set_t *before = mask;
    mask = NULL;
    error = threads_start(id, run, arg);
    mask = before;
    return error;
}

void threads_condition(pthread_cond_t *c)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(c, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct timespec threads_after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)seconds;
    t.tv_nsec += (long)(1e9 * (seconds - (double)(time_t)seconds));
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
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

/* Assumes that three quarters of the first thread's stack are free: arguments and environment take
 * at most one quarter of it. */
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
    pthread_sigmask(SIG_SETMASK, &all, &c.mask); /* signals go to the other thread */
    const int error = threads_start(&id, call_on_stack, &c);
    if (error)
        rt_die("a thread with a stack of %lld bytes could not be started (%s), and the stack of "
               "this thread has %lld (ulimit -s): raise this limit",
               (long long)stack_bytes, strerror(error), (long long)limit.rlim_cur);
    pthread_join(id, NULL);
    return c.result;
}
