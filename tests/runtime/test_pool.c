/* test_pool.c -- the pool of threads along the tree of a machine: each unit once, threads that sleep, pinned threads, a mask that
 * changes, threads that cannot be created. */
#define _GNU_SOURCE
#include "base/cores.h"
#include "base/threads.h"
#include "leaks.h"
#include "suite.h"
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNITS = 500 };
static atomic_int done[UNITS];

static void count_unit(void *arg, int thread, int unit)
{
    ck_assert_int_lt(thread, *(int *)arg);
    atomic_fetch_add(&done[unit], 1);
}

static void check_done(int units)
{
    for (int i = 0; i < UNITS; i++)
        ck_assert_int_eq(atomic_exchange(&done[i], 0), i < units);
}

static Cores fake(int n, Processor *p)
{
    for (int i = 0; i < n; i++)
        p[i] = (Processor){.number = i, .socket = i / 24, .cache = i / 4, .core = i};
    return (Cores){.machine = n,
                   .processors = n,
                   .cores = n,
                   .caches = n / 4,
                   .sockets = n / 24,
                   .processor = p};
}

/* 48 cores in 12 caches and 2 sockets; and the same threads where there are 2 processors. */
START_TEST(units_run_once_along_the_tree)
{
    static const int sizes[] = {2, 3, 8, 11, 24, 33, 48};
    Processor p[48];
    const Cores c = fake(48, p);
    for (int i = 0; i < 7; i++) {
        int threads = sizes[i], ends[48];
        Pool *pool = pool_on(&(Placement){.threads = threads, .cores = &c, .room = _i ? 2 : 48});
        for (int round = 0; round < 40; round++) {
            const int units = round * 37 % UNITS;
            pool_run(pool, count_unit, &threads, units);
            check_done(units);
            for (int t = 0; t < threads; t++)
                ends[t] = t < threads / 2 ? t / 3 : units / 2 + t; /* most units in one range */
            pool_run_shares(pool, count_unit, &threads, ends);
            check_done(ends[threads - 1]);
        }
        pool_free(pool);
    }
}
END_TEST

static void meet_others(void *barrier, int thread, int unit)
{
    ck_assert_int_eq(thread, unit);
    pthread_barrier_wait(barrier);
    atomic_fetch_add(&done[unit], 1);
}

/* All at the same time, also on fewer processors. */
START_TEST(each_thread_has_its_own_unit)
{
    Processor p[48];
    const Cores c = fake(48, p);
    int threads = 9;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 9);
    Pool *pool = pool_on(&(Placement){.threads = 9, .cores = &c, .room = _i ? 2 : 48});
    ck_assert(pool_crowded(pool) == (_i > 0));
    for (int round = 0; round < 20; round++) {
        pool_each(pool, meet_others, &barrier);
        check_done(9);
        pool_run(pool, count_unit, &threads, round);
        check_done(round);
    }
    pool_free(pool);
    pthread_barrier_destroy(&barrier);
}
END_TEST

/* Threads that have slept are woken, through threads that had no unit before. */
START_TEST(sleeping_threads_wake_up)
{
    Processor p[48];
    const Cores c = fake(48, p);
    int threads = 7;
    Pool *pool = pool_on(&(Placement){.threads = threads, .cores = &c, .room = _i ? 2 : 48});
    for (int round = 0; round < 30; round++) {
        const int units = round % 3 ? 2 : 40;
        usleep(1000 * (unsigned)(round % 2));
        pool_run(pool, count_unit, &threads, units);
        check_done(units);
    }
    pool_free(pool);
}
END_TEST

/* ---- processors of this machine */

static void check_processor(void *arg, int thread, int unit)
{
    const Cores *c = arg;
    ck_assert_int_eq(thread, unit);
    ck_assert_int_eq(sched_getcpu(), c->processor[thread].number);
    atomic_fetch_add(&done[unit], 1);
}

