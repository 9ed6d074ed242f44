/* test_compare.c -- the statistics of `tenon results compare`, on synthetic runs: equal runs give
 * no finding, and a slow-down is found together with the kernel that causes it. */
#include "sweep/compare.h"
#include "suite.h"
#include <check.h>
#include <math.h>
#include <stdint.h>

enum { REPEATS = 5, MANY = 10, LAYERS = 6 };

static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* 1 with noise: 1 %, and sometimes a run that is 10 % slower, as on a machine with other work. */
static double noise(void)
{
    const double u = uniform(), v = uniform();
    const double gauss = sqrt(-2 * log(u + 1e-300)) * cos(2 * M_PI * v);
    return 1 + 0.01 * gauss + (uniform() < 0.05 ? 0.10 : 0);
}

/* Runs of a step of six layers, 1 ms each; layer `slow` takes `factor` times as long. */
static Group group(Arena *a, int repeats, int slow, double factor)
{
    static const char *const name[LAYERS] = {"conv1",  "conv2", "dense1",
                                             "dense1", "dh",    "dense1.weight"};
    Run *run = arena_alloc(a, sizeof *run * (size_t)repeats);
    for (int i = 0; i < repeats; i++) {
        run[i] = (Run){.model = "lenet",
                       .framework = "tenon",
                       .build = "",
                       .label = "x",
                       .status = "done",
                       .batch = 128,
                       .threads = 1,
                       .ranks = 1,
                       .steps = 20,
                       .repeat = i + 1,
                       .attempt = 1,
                       .id = i + 1};
        double ms = 0;
        for (int k = 0; k < LAYERS; k++) {
            const Layer l = {.layer = name[k],
                             .kernel = name[k],
                             .place = "lenet.tn:3",
                             .ms = noise() * (k == slow ? factor : 1)};
            ms += l.ms;
            ARENA_PUSH(a, run[i].layer, run[i].nlayer, l);
        }
        run[i].samples_per_s = 1e3 * 128 / ms;
    }
    Group *g = NULL;
    int n = 0;
    results_group(a, run, repeats, &g, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(g->n, repeats);
    return *g;
}

START_TEST(equal_builds_differ_in_nothing)
{
    Arena *a = arena_new();
    int changes = 0, parts = 0;
    state = 1;
    for (int i = 0; i < 20; i++) {
        const Group x = group(a, REPEATS, -1, 1), y = group(a, REPEATS, -1, 1);
        Change c;
        compare_groups(a, &x, &y, 0.03, &c);
        changes += c.kind != CHANGE_NONE;
        parts += c.npart;
    }
    ck_assert_int_eq(changes, 0);
    ck_assert_int_eq(parts, 0);
    arena_free(a);
}
END_TEST

/* The rate of false changes that stats.h states for five repeats. */
START_TEST(intervals_keep_their_word)
{
    enum { TRIES = 1000 };
    int sure = 0;
    state = 2;
    for (int i = 0; i < TRIES; i++) {
        double x[REPEATS], y[REPEATS];
        for (int k = 0; k < REPEATS; k++) {
            x[k] = 100 + uniform();
            y[k] = 100 + uniform();
        }
        const Interval r = stats_ratio(x, REPEATS, y, REPEATS, 0.99);
        sure += r.low > 1 || r.high < 1;
    }
    ck_assert_int_le(sure, TRIES * 25 / 1000);
}
END_TEST

/* Ten runs on each side: with five, a single disturbed run hides 10 %. */
START_TEST(slow_kernel_is_named)
{
    Arena *a = arena_new();
    state = 3;
    for (int i = 0; i < 20; i++) {
        const Group x = group(a, MANY, -1, 1), y = group(a, MANY, 3, 1.10);
        Change c;
        compare_groups(a, &x, &y, 0.03, &c);
        ck_assert_int_eq(c.npart, 1);
        ck_assert_str_eq(c.part[0].layer->layer, "dense1");
        ck_assert_ptr_eq(c.part[0].layer, &x.run[0]->layer[3]); /* the second of that name */
        ck_assert_double_eq_tol(c.part[0].share, 0.10, 0.03);
    }
    arena_free(a);
}
END_TEST

START_TEST(slower_step_is_a_regression)
{
    Arena *a = arena_new();
    state = 4;
    const Group x = group(a, REPEATS, -1, 1),
                y = group(a, REPEATS, 0, 1.6); /* 1.6 of 6 layers: 10 % */
    Change c;
    compare_groups(a, &x, &y, 0.03, &c);
    ck_assert_int_eq(c.kind, CHANGE_SLOWER);
    compare_groups(a, &y, &x, 0.03, &c);
    ck_assert_int_eq(c.kind, CHANGE_FASTER);
    compare_groups(a, &x, &y, 0.20, &c); /* below the floor */
    ck_assert_int_eq(c.kind, CHANGE_NONE);
    arena_free(a);
}
END_TEST

START_TEST(three_runs_say_nothing)
{
    Arena *a = arena_new();
    state = 5;
    Group x = group(a, REPEATS, -1, 1), y = group(a, REPEATS, 0, 3);
    x.n = y.n = 3;
    Change c;
    compare_groups(a, &x, &y, 0.03, &c);
    ck_assert_int_eq(c.kind, CHANGE_UNKNOWN);
    arena_free(a);
}
END_TEST

START_TEST(weights_must_not_depend_on_threads)
{
    Arena *a = arena_new();
    Run run[3];
    for (int i = 0; i < 3; i++)
        run[i] = (Run){.model = "m",
                       .framework = "tenon",
                       .build = "",
                       .label = "x",
                       .status = "done",
                       .network = "n",
                       .batch = 8,
                       .threads = i + 1,
                       .ranks = 1,
                       .epochs = 2,
                       .repeat = 1,
                       .weights_hash = "1",
                       .id = i + 1};
    for (int other = 0; other < 2; other++) {
        Group *g = NULL;
        const char **line = NULL;
        int n = 0;
        run[2].weights_hash = other ? "2" : "1";
        results_group(a, run, 3, &g, &n);
        ck_assert_int_eq(n, 3);
        ck_assert_int_eq(compare_bits(a, g, n, &line),
                         other ? 2 : 0); /* with the first and with the second */
    }
    arena_free(a);
}
END_TEST

START_TEST(last_attempt_counts)
{
    Arena *a = arena_new();
    Run run[3];
    for (int i = 0; i < 3; i++)
        run[i] = (Run){.model = "m",
                       .framework = "tenon",
                       .label = "x",
                       .status = "done",
                       .repeat = i / 2 + 1,
                       .attempt = i % 2 + 1,
                       .samples_per_s = i + 1,
                       .disturbed = i == 0 ? "others" : NULL};
    Group *g = NULL;
    int n = 0;
    results_group(a, run, 3, &g, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(g->n, 2);
    ck_assert_double_eq(g->rate[0], 2);
    ck_assert_double_eq(g->rate[1], 3);
    ck_assert_int_eq(g->disturbed, 0);
    arena_free(a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compare");
    TCase *t = tcase_create("compare");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, equal_builds_differ_in_nothing);
    tcase_add_test(t, intervals_keep_their_word);
    tcase_add_test(t, slow_kernel_is_named);
    tcase_add_test(t, slower_step_is_a_regression);
    tcase_add_test(t, three_runs_say_nothing);
    tcase_add_test(t, weights_must_not_depend_on_threads);
    tcase_add_test(t, last_attempt_counts);
    suite_add_tcase(s, t);
    return suite_run(s);
}
