/* test_ops.c -- shapes, messages, costs, kernel calls, and the table of operations itself. */
#include "build.h"
#include "ops/elementwise.h"

/* The call of a kernel as text: out, %3 for the value of node 3, literals as they are. */
static const char *call_of(Bench *b, const Node *n, bool plain)
{
    const Options o = {.plain = plain};
    Call c = {.arena = b->a, .n = 16, .target = target_of(&o)};
    n->op->kernel(n, &c);
    const char *s = arena_printf(b->a, "%s(", c.fn);
    for (int i = 0; i < c.narg; i++) {
        const CallArg *g = &c.arg[i];
        const char *literal = call_literal(b->a, g, false);
        const char *text = literal                 ? literal
                           : g->kind == CALL_RT    ? "r"
                           : g->kind == CALL_FIRST ? "first"
                           : g->kind == CALL_OUT   ? "out"
                           : g->kind == CALL_SIDE  ? "side"
                                                   : arena_printf(b->a, "%%%d", g->node->id);
        s = arena_printf(b->a, "%s%s%s", s, i ? ", " : "", text);
    }
    return arena_printf(b->a, "%s)", s);
}

START_TEST(table_is_whole)
{
    const char *const words[] = {"conv2d",
                                 "dense",
                                 "bias",
                                 "max_pool",
                                 "avg_pool",
                                 "global_avg_pool",
                                 "flatten",
                                 "reshape",
                                 "dropout",
                                 "softmax",
                                 "softmax_cross_entropy",
                                 "mse",
                                 "l2",
                                 "add",
                                 "sub",
                                 "mul",
                                 "div",
                                 "neg",
                                 "exp",
                                 "log",
                                 "sqrt",
                                 "abs",
                                 "min",
                                 "max",
                                 "pow",
                                 "relu",
                                 "leaky_relu",
                                 "sigmoid",
                                 "tanh",
                                 "softplus",
                                 "gelu",
                                 "silu"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(op_find(words[i]) != NULL, "no op %s", words[i]);
    for (int i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        ck_assert_ptr_eq(op_find(op->name), op);
        ck_assert_msg(op->brief && *op->brief, "%s has no brief", op->name);
        ck_assert_msg((op->flags & OP_HIDDEN) || op->example, "%s has no example", op->name);
        ck_assert_msg((op->flags & OP_HIDDEN) || strstr(op->example, "train example"), "%s",
                      op->name);
    }
    ck_assert_ptr_null(op_at(op_count()));
    ck_assert_ptr_null(op_find("conv3d"));
}
END_TEST

/* ---- windows */

static const char *conv_shape(int64_t h, int64_t w, int64_t kernel, int64_t stride,
                              int64_t dilation, const char *pad)
{
    static char text[64];
    Bench b = bench_new();
    Node *a = pair(&b, pair(&b, conv_args(&b, 7, kernel), "stride", stride, stride), "dilation",
                   dilation, dilation);
    if (strspn(pad, "0123456789") == strlen(pad))
        pair(&b, a, "pad", atoll(pad), atoll(pad));
    else
        node_set_string(b.g, a, "pad", pad);
    Node *y = call1(&b, a, input(&b, BATCHED(3, h, w)), "c");
    strcpy(text, y ? shape_text(b.a, &y->shape) : "error");
    if (y && !strcmp(pad, "same"))
        sprintf(text + strlen(text), " before %lld",
                (long long)node_attr(y->in[0], "pad_before")->list[0]);
    arena_free(b.a);
    return text;
}

START_TEST(convolution_shapes)
{
    ck_assert_str_eq(conv_shape(28, 28, 5, 1, 1, "0"), "(N, 7, 24, 24)");
    ck_assert_str_eq(conv_shape(28, 28, 5, 1, 1, "valid"), "(N, 7, 24, 24)");
    ck_assert_str_eq(conv_shape(9, 7, 3, 2, 1, "1"), "(N, 7, 5, 4)");
    ck_assert_str_eq(conv_shape(9, 7, 3, 1, 3, "0"), "(N, 7, 3, 1)");
    ck_assert_str_eq(conv_shape(10, 10, 3, 3, 1, "0"), "(N, 7, 3, 3)");
    ck_assert_str_eq(conv_shape(28, 28, 5, 1, 1, "same"), "(N, 7, 28, 28) before 2");
    ck_assert_str_eq(conv_shape(10, 10, 4, 1, 1, "same"), "(N, 7, 10, 10) before 1");
    ck_assert_str_eq(conv_shape(10, 10, 3, 2, 1, "same"), "(N, 7, 5, 5) before 0");
    ck_assert_str_eq(conv_shape(11, 11, 3, 2, 1, "same"), "(N, 7, 6, 6) before 1");
    ck_assert_str_eq(conv_shape(10, 10, 1, 4, 1, "same"), "(N, 7, 3, 3) before 0");
    ck_assert_str_eq(conv_shape(5, 5, 7, 1, 1, "0"), "error");
    ck_assert_str_eq(conv_shape(5, 5, 7, 1, 1, "1"), "(N, 7, 1, 1)");
    ck_assert_str_eq(conv_shape(5, 5, 3, 1, 3, "0"), "error");
    ck_assert_str_eq(conv_shape(5, 5, 0, 1, 1, "0"), "error");
    ck_assert_str_eq(conv_shape(5, 5, 3, 0, 1, "0"), "error");
    ck_assert_str_eq(conv_shape(5, 5, 3, 1, INT64_MAX, "0"), "error");
    ck_assert_str_eq(conv_shape(5, 5, 3, 1, 1, "9223372036854775807"), "error");
    ck_assert_str_eq(conv_shape(5, 5, 3, 1, 1, "smae"), "error");
}
END_TEST

START_TEST(convolution_parameters)
{
    Bench b = bench_new();
    Node *a = pair(&b, conv_args(&b, 8, 3), "kernel", 3, 5);
    node_set_int(b.g, a, "groups", 2);
    Node *y = call1(&b, a, input(&b, BATCHED(6, 9, 9)), "stem");
    ck_assert(node_is(y, "bias"));
    ck_assert_str_eq(y->name, "stem");
    ck_assert_int_eq(b.g->nparam, 2);
    ck_assert_str_eq(b.g->param[0]->name, "stem.weight");
    ck_text(&b, b.g->param[0]->file, "(8, 3, 3, 5)");
    ck_assert_int_eq(b.g->param[0]->fan_in, 45);
    ck_text(&b, b.g->param[1]->file, "(8)");
    const Op *op = op_find("conv2d");
    ck_assert(op->cost(y->in[0]).flops == 2.0 * 8 * 7 * 5 * 3 * 15);
    ck_verify(&b);

    node_set_int(b.g, a, "groups", 4);
    ck_assert_ptr_null(call1(&b, a, b.g->input, "bad"));
    ck_contains(MESSAGES(&b), "groups = 4 does not divide its 6 input channels");
    arena_free(b.a);
}
END_TEST

START_TEST(pooling_shapes)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(3, 9, 8));
    Node *y = call1(&b, pair(&b, args(&b, "max_pool"), "kernel", 2, 2), x, "");
    ck_text(&b, y->shape, "(N, 3, 4, 4)");
    ck_assert_str_eq(call_of(&b, y, true), "max_pool_plain(out, %0, (Pool){ .n = 16, .c = 3, .h = "
                                           "9, .w = 8, .r = 2, .s = 2, "
                                           ".stride_h = 2, .stride_w = 2, .oh = 4, .ow = 4 })");
    Node *a = pair(&b, pair(&b, pair(&b, args(&b, "avg_pool"), "kernel", 3, 3), "stride", 2, 2),
                   "pad", 1, 1);
    node_set_attr(b.a, a, (Attr){.key = "count_include_pad", .kind = ATTR_BOOL, .i = 1});
    y = call1(&b, a, x, "");
    ck_text(&b, y->shape, "(N, 3, 5, 4)");
    ck_contains(call_of(&b, y, false), "avg_pool(out, %0, ");
    ck_contains(call_of(&b, y, false),
                ".pad_h = 1, .pad_w = 1, .oh = 5, .ow = 4, .count_pad = 1 })");
    ck_assert_ptr_null(
        call1(&b, pair(&b, pair(&b, args(&b, "max_pool"), "kernel", 2, 2), "pad", 2, 2), x, ""));
    ck_contains(MESSAGES(&b), "max_pool pad 2 leaves windows of 2 without a pixel");
    y = call1(&b, args(&b, "global_avg_pool"), x, "");
    ck_text(&b, y->shape, "(N, 3)");
    ck_assert_str_eq(call_of(&b, y, false), "global_avg_pool(out, %0, 16, 3, 72)");
    arena_free(b.a);
}
END_TEST

