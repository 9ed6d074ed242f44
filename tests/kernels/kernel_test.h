/* kernel_test.h -- guarded buffers, random numbers by counter, layouts, comparisons.
 *
 * Each test_*.c here is a separate program, built for every vector width and both types of real:
 *     cc -std=gnu11 -O2 -ffp-contract=off -march=x86-64-v3 [-DRT_F64] -Iruntime
 *        tests/kernels/test_conv.c -lcheck -lsubunit -lrt -lm
 * A buffer is as long as the contract says, with 64 readable bytes after it, which the kernel must
 * not change.
 */
#ifndef KERNEL_TEST_H
#define KERNEL_TEST_H
#include <stdint.h>

/* A function that is always optimised: random numbers, and plain kernels as separate functions,
 * take most of the time of the tests of convolutions and of dense layers. */
#ifdef __clang__
#define OPTIMISED
#else
#define OPTIMISED __attribute__((optimize("O2")))
#endif
#define REFERENCE   __attribute__((noinline)) OPTIMISED
/* A kernel as one function: a test that inlines a kernel into each of its calls takes several times as long to compile. */
#ifdef __clang__
#define ONCE static __attribute__((noinline))
#else
#define ONCE static __attribute__((noipa))
#endif
#define RT_SEPARATE __attribute__((noinline, unused)) OPTIMISED /* functions that kernels call */
static inline OPTIMISED void rt_philox(uint32_t out[4], uint64_t key, uint32_t c0, uint32_t c1,
                                       uint32_t c2, uint32_t c3);

#include "base/team.h"
#include "require.h"
#include "suite.h"
#include "rt.h"
#include "cpu/vec.h"
#include "cpu/math.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Check records each assertion that holds in a file, which takes two thirds of the time of tests that check each number of a
 * buffer.  So only assertions that fail are reported, with their line. */
#define _mark_point(file, line) ((void)0)

/* Relative L2 distance that counts as equal: a few hundred roundings. */
#ifdef RT_DOUBLE
static const double TOLERANCE = 1e-12;
#else
static const double TOLERANCE = 4e-6;
#endif

enum { SLACK = 64, GUARD = 0x5a };

/* count reals, all NaN, guarded. */
static inline void *buffer_bytes(int64_t bytes)
{
    char *p = aligned_alloc(64, (size_t)(bytes + SLACK + 127) / 64 * 64);
    ck_assert_ptr_nonnull(p);
    if (bytes < 0)
        abort();
    memset(p, 0xff, (size_t)bytes);
    memset(p + bytes, GUARD, SLACK);
    return p;
}
static inline real *buffer(int64_t count)
{
    return buffer_bytes(count * (int64_t)sizeof(real));
}

static inline void check_guard(const void *p, int64_t bytes, const char *what)
{
    for (int i = 0; i < SLACK; i++)
        REQUIRE(((const unsigned char *)p)[bytes + i] == GUARD, "%s wrote %d bytes behind its end",
                what, i);
}

/* Uniform in (-1, 1), element i of stream `seed`. */
static inline OPTIMISED double noise(int seed, int64_t i)
{
    uint32_t bits[4];
    rt_philox(bits, 0x7e505, (uint32_t)i, (uint32_t)seed, 0, 0);
    return (bits[0] + 0.5) / 2147483648.0 - 1;
}
static inline OPTIMISED real *random_buffer(int64_t count, int seed)
{
    real *p = buffer(count);
    for (int64_t i = 0; i < count; i++)
        p[i] = (real)noise(seed, i);
    return p;
}
static inline real *zero_buffer(int64_t count)
{
    return memset(buffer(count), 0, sizeof(real) * (size_t)count);
}
static inline real *copy_buffer(const real *x, int64_t count)
{
    return memcpy(buffer(count), x, sizeof(real) * (size_t)count);
}

/* (A, B, C) to (A, C, B): NCHW to NHWC with B = C, C = HW, and back. */
static inline OPTIMISED real *swap_last(const real *x, int64_t a, int64_t b, int64_t c)
{
    real *y = buffer(a * b * c);
    for (int64_t i = 0; i < a; i++)
        for (int64_t j = 0; j < b; j++)
            for (int64_t k = 0; k < c; k++)
                y[(i * c + k) * b + j] = x[(i * b + j) * c + k];
    return y;
}

