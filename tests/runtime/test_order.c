/* test_order.c -- the order of an epoch's samples: each sample once, evenly over all keys, and
 * equal when it is computed place by place and as a list.
 *
 * Evenness is a chi-square over many seeds; its deviation from the mean is given in standard
 * deviations.  Seeds are fixed, so a test does not fail by chance.  A network of 8 rounds in place
 * of 24 deviates by 20 and more at 9 to 16 samples, and by a thousand at 5.
 */
#include "data/order.h"
#include "require.h"
#include "suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR 4.5 /* standard deviations */

/* For counts that should be equal: the deviation of their chi-square from its mean, in standard deviations. */
static double deviation(const int *count, int n, int64_t all)
{
    const double expected = (double)all / n;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (count[i] - expected) * (count[i] - expected) / expected;
    return (sum - (n - 1)) / sqrt(2. * (n - 1));
}

/* Each sample occurs once, the list equals the function, and the order repeats after its end. */
static void check_epoch(int64_t n, uint64_t seed, int64_t epoch)
{
    const RtOrder o = order_by(n, seed, epoch, true);
    const int64_t count = n + (n < 50 ? n : 50);
    uint32_t *list = malloc(sizeof *list * (size_t)count);
    bool *seen = calloc((size_t)n, 1);
    order_fill(&o, list, count);
    for (int64_t i = 0; i < n; i++) {
        REQUIRE(list[i] < n && !seen[list[i]], "sample %u at place %lld of %lld", list[i], (long long)i, (long long)n);
        seen[list[i]] = true;
        REQUIRE(list[i] == rt_order_at(&o, i), "place %lld of %lld", (long long)i, (long long)n);
    }
    for (int64_t i = n; i < count; i++) {
        REQUIRE(list[i] == list[i - n] && list[i] == rt_order_at(&o, i), "place %lld behind %lld", (long long)i, (long long)n);
    }
    free(list);
    free(seen);
}

/* Number of repetitions: `all` with ./check --deep, else a quarter. */
static int share(int all)
{
    const char *deep = getenv("CHECK_DEEP");
    return deep && *deep == '1' ? all : all / 4;
}

START_TEST(an_epoch_visits_every_sample_once)
{
    for (int64_t n = 1; n <= share(21000) / 10; n++)
        check_epoch(n, 7, n % 3);
    for (int bits = 12; bits <= 20; bits += 2)
        for (int64_t n = (1 << bits) - 1; n <= (1 << bits) + 1; n++)
            check_epoch(n, (uint64_t)bits << 40, bits);
    check_epoch(60000, 1, 0);
    check_epoch(1281167, 1, 89);
}
END_TEST

static int rising(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Too many places to check all: checks the first, the last, and some between. */
START_TEST(orders_of_billions_repeat_no_sample)
{
    enum { SOME = 200000 };
    static const int64_t n[] = {((int64_t)1 << 31) - 1, (int64_t)1 << 31, ((int64_t)1 << 31) + 1, 3000000019, ((int64_t)1 << 32) - 1, (int64_t)1 << 32};
    static uint32_t sample[SOME];
    for (int k = 0; k < 6; k++) {
        const RtOrder o = order_by(n[k], 5, 0, true);
        double sum = 0;
        for (int i = 0; i < SOME; i++) {
            const int64_t place = i % 3 == 0 ? i : i % 3 == 1 ? n[k] - 1 - i : n[k] / 4 + n[k] / 2 / SOME * i;
            sample[i] = rt_order_at(&o, place);
            sum += (double)sample[i] / (double)n[k];
            REQUIRE(sample[i] < n[k], "sample %u of %lld", sample[i], (long long)n[k]);
        }
        qsort(sample, SOME, sizeof *sample, rising);
        for (int i = 1; i < SOME; i++)
            REQUIRE(sample[i - 1] < sample[i], "sample %u twice", sample[i]);
        ck_assert_double_eq_tol(sum / SOME, 0.5, 4 * sqrt(1 / 12. / SOME));
    }
}
END_TEST

START_TEST(epochs_and_seeds_have_orders_of_their_own)
{
    enum { N = 10000, ORDERS = 6 };
    static uint32_t list[ORDERS][N];
    for (int i = 0; i < ORDERS; i++) {
        const RtOrder o = order_by(N, i < 3 ? 7 : (uint64_t)1 << (i * 13 - 39), i < 3 ? i : 0, true);
        order_fill(&o, list[i], N);
    }
    for (int a = 0; a < ORDERS; a++)
        for (int b = 0; b < a; b++) {
            int same = 0;
            for (int i = 0; i < N; i++)
                same += list[a][i] == list[b][i];
            ck_assert_int_lt(same, 8);                /* one is expected, of a Poisson distribution */
        }
    const RtOrder o = order_by(N, 7, 1, true);
    uint32_t again[N];
    order_fill(&o, again, N);
    ck_assert_mem_eq(again, list[1], sizeof again);
}
END_TEST

START_TEST(what_is_not_shuffled_is_as_it_is_stored)
{
    const Order o = order_stored(3, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(o.sample[i], i % 3);
        ck_assert_uint_eq(rt_order_at(&o.by, i), i % 3);
    }
    free(o.sample);
}
END_TEST

/* The number of a permutation among all of n. */
static int rank_of(const uint32_t *p, int n)
{
    int rank = 0;
    for (int i = 0; i < n; i++) {
        int smaller = 0;
        for (int j = i + 1; j < n; j++)
            smaller += p[j] < p[i];
        rank = rank * (n - i) + smaller;
    }
    return rank;
}

START_TEST(all_orders_of_few_samples_are_as_frequent)
{
    enum { MOST = 720 };
    const int seeds = share(200000);
    for (int n = 2, all = 2; n <= 6; n++, all *= n) {
        int count[MOST] = {0};
        for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++) {
            const RtOrder o = order_by(n, seed, n, true);
            uint32_t p[6];
            for (int i = 0; i < n; i++)
                p[i] = rt_order_at(&o, i);
            count[rank_of(p, n)]++;
        }
        const double d = deviation(count, all, seeds);
        ck_assert_msg(fabs(d) < FAR, "%d samples: %.1f deviations", n, d);
    }
}
END_TEST

