/* test_plan.c -- matrices become configurations: products, duplicates, configurations that a
 * machine cannot run; the order of runs; how the log of a program is read. */
#include "suite.h"
#include "sweep/axis.h"
#include "sweep/plan.h"
#include "sweep/record.h"
#include <check.h>
#include <math.h>
#include <string.h>

static Arena *arena;
static Diag *diag;

static void setup(void)
{
    arena = arena_new();
    diag = diag_new(arena, DIAG_NEVER);
}

static void teardown(void)
{
    arena_free(arena);
}

/* The default matrix of one file, with the given settings of the command line. */
static Plan plan_of(const char *const (*option)[2], int n, int64_t processors, bool mpirun)
{
    static const char *const file = "lenet.tn";
    Matrix *m = arena_alloc(arena, sizeof *m);
    Plan p = {.matrix = m, .nmatrix = 1};
    matrix_default(m);
    m->file = (Words){.v = &file, .n = 1};
    for (int i = 0; i < n; i++)
        ck_assert(setting_option(arena, m, setting_find(option[i][0]), option[i][1], false, diag));
    ck_assert(plan_expand(arena, &p, processors, mpirun, diag));
    return p;
}

START_TEST(all_of_a_product)
{
    const Plan p =
        plan_of((const char *const[][2]){{"batch", "64,128,256"}, {"threads", "1,2"}}, 2, 2, true);
    ck_assert_int_eq(p.nconfig, 6);
    ck_assert_int_eq(p.nprogram, 3); /* threads share one */
    ck_assert_int_eq(p.nskipped, 0);
    ck_assert_int_eq(p.config[5].batch, 256);
    ck_assert_int_eq(p.config[5].threads, 2);
}
END_TEST

START_TEST(all_processors_and_their_number_are_one)
{
    const Plan p = plan_of((const char *const[][2]){{"threads", "1,all,4"}}, 1, 4, true);
    ck_assert_int_eq(p.nconfig, 2);
    const Plan one = plan_of((const char *const[][2]){{"threads", "1,all"}}, 1, 1, true);
    ck_assert_int_eq(one.nconfig, 1);
}
END_TEST

/* Each build with each value of each key; commas inside of a value divide nothing. */
START_TEST(keys_and_their_values)
{
    const char *const option[][2] = {{"build", "--fast"},
                                     {"set", "optimizer.lr=0.1,0.01"},
                                     {"set", "data=synthetic(samples=64,classes=5),[\"a,b\",c]"}};
    static const char *const build[] =
        {"--fast --set optimizer.lr=0.1 --set data=synthetic(samples=64,classes=5)",
         "--fast --set optimizer.lr=0.1 --set data=[\"a,b\",c]",
         "--fast --set optimizer.lr=0.01 --set data=synthetic(samples=64,classes=5)",
         "--fast --set optimizer.lr=0.01 --set data=[\"a,b\",c]"};
    static const char *const wrong[] = {"lr",      "lr=",           "=3", "lr=1,", "lr=1,,2",
                                        "lr=1, 2", "optimizer.lr=3"};
    const Setting *set = setting_find("set");
    Matrix m;
    matrix_default(&m);
    for (int i = 0; i < 3; i++)
        ck_assert(setting_option(arena, &m, setting_find(option[i][0]), option[i][1], i > 1, diag));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!setting_option(arena, &m, set, wrong[i], true, diag), "%s", wrong[i]);
    const Words all = axis_builds(arena, &m);
    ck_assert_int_eq(all.n, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(all.v[i], build[i]);
    const Plan p = plan_of(option + 1, 1, 4, true);
    ck_assert_int_eq(p.nconfig, 2);
    ck_assert_int_eq(p.nprogram, 2);
    ck_assert_int_eq(p.nshare, 2);
}
END_TEST

/* A product that is too large is refused before it takes memory. */
START_TEST(too_many_values)
{
    static const char *const file = "lenet.tn";
    Matrix m;
    Plan p = {.matrix = &m, .nmatrix = 1};
    matrix_default(&m);
    m.file = (Words){.v = &file, .n = 1};
    for (int i = 0; i < 40; i++)
        ck_assert(setting_option(arena, &m, setting_find("set"),
                                 arena_printf(arena, "key%d=1,2,3,4,5,6,7,8,9", i), i > 0, diag));
    ck_assert(!plan_expand(arena, &p, 4, true, diag));
}
END_TEST

/* Parts of a job array: together they have each configuration once; a program is in one part only; parts are the same on a smaller machine. */
START_TEST(parts_make_the_whole)
{
    const char *const option[][2] = {{"batch", "64,128,256"}, {"threads", "1,2"}, {"ranks", "1,2"}};
    const Plan whole = plan_of(option, 3, 4, true);
    int configs = 0;
    ck_assert_int_eq(whole.nshare, 3);
    for (int part = 1; part <= 2; part++) {
        Plan p = plan_of(option, 3, 4, true), less = plan_of(option, 3, 2, false);
        plan_part(arena, &p, part, 2);
        plan_part(arena, &less, part, 2);
        ck_assert_int_eq(p.nconfig, part == 1 ? 8 : 4);
        ck_assert_int_eq(p.nprogram, part == 1 ? 4 : 2);
        ck_assert_int_eq(less.nconfig, part == 1 ? 4 : 2);
        for (int i = 0; i < less.nconfig; i++)
            ck_assert_int_eq(less.config[i].batch == 128, part == 2);
        for (int i = 0; i < p.nconfig; i++)
            ck_assert_int_lt(p.config[i].program, p.nprogram);
        configs += p.nconfig;
    }
    ck_assert_int_eq(configs, whole.nconfig);
}
END_TEST

