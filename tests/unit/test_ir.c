/* test_ir.c -- shapes, nodes, attributes, parameters, order, dump and verify. */
#include "build.h"
#include "ir/readers.h"

START_TEST(shapes)
{
    Bench b = bench_new();
    const Shape image = BATCHED(16, 5, 4), weight = SINGLE(500, 800), scalar = SCALAR(false);
    ck_text(&b, image, "(N, 16, 5, 4)");
    ck_text(&b, weight, "(500, 800)");
    ck_text(&b, scalar, "()");
    ck_assert_int_eq(shape_count(&image), 320);
    ck_assert_int_eq(shape_count(&scalar), 1);
    ck_assert_int_eq(shape_axis(&image, 'H'), 5);
    ck_assert_int_eq(shape_axis(&weight, 'H'), 0);
    ck_assert(!shape_same(&image, &(Shape){.batched = false, .rank = 3, .dim = {16, 5, 4}}));
    const Shape huge = SINGLE(INT32_MAX, INT32_MAX, INT32_MAX);
    ck_assert(shape_count(&huge) == INT64_MAX);
    arena_free(b.a);
}
END_TEST

START_TEST(parameters)
{
    Bench b = bench_new();
    Node *w = graph_param(b.g, b.d, "conv1.weight", SINGLE(20, 3, 5, 4), NULL, (Span){0});
    Node *v = graph_param(b.g, b.d, "conv1.bias", SINGLE(20), NULL, (Span){0});
    ck_assert_int_eq(w->param->fan_in, 60);
    ck_assert_int_eq(w->param->fan_out, 400);
    ck_assert(w->param->decay && !v->param->decay);
    ck_assert_int_eq(w->param->init.kind, INIT_GLOROT);
    ck_assert_int_eq(v->param->init.kind, INIT_CONSTANT);
    ck_assert_int_eq(w->param->count_memory, 1200);
    ck_assert_int_eq(w->param->naxis, 4);
    ck_assert_int_eq(w->param->axis[1].inner, 20);
    ck_assert_ptr_eq(graph_param(b.g, b.d, "conv1.weight", SINGLE(20, 3, 5, 4), NULL, (Span){0}),
                     w);
    ck_assert_int_eq(b.g->nparam, 2);
    ck_assert_ptr_null(graph_param(b.g, b.d, "conv1.bias", SINGLE(21), NULL, (Span){0}));
    ck_contains(MESSAGES(&b),
                "the shared parameter conv1.bias is (21) here and (20) at its first use");
    ck_assert_ptr_null(
        graph_param(b.g, b.d, "big", SINGLE(INT32_MAX, INT32_MAX, 9), NULL, (Span){0}));
    arena_free(b.a);
}
END_TEST

START_TEST(attributes)
{
    Bench b = bench_new();
    Node *n = number(&b, 2), copy = *n;
    node_set_int(b.g, n, "k", 3);
    node_set_string(b.g, n, "pad", "same");
    ck_assert_int_eq(node_int(n, "k"), 3);
    ck_assert(node_float(n, "k") == 3);
    node_set_int(b.g, n, "k", 4);
    ck_assert_int_eq(node_int(n, "k"), 4);
    ck_assert_int_eq(n->nattr, 3);
    ck_assert_str_eq(node_string(n, "pad"), "same");
    ck_assert_ptr_null(node_attr(&copy, "k"));
    node_copy_attrs(b.g, &copy, n);
    ck_assert_int_eq(node_int(&copy, "k"), 4);
    arena_free(b.a);
}
END_TEST

/* c = add(a, b) is put before its inputs in the list; sorting moves them just before it and
 * nothing else. */
START_TEST(order)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *p = call2(&b, "add", x, x), *q = call2(&b, "mul", x, x);
    Node *c = call2(&b, "add", p, q), *last = call2(&b, "sub", x, p);
    b.g->node[1] = last, b.g->node[2] = c, b.g->node[3] = q, b.g->node[4] = p;
    ck_assert_ptr_nonnull(graph_verify(b.g, b.d));
    graph_sort(b.g);
    ck_assert_ptr_eq(b.g->node[1], p);
    ck_assert_ptr_eq(b.g->node[2], last);
    ck_assert_ptr_eq(b.g->node[3], q);
    ck_assert_ptr_eq(b.g->node[4], c);
    ck_verify(&b);
    arena_free(b.a);
}
END_TEST

