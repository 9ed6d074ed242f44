/* test_gradients.c -- the gradient check passes a right gradient and finds a wrong one; in f64. */
#define _GNU_SOURCE
#define RT_F64
#include "mini.h"
#include "process.h"
#include "suite.h"

/* A term of the loss's gradient is left out. */
static void wrong_slice(const Rt *r, char *thread, int unit)
{
    mini_slice(r, thread, unit);
    real *g = (real *)(r->shard + unit / SLICES * r->shard_bytes + unit % SLICES * PARTIAL_BYTES);
    g[B1 + 3] *= (real)0.999;
}

START_TEST(right_gradients_pass)
{
    succeeds("gradcheck --samples 200");
    ck_assert_ptr_nonnull(strstr(said, "hidden.weight"));
    succeeds("gradcheck --threads 3 --seed 5");
}
END_TEST

START_TEST(a_wrong_gradient_is_found)
{
    setenv("MINI_WRONG", "1", 1);
    const int code = run("gradcheck");
    unsetenv("MINI_WRONG");
    ck_assert_int_eq(code, 1);
    const char *bias = strstr(said, "hidden.bias"), *wrong = strstr(said, "WRONG");
    ck_assert(bias && wrong && wrong > bias && wrong < bias + 120);
    ck_assert_ptr_null(strstr(wrong + 1, "WRONG"));
}
END_TEST

START_TEST(gradients_are_written_in_file_order)
{
    char one[1 << 13] = {0}, four[1 << 13] = {0};
    succeeds("grads --output %s", in_scratch("one"));
    succeeds("grads --output %s --groups 4", in_scratch("four"));
    read_file(in_scratch("one"), one, sizeof one);
    read_file(in_scratch("four"), four, sizeof four);
    ck_assert_mem_eq(one, four, sizeof one);
    ck_assert_ptr_nonnull(strstr(one + 8, "\"hidden.weight\":{\"dtype\":\"F64\",\"shape\":[8,16]"));
}
END_TEST

START_TEST(training_in_double_gives_the_same_bits_on_any_split)
{
    char want[64];
    succeeds("--epochs 2 --threads 1 --log %s", in_scratch("log"));
    snprintf(want, sizeof want, "%s", last(in_scratch("log"), "weights_hash"));
    succeeds("--epochs 2 --threads 3 --groups 2 --log %s", in_scratch("log"));
    ck_assert_str_eq(last(in_scratch("log"), "weights_hash"), want);
    ck_assert_double_lt(atof(last(in_scratch("log"), "train_loss")), 0.6);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "mini") == 0) {
        RtPhase phases[] = {mini_train[0], mini_train[1], mini_train[2]};
        RtProgram p = mini;
        if (getenv("MINI_WRONG"))
            phases[0].run = wrong_slice;
        p.train = phases;
        return rt_main(&p, argc - 1, argv + 1);
    }
    Suite *s = suite_create("gradients");
    TCase *t = tcase_create("gradients");
    tcase_add_checked_fixture(t, process_setup, process_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, right_gradients_pass);
    tcase_add_test(t, a_wrong_gradient_is_found);
    tcase_add_test(t, gradients_are_written_in_file_order);
    tcase_add_test(t, training_in_double_gives_the_same_bits_on_any_split);
    suite_add_tcase(s, t);
    return suite_run(s);
}