/* ---- other shapes and messages */

START_TEST(message_names_numbers_and_way_out)
{
    Bench b = bench_new();
    static const Source source = {.name = "m.tn", .text = "a\nb\n", .len = 4};
    Node *x = graph_input(b.g, "image", BATCHED(16, 5, 5), DT_REAL, (Span){&source, 1, 1, 1, 2});
    Node *a = pair(&b, args(&b, "avg_pool"), "kernel", 1, 1);
    a->span = (Span){&source, 2, 1, 2, 2};
    Node *h = call1(&b, a, x, "");
    h->span = a->span;
    ck_assert_ptr_null(conv(&b, h, 120, 7, "c"));
    const char *text = MESSAGES(&b);
    ck_contains(text, "conv2d kernel 7x7 is larger than its input 5x5");
    ck_contains(text, "the input is (N, 16, 5, 5), made by avg_pool on line 2");
    ck_contains(text, "use kernel <= 5, or a larger pad");
    ck_assert_ptr_null(dense(&b, h, 10, "d"));
    text = MESSAGES(&b);
    ck_contains(text, "dense needs vectors (N, F), got (N, 16, 5, 5)");
    ck_contains(text, "flatten it first");
    ck_assert_ptr_null(conv(&b, call1(&b, args(&b, "flatten"), h, ""), 4, 1, "c"));
    ck_contains(MESSAGES(&b), "conv2d needs images (N, C, H, W), got (N, 400)");
    ck_assert_int_eq(b.g->nparam, 0);
    arena_free(b.a);
}
END_TEST