START_TEST(deep_graphs_sort)
{
    Bench b = bench_new();
    Node *n = input(&b, BATCHED(1));
    for (int i = 0; i < 100000; i++)
        n = graph_add(b.g, op_find("neg"), &n, 1, (Span){0}), n->shape = BATCHED(1);
    for (int i = 1, j = b.g->nnode - 1; i < j; i++, j--) {
        Node *t = b.g->node[i];
        b.g->node[i] = b.g->node[j], b.g->node[j] = t;
    }
    graph_sort(b.g);
    for (int i = 0; i < b.g->nnode; i++)
        ck_assert_int_eq(b.g->node[i]->id, i);
    arena_free(b.a);
}
END_TEST

START_TEST(replacing)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *y = call2(&b, "add", x, x);
    Node *z = call2(&b, "mul", y, x);
    b.g->output = y;
    y->name = "h";
    Node *behind = call2(&b, "sub", y, x);
    Readers *r = readers_new(b.g);
    ck_assert_int_eq(readers_count(r, x), 3);
    ck_assert_int_eq(readers_uses(r, x), 4);
    ck_assert_int_eq(readers_uses(r, y), 3);
    ck_assert_ptr_null(readers_only(r, y));
    readers_replace(r, y, behind);
    ck_assert_ptr_eq(z->in[0], behind);
    ck_assert_ptr_eq(behind->in[0], y);
    ck_assert_ptr_eq(b.g->output, behind);
    ck_assert_str_eq(behind->name, "h");
    ck_assert_ptr_eq(readers_only(r, y), behind);
    ck_assert_int_eq(readers_uses(r, behind), 2);
    arena_free(b.a);
}
END_TEST

/* A value without readers is removed, together with values that only it reads; inputs and results stay. */
START_TEST(retiring)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *y = call2(&b, "add", x, x);
    Node *kept = call2(&b, "mul", x, x), *lost = call2(&b, "mul", y, kept);
    b.g->output = kept;
    Readers *r = readers_new(b.g);
    readers_retire(r, y); /* still read */
    ck_assert(!readers_retired(r, y));
    readers_retire(r, lost);
    ck_assert(readers_retired(r, lost) && readers_retired(r, y));
    ck_assert(!readers_retired(r, kept) && !readers_retired(r, x));
    ck_assert_int_eq(readers_count(r, x), 1);
    arena_free(b.a);
}
END_TEST

START_TEST(dumps)
{
    Bench b = bench_new();
    static const Source source = {.name = "some/where/lenet.tn"};
    Node *x = graph_input(b.g, "image", BATCHED(1, 6, 6), DT_REAL, (Span){&source, 1, 1, 1, 6});
    finish(&b, dense(&b, call1(&b, args(&b, "flatten"), x, ""), 3, "out"));
    ck_assert_str_eq(DUMP(&b), "graph test, training\n"
                               "%0 = input() (N, 1, 6, 6)  image  lenet.tn:1\n"
                               "%1 = flatten(%0) (N, 36)\n"
                               "%2 = param() (3, 36)  out.weight\n"
                               "%3 = dense(%1, %2) {bias=true units=3 x_shape=[36]} (N, 3)  out\n"
                               "%4 = param() (3)  out.bias\n"
                               "%5 = bias(%3, %4) (N, 3)  out\n"
                               "%6 = label() (N) i32  label\n"
                               "%7 = softmax_cross_entropy(%5, %6) (N)\n"
                               "output %5, loss %7\n");
    arena_free(b.a);
}
END_TEST

/* Every kind of fault is found, and the message names the node. */
START_TEST(verify_finds_damage)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(6)), *y = dense(&b, x, 5, "d");
    finish(&b, y);
    ck_verify(&b);
    y->shape.dim[0] = 4;
    ck_contains(graph_verify(b.g, b.d), "its shape is (N, 4), its rule says (N, 5)");
    y->shape.dim[0] = 5;
    y->id = 0;
    ck_contains(graph_verify(b.g, b.d), "not unique");
    y->id = 4;
    y->nin = 1;
    Node *flat = call1(&b, args(&b, "flatten"), y, "");
    flat->nin = 0;
    ck_contains(graph_verify(b.g, b.d), "0 inputs, needs 1");
    flat->nin = 1;
    ck_verify(&b);
    flat->layout = LAYOUT_LAST;
    ck_contains(graph_verify(b.g, b.d), "flat[]");
    flat->layout = LAYOUT_ROW;
    b.g->nnode--;
    b.g->output = flat;
    ck_contains(graph_verify(b.g, b.d), "output");
    arena_free(b.a);
}
END_TEST

TEST_MAIN("ir", shapes, parameters, attributes, order, deep_graphs_sort, replacing, retiring, dumps,
          verify_finds_damage)