static int processors_of_mask(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

static void *ask_mask(void *arg)
{
    *(int *)arg = processors_of_mask();
    return NULL;
}

START_TEST(pinned_threads_stay_in_the_mask)
{
    Cores c;
    pthread_t id;
    int other = 0;
    cores_read(&c, "");
    const int before = processors_of_mask();
    Pool *pool =
        pool_on(&(Placement){.threads = c.cores, .cores = &c, .room = c.processors, .pin = true});
    pool_each(pool, check_processor, &c);
    check_done(c.cores);
    ck_assert_int_eq(processors_of_mask(), 1);
    ck_assert_int_eq(threads_start(&id, ask_mask, &other), 0); /* not beside thread 0 only */
    pthread_join(id, NULL);
    ck_assert_int_eq(other, before);
    pool_free(pool);
    ck_assert_int_eq(processors_of_mask(), before);
    pool = pool_on(&(Placement){.threads = c.cores, .cores = &c, .room = c.processors});
    ck_assert_int_eq(processors_of_mask(), before);
    pool_free(pool);
}
END_TEST

/* A mask from outside is not extended: no thread runs on the second core. */
START_TEST(a_binding_is_kept)
{
    Cores all, one;
    cpu_set_t set;
    cores_read(&all, "");
    CPU_ZERO(&set);
    CPU_SET(all.processor[all.cores - 1].number, &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
    cores_read(&one, "");
    ck_assert_int_eq(one.cores, 1);
    ck_assert_int_eq(cores_threads(&one, 1), 1);
    int threads = 3;
    Pool *pool = pool_on(&(Placement){.threads = threads, .cores = &one, .room = 1, .pin = true});
    pool_run(pool, count_unit, &threads, 100);
    check_done(100);
    pool_free(pool);
    ck_assert_int_eq(processors_of_mask(), 1);
}
END_TEST

/* All threads get this mask, as when a cpuset is changed. */
static void set_masks(const cpu_set_t *set)
{
    DIR *d = opendir("/proc/self/task");
    for (const struct dirent *e; d && (e = readdir(d));)
        if (atoi(e->d_name) > 0)
            ck_assert_int_eq(sched_setaffinity(atoi(e->d_name), sizeof *set, set), 0);
    closedir(d);
}

/* A number of jobs, the last of them after the pool has looked at the masks again. */
static void run_jobs(Pool *pool, int *threads, pthread_barrier_t *barrier)
{
    for (int round = 0; round < 50; round++) {
        if (round == 25)
            usleep(110000);
        pool_run(pool, count_unit, threads, round);
        check_done(round);
        pool_each(pool, meet_others, barrier);
        check_done(*threads);
    }
}

/* The mask shrinks to one processor and grows again; round 1: threads are pinned first.  Units of
 * five threads on a processor of their own are for each thread; on fewer, for those that are awake. */
START_TEST(a_cpuset_shrinks_and_grows)
{
    Cores c;
    cpu_set_t all, one;
    cores_read(&c, "");
    int threads = _i ? 2 : 5;
    pthread_barrier_t barrier;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    CPU_ZERO(&one);
    CPU_SET(c.processor[0].number, &one);
    Pool *pool =
        pool_on(&(Placement){.threads = threads, .cores = &c, .room = threads, .pin = _i > 0});
    run_jobs(pool, &threads, &barrier);
    ck_assert(!pool_crowded(pool));
    for (int round = 0; round < 3; round++) {
        set_masks(&one);
        run_jobs(pool, &threads, &barrier);
        ck_assert(pool_crowded(pool) == (CPU_COUNT(&all) > 1));
        set_masks(&all);
        run_jobs(pool, &threads, &barrier);
        ck_assert(!pool_crowded(pool));
    }
    set_masks(&one);
    run_jobs(pool, &threads, &barrier);
    pool_free(pool);
    pthread_barrier_destroy(&barrier);
}
END_TEST

/* Sanitizers reserve more address space than the test allows. */
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
static char said[1024];

/* Runs in a child whose address space has room for a few stacks only. */
static void run_with_few_threads(void)
{
    struct rlimit limit = {(rlim_t)200 << 20, (rlim_t)200 << 20};
    int threads = 64, status, ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        setrlimit(RLIMIT_AS, &limit);
        Pool *pool = pool_on(&(Placement){.threads = threads, .room = 64});
        pool_run(pool, count_unit, &threads, 100);
        int right = pool_threads(pool) < 64 && pool_threads(pool) > 0;
        for (int i = 0; i < UNITS; i++)
            right &= done[i] == (i < 100);
        pool_free(pool);
        _exit(right ? 0 : 2);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d: %s", status, said);
}

START_TEST(a_thread_that_cannot_be_created_is_done_without)
{
    run_with_few_threads();
    const char *note = strstr(said, "of 64 could not be started");
    ck_assert_msg(note != NULL, "%s", said);
    ck_assert_msg(!strstr(note + 8, "of 64"), "one note only: %s", said);
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("pool");
    TCase *p = tcase_create("pool");
    tcase_set_timeout(p, 60);
    tcase_add_loop_test(p, units_run_once_along_the_tree, 0, 2);
    tcase_add_loop_test(p, each_thread_has_its_own_unit, 0, 2);
    tcase_add_loop_test(p, sleeping_threads_wake_up, 0, 2);
    tcase_add_test(p, pinned_threads_stay_in_the_mask);
    tcase_add_test(p, a_binding_is_kept);
    tcase_add_loop_test(p, a_cpuset_shrinks_and_grows, 0, 2);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    tcase_add_test(p, a_thread_that_cannot_be_created_is_done_without);
#endif
    suite_add_tcase(s, p);
    return suite_run(s);
}