/* The samples at two places, over many seeds: each place alone, and both together. */
static void check_pair(int n, int64_t first, int64_t second)
{
    const int seeds = share(200000);
    int *alone = calloc((size_t)n, sizeof *alone), *pair = calloc((size_t)(n * (n - 1)), sizeof *pair);
    for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++) {
        const RtOrder o = order_by(n, seed, first, true);
        const int a = (int)rt_order_at(&o, first), b = (int)rt_order_at(&o, second);
        alone[a]++;
        pair[a * (n - 1) + (b > a ? b - 1 : b)]++;
    }
    const double one = deviation(alone, n, seeds), two = deviation(pair, n * (n - 1), seeds);
    ck_assert_msg(fabs(one) < FAR && fabs(two) < FAR, "places %lld and %lld of %d: %.1f deviations, together %.1f", (long long)first, (long long)second, n, one, two);
    free(alone);
    free(pair);
}

START_TEST(places_have_any_sample_and_so_have_their_neighbours)
{
    static const int n[] = {9, 16, 17, 25, 100};
    for (int k = 0; k < 5; k++) {
        check_pair(n[k], 0, 1);
        check_pair(n[k], 0, n[k] / 2);
        check_pair(n[k], n[k] - 2, n[k] - 1);
    }
}
END_TEST

/* For many samples, with fewer rounds: the eighths in which the samples of four places lie, where the places are neighbours, or one below
 * the other in the network's table; and which of 455 steps lead from one place's sample to the next one's. */
static void check_four(int64_t n, int64_t apart)
{
    enum { STEPS = 455 };
    const int seeds = share(100000);
    static int count[4096], step[STEPS];
    memset(count, 0, sizeof count);
    memset(step, 0, sizeof step);
    for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++) {
        const RtOrder o = order_by(n, seed, apart, true);
        int cell = 0;
        int64_t at[4];
        for (int i = 0; i < 4; i++) {
            at[i] = rt_order_at(&o, i * apart);
            cell = cell * 8 + (int)(at[i] * 8 / n);
        }
        count[cell]++;
        step[((at[1] - at[0] + n) % n - 1) * STEPS / (n - 1)]++; /* of 4,096 samples 9 each */
    }
    const double four = deviation(count, 4096, seeds), next = deviation(step, STEPS, seeds);
    ck_assert_msg(fabs(four) < FAR && fabs(next) < FAR, "of %lld samples, %lld apart: %.1f deviations, steps %.1f", (long long)n, (long long)apart, four, next);
}

START_TEST(many_samples_are_as_even)
{
    static const int64_t n[] = {4096, 60000, 1281167, 3000000019};
    for (int k = 0; k < 4; k++) {
        check_four(n[k], 1);
        check_four(n[k], order_by(n[k], 0, 0, true).down);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("order");
    TCase *t = tcase_create("order");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, an_epoch_visits_every_sample_once);
    tcase_add_test(t, orders_of_billions_repeat_no_sample);
    tcase_add_test(t, epochs_and_seeds_have_orders_of_their_own);
    tcase_add_test(t, what_is_not_shuffled_is_as_it_is_stored);
    tcase_add_test(t, all_orders_of_few_samples_are_as_frequent);
    tcase_add_test(t, places_have_any_sample_and_so_have_their_neighbours);
    tcase_add_test(t, many_samples_are_as_even);
    suite_add_tcase(s, t);
    return suite_run(s);
}
