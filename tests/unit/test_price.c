/* test_price.c -- prices: what they count, what they depend on, and which choices pass choose
 * makes. */
#include "build.h"
#include "front/front.h"
#include "ir/choice.h"
#include "ops/step_price.h"

static Market market(const char *cpu, int lanes, int64_t n)
{
    return (Market){.core = core_of(cpu), .n = n, .real = 4, .lanes = lanes};
}

/* A convolution as pass choose sees it. */
static Node *conv_of(Bench *b, int64_t in, int64_t side, int64_t out, int64_t kernel)
{
    Node *a = args(b, "conv2d");
    node_set_int(b->g, a, "filters", out);
    node_set_ints(b->g, a, "kernel", LIST(kernel, kernel), 2);
    node_set_ints(b->g, a, "pad", LIST(kernel / 2, kernel / 2), 2);
    Node *x = input(b, BATCHED(in, side, side));
    Node *y = a->op->build(b->g, &x, 1, a, "conv1", b->d);
    return node_is(y, "bias") ? y->in[0] : y;
}

START_TEST(names_of_processors_have_cores)
{
    static const char *const cpu[] = {"x86-64-v4", "x86-64-v3", "armv8-a", "generic"};
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(core_of(cpu[i])->cpu, cpu[i]);
    ck_assert_double_eq_tol(core_peak_gflops(core_of("x86-64-v3"), 4), 99.2, 1e-9);
    ck_assert_double_eq_tol(core_peak_gflops(core_of("x86-64-v3"), 8), 49.6, 1e-9);
}
END_TEST

/* A full tile runs at the peak except at its start and end; a single row waits for the latency of its sums. */
START_TEST(tiles_cost_what_is_slowest)
{
    const Market m = market("x86-64-v4", 16, 16);
    Price full = {0}, row = {0};
    price_tiles(&full, &m, 1, 8, 2, 1000);
    price_tiles(&row, &m, 1, 1, 2, 1000);
    ck_assert_double_eq(full.executed, 8 * 2 * 16 * 2 * 1000.0);
    ck_assert_double_ge(full.cycles, 16000);
    ck_assert_double_le(full.cycles, 16100);
    ck_assert_double_ge(row.cycles, 4000);
    ck_assert_double_ge(row.cycles / row.executed, 1.9 * full.cycles / full.executed);
}
END_TEST

/* Rows and lanes of padding are executed, too; 500 outputs are 16 panels of 32. */
START_TEST(padding_is_executed)
{
    const Market m = market("x86-64-v4", 16, 16);
    Price p = {0}, q = {0};
    price_panels(&p, &m, 1, 16, 500, 800);
    price_panels(&q, &m, 1, 16, 512, 800);
    ck_assert_double_eq(p.executed, q.executed);
    ck_assert_double_eq(q.executed, 2.0 * 16 * 512 * 800);
}
END_TEST

START_TEST(memory_is_dearer_the_farther_it_lies)
{
    const Core *c = core_of("x86-64-v3");
    const double at[] = {core_stream(c, 1e6, 1e4), core_stream(c, 1e6, 1e5),
                         core_stream(c, 1e6, 1e7), core_stream(c, 1e6, 1e9)};
    for (int i = 1; i < 4; i++)
        ck_assert_double_lt(at[i - 1], at[i]);
}
END_TEST

static Price price_with(Bench *b, Node *n, int64_t tile, const Market *m)
{
    if (tile)
        node_set_int(b->g, n, "winograd", tile);
    else
        node_drop_attr(b->a, n, "winograd");
    return price_of(n, m);
}

/* 64 channels of 32 x 32: F(2x2) takes 2.25 times fewer multiplications, F(4x4) four times, and so do the prices. */
START_TEST(winograd_executes_less)
{
    Bench b = bench_new();
    const Market m = market("x86-64-v4", 16, 8);
    Node *n = conv_of(&b, 64, 32, 64, 3);
    const Price direct = price_with(&b, n, 0, &m), two = price_with(&b, n, 2, &m),
                four = price_with(&b, n, 4, &m);
    ck_assert_double_eq(direct.textbook, two.textbook);
    ck_assert_double_gt(direct.executed, 1.8 * two.executed);
    ck_assert_double_gt(direct.executed, 2.7 * four.executed);
    ck_assert_double_gt(direct.cycles, 1.2 * two.cycles);
    ck_assert_double_gt(two.cycles, 1.2 * four.cycles);
    ck_assert_str_eq(direct.algorithm, "direct");
    ck_assert_str_eq(two.algorithm, "Winograd F(2x2, 3x3)");
    arena_free(b.a);
}
END_TEST

/* 64 channels of 4 x 4: the scratch of dw holds 55 tiles (wino_dw_block), so 52 tiles of 13 samples
 * are one product, and 56 tiles are two. */
START_TEST(winograd_dw_counts_the_gaps)
{
    Bench b = bench_new();
    double cycles[3];
    Node *n = conv_of(&b, 64, 4, 64, 3);
    n = op_make_like(b.g, "conv2d_dw", n, 2, n->in[0], n);
    for (int i = 0; i < 3; i++) {
        const Market m = market("x86-64-v4", 16, 12 + i);
        cycles[i] = price_with(&b, n, 2, &m).cycles;
    }
    ck_assert_double_gt(cycles[2] - cycles[1], 1.5 * (cycles[1] - cycles[0]));
    arena_free(b.a);
}
END_TEST