/* Rows of c numbers with distance ld and -7 between them; and whether the rows are equal and the -7 unchanged. */
static inline real *spread(const real *x, int64_t rows, int64_t c, int64_t ld)
{
    real *y = buffer(rows * ld);
    for (int64_t i = 0; i < rows * ld; i++)
        y[i] = i % ld < c && x ? x[i / ld * c + i % ld] : -7;
    return y;
}
static inline void check_spread(const real *y, const real *x, int64_t rows, int64_t c, int64_t ld,
                                const char *what)
{
    for (int64_t i = 0; i < rows * ld; i++)
        REQUIRE(y[i] == (i % ld < c ? x[i / ld * c + i % ld] : -7),
                "%s: number %d of row %d, with rows apart", what, (int)(i % ld), (int)(i / ld));
}

static inline OPTIMISED double distance(const real *a, const real *b, int64_t count)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = (double)a[i] - (double)b[i];
        apart += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(apart / size) : sqrt(apart);
}

/* a equals b within the tolerance, and nothing was written after its end. */
static inline void check_close(const real *a, const real *b, int64_t count, const char *what)
{
    const double d = distance(a, b, count);
    ck_assert_msg(d <= TOLERANCE, "%s: relative L2 distance %.3g, allowed %.3g", what, d,
                  TOLERANCE);
    check_guard(a, count * (int64_t)sizeof(real), what);
}
static inline void check_same(const void *a, const void *b, int64_t bytes, const char *what)
{
    ck_assert_msg(memcmp(a, b, (size_t)bytes) == 0, "%s: not the same bits", what);
}

/* Sum of items 0 .. n - 1 in the order of the tree, by recursion: the left part is the largest power of two below n. */
static inline real tree_by_hand(const real *item, int n)
{
    if (n == 1)
        return item[0];
    int left = 1;
    while (2 * left < n)
        left *= 2;
    return tree_by_hand(item, left) + tree_by_hand(item + left, n - left);
}

static inline void release(int count, ...)
{
    __builtin_va_list list;
    __builtin_va_start(list, count);
    for (int i = 0; i < count; i++)
        free(__builtin_va_arg(list, void *));
    __builtin_va_end(list);
}

/* Runs work(arg) on each thread of a team. */
enum { TEAM_MOST = 16 };
typedef struct Member {
    RtTeam team;
    void (*work)(void *arg);
    void *arg;
    pthread_t id;
} Member;
static inline void *run_member(void *arg)
{
    const Member *m = arg;
    rt_team = m->team;
    m->work(m->arg);
    return NULL;
}
static inline void as_team(int members, void (*work)(void *arg), void *arg)
{
    Member m[TEAM_MOST];
    pthread_attr_t attr;
    Barrier *barrier = barriers_new(members);
    ck_assert_ptr_nonnull(barrier);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, RT_STACK);
    for (int i = 0; i < members; i++) {
        m[i] = (Member){{i, members, barriers_at(barrier, i, 1), NULL}, work, arg, 0};
        ck_assert_int_eq(pthread_create(&m[i].id, &attr, run_member, &m[i]), 0);
    }
    for (int i = 0; i < members; i++)
        pthread_join(m[i].id, NULL);
    pthread_attr_destroy(&attr);
    barriers_free(barrier);
}

/* Each test is a separate process whose stack has at most RT_STACK bytes, as a thread of a program. */
static inline int run_suite(TCase *tests, const char *name)
{
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = RT_STACK < limit.rlim_max ? RT_STACK : limit.rlim_max;
    setrlimit(RLIMIT_STACK, &limit);
    Suite *s = suite_create(name);
    tcase_set_timeout(tests, 120);
    suite_add_tcase(s, tests);
    return suite_run(s);
}

/* CHECK_EVERY=5 in the environment runs the first round of a loop test and each fifth after it.
 * Many tests use _i % 2, 3 or 4, so the number must have no factor 2 or 3: with 6, a team always had
 * seven threads, and half of the kinds of numbers in bf16 were left out. */
static inline int rounds_step(void)
{
    const char *every = getenv("CHECK_EVERY");
    return every && atoi(every) > 0 ? atoi(every) : 1;
}

#ifdef CROSS_CHECK
#define add_rounds tcase_add_loop_test /* it does so itself */
#else
static inline void add_rounds(TCase *c, const TTest *test, int begin, int end)
{
    const int step = rounds_step();
    if (step % 2 == 0 || step % 3 == 0) {
        fprintf(stderr, "CHECK_EVERY=%d leaves out whole kinds of rounds: use 5, 7, 11 or 13\n", step);
        exit(1);
    }
    for (int i = begin; i < end; i += step)
        tcase_add_loop_test(c, test, i, i + 1);
}
#endif

#endif
