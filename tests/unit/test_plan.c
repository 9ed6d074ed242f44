/* test_plan.c -- the memory plan of every shipped model: values that are alive together share no
 * byte, and little memory is wasted. */
#include "front/front.h"
#include "ir/step.h"
#include "passes/pass.h"
#include "suite.h"
#include <check.h>
#include <stdlib.h>

#ifndef MODELS_DIR
#define MODELS_DIR "models"
#endif

static const char *const model[] = {"lenet", "lenet_relu", "lenet_tanh", "mlp", "mlp_wide"};

static bool same_region(const Buffer *a, const Buffer *b)
{
    return (a->place == PLACE_LOCAL) == (b->place == PLACE_LOCAL);
}

static void check_apart(const Step *s)
{
    for (int i = 0; i < s->nbuffer; i++)
        for (int k = i + 1; k < s->nbuffer; k++) {
            const Buffer *a = &s->buffer[i], *b = &s->buffer[k];
            const bool together = a->first <= b->last && b->first <= a->last;
            const bool overlap =
                a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            if (same_region(a, b) && together)
                ck_assert_msg(!overlap, "%s and %s share bytes", a->name, b->name);
        }
}

static void check_step(const Step *s)
{
    check_apart(s);
    ck_assert_int_ge(s->thread_bytes, s->bound_thread);
    ck_assert_int_ge(s->shard_bytes, s->bound_shard);
    ck_assert_double_le((double)s->thread_bytes, 1.1 * (double)s->bound_thread);
    ck_assert_double_le((double)s->shard_bytes, 1.1 * (double)s->bound_shard);
    ck_assert_int_eq(s->batch, s->shards * s->shard);
    ck_assert_int_eq(s->shard, s->slices * s->slice);
    ck_assert_int_eq(s->slice % s->chunk, 0);
}

static void plan(const char *name, bool plain, const char *dtype)
{
    Arena *a = arena_new();
    Diag *d = diag_new(a, DIAG_NEVER);
    FrontOptions fo = {.dtype = dtype};
    Options o = {.vector = 8, .plain = plain, .verify = true, .cpu = "x86-64-v3"};
    Front f;

    const bool ok = front_load(a, arena_printf(a, "%s/%s.tn", MODELS_DIR, name), &fo, d, &f) &&
                    pass_run_all(f.train, &o, d);
    f.test->peer = f.train;
    const bool both = ok && pass_run_all(f.test, &o, d);
    diag_print(d, stderr);
    ck_assert(both);
    check_step(f.train->step);
    check_step(f.test->step);
    arena_free(a);
}

START_TEST(optimised)
{
    plan(model[_i], false, "f32");
}
END_TEST
START_TEST(optimised_f64)
{
    plan(model[_i], false, "f64");
}
END_TEST
START_TEST(plain)
{
    plan(model[_i], true, "f32");
}
END_TEST

int main(void)
{
    const int n = sizeof model / sizeof *model;
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("models");
    tcase_add_loop_test(t, optimised, 0, n);
    tcase_add_loop_test(t, optimised_f64, 0, n);
    tcase_add_loop_test(t, plain, 0, n);
    suite_add_tcase(s, t);
    return suite_run(s);
}
