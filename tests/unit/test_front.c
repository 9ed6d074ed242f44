/* test_front.c -- what golden tests of messages cannot check: names of parameters, sharing, values,
 * recipes, settings. */
#include "front/front.h"
#include "ops/op.h"
#include "suite.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Loaded {
    Arena *a;
    Front f;
} Loaded;

static Loaded load(const char *text, const FrontOptions *o)
{
    Loaded l = {.a = arena_new()};
    Diag *d = diag_new(l.a, DIAG_NEVER);
    char name[] = "/tmp/tenon-front-XXXXXX";
    FILE *f = fdopen(mkstemp(name), "w");
    fputs(text, f);
    fclose(f);
    if (!front_load(l.a, name, o, d, &l.f)) {
        diag_print(d, stderr);
        ck_abort_msg("the model has errors");
    }
    unlink(name);
    return l;
}

/* The parameters, space by space. */
static const char *params(const Loaded *l)
{
    const Graph *g = l->f.test;
    const char *s = "";
    for (int i = 0; i < g->nparam; i++)
        s = arena_printf(l->a, "%s%s%s", s, i ? " " : "", g->param[i]->name);
    return s;
}

static int count(const Graph *g, const char *op)
{
    int n = 0;
    for (int i = 0; i < g->nnode; i++)
        n += node_is(g->node[i], op);
    return n;
}

#define DENSE(units) "dense(x, " units ", bias = false)"
#define MODEL(body)  "model m(x: f32[8]) {\n" body "\n}\n"

START_TEST(names_by_binding)
{
    Loaded l = load(MODEL("stem = " DENSE(
                        "8") "\n"
                             "x = " DENSE("8") " |> relu\n"
                                               "h = " DENSE("8") "\n"
                                                                 "h = dense(h, 4)\n"
                                                                 "both = " DENSE("4") " + " DENSE(
                                                                     "4") "\n"
                                                                          "return both"),
                    NULL);
    ck_assert_str_eq(params(&l), "stem.weight x.weight dense1.weight dense2.weight dense2.bias "
                                 "dense3.weight dense4.weight");
    arena_free(l.a);
}
END_TEST

/* A numbered name is never equal to a name that a binding gives, before or after it. */
START_TEST(names_never_collide)
{
    Loaded l = load(MODEL("h = " DENSE("8") "\n"
                                            "dense1 = " DENSE("8") "\n"
                                                                   "h = " DENSE("8") "\n"
                                                                                     "return h"),
                    NULL);
    ck_assert_str_eq(params(&l), "dense2.weight dense1.weight dense3.weight");
    arena_free(l.a);
}
END_TEST

START_TEST(names_in_blocks_and_loops)
{
    Loaded l = load("block twice(x) {\n"
                    "    inner = " DENSE("8") "\n"
                                              "    return dense(inner, 8, bias = false)\n"
                                              "}\n" MODEL("for i in 0..2 { x = twice(x) }\n"
                                                          "head = twice(x)\n"
                                                          "return head"),
                    NULL);
    ck_assert_str_eq(params(&l), "twice1.inner.weight twice1.dense1.weight twice2.inner.weight "
                                 "twice2.dense1.weight head.inner.weight head.dense1.weight");
    arena_free(l.a);
}
END_TEST

START_TEST(layers_share)
{
    Loaded l = load("block pair(x) { return " DENSE("8") " |> dense(8, bias = false) }\n" MODEL(
                        "fc = dense(8, bias = false)\n"
                        "p = pair()\n"
                        "return p(p(fc(fc(x))))"),
                    NULL);
    ck_assert_str_eq(params(&l), "fc.weight p.dense1.weight p.dense2.weight");
    ck_assert_int_eq(count(l.f.test, "dense"), 6);
    arena_free(l.a);
}
END_TEST

/* The value of an int expression, read off as the width of a dense layer. */
static int64_t value(const char *expr)
{
    char text[512];
    snprintf(text, sizeof text, MODEL("l = [3, 5, 7]\nreturn dense(x, %s)"), expr);
    Loaded l = load(text, NULL);
    const int64_t v = l.f.test->output->shape.dim[0];
    arena_free(l.a);
    return v;
}

