/* pool.c -- the pool of threads.h: fork and join along a tree (fanout.h).  If there are more
 * threads than processors, the threads that are awake share the units instead (`crowded`).  The
 * processors can become fewer during the run, and more again: a job can switch between the two.
 *
 * Each thread has a seat on cache lines of its own.  Its parent writes a job into the seat, then
 * the job's number into `call`; the thread writes the number into `done` when it and its children
 * have finished.  A thread that waits for a number polls it for SPIN_NS, then marks the word ASLEEP
 * and sleeps in the kernel; the thread that writes the next number finds the mark and wakes it.  So
 * a job takes at most 2 ceil(log2 T) messages one after another where groups are powers of two, and
 * no line is written by all threads.
 */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/fanout.h"
#include "base/relax.h"
#include "base/simulation.h"
#include "base/threads.h"
#include "rt.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LINES = 128,         /* bytes: processors prefetch cache lines in pairs */
    PAUSE_NS = 20000,    /* a waiting thread first polls this long without a system call */
    SPIN_NS = 100000,    /* until then, it calls sched_yield between polls; then it sleeps */
    LOOKS = 64,          /* polls between two readings of the clock */
    ROOM_NS = 100000000, /* between two readings of the affinity masks: 0.2 us for each thread */
    ASLEEP = 1           /* bit of a word: a thread sleeps; job numbers are even */
};

typedef struct Job {
    PoolWork work; /* NULL: the thread ends or, with `swap`, goes over to the other kind of job */
    void *arg;
    const int *end; /* [threads], or NULL: equal ranges */
    int units;
    int active; /* threads 0 .. active - 1 take part */
    bool each;  /* unit t is for thread t */
    bool swap;
} Job;

/* The units of a range that no thread has taken yet: the lower half of the word is the next unit,
 * the upper half the end. */
typedef _Atomic uint64_t Share;

typedef struct Seat {
    alignas(LINES) atomic_uint call; /* the parent writes it */
    Share share;
    Job job;
    alignas(LINES) atomic_uint done; /* the thread writes it */
    alignas(LINES) Pool *pool;       /* constant */
    int thread;
    int processor; /* the thread is pinned to it; -1: not pinned */
    bool crowded;  /* the kind of its first job */
    pthread_t id;
} Seat;

/* Number of the last job in which a thread has found no unit left: in one group, or in all
 * groups. */
typedef struct Dry {
    alignas(LINES) atomic_uint job;
} Dry;

struct Pool {
    int threads;
    /* at the start: number of processors for the threads; of processors in their affinity masks */
    int most, whole;
    int64_t look;                /* time of the next reading of the masks */
    cpu_set_t *mask, *each_mask; /* room to read masks: of all threads; of one */
    bool crowded;                /* more threads than processors */
    Simulation *simulation;      /* NULL: the threads are real */
    cpu_set_t *outside;          /* thread 0 is pinned: the mask of the process; else NULL */
    Seat *seat;
    Fanout fan;
    Dry *dry; /* [groups] */
    Dry all_dry;
    alignas(LINES) unsigned number; /* of the last job; even */
    /* only if crowded: */
    alignas(LINES) atomic_uint open;         /* number of the job, + 1 while units may be taken */
    alignas(LINES) atomic_int inside, awake; /* threads at work; threads that do not sleep */
    atomic_int missing; /* if `each` or `swap`: threads that have not done their part */
    atomic_int room;    /* number of processors for the threads */
};

/* ---- waiting */

static int64_t spin_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

typedef struct Spin {
    int64_t began, now;
    unsigned round;
} Spin;

/* Waits a little.  False: SPIN_NS are over. */
static bool spin(Spin *s)
{
    if (s->round++ % LOOKS == LOOKS - 1) {
        s->now = spin_clock();
        s->began = s->began ? s->began : s->now;
    }
    if (s->now - s->began < PAUSE_NS)
        relax();
    else
        sched_yield();
    return s->now - s->began < SPIN_NS;
}