static const char *reshaped(Bench *b, Node *x, const int64_t *to, int n)
{
    Node *a = args(b, "reshape");
    node_set_ints(b->g, a, "shape", to, n);
    Node *y = call1(b, a, x, "");
    return y ? shape_text(b->a, &y->shape) : MESSAGES(b);
}
#define RESHAPED(...)                                                                              \
    reshaped(&b, x, (int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8))

START_TEST(reshape_shapes)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(2, 3, 4));
    ck_assert_str_eq(RESHAPED(24), "(N, 24)");
    ck_assert_str_eq(RESHAPED(4, -1), "(N, 4, 6)");
    ck_assert_str_eq(RESHAPED(-1, 3, 2, 2), "(N, 2, 3, 2, 2)");
    ck_contains(RESHAPED(5, 5), "reshape to 25 numbers a sample, its input has 24");
    ck_contains(RESHAPED(-1, 5), "5 does not divide the 24 numbers");
    ck_contains(RESHAPED(-1, -1), "reshape dimension -1 is not possible");
    ck_contains(RESHAPED(0), "reshape dimension 0 is not possible");
    ck_contains(RESHAPED(INT32_MAX, INT32_MAX, INT32_MAX), "is not possible");
    ck_contains(RESHAPED(1, 1, 1, 1, 1, 1, 24), "7 dimensions");
    arena_free(b.a);
}
END_TEST