/* The price of the convolution, or of the gradient of its filters. */
static int64_t chosen_for(int64_t in, int64_t side, int64_t out, int64_t kernel, bool fast, bool dw)
{
    Bench b = bench_new();
    const Options o = {.vector = 16, .cpu = "x86-64-v4", .fast = fast};
    Node *n = conv_of(&b, in, side, out, kernel);
    if (dw)
        n = op_make_like(b.g, "conv2d_dw", n, 2, n->in[0], n);
    pass_choose(b.g, &o, b.d);
    const Attr *tile = node_attr(n, "winograd");
    const int64_t m = tile ? tile->i : 0;
    arena_free(b.a);
    return m;
}

static int64_t chosen(int64_t in, int64_t side, int64_t out, int64_t kernel, bool fast)
{
    return chosen_for(in, side, out, kernel, fast, false);
}

/* As measured: nothing to gain at 3 channels, 1.4-1.7 times at 64. */
START_TEST(choices_are_those_of_measurements)
{
    ck_assert_int_eq(chosen(3, 32, 64, 3, false), 0);
    ck_assert_int_eq(chosen(64, 32, 64, 3, false), 2);
    ck_assert_int_eq(chosen(128, 16, 128, 3, false), 2);
    ck_assert_int_eq(chosen(32, 16, 32, 5, false), 2);
    ck_assert_int_eq(chosen(64, 32, 64, 3, true), 4);
    ck_assert_int_eq(chosen(64, 32, 64, 1, true), 0);
    ck_assert_int_eq(chosen(64, 32, 64, 7, true), 0);
}
END_TEST

/* As measured: 1.9 times at 64 channels, 0.8 where padding leaves the direct sum no more products. */
START_TEST(choices_for_gradients_of_filters)
{
    ck_assert_int_eq(chosen_for(3, 32, 64, 3, false, true), 0);
    ck_assert_int_eq(chosen_for(64, 32, 64, 3, false, true), 2);
    ck_assert_int_eq(chosen_for(256, 2, 256, 3, false, true), 0);
    ck_assert_int_eq(chosen_for(64, 32, 64, 1, true, true), 0);
}
END_TEST

/* A tuner gets the algorithms with nearly equal prices, and its answer is used. */
static int asked;
static void settle(Tuner *t, const Graph *g, Choice *c, int n, Diag *d)
{
    (void)t, (void)g, (void)d;
    for (int i = 0; i < n; i++, asked++) {
        ck_assert_int_ge(c[i].n, 2);
        ck_assert_int_eq(c[i].tile[0], 0);
        for (int k = 0; k < c[i].n; k++)
            ck_assert_double_le(c[i].predicted[k], 2.5 * c[i].predicted[c[i].pick]);
        c[i].pick = 0;
    }
}

START_TEST(a_tuner_decides)
{
    Bench b = bench_new();
    Tuner t = {settle};
    const Options o = {.vector = 16, .cpu = "x86-64-v4", .tuner = &t};
    Node *n = conv_of(&b, 64, 32, 64, 3);
    asked = 0;
    pass_choose(b.g, &o, b.d);
    ck_assert_int_eq(asked, 1);
    ck_assert_ptr_null(node_attr(n, "winograd"));
    arena_free(b.a);
}
END_TEST

/* Every call of every shipped model has a price, and a step of --plain costs more. */
static double step_cycles(const char *path, bool plain, const char *dtype)
{
    Arena *a = arena_new();
    Diag *d = diag_new(a, DIAG_NEVER);
    const FrontOptions fo = {.dtype = dtype};
    const Options o = {.vector = 8, .cpu = "x86-64-v3", .plain = plain, .verify = true};
    Front f;
    double sum = 0;
    ck_assert(front_load(a, path, &fo, d, &f) && pass_run_all(f.train, &o, d));
    for (int i = 0; i < f.train->nnode; i++) {
        const Price p = step_price(f.train, f.train->node[i], &o);
        ck_assert_double_ge(p.cycles, 0);
        ck_assert_double_lt(p.cycles, 1e15);
        sum += p.textbook > 0 ? p.cycles : 0;
    }
    arena_free(a);
    return sum;
}

START_TEST(steps_have_prices)
{
    static const char *const model[] = {"models/lenet.tn", "models/lenet_relu.tn", "models/mlp.tn",
                                        "models/mlp_wide.tn"};
    for (int i = 0; i < 4; i++) {
        const double fast = step_cycles(model[i], false, "f32");
        ck_assert_double_gt(fast, 0);
        ck_assert_double_gt(step_cycles(model[i], false, "f64"), fast);
        ck_assert_double_gt(step_cycles(model[i], true, "f32"), 4 * fast);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("price");
    TCase *t = tcase_create("price");
    tcase_add_test(t, names_of_processors_have_cores);
    tcase_add_test(t, tiles_cost_what_is_slowest);
    tcase_add_test(t, padding_is_executed);
    tcase_add_test(t, memory_is_dearer_the_farther_it_lies);
    tcase_add_test(t, winograd_executes_less);
    tcase_add_test(t, winograd_dw_counts_the_gaps);
    tcase_add_test(t, choices_are_those_of_measurements);
    tcase_add_test(t, choices_for_gradients_of_filters);
    tcase_add_test(t, a_tuner_decides);
    tcase_add_test(t, steps_have_prices);
    suite_add_tcase(s, t);
    return suite_run(s);
}
