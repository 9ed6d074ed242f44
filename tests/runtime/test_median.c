/* test_median.c -- the interval of a median: its ranks, and how often it contains the true median. */
#include "measure/median.h"
#include "suite.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>

/* times 1, 2 ... n in another order */
static Median of_ranks(int64_t n, int64_t launches)
{
    double time[200];
    for (int64_t i = 0; i < n; i++)
        time[i] = (double)(i * 7 % n + 1);
    return median_of(time, n, launches);
}

START_TEST(ranks)
{
    Median m = of_ranks(5, 5);
    ck_assert_double_eq(m.median, 3);
    ck_assert_double_eq(m.low, 0);
    ck_assert(isinf(m.high) && isinf(median_error(m)));
    m = of_ranks(6, 6);
    ck_assert(m.low == 1 && m.high == 6);
    m = of_ranks(10, 10); /* the binomial distribution: 97.9 % */
    ck_assert(m.low == 2 && m.high == 9);
    m = of_ranks(100, 100); /* 96.5 % */
    ck_assert(m.low == 41 && m.high == 60);
    ck_assert_double_eq_tol(median_error(m), 10. / 51, 1e-12);
}
END_TEST

START_TEST(launches_count_once) /* 16 steps in each of 6 launches: all 96 times are the interval */
{
    const Median m = of_ranks(96, 6);
    ck_assert(m.low <= 10 && m.high >= 87);
    ck_assert(median_error(of_ranks(96, 6)) > 3 * median_error(of_ranks(96, 96)));
}
END_TEST

/* Exponential times: their true median is log(2). */
START_TEST(contains_the_true_median)
{
    enum { TRIALS = 2000 };
    unsigned short state[3] = {1, 2, 3};
    static const int sizes[] = {7, 20, 51, 200};
    for (int k = 0; k < 4; k++) {
        int inside = 0;
        for (int t = 0; t < TRIALS; t++) {
            double time[200];
            for (int i = 0; i < sizes[k]; i++)
                time[i] = -log(1 - erand48(state));
            const Median m = median_of(time, sizes[k], sizes[k]);
            inside += m.low <= log(2) && log(2) <= m.high;
        }
        ck_assert_msg(inside > 0.94 * TRIALS && inside < TRIALS, "%d of %d intervals of %d times",
                      inside, TRIALS, sizes[k]);
    }
}
END_TEST

TEST_MAIN("median", ranks, launches_count_once, contains_the_true_median)