START_TEST(arithmetic)
{
    static const struct {
        const char *expr;
        int64_t value;
    } row[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"2 ** 3 ** 2", 512},
        {"-2 ** 2 + 5", 1},
        {"7 // 2", 3},
        {"-7 // 2 + 5", 1},
        {"-7 % 3", 2},
        {"7 % -3 + 3", 1},
        {"8 / 2", 4},
        {"int(7 / 2.0)", 3},
        {"l[1] + len(l)", 8},
        {"len(l + [1])", 4},
        {"max(l)", 7},
        {"min(4, 2.0 * 4, 9)", 4},
        {"abs(-3)", 3},
        {"int(sqrt(16.0))", 4},
        {"x.features", 8},
        {"x.shape[0] + x.rank", 9},
        {"if 1 < 2 and not false { 1 } else { 2 }", 1},
        {"if l == [3, 5, 7] or 1 / 0 == 1 { 4 } else { 5 }", 4},
        {"int(2 ** -1 * 6)", 3},
        {"if \"a\" != \"b\" { 1 } else if true { 2 } else { 3 }", 1},
        {"int(exp(0) + log(1))", 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        ck_assert_msg(value(row[i].expr) == row[i].value, "%s is %lld", row[i].expr,
                      (long long)value(row[i].expr));
}
END_TEST

START_TEST(statements)
{
    Loaded l = load(MODEL("n = 0\n"
                          "for i in 2..5 { n = n + i; if i == 3 { n = n * 10 } }\n"
                          "for w in [1, 2] { for k in 0..w { n = n + 1 } }\n"
                          "if n > 1000 { return dense(x, 1) } else { n = n + 100 }\n"
                          "return dense(x, n)"),
                    NULL);
    ck_assert_int_eq(l.f.test->output->shape.dim[0], (2 + 3) * 10 + 4 + 3 + 100);
    arena_free(l.a);
}
END_TEST

#define TRAIN(loss)                                                                                \
    "train m {\n    data = mnist\n    loss = " loss                                                \
    "\n    optimizer = sgd(lr = 0.1, momentum = 0.9)\n}\n"

START_TEST(training_and_evaluation)
{
    Loaded l =
        load(MODEL("return " DENSE("4") " |> dropout(0.5)") TRAIN("softmax_cross_entropy"), NULL);
    ck_assert_int_eq(count(l.f.train, "dropout"), 1);
    ck_assert_int_eq(count(l.f.test, "dropout"), 0);
    ck_assert(l.f.train->training && !l.f.test->training);
    ck_assert_int_eq(l.f.train->nmetric, 2);
    ck_assert_str_eq(l.f.train->metric[1].name, "accuracy");
    ck_assert_ptr_eq(l.f.train->metric[0].node, l.f.train->loss);
    ck_assert_int_eq(l.f.train->label->dtype, DT_I32);
    ck_assert_int_eq(l.f.train->nstate, 1);
    arena_free(l.a);
    l = load(MODEL("return " DENSE("4")), NULL);
    ck_assert(!l.f.train && l.f.test && !l.f.test->loss && !l.f.recipe.present);
    arena_free(l.a);
}
END_TEST

START_TEST(losses)
{
    Loaded l = load(MODEL("return " DENSE("4")) TRAIN("mse"), NULL);
    ck_assert_int_eq(count(l.f.train, "one_hot"), 1);
    ck_assert_int_eq(l.f.train->loss->shape.rank, 0);
    arena_free(l.a);
    l = load(MODEL("return " DENSE("4"))
                 TRAIN("softmax_cross_entropy(output, label) + 0.01 * l2(output)"),
             NULL);
    ck_assert_int_eq(count(l.f.train, "l2"), 1);
    ck_assert(node_is(l.f.train->loss, "add"));
    arena_free(l.a);
}
END_TEST

START_TEST(recipe)
{
    Loaded l =
        load(MODEL("return " DENSE(
                 "4")) "train m {\n"
                       "    data = synthetic(samples = 640)\n    loss = softmax_cross_entropy\n"
                       "    optimizer = adamw(0.002)\n    schedule = step(at = [10, 20], warmup = "
                       "2)\n"
                       "    init = xavier(\"gaussian\", fan = \"in\", magnitude = 2)\n"
                       "    clip = [norm(1.5), value(0.5)]\n    batch = 2 * 32\n    expect = "
                       "test_loss < 0.5\n}\n",
             NULL);
    const Recipe *r = &l.f.recipe;
    ck_assert(r->present && r->optimizer.kind == OPT_ADAMW && r->init.kind == INIT_XAVIER);
    ck_assert(r->optimizer.lr == 0.002 && r->optimizer.beta2 == 0.999 &&
              r->optimizer.weight_decay == 0.01);
    ck_assert(r->schedule.kind == SCHED_STEP && r->schedule.nat == 2 && r->schedule.at[1] == 20);
    ck_assert(r->schedule.factor == 0.1 && r->schedule.warmup == 2);
    ck_assert(r->init.gaussian && r->init.fan == FAN_IN && r->init.a == 2);
    ck_assert(r->clip_norm == 1.5 && r->clip_value == 0.5);
    ck_assert(r->batch == 64 && r->shards == 0 && r->epochs == 12 && r->seed == 1);
    ck_assert(r->data.samples == 640 && r->data.test_samples == 1000 && r->data.scale == 1.0 / 255);
    ck_assert_str_eq(r->expect.metric, "test_loss");
    ck_assert_str_eq(r->expect.op, "<");
    ck_assert_str_eq(r->dtype, "f32");
    arena_free(l.a);
}
END_TEST

START_TEST(settings)
{
    const KeyValue set[] = {{"optimizer.lr", "0"}, {"batch", "32"},         {"model.n", "7"},
                           {"clip.norm", "2"},    {"data", "/some/where"}, {"data.scale", "1"},
                           {"batch", "16"}};
    const FrontOptions o = {.set = set,
                            .nset = sizeof set / sizeof *set,
                            .shards = 4,
                            .dtype = "f64"};
    Loaded l = load("model m(x: f32[8], n: int = 4) { return dense(x, n) }\n" TRAIN(
                        "softmax_cross_entropy"),
                    &o);
    const Recipe *r = &l.f.recipe;
    ck_assert(r->optimizer.lr == 0 && r->optimizer.momentum == 0.9);
    ck_assert(r->batch == 16 && r->shards == 4 && r->clip_norm == 2 && r->data.scale == 1);
    ck_assert_str_eq(r->data.name, "/some/where");
    ck_assert_str_eq(r->dtype, "f64");
    ck_assert_int_eq(l.f.train->output->shape.dim[0], 7);
    arena_free(l.a);
}
END_TEST

START_TEST(choice_of_model)
{
    static const char text[] =
        "model a(x: f32[8]) { return dense(x, 1) }\n"
        "model m(x: f32[8]) { return dense(x, 2) }\n"
        "model z(x: f32[8]) { return dense(x, 3) }\n" TRAIN("softmax_cross_entropy");
    Loaded l = load(text, NULL);
    ck_assert_str_eq(l.f.test->name, "m");
    arena_free(l.a);
    l = load(text, &(FrontOptions){.model = "a"});
    ck_assert_str_eq(l.f.test->name, "a");
    ck_assert(!l.f.recipe.present);
    arena_free(l.a);
}
END_TEST

/* Numbers among the tensors of an elementwise op become constants; the op's formula is expanded. */
START_TEST(formulas)
{
    Loaded l = load("op swish(x, beta: float = 1.0) = x * sigmoid(beta * x)\n" MODEL(
                        "return swish(x, beta = 2) ** 2 - 1"),
                    NULL);
    ck_assert_int_eq(count(l.f.test, "sigmoid"), 1);
    ck_assert_int_eq(count(l.f.test, "mul"), 2);
    ck_assert_int_eq(count(l.f.test, "const"), 3);
    ck_assert(node_is(l.f.test->output, "sub"));
    arena_free(l.a);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("front");
    tcase_add_test(t, names_by_binding);
    tcase_add_test(t, names_never_collide);
    tcase_add_test(t, names_in_blocks_and_loops);
    tcase_add_test(t, layers_share);
    tcase_add_test(t, arithmetic);
    tcase_add_test(t, statements);
    tcase_add_test(t, training_and_evaluation);
    tcase_add_test(t, losses);
    tcase_add_test(t, recipe);
    tcase_add_test(t, settings);
    tcase_add_test(t, choice_of_model);
    tcase_add_test(t, formulas);
    Suite *s = suite_create("front");
    suite_add_tcase(s, t);
    return suite_run(s);
}