START_TEST(losses)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(10)), *t = label(&b), *a = args(&b, "one_hot");
    Node *y = call2(&b, "softmax_cross_entropy", x, t);
    ck_text(&b, y->shape, "(N)");
    ck_assert_str_eq(call_of(&b, y, false), "softmax_cross_entropy(out, %0, %1, 16, 10)");
    node_set_int(b.g, a, "classes", 10);
    Node *target = call1(&b, a, t, "");
    ck_text(&b, target->shape, "(N, 10)");
    y = call2(&b, "mse", x, target);
    ck_text(&b, y->shape, "(N)");
    ck_assert_str_eq(call_of(&b, y, true), "mse_plain(out, %0, %3, 16, 10)");
    ck_assert_str_eq(call_of(&b, call2(&b, "l1", x, target), true),
                     "l1_plain(out, %0, %3, 16, 10)");
    ck_assert_ptr_null(call2(&b, "softmax_cross_entropy", x, target));
    ck_contains(MESSAGES(&b), "softmax_cross_entropy needs one class number for each sample, got "
                              "numbers (N, 10)");
    ck_assert_ptr_null(call2(&b, "add", x, t));
    ck_contains(MESSAGES(&b), "add needs numbers, got class numbers");
    ck_assert_ptr_null(call2(&b, "mse", x, y));
    ck_contains(MESSAGES(&b), "mse of (N, 10) and (N): the shapes differ");
    arena_free(b.a);
}
END_TEST

START_TEST(limits)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(1, 40000, 40000)), *a = conv_args(&b, 1000, 1);
    ck_assert_ptr_null(call1(&b, a, x, "c"));
    ck_contains(MESSAGES(&b), "takes more than 2^40 bytes a sample");
    node_set_int(b.g, a, "filters", 3000000000);
    ck_assert_ptr_null(call1(&b, a, x, "c"));
    ck_contains(MESSAGES(&b), "conv2d filters is 3000000000, above 2147483647");
    ck_assert_ptr_null(dense(&b, call1(&b, args(&b, "flatten"), x, ""), 0, "d"));
    ck_contains(MESSAGES(&b), "dense units is 0, below 1");
    arena_free(b.a);
}
END_TEST

START_TEST(dropout_is_for_training)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *a = args(&b, "dropout");
    node_set_float(b.g, a, "rate", 0.25);
    Node *y = call1(&b, a, x, ""), *z = call1(&b, a, y, "");
    ck_assert_int_eq(node_int(y, "purpose"), 0);
    ck_assert_int_eq(node_int(z, "purpose"), 1);
    ck_assert_str_eq(call_of(&b, z, false), "dropout(out, %1, r, 1, first, (real)0.25, 16, 4)");
    node_set_float(b.g, a, "rate", 0);
    ck_assert_ptr_eq(call1(&b, a, x, ""), x);
    node_set_float(b.g, a, "rate", 1);
    ck_assert_ptr_null(call1(&b, a, x, ""));
    ck_contains(MESSAGES(&b), "dropout rate is 1, outside 0 <= rate < 1");
    b.g->training = false;
    node_set_float(b.g, a, "rate", 0.5);
    ck_assert_ptr_eq(call1(&b, a, x, ""), x);
    arena_free(b.a);
}
END_TEST

/* ---- elementwise */

static const char *sum_of(Shape p, Shape q)
{
    static char text[256];
    Bench b = bench_new();
    Node *x = graph_const(b.g, 1, p, (Span){0}), *y = graph_const(b.g, 1, q, (Span){0}),
         *z = call2(&b, "add", x, y);
    snprintf(text, sizeof text, "%s", z ? shape_text(b.a, &z->shape) : MESSAGES(&b));
    arena_free(b.a);
    return text;
}

