/* test_wire.c -- sums that are sent as bf16 (comm/wire.c): rounding, and errors that are kept and
 * sent later, for sizes at all limits.
 *
 * Ranks are threads, and a table of mailboxes carries their messages (mailbox.h): the tested code
 * is that of programs.  Each sum is compared with plain code for the same sum, a whole vector at a
 * time.
 */
#include "mailbox.h"
#include "require.h"
#include "suite.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = MAILBOX_RANKS };

typedef struct Rank {
    Comm comm;
    CommState state;
    CommSum sum;
    int64_t from, n;                                  /* what the next sum is of */
} Rank;

static Rank rank[RANKS];

static void ranks_new(int size, int64_t n)
{
    for (int r = 0; r < size; r++) {
        Rank *x = &rank[r];
        *x = (Rank){.comm = {.rank = r, .size = size, .bf16 = true, .state = &x->state},
                    .state = {.t = &mailbox, .comm = &x->comm, .limit = 60, .started = true},
                    .sum = {.n = n, .real_bytes = 4, .shards = size}};
        comm_sum_plan(&x->comm, &x->sum);
        x->sum.buffer = calloc((size_t)n, 4);
        x->sum.scratch = calloc((size_t)x->sum.scratch_bytes + 64, 1);
        memset(x->sum.scratch + x->sum.scratch_bytes, 0x5a, 64);
    }
    mailbox_open(size, 0);
}

static void ranks_free(int size)
{
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < 64; i++)
            REQUIRE(rank[r].sum.scratch[rank[r].sum.scratch_bytes + i] == 0x5a, "byte %d behind the scratch of rank %d", i, r);
        free(rank[r].sum.buffer), free(rank[r].sum.scratch), free(rank[r].sum.first);
    }
    mailbox_empty(size);
}

static void *add(void *arg)
{
    Rank *x = arg;
    mailbox_here = x->comm.rank;
    comm_sum_now(&x->comm, &x->sum, x->from, x->n);
    return NULL;
}

static float *values(int r)
{
    return (float *)(void *)rank[r].sum.buffer;
}

/* One sum over the ranks, of n numbers from `from` on. */
static void sum(int size, int64_t from, int64_t n)
{
    pthread_t thread[RANKS];
    for (int r = 0; r < size; r++) {
        rank[r].from = from, rank[r].n = n;
        ck_assert_int_eq(pthread_create(&thread[r], NULL, add, &rank[r]), 0);
    }
    for (int r = 0; r < size; r++)
        pthread_join(thread[r], NULL);
}

/* ---- the same sum as plain code */

/* The nearest of the numbers with 8 bits of significand; of two as near, the even one. */
static float rounded(float x)
{
    int e;
    if (x == 0 || !isfinite(x))
        return x;
    const double m = frexp((double)x, &e);             /* 0.5 <= |m| < 1 */
    return (float)ldexp(nearbyint(ldexp(m, 8)), e - 8);
}

typedef struct Plain {
    float *kept[RANKS], *kept_sum;
} Plain;

static float send(float x, float *kept)
{
    const float v = x + *kept, out = rounded(v);
    *kept = v - out;
    return out;
}

/* The sum of number i over all ranks, which each rank gets. */
static float plainly(Plain *p, const float *x, int size, int64_t i)
{
    float part[RANKS];
    for (int r = 0; r < size; r++)
        part[r] = send(x[r], &p->kept[r][i]);
    for (int d = 1; d < size; d *= 2)
        for (int r = 0; r < size; r += 2 * d)
            part[r] += part[r + d];
    return send(part[0], &p->kept_sum[i]);
}

static Plain plain_new(int size, int64_t n)
{
    Plain p = {.kept_sum = calloc((size_t)n, 4)};
    for (int r = 0; r < size; r++)
        p.kept[r] = calloc((size_t)n, 4);
    return p;
}

static void plain_free(Plain *p, int size)
{
    for (int r = 0; r < size; r++)
        free(p->kept[r]);
    free(p->kept_sum);
}

static float random_number(uint32_t key, int64_t i)
{
    uint32_t w[4];
    rt_philox(w, key, (uint32_t)i, 0, 0, 0);
    return ldexpf((float)(int32_t)w[0] * 0x1p-31f, (int)(w[1] % 24) - 12);
}

/* ---- */

static const int sizes[] = {1, 2, 15, 16, 17, 31, 33, 63, 127, 128, 129, 255, 1000, 4099};
static const int many[] = {2, 4, 8};
enum { SIZES = sizeof sizes / sizeof *sizes, MANY = sizeof many / sizeof *many };

static bool is_deep(void)
{
    const char *deep = getenv("CHECK_DEEP");
    return deep && *deep == '1';
}

/* Steps of a vector that goes in three uneven buckets: every number of every rank, to the bit.  ./check --deep takes five steps and
 * all sizes with eight ranks, which wait for each other on two processors; other runs take two steps and every fourth size. */
START_TEST(every_size_is_the_plain_sum)
{
    const bool all = is_deep();
    const int size = many[_i % MANY];
    const int64_t n = sizes[_i / MANY];
    if (!all && size == RANKS && _i / MANY % 4 != 1)
        return;
    Plain p = plain_new(size, n);
    ranks_new(size, n);
    for (uint32_t step = 0; step < (all ? 5 : 2); step++) {
        const int64_t cut[] = {0, n / 3, n / 3 + n / 2, n};
        for (int r = 0; r < size; r++)
            for (int64_t i = 0; i < n; i++)
                values(r)[i] = random_number(step * RANKS + (uint32_t)r, i);
        for (int b = 0; b < 3; b++)
            sum(size, cut[b], cut[b + 1] - cut[b]);
        for (int64_t i = 0; i < n; i++) {
            float x[RANKS];
            for (int r = 0; r < size; r++)
                x[r] = random_number(step * RANKS + (uint32_t)r, i);
            const float want = plainly(&p, x, size, i);
            for (int r = 0; r < size; r++)
                REQUIRE(memcmp(&values(r)[i], &want, 4) == 0, "step %u, number %lld of rank %d of %d: %a, not %a",
                        step, (long long)i, r, size, (double)values(r)[i], (double)want);
        }
    }
    ranks_free(size);
    plain_free(&p, size);
}
END_TEST