START_TEST(impossible_ones_are_said_and_skipped)
{
    const Plan p =
        plan_of((const char *const[][2]){{"ranks", "1,2,4"}, {"gpus", "0,8"}, {"threads", "1"}}, 3,
                2, true);
    ck_assert_int_eq(p.nconfig, 2);
    ck_assert_int_eq(p.nprogram, 2); /* several ranks need MPI */
    ck_assert_int_eq(p.nskipped, 2);
    ck_assert_str_eq(p.skipped[0], "4 ranks of 1 thread: there are 2 processors");
    ck_assert_ptr_nonnull(strstr(p.skipped[1], "8 GPUs"));
    const Plan alone =
        plan_of((const char *const[][2]){{"ranks", "1,2"}, {"threads", "1"}}, 2, 2, false);
    ck_assert_int_eq(alone.nconfig, 1);
    ck_assert_ptr_nonnull(strstr(alone.skipped[0], "no mpirun"));
}
END_TEST

START_TEST(steps_and_epochs_exclude_each_other)
{
    const Plan p = plan_of((const char *const[][2]){{"epochs", "7"}, {"steps", "20"}}, 2, 2, true);
    ck_assert_int_eq(p.matrix->steps, 20);
    ck_assert_int_eq(p.matrix->epochs, 0);
}
END_TEST

START_TEST(too_many_runs_are_refused)
{
    Plan p = plan_of((const char *const[][2]){{"repeat", "3"}}, 1, 2, true);
    p.matrix->repeat = 1000000;
    ck_assert(!plan_expand(arena, &p, 2, true, diag));
    ck_assert_int_eq(diag_errors(diag), 1);
}
END_TEST

START_TEST(order_is_a_shuffle_that_its_seed_decides)
{
    enum { N = 200 };
    const int *a = plan_order(arena, N, 1), *again = plan_order(arena, N, 1),
              *b = plan_order(arena, N, 2);
    bool seen[N] = {false};
    int still = 0;
    for (int i = 0; i < N; i++) {
        ck_assert(a[i] >= 0 && a[i] < N && !seen[a[i]]);
        seen[a[i]] = true;
        still += a[i] == i;
    }
    ck_assert_int_lt(still, 10);
    ck_assert_int_eq(memcmp(a, again, sizeof *a * N), 0);
    ck_assert_int_ne(memcmp(a, b, sizeof *a * N), 0);
}
END_TEST

/* The first epoch warms up; a last line cut short ends the log; null is not known. */
START_TEST(log_becomes_a_run)
{
    Run r = {.accuracy = NAN};
    ck_assert(record_read(arena, &r,
                          "{\"event\":\"start\",\"batch\":128,\"planned_bytes\":1000,\"new\":[1]}"
                          "\n{\"event\":\"later\"}\n"
                          "{\"event\":\"epoch\",\"epoch\":1,\"seconds\":9,\"samples_per_s\":100,"
                          "\"peak_bytes\":5000,\"weights_hash\":\"a\"}\n"
                          "{\"event\":\"epoch\",\"epoch\":2,\"seconds\":3,\"samples_per_s\":300,"
                          "\"test_accuracy\":null,\"weights_hash\":\"b\"}\n"
                          "{\"event\":\"epoch\",\"epoch\":3,\"seconds\":5,\"samples_per_s\":180,"
                          "\"weights_hash\":\"c\"}\n"
                          "{\"event\":\"epoch\",\"epo"));
    record_summary(&r);
    ck_assert_int_eq(r.nepoch, 3);
    ck_assert_int_eq(r.batch, 128);
    ck_assert_int_eq(r.planned_bytes, 1000);
    ck_assert_int_eq(r.peak_bytes, 5000);
    ck_assert_double_eq(r.epoch_s, 4);
    ck_assert_double_eq(r.samples_per_s, 240);
    ck_assert_str_eq(r.weights_hash, "c");
    ck_assert(isnan(r.accuracy));
}
END_TEST

/* With several targets, the accuracy is that of the first class. */
START_TEST(log_of_several_targets)
{
    Run r = {.accuracy = NAN};
    ck_assert(record_read(arena, &r,
                          "{\"event\":\"start\",\"batch\":128}\n"
                          "{\"event\":\"epoch\",\"epoch\":1,\"seconds\":9,\"test_accuracyx\":1,"
                          "\"train_accuracy_digit\":0.5,\"test_r2_size\":0.9,"
                          "\"test_accuracy_digit\":0.75,\"test_accuracy_odd\":0.25}\n"));
    record_summary(&r);
    ck_assert_double_eq(r.accuracy, 0.75);
    ck_assert_double_eq(r.epoch[0].train_accuracy, 0.5);
}
END_TEST

START_TEST(log_without_a_measurement)
{
    Run r = {0}, steps = {.steps = 5, .step_ms = NAN};
    ck_assert(!record_read(arena, &r, "{\"event\":\"start\",\"batch\":128}\n"));
    ck_assert(!record_read(arena, &steps, "no json"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, all_of_a_product);
    tcase_add_test(t, all_processors_and_their_number_are_one);
    tcase_add_test(t, keys_and_their_values);
    tcase_add_test(t, too_many_values);
    tcase_add_test(t, parts_make_the_whole);
    tcase_add_test(t, impossible_ones_are_said_and_skipped);
    tcase_add_test(t, steps_and_epochs_exclude_each_other);
    tcase_add_test(t, too_many_runs_are_refused);
    tcase_add_test(t, order_is_a_shuffle_that_its_seed_decides);
    tcase_add_test(t, log_becomes_a_run);
    tcase_add_test(t, log_of_several_targets);
    tcase_add_test(t, log_without_a_measurement);
    suite_add_tcase(s, t);
    return suite_run(s);
}