START_TEST(broadcasting)
{
    ck_assert_str_eq(sum_of(BATCHED(3, 4, 5), BATCHED(3, 4, 5)), "(N, 3, 4, 5)");
    ck_assert_str_eq(sum_of(BATCHED(3, 4, 5), SCALAR(false)), "(N, 3, 4, 5)");
    ck_assert_str_eq(sum_of(SINGLE(5), BATCHED(3, 4, 5)), "(N, 3, 4, 5)");
    ck_assert_str_eq(sum_of(BATCHED(3, 1, 1), SINGLE(1, 4, 5)), "(N, 3, 4, 5)");
    ck_assert_str_eq(sum_of(SINGLE(4, 1), SINGLE(5)), "(4, 5)");
    ck_assert_str_eq(sum_of(SCALAR(true), SINGLE(5)), "(N, 5)");
    ck_contains(sum_of(BATCHED(3, 4, 5), BATCHED(2, 4, 5)),
                "add of (N, 3, 4, 5) and (N, 2, 4, 5) does not fit: 3 against 2");
    ck_contains(sum_of(BATCHED(20), BATCHED(30)), "20 against 30");
}
END_TEST

static const char *formatted(Bench *b, const char *op, Operand p, Operand q, bool plain)
{
    return elementwise_format(b->a, args(b, op), (const Operand[]){p, q}, plain).s;
}

#define ONE(s) ((Operand){s, false})
#define SUM(s) ((Operand){s, true})

START_TEST(expressions)
{
    Bench b = bench_new();
    ck_assert_str_eq(formatted(&b, "add", ONE("x"), ONE("y"), false), "x + y");
    ck_assert_str_eq(formatted(&b, "mul", SUM("x + y"), ONE("LOAD(z + 4)"), false),
                     "(x + y) * LOAD(z + 4)");
    ck_assert_str_eq(formatted(&b, "tanh", SUM("x + y"), ONE(NULL), false), "v_tanh(x + y)");
    ck_assert_str_eq(formatted(&b, "tanh", SUM("x + y"), ONE(NULL), true), "s_tanh(x + y)");
    ck_assert_str_eq(formatted(&b, "max", SUM("x + y"), SUM("-z"), true), "s_max(x + y, -z)");
    ck_assert_str_eq(formatted(&b, "neg", SUM("-x"), ONE(NULL), false), "-(-x)");
    ck_assert_str_eq(formatted(&b, "sub", ONE("x"), SUM("y - z"), false), "x - (y - z)");
    ck_assert_str_eq(formatted(&b, "tanh_d", ONE("dy"), ONE("y[i + 1]"), false),
                     "dy * (1 - y[i + 1] * y[i + 1])");
    ck_assert_str_eq(formatted(&b, "leaky_relu", ONE("a"), ONE(NULL), false),
                     "v_select_gt(a, v_set(0), a, v_set(0.01) * a)");
    ck_assert_str_eq(formatted(&b, "leaky_relu", ONE("a"), ONE(NULL), true),
                     "s_select_gt(a, (real)0, a, (real)0.01 * a)");
    ck_assert_str_eq(elementwise_act(op_find("relu")), "v_relu");
    ck_assert_ptr_null(elementwise_act(op_find("leaky_relu")));
    ck_assert_ptr_null(elementwise_act(op_find("relu_d")));
    ck_assert_str_eq(elementwise_mask(op_find("relu_d")), "d_relu");
    ck_assert_ptr_null(elementwise_mask(op_find("gelu_d")));
    ck_assert(elementwise_monotone(op_find("tanh")) && !elementwise_monotone(op_find("gelu")));
    ck_assert_ptr_null(elementwise_expr(op_find("conv2d")));
    arena_free(b.a);
}
END_TEST

/* ---- properties of the rows agree with each other, and op_weights names the right inputs */

static int count_tensors(const Op *op)
{
    int n = 0;
    while (op->arg[n].name && op->arg[n].type == ARG_TENSOR)
        n++;
    return n;
}

