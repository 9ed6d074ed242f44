/* test_copy.c -- graph_copy: a copy goes through the passes as the original does, and neither
 * changes the other. */
#include "build.h"
#include "front/front.h"
#include <stdlib.h>

#ifndef MODELS_DIR
#define MODELS_DIR "models"
#endif

/* Loops, masks, shared parameters, batch statistics, tables. */
static const char *const model[] = {"lenet", "lstm_text", "gru_imdb", "gpt_char",
                                    "resnet20_cifar10"};
static const Options processor = {.vector = 8, .verify = true, .cpu = "x86-64-v3"};
static const Options gpu = {.cuda = true,
                            .persistent = true,
                            .vector = 8,
                            .verify = true,
                            .arch = "sm_90"};

static const char *dumped(const Graph *g)
{
    char *text;
    size_t length;
    FILE *f = open_memstream(&text, &length);
    graph_dump(g, f);
    fclose(f);
    const char *copy = arena_printf(g->arena, "%s", text);
    free(text);
    return copy;
}

static const char *planned(Graph *g, const Options *o)
{
    Diag *d = diag_new(g->arena, DIAG_NEVER);
    const bool ok = pass_run_all(g, o, d);
    diag_print(d, stderr);
    ck_assert(ok);
    return dumped(g);
}

START_TEST(a_copy_is_planned_alone)
{
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        Arena *a = arena_new();
        Diag *d = diag_new(a, DIAG_NEVER);
        Front f;
        ck_assert(front_load(a, arena_printf(a, "%s/%s.tn", MODELS_DIR, model[i]), NULL, d, &f));
        Graph *one = graph_copy(f.train), *two = graph_copy(f.train), *test = graph_copy(f.test);
        const char *before = dumped(f.train);
        ck_assert_str_eq(dumped(one), before);
        const char *on_gpu = planned(one, &gpu);
        ck_assert_str_ne(on_gpu, before);
        ck_assert_str_eq(dumped(f.train), before);
        ck_assert_str_eq(dumped(two), before);
        ck_assert_str_eq(planned(f.train, &gpu), on_gpu);
        ck_assert_str_ne(planned(two, &processor), on_gpu);
        f.test->peer = f.train, test->peer = one;
        ck_assert_str_eq(planned(test, &gpu), planned(f.test, &gpu));
        arena_free(a);
    }
}
END_TEST

TEST_MAIN("copy", a_copy_is_planned_alone)