static void sleep_while(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint *word, int threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* Waits until the word has the number `number` or, with `change`, another one; returns the number
 * that it has. */
static unsigned await(atomic_uint *word, unsigned number, bool change)
{
    Spin s = {0, 0, 0};
    for (;;) {
        unsigned v = atomic_load_explicit(word, memory_order_acquire);
        if (((v & ~ASLEEP) != number) == change)
            return v & ~ASLEEP;
        if (!spin(&s) && (v & ASLEEP || atomic_compare_exchange_strong(word, &v, v | ASLEEP)))
            sleep_while(word, v | ASLEEP);
    }
}

static void announce(atomic_uint *word, unsigned number)
{
    if (atomic_exchange(word, number) & ASLEEP)
        wake(word, 1);
}

/* ---- units */

static int range_begin(const Pool *p, const Job *j, int thread)
{
    if (j->end)
        return thread ? j->end[thread - 1] : 0;
    return (int)((int64_t)j->units * thread / (p->crowded ? p->threads : j->active));
}

static int range_end(const Pool *p, const Job *j, int thread)
{
    return j->end ? j->end[thread] : range_begin(p, j, thread + 1);
}

static void fill_share(const Pool *p, const Job *j, int thread)
{
    const uint64_t begin = (uint64_t)range_begin(p, j, thread),
                   end = (uint64_t)range_end(p, j, thread);
    atomic_store_explicit(&p->seat[thread].share, end << 32 | begin, memory_order_relaxed);
}

static bool is_left(uint64_t share)
{
    return (uint32_t)share < share >> 32;
}

/* Takes units of a share until none is left. */
static void take_share(const Job *j, Share *s, int thread)
{
    while (is_left(atomic_load_explicit(s, memory_order_relaxed))) {
        const uint64_t taken = atomic_fetch_add_explicit(s, 1, memory_order_relaxed);
        if (!is_left(taken))
            break;
        j->work(j->arg, thread, (int)(uint32_t)taken);
    }
}

/* Takes units of the group's threads.  If a thread has not got the job yet, its share belongs to an
 * earlier job, and is skipped. */
static void take_group(Pool *p, const Job *j, int thread, int group, unsigned number)
{
    const FanoutGroup *g = &p->fan.part[group];
    const int n = (g->end < j->active ? g->end : j->active) - g->first;
    const int at = thread >= g->first && thread < g->end ? thread - g->first : 0;
    bool all = true;
    if (n <= 0 || atomic_load_explicit(&p->dry[group].job, memory_order_relaxed) == number)
        return;
    for (int k = 0; k < n; k++) {
        Seat *s = &p->seat[g->first + (at + k) % n];
        if ((atomic_load_explicit(&s->call, memory_order_acquire) & ~ASLEEP) == number)
            take_share(j, &s->share, thread);
        else
            all = false;
    }
    if (all && p->fan.groups > 1)
        atomic_store_explicit(&p->dry[group].job, number, memory_order_relaxed);
}

/* 0: the same cache; 1: the same socket; 2: different sockets. */
static int distance_of(const FanoutGroup *a, const FanoutGroup *b)
{
    return a->socket != b->socket ? 2 : a->cache != b->cache;
}

/* Takes the units of the thread itself, then those that others have not taken: first in its group,
 * then on its cache, on its socket, on other sockets. */
static void take_units(Pool *p, const Job *j, int thread, unsigned number)
{
    const Fanout *f = &p->fan;
    const int own = f->group[thread];
    if (j->each) {
        j->work(j->arg, thread, thread);
        return;
    }
    take_share(j, &p->seat[thread].share, thread);
    take_group(p, j, thread, own, number);
    if (f->groups == 1 || atomic_load_explicit(&p->all_dry.job, memory_order_relaxed) == number)
        return;
    bool all = true;
    for (int distance = 0; distance < 3; distance++)
        for (int k = 1; k < f->groups; k++) {
            const int g = (own + k) % f->groups;
            if (distance_of(&f->part[own], &f->part[g]) == distance)
                take_group(p, j, thread, g, number);
        }
    for (int g = 0; g < f->groups && all; g++)
        all = f->part[g].first >= j->active ||
              atomic_load_explicit(&p->dry[g].job, memory_order_relaxed) == number;
    if (all)
        atomic_store_explicit(&p->all_dry.job, number, memory_order_relaxed);
}

/* ---- a job along the tree */

static void call_children(Pool *p, const Job *j, int thread, unsigned number)
{
    for (int i = 0; i < p->fan.nchild[thread]; i++) {
        const int c = p->fan.child[thread][i];
        if (c >= j->active)
            continue;
        p->seat[c].job = *j;
        fill_share(p, j, c);
        announce(&p->seat[c].call, number);
    }
}

static void await_children(Pool *p, const Job *j, int thread, unsigned number)
{
    for (int i = p->fan.nchild[thread]; i-- > 0;)
        if (p->fan.child[thread][i] < j->active)
            await(&p->seat[p->fan.child[thread][i]].done, number, false);
}

static void do_job(Pool *p, const Job *j, int thread, unsigned number)
{
    call_children(p, j, thread, number);
    if (j->work)
        take_units(p, j, thread, number);
    await_children(p, j, thread, number);
}

/* Runs jobs along the tree. *number: that of the last job.  Returns whether jobs of the other kind
 * follow. */
static bool serve_tree(Seat *s, unsigned *number)
{
    for (;;) {
        *number = await(&s->call, *number, true);
        const Job j = s->job;
        do_job(s->pool, &j, s->thread, *number);
        announce(&s->done, *number);
        if (!j.work)
            return j.swap;
    }
}

static void run_tree(Pool *p, const Job *j)
{
    fill_share(p, j, 0);
    atomic_store_explicit(&p->seat[0].call, p->number, memory_order_release);
    do_job(p, j, 0, p->number);
}

/* ---- a job among more threads than processors
 *
 * As many threads as there are processors take units: those that are awake.  The others sleep.  A
 * thread that comes late finds the job closed.  So 64 threads on two processors switch as rarely as
 * two threads. */

static void take_crowded(Pool *p, const Job *j, int thread)
{
    if (j->each) {
        j->work(j->arg, thread, thread);
        atomic_fetch_sub(&p->missing, 1);
        return;
    }
    for (int k = 0; k < p->threads; k++)
        take_share(j, &p->seat[(thread + k) % p->threads].share, thread);
}

/* Waits until a job is open whose word is not `seen`, and returns its word.  Of all threads that
 * wait here, room - 1 stay awake. */
static unsigned await_open(Pool *p, unsigned seen)
{
    for (Spin s = {0, 0, 0};;) {
        const unsigned v = atomic_load(&p->open);
        if (v & 1 && v != seen)
            return v;
        if (atomic_load(&p->awake) < p->room && spin(&s)) {
            sched_yield();
            continue;
        }
        atomic_fetch_sub(&p->awake, 1);
        sleep_while(&p->open, v);
        atomic_fetch_add(&p->awake, 1);
        s = (Spin){0, 0, 0};
    }
}

/* Returns whether jobs of the other kind follow. */
static bool serve_crowd(Seat *s)
{
    Pool *p = s->pool;
    atomic_fetch_add(&p->awake, 1);
    for (unsigned seen = 0;;) {
        seen = await_open(p, seen);
        atomic_fetch_add(&p->inside, 1);
        const bool open = atomic_load(&p->open) == seen;
        const Job j = open ? p->seat[0].job : (Job){0};
        if (open && j.work)
            take_crowded(p, &j, s->thread);
        atomic_fetch_sub(&p->inside, 1);
        if (open && !j.work) {
            atomic_fetch_sub(&p->awake, 1);
            atomic_fetch_sub(&p->missing, 1);
            return j.swap;
        }
    }
}

/* Runs a job without work, for all threads but the first. */
static void dismiss_crowd(Pool *p, const Job *j)
{
    p->seat[0].job = *j;
    atomic_store(&p->missing, p->threads - 1);
    atomic_store(&p->open, p->number + 1);
    wake(&p->open, p->threads);
    for (Spin s = {0, 0, 0}; atomic_load(&p->missing) > 0;)
        if (!spin(&s))
            sched_yield();
    atomic_store(&p->open, p->number);
}

static void run_crowd(Pool *p, const Job *j)
{
    p->seat[0].job = *j;
    for (int t = 0; t < p->threads; t++)
        fill_share(p, j, t);
    atomic_store(&p->missing, j->each ? p->threads : 0);
    atomic_store(&p->open, p->number + 1);
    const int awake = atomic_load(&p->awake);
    if (j->each)
        wake(&p->open, p->threads);
    else if (awake < p->room - 1)
        wake(&p->open, p->room - 1 - awake);
    take_crowded(p, j, 0);
    for (Spin s = {0, 0, 0}; atomic_load(&p->missing) > 0;)
        if (!spin(&s))
            sched_yield();
    atomic_store(&p->open, p->number);
    for (Spin s = {0, 0, 0}; atomic_load(&p->inside) > 0;)
        if (!spin(&s))
            sched_yield();
}

/* ---- processors that come and go */

static cpu_set_t *mask_new(void)
{
    cpu_set_t *set = CPU_ALLOC(CORES_MOST);
    if (!set)
        rt_die("out of memory for a set of processors");
    return set;
}

/* Number of processors in the affinity masks of all threads together.  The mask of a pinned thread
 * has one processor. */
static int processors_of_masks(const Pool *p)
{
    const size_t size = CPU_ALLOC_SIZE(CORES_MOST);
    CPU_ZERO_S(size, p->mask);
    for (int t = 0; t < p->threads; t++)
        if ((t ? pthread_getaffinity_np(p->seat[t].id, size, p->each_mask)
               : sched_getaffinity(0, size, p->each_mask)) == 0)
            CPU_OR_S(size, p->mask, p->mask, p->each_mask);
    return CPU_COUNT_S(size, p->mask);
}

/* Switches the threads to the other kind of job. */
static void swap_crowded(Pool *p)
{
    const Job j = {.active = p->threads, .swap = true};
    p->number += 2;
    if (p->crowded)
        dismiss_crowd(p, &j);
    else
        do_job(p, &j, 0, p->number);
    p->crowded = !p->crowded;
}

/* Looks from time to time whether a cpuset has changed.  On too few processors, threads that spin
 * for each other are slow: on one processor, four threads of a small network took twice the time of
 * one thread, and teams of 16 threads took seven times as long. */
static void find_room(Pool *p)
{
    const int64_t now = spin_clock();
    if (now < p->look)
        return;
    const int left = processors_of_masks(p), fewer = left < p->most ? left : p->most;
    p->whole = p->look ? p->whole : left;
    p->look = now + ROOM_NS;
    atomic_store(&p->room, left > 0 && left < p->whole ? fewer : p->most);
    if ((p->threads > p->room) != p->crowded)
        swap_crowded(p);
}

/* ---- jobs */

static void run_job(Pool *p, Job j)
{
    if (p->simulation) {
        simulation_run(p->simulation, j.work, j.arg, j.units, j.end, j.each);
        return;
    }
    if (p->threads == 1) {
        for (int unit = 0; unit < j.units; unit++)
            j.work(j.arg, 0, unit);
        return;
    }
    find_room(p);
    p->number += 2;
    if (p->crowded)
        run_crowd(p, &j);
    else
        run_tree(p, &j);
}

void pool_next(Pool *p, const char *what, double bytes, double local)
{
    if (p->simulation)
        simulation_next(p->simulation, what, bytes, local);
}

void pool_run(Pool *p, PoolWork work, void *arg, int units)
{
    const int active = units < p->threads ? units : p->threads;
    if (units > 0)
        run_job(p, (Job){.work = work, .arg = arg, .units = units, .active = active});
}

void pool_run_shares(Pool *p, PoolWork work, void *arg, const int *end)
{
    run_job(p, (Job){.work = work,
                     .arg = arg,
                     .end = end,
                     .units = end[p->threads - 1],
                     .active = p->threads});
}

void pool_each(Pool *p, PoolWork work, void *arg)
{
    run_job(p, (Job){.work = work,
                     .arg = arg,
                     .units = p->threads,
                     .active = p->threads,
                     .each = true});
}

/* ---- begin and end */

/* A thread stays unpinned if its processor has left the cpuset since the start. */
static void pin(const Seat *s)
{
    cpu_set_t *set = s->processor >= 0 ? CPU_ALLOC(CORES_MOST) : NULL;
    if (!set)
        return;
    CPU_ZERO_S(CPU_ALLOC_SIZE(CORES_MOST), set);
    CPU_SET_S(s->processor, CPU_ALLOC_SIZE(CORES_MOST), set);
    sched_setaffinity(0, CPU_ALLOC_SIZE(CORES_MOST), set);
    CPU_FREE(set);
}

static void *serve(void *arg)
{
    Seat *s = arg;
    threads_flush_denormals();
    pin(s);
    unsigned number = 0;
    bool crowded = s->crowded;
    while (crowded ? serve_crowd(s) : serve_tree(s, &number))
        crowded = !crowded;
    return NULL;
}

/* Pins thread 0.  Threads that it creates later, outside of the pool, get the mask of the process,
 * not that of thread 0. */
static void pin_first(Pool *p)
{
    const size_t size = CPU_ALLOC_SIZE(CORES_MOST);
    p->outside = CPU_ALLOC(CORES_MOST);
    if (!p->outside || sched_getaffinity(0, size, p->outside) != 0)
        return;
    threads_mask(p->outside, size);
    pin(&p->seat[0]);
}

/* Returns the number of threads that run.  After the first failure the pool has only the threads
 * before it. */
static int start_threads(Pool *p)
{
    for (int t = 1; t < p->threads; t++) {
        const int error = threads_start(&p->seat[t].id, serve, &p->seat[t]);
        if (error) {
            rt_note("thread %d of %d could not be started (%s): the run continues with %d thread%s",
                    t + 1, p->threads, strerror(error), t, t == 1 ? "" : "s");
            return t;
        }
    }
    return p->threads;
}

/* Allocates n zeroed pieces of `bytes` bytes, each on cache lines of its own. */
static void *lines_new(int n, size_t bytes)
{
    void *at = aligned_alloc(LINES, bytes * (size_t)n);
    if (!at)
        rt_die("out of memory for %d threads", n);
    return memset(at, 0, bytes * (size_t)n);
}

/* Simulated threads take no part in anything but simulation_run. */
static Pool *simulated(int threads, bool backwards)
{
    Pool *p = lines_new(1, sizeof *p);
    p->threads = p->most = threads;
    atomic_init(&p->room, threads);
    p->simulation = simulation_new(threads, backwards);
    return p;
}

Pool *pool_on(const Placement *x)
{
    if (x->turns)
        return simulated(x->threads, x->turns < 0);
    const Cores *c = x->cores;
    const bool known = c && x->first + x->threads <= c->processors;
    const Processor *on = known ? c->processor + x->first : NULL;
    Pool *p = lines_new(1, sizeof *p);
    p->threads = x->threads;
    p->room = p->most = x->room > 0 ? x->room : threads_available();
    p->crowded = p->threads > p->room;
    p->mask = mask_new(), p->each_mask = mask_new();
    p->seat = lines_new(p->threads, sizeof *p->seat);
    p->dry = lines_new(p->threads, sizeof *p->dry);
    fanout_plan(&p->fan, on, p->threads);
    const bool pinned = on && x->pin && c->real && !p->crowded;
    for (int t = 0; t < p->threads; t++) {
        p->seat[t].pool = p;
        p->seat[t].thread = t;
        p->seat[t].crowded = p->crowded;
        p->seat[t].processor = pinned ? on[t].number : -1;
    }
    threads_flush_denormals();
    if (pinned)
        pin_first(p);
    p->threads = start_threads(p);
    return p;
}

Pool *pool_new(int threads)
{
    return pool_on(&(Placement){.threads = threads});
}

Pool *pool_simulated(int threads)
{
    return simulated(threads, false);
}

Simulation *pool_simulation(const Pool *p)
{
    return p->simulation;
}

int pool_threads(const Pool *p)
{
    return p->threads;
}

bool pool_crowded(const Pool *p)
{
    return p->crowded;
}

static void end_threads(Pool *p)
{
    const Job end = {.active = p->threads};
    p->number += 2;
    if (p->crowded) {
        dismiss_crowd(p, &end);
    } else {
        do_job(p, &end, 0, p->number);
    }
    for (int t = 1; t < p->threads; t++)
        pthread_join(p->seat[t].id, NULL);
}

void pool_free(Pool *p)
{
    if (p->threads > 1 && !p->simulation)
        end_threads(p);
    simulation_free(p->simulation);
    if (p->outside) {
        sched_setaffinity(0, CPU_ALLOC_SIZE(CORES_MOST), p->outside);
        threads_mask(NULL, 0);
    }
    CPU_FREE(p->outside);
    CPU_FREE(p->mask);
    CPU_FREE(p->each_mask);
    fanout_free(&p->fan);
    free(p->dry);
    free(p->seat);
    free(p);
}