/* Vectors of several stretches: each stretch keeps its own errors. */
START_TEST(long_vectors_go_in_stretches)
{
    enum { STRETCH = 1 << 20 };
    const int64_t n = 2 * STRETCH + 77;
    ranks_new(2, n);
    Plain p = plain_new(2, n);
    for (int step = 0; step < (is_deep() ? 3 : 2); step++) {
        for (int r = 0; r < 2; r++)
            for (int64_t i = 0; i < n; i++)
                values(r)[i] = (float)(1 + i % 4093) * 0x1.234p-7f * (float)(r + 1);
        sum(2, 0, n);
        for (int64_t i = 0; i < n; i++) {
            const float x = (float)(1 + i % 4093) * 0x1.234p-7f, want = plainly(&p, (float[]){x, 2 * x}, 2, i);
            if (values(0)[i] != want || values(1)[i] != want)
                ck_abort_msg("step %d, number %lld: %a and %a, not %a", step, (long long)i, (double)values(0)[i],
                             (double)values(1)[i], (double)want);
        }
    }
    ranks_free(2);
    plain_free(&p, 2);
}
END_TEST

/* Errors are sent in later steps: over many steps, the sums add up to the exact sum, however small the contribution of a step is,
 * and the error does not grow with the steps.  More than two ranks wait for each other on two processors: fewer steps but in
 * ./check --deep. */
START_TEST(nothing_is_lost_over_many_steps)
{
    enum { N = 40 };
    const int size = many[_i], steps = size == 2 || is_deep() ? 1000 : 100;
    double got[N] = {0}, want[N] = {0}, worst[2] = {0, 0};
    ranks_new(size, N);
    for (int step = 1; step <= steps; step++) {
        for (int r = 0; r < size; r++)
            for (int i = 0; i < N; i++) {
                const float x = i % 2 ? 1.001f + 0.0001f * (float)i : ldexpf(1.7f, -i) * (float)(r + 1);
                values(r)[i] = x;
                want[i] += (double)x;
            }
        sum(size, 0, N);
        for (int i = 0; i < N; i++) {
            got[i] += (double)values(0)[i];
            const double each = want[i] / step, off = fabs(got[i] - want[i]) / each;
            worst[step > 30] = fmax(worst[step > 30], off);
        }
    }
    ck_assert_double_lt(worst[0], 0.02);               /* of a step's sum: a half of a last place each way, 2^-8, and what is carried */
    ck_assert_double_lt(worst[1], 0.02);
    ranks_free(size);
}
END_TEST

/* A single step is rounded: the sum of numbers 1 + 2^-10 is that of ones; the 2^-10 appear in a later step. */
START_TEST(a_step_is_rounded_and_makes_up_for_it)
{
    double got = 0;
    ranks_new(2, 1);
    for (int step = 0; step < 64; step++) {
        values(0)[0] = values(1)[0] = 1 + 0x1p-10f;
        sum(2, 0, 1);
        if (step == 0)
            ck_assert_double_eq((double)values(0)[0], 2);
        got += (double)values(0)[0];
    }
    ck_assert_double_eq_tol(got, 64 * 2 * (1 + 0x1p-10), 0x1p-6);
    ck_assert_double_gt(got, 64 * 2);
    ranks_free(2);
}
END_TEST

/* Ties are rounded to the even neighbour, for both signs; the largest number, infinities and NaNs are kept. */
START_TEST(rounding)
{
    static const struct { float x, y; } row[] = {
        {1 + 0x1p-8f, 1}, {1 + 0x3p-8f, 1 + 0x1p-6f}, {-1 - 0x1p-8f, -1}, {-1 - 0x3p-8f, -1 - 0x1p-6f},
        {1 + 0x1.01p-8f, 1 + 0x1p-7f}, {1.9999f, 2}, {0x1.8p-126f, 0x1.8p-126f}, {0x1.fep127f, 0x1.fep127f},
        {0x1.fffffep127f, INFINITY}, {INFINITY, INFINITY}, {-INFINITY, -INFINITY}, {NAN, NAN}, {0, 0}, {3, 3}};
    enum { ROWS = sizeof row / sizeof *row };
    ranks_new(2, ROWS);
    for (int i = 0; i < ROWS; i++)
        values(0)[i] = row[i].x, values(1)[i] = 0;
    sum(2, 0, ROWS);
    for (int i = 0; i < ROWS; i++)
        for (int r = 0; r < 2; r++)
            if (isnan(row[i].y))
                ck_assert(isnan(values(r)[i]));
            else
                REQUIRE(values(r)[i] == row[i].y, "%a becomes %a, not %a", (double)row[i].x, (double)values(r)[i], (double)row[i].y);
    ranks_free(2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire");
    TCase *t = tcase_create("wire");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, every_size_is_the_plain_sum, 0, SIZES * MANY);
    tcase_add_test(t, long_vectors_go_in_stretches);
    tcase_add_loop_test(t, nothing_is_lost_over_many_steps, 0, MANY);
    tcase_add_test(t, a_step_is_rounded_and_makes_up_for_it);
    tcase_add_test(t, rounding);
    suite_add_tcase(s, t);
    return suite_run(s);
}