START_TEST(properties)
{
    for (int i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        const Node n = {.op = op};
        const int w = op_weights(&n);
        ck_assert_msg(!(op->flags & OP_ELEMENTWISE) || op->flags & OP_MAP, "%s: no map", op->name);
        ck_assert_msg(!(op->flags & OP_UPDATE) || op->flags & OP_ROOT, "%s: no root", op->name);
        ck_assert_msg(!op->token || op_find(op->token), "%s: %s", op->name, op->token);
        ck_assert_msg(op->role != ROLE_DW || op->flags & OP_SUM, "%s: no sum", op->name);
        ck_assert_msg(op->role == ROLE_Y || op->product, "%s: no product", op->name);
        ck_assert_msg(!(op->takes & EPILOGUE_BIAS) || w == 1, "%s: no weights", op->name);
        ck_assert_msg(!(op->takes & EPILOGUE_MASK) || w == 0, "%s: no weights", op->name);
        ck_assert_msg(w < 1 || !strcmp(op->arg[w].name, "w") || op->build, "%s: w", op->name);
        ck_assert_msg(w != 0 || !strcmp(op->arg[0].name, "w"), "%s: w", op->name);
        for (int k = 0; k < 16; k++)
            ck_assert_msg(!(op->strided & 1u << k) || k < count_tensors(op) || op->build,
                          "%s: input %d", op->name, k);
    }
}
END_TEST

/* ---- calls of the fused forms that passes make */

START_TEST(calls)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(1, 12, 12)), *y = conv(&b, x, 4, 5, "c");
    Node *z = y->in[0], *bias = y->in[1];
    const char *literal =
        "(Conv){ .n = 16, .c = 1, .h = 12, .w = 12, .o = 4, .r = 5, .s = 5, .stride_h = 1, "
        ".stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8";
    ck_assert_str_eq(call_of(&b, z, true),
                     arena_printf(b.a, "conv2d_plain(out, %%0, %%1, %s })", literal));
    ck_assert_str_eq(call_of(&b, z, false),
                     arena_printf(b.a, "conv2d(out, %%0, %%1, NULL, v_identity, %s })", literal));
    Node *p = op_make_like(b.g, "conv2d_pack", z, 1, z->in[1]);
    node_set_int(b.g, p, "dx", 1);
    ck_assert_str_eq(call_of(&b, p, false),
                     arena_printf(b.a, "conv2d_pack_back(out, %%1, %s })", literal));
    z->in[1] = p;
    Node *f = op_make_like(b.g, "conv2d", z, 3, x, p, bias);
    node_set_string(b.g, f, "act", "tanh");
    node_set_int(b.g, f, "pool", 2);
    ck_assert(f->op->shape(f, b.d));
    ck_text(&b, f->shape, "(N, 4, 4, 4)");
    ck_assert_str_eq(call_of(&b, f, false), arena_printf(b.a,
                                                         "conv2d_pool(out, side, %%0, %%%d, %%%d, "
                                                         "v_tanh, %s, .pool = 2 })",
                                                         p->id, bias->id, literal));
    Node *side = op_make(b.g, "side", (Span){0}, 1, f);
    ck_assert_int_eq(side->dtype, DT_U8);
    Node *dx = op_make_like(b.g, "conv2d_pool_dx", f, 4, p, f, side, x);
    node_set_string(b.g, dx, "mask", "tanh_d");
    ck_text(&b, dx->shape, "(N, 1, 12, 12)");
    ck_assert_str_eq(call_of(&b, dx, false), arena_printf(b.a,
                                                          "conv2d_pool_dx(out, %%%d, %%%d, %%%d, "
                                                          "d_tanh, %%0, %s, .pool = 2 })",
                                                          p->id, f->id, side->id, literal));
    Node *dw = op_make_like(b.g, "conv2d_pool_dw", f, 3, x, f, side);
    ck_text(&b, dw->shape, "(4, 1, 5, 5)");
    ck_contains(call_of(&b, dw, false), "conv2d_pool_dw(out, %0, ");
    arena_free(b.a);
}
END_TEST

TEST_MAIN("ops", table_is_whole, properties, convolution_shapes, convolution_parameters,
          pooling_shapes, message_names_numbers_and_way_out, reshape_shapes, losses, limits,
          dropout_is_for_training, broadcasting, expressions, calls)
