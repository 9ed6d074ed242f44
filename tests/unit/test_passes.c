/* test_passes.c -- infer, gradient, simplify, cse, dce and the pass table.
 *
 * Gradient rules of the elementwise table are checked against central differences by a small
 * interpreter of their graphs.
 */
#include "build.h"
#include "ir/target.h"
#include "ops/elementwise.h"
#include <math.h>

static const Options options = {.vector = 8, .verify = true, .cpu = "x86-64-v3"};

static void run(Bench *b, void (*pass)(Graph *, const Options *, Diag *))
{
    pass(b->g, &options, b->d);
    ck_verify(b);
}

/* ---- elementwise rules, numerically */

typedef struct Value {
    const char *op;
    double (*f)(double a, double b);
} Value;

/* clang-format off */
static double f_add(double a, double b) { return a + b; }
static double f_sub(double a, double b) { return a - b; }
static double f_mul(double a, double b) { return a * b; }
static double f_div(double a, double b) { return a / b; }
static double f_neg(double a, double b) { return (void)b, -a; }
static double f_exp(double a, double b) { return (void)b, exp(a); }
static double f_log(double a, double b) { return (void)b, log(a); }
static double f_sqrt(double a, double b) { return (void)b, sqrt(a); }
static double f_abs(double a, double b) { return (void)b, fabs(a); }
static double f_square(double a, double b) { return (void)b, a * a; }
static double f_reciprocal(double a, double b) { return (void)b, 1 / a; }
static double f_sign(double a, double b) { return (void)b, (a > 0) - (a < 0); }
static double f_step(double a, double b) { return (void)b, a > 0; }
static double f_relu(double a, double b) { return (void)b, a > 0 ? a : 0; }
static double f_leaky(double a, double b) { return (void)b, a > 0 ? a : 0.01 * a; }
static double f_relu6(double a, double b) { return (void)b, fmin(fmax(a, 0), 6); }
static double f_hard_sigmoid(double a, double b) { return f_relu6(a + 3, b) / 6; }
static double f_hard_swish(double a, double b) { return a * f_hard_sigmoid(a, b); }
static double f_relu6_d(double a, double b) { return b > 0 && b < 6 ? a : 0; }
static double f_hard_sigmoid_d(double a, double b) { return b > 0 && b < 1 ? a / 6 : 0; }
static double f_hard_swish_d(double a, double b)
{
    return b <= -3 ? 0 : b > 3 ? a : a * (b / 3 + 0.5);
}
static double f_sigmoid(double a, double b) { return (void)b, 1 / (1 + exp(-a)); }
static double f_tanh(double a, double b) { return (void)b, tanh(a); }
static double f_softplus(double a, double b) { return (void)b, log1p(exp(a)); }
static double f_gelu(double a, double b) { return (void)b, a * 0.5 * (1 + erf(a / sqrt(2))); }
static double f_silu(double a, double b) { return (void)b, a / (1 + exp(-a)); }
static double f_erf(double a, double b) { return (void)b, erf(a); }
static double f_relu_d(double a, double b) { return b > 0 ? a : 0; }
static double f_sigmoid_d(double a, double b) { return a * b * (1 - b); }
static double f_tanh_d(double a, double b) { return a * (1 - b * b); }
static double f_leaky_d(double a, double b) { return b > 0 ? a : 0.01 * a; }
static double f_gelu_d(double a, double b)
{
    return a * (0.5 * erfc(-b / sqrt(2)) + b * exp(-b * b / 2) / sqrt(2 * M_PI));
}
static double f_silu_d(double a, double b)
{
    return a * f_sigmoid(b, 0) * (1 + b * (1 - f_sigmoid(b, 0)));
}
static double f_sin(double a, double b) { return (void)b, sin(a); }
static double f_cos(double a, double b) { return (void)b, cos(a); }
static double f_same(double a, double b) { return (void)b, a; }
static double f_clamp(double a, double b) { return (void)b, fmin(fmax(a, -0.5), 1); }
static double f_clamp_d(double a, double b) { return b >= -0.5 && b <= 1 ? a : 0; }
static double f_lt(double a, double b) { return a < b; }
static double f_le(double a, double b) { return a <= b; }
static double f_eq(double a, double b) { return a == b; }
static double f_ne(double a, double b) { return a != b; }
static double f_where_true(double a, double b) { return b != 0 ? a : 0; }
static double f_where_false(double a, double b) { return b != 0 ? 0 : a; }
static double f_gt(double a, double b) { return a > b; }
static double f_ge(double a, double b) { return a >= b; }

static const Value table[] = {
    {"add", f_add}, {"sub", f_sub}, {"mul", f_mul}, {"div", f_div}, {"neg", f_neg},
    {"exp", f_exp}, {"log", f_log},
    {"sqrt", f_sqrt}, {"abs", f_abs}, {"min", fmin}, {"max", fmax}, {"pow", pow},
    {"square", f_square},
    {"reciprocal", f_reciprocal}, {"sign", f_sign}, {"step", f_step}, {"relu", f_relu},
    {"leaky_relu", f_leaky}, {"relu6", f_relu6}, {"hard_sigmoid", f_hard_sigmoid},
    {"hard_swish", f_hard_swish}, {"relu6_d", f_relu6_d}, {"hard_sigmoid_d", f_hard_sigmoid_d},
    {"hard_swish_d", f_hard_swish_d},
    {"sigmoid", f_sigmoid}, {"tanh", f_tanh}, {"softplus", f_softplus}, {"gelu", f_gelu},
    {"silu", f_silu},
    {"erf", f_erf}, {"relu_d", f_relu_d}, {"sigmoid_d", f_sigmoid_d}, {"tanh_d", f_tanh_d},
    {"leaky_relu_d", f_leaky_d}, {"gelu_d", f_gelu_d}, {"silu_d", f_silu_d},
    {"stop_gradient", f_same}, {"gt", f_gt},
    {"ge", f_ge}, {"lt", f_lt}, {"le", f_le}, {"eq", f_eq}, {"ne", f_ne}, {"sin", f_sin},
    {"cos", f_cos}, {"clamp", f_clamp}, {"clamp_d", f_clamp_d},
    {"where_true", f_where_true}, {"where_false", f_where_false}};
enum { ROWS = sizeof table / sizeof *table };
/* clang-format on */

/* The value of a graph of scalars, parameters "a" and "b" given. */
static double eval(const Node *n, double a, double b)
{
    if (node_is(n, "param"))
        return !strcmp(n->param->name, "a") ? a : b;
    if (node_is(n, "const"))
        return node_float(n, "value");
    const double x = eval(n->in[0], a, b), y = n->nin > 1 ? eval(n->in[1], a, b) : 0;
    for (int i = 0; i < ROWS; i++)
        if (node_is(n, table[i].op))
            return table[i].f(x, y);
    ck_abort_msg("%s is not in the test's table", n->op->name);
}

/* d op(a, b) / d a and d b by the graph and by differences, at a few points. */
static void check_rule(const Op *op)
{
    static const double at[][2] = {{0.7, 1.3}, {1.9, 0.4}, {0.3, 0.3 + 1e-3}, {2.5, 2.0}};
    const bool any_sign =
        strcmp(op->name, "log") && strcmp(op->name, "sqrt") && strcmp(op->name, "pow");
    Bench b = bench_new();
    Node *in[2] = {graph_param(b.g, b.d, "a", SCALAR(false), NULL, (Span){0}),
                   graph_param(b.g, b.d, "b", SCALAR(false), NULL, (Span){0})};
    Node *with = args(&b, op->name);
    if (node_is(with, "clamp")) {
        node_set_float(b.g, with, "low", -0.5);
        node_set_float(b.g, with, "high", 1);
    }
    b.g->loss =
        graph_add(b.g, op, in, op->arg[1].type == ARG_TENSOR && op->arg[1].name ? 2 : 1, (Span){0});
    node_copy_attrs(b.g, b.g->loss, with);
    b.g->recipe.batch = 1;
    run(&b, pass_infer);
    run(&b, pass_gradient);
    for (int i = 0; i < b.g->nnode; i++) {
        const Node *u = b.g->node[i];
        const bool first = u->param && !strcmp(u->param->name, "a");
        for (int k = 0; k < 8 && node_is(u, "update"); k++) {
            const double sign = k >= 4 && any_sign ? -1 : 1, h = 1e-6;
            const double x = sign * at[k & 3][0], y = at[k & 3][1];
            const double up = eval(b.g->loss, x + h * first, y + h * !first);
            const double down = eval(b.g->loss, x - h * first, y - h * !first);
            const double want = (up - down) / (2 * h), got = eval(u->in[1], x, y);
            ck_assert_msg(fabs(want - got) <= 1e-7 * (1 + fabs(want)),
                          "%s at (%g, %g), d%s: %.9g, differences say %.9g", op->name, x, y,
                          u->param->name, got, want);
        }
    }
    const bool flat = !elementwise_derivative(b.a, op); /* sign, step, comparisons */
    ck_assert_int_eq(count_op(b.g, "update"), flat ? 0 : b.g->loss->nin);
    arena_free(b.a);
}

START_TEST(rules_agree_with_differences)
{
    int checked = 0;
    for (int i = 0; i < op_count(); i++)
        if ((op_at(i)->flags & OP_ELEMENTWISE) && !(op_at(i)->flags & OP_HIDDEN) &&
            !op_at(i)->build) {
            check_rule(op_at(i));
            checked++;
        }
    ck_assert_int_ge(checked, 24);
}
END_TEST

/* ---- gradient: structure */

/* loss = a * stop_gradient(a * b): da = a b, as if the second factor was a constant; b is not trained. */
START_TEST(no_gradient_passes_stop_gradient)
{
    Bench b = bench_new();
    Node *p[2] = {graph_param(b.g, b.d, "a", SCALAR(false), NULL, (Span){0}),
                  graph_param(b.g, b.d, "b", SCALAR(false), NULL, (Span){0})};
    Node *product = graph_add(b.g, op_find("mul"), p, 2, (Span){0});
    Node *factor[2] = {p[0], graph_add(b.g, op_find("stop_gradient"), &product, 1, (Span){0})};
    b.g->loss = graph_add(b.g, op_find("mul"), factor, 2, (Span){0});
    b.g->recipe.batch = 1;
    run(&b, pass_infer);
    run(&b, pass_gradient);
    ck_assert_int_eq(count_op(b.g, "update"), 1);
    for (int i = 0; i < b.g->nnode; i++)
        if (node_is(b.g->node[i], "update")) {
            ck_assert_str_eq(b.g->node[i]->param->name, "a");
            ck_assert_double_eq(eval(b.g->node[i]->in[1], 3, 5), 15);
        }
    arena_free(b.a);
}
END_TEST

START_TEST(gradient_of_two_layers)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(1, 6, 6));
    Node *h = call1(&b, args(&b, "tanh"), conv(&b, x, 2, 3, "c"), "");
    finish(&b, dense(&b, call1(&b, args(&b, "flatten"), h, ""), 3, "out"));
    run(&b, pass_infer);
    ck_assert(!x->needs_grad && h->needs_grad);
    run(&b, pass_gradient);
    run(&b, pass_dce);
    ck_assert_str_eq(DUMP(&b),
                     "graph test, training\n"
                     "%0 = input() (N, 1, 6, 6)  x\n"
                     "%1 = param() (2, 1, 3, 3)  c.weight\n"
                     "%2 = conv2d(%0, %1) {stride=[1,1] pad=[0,0] dilation=[1,1] groups=1 "
                     "bias=true kernel=[3,3] filters=2 "
                     "pad_before=[0,0] x_shape=[1,6,6]} (N, 2, 4, 4)  c\n"
                     "%3 = param() (2)  c.bias\n"
                     "%4 = bias(%2, %3) (N, 2, 4, 4)  c\n"
                     "%5 = tanh(%4) (N, 2, 4, 4)\n"
                     "%6 = flatten(%5) (N, 32)\n"
                     "%7 = param() (3, 32)  out.weight\n"
                     "%8 = dense(%6, %7) {bias=true units=3 x_shape=[32]} (N, 3)  out\n"
                     "%9 = param() (3)  out.bias\n"
                     "%10 = bias(%8, %9) (N, 3)  out\n"
                     "%11 = label() (N) i32  label\n"
                     "%12 = softmax_cross_entropy(%10, %11) (N)\n"
                     "%13 = const() {value=0.125} (N)\n"
                     "%14 = softmax_cross_entropy_dx(%10, %11, %13) (N, 3)  dout\n"
                     "%15 = sum_to(%14) {shape=[3] batched=0 align=\"first\"} (3)  dout.bias\n"
                     "%16 = dense_dx(%7, %14) {bias=true units=3 x_shape=[32]} (N, 32)\n"
                     "%17 = dense_dw(%6, %14) {bias=true units=3 x_shape=[32]} (3, 32)  "
                     "dout.weight\n"
                     "%18 = reshape(%16) {shape=[2,4,4]} (N, 2, 4, 4)\n"
                     "%19 = tanh_d(%18, %5) (N, 2, 4, 4)  dc\n"
                     "%20 = sum_to(%19) {shape=[2] batched=0 align=\"first\"} (2)  dc.bias\n"
                     "%21 = conv2d_dw(%0, %19) {stride=[1,1] pad=[0,0] dilation=[1,1] groups=1 "
                     "bias=true kernel=[3,3] "
                     "filters=2 pad_before=[0,0] x_shape=[1,6,6]} (2, 1, 3, 3)  dc.weight\n"
                     "%22 = update(%1, %21) {decay=true} (2, 1, 3, 3)  c.weight\n"
                     "%23 = update(%3, %20) {decay=false} (2)  c.bias\n"
                     "%24 = update(%7, %17) {decay=true} (3, 32)  out.weight\n"
                     "%25 = update(%9, %15) {decay=false} (3)  out.bias\n"
                     "output %10, loss %12\n");
    arena_free(b.a);
}
END_TEST

START_TEST(shared_parameters_sum)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *h = dense(&b, x, 4, "d");
    finish(&b, dense(&b, call1(&b, args(&b, "tanh"), h, ""), 4, "d"));
    ck_assert_int_eq(b.g->nparam, 2);
    run(&b, pass_infer);
    run(&b, pass_gradient);
    ck_assert_int_eq(count_op(b.g, "update"), 2);
    ck_assert_int_eq(count_op(b.g, "dense_dw"), 2);
    const Node *dw = first_op(b.g, "update")->in[1];
    ck_assert(node_is(dw, "add") && node_is(dw->in[0], "dense_dw") &&
              node_is(dw->in[1], "dense_dw"));
    ck_assert_ptr_ne(dw->in[0], dw->in[1]);
    run(&b, pass_cse);
    ck_assert_int_eq(count_op(b.g, "dense_dw"), 2);
    arena_free(b.a);
}
END_TEST

/* A per-channel gain (C, 1, 1) broadcast over the image, and a number per feature over the
 * batch. */
START_TEST(broadcasting_is_undone)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(3, 4, 4));
    Node *gain = graph_param(b.g, b.d, "gain", SINGLE(3, 1, 1), NULL, (Span){0});
    Node *y = call1(&b, args(&b, "global_avg_pool"), call2(&b, "mul", x, gain), "");
    Node *shift = graph_param(b.g, b.d, "shift", SCALAR(false), NULL, (Span){0});
    finish(&b, call2(&b, "sub", y, shift));
    run(&b, pass_infer);
    run(&b, pass_gradient);
    ck_assert_int_eq(count_op(b.g, "sum_to"), 2);
    for (int i = 0; i < b.g->nnode; i++)
        if (node_is(b.g->node[i], "update"))
            ck_assert(shape_same(&b.g->node[i]->in[0]->shape, &b.g->node[i]->in[1]->shape));
    arena_free(b.a);
}
END_TEST

START_TEST(unreached_parameters_are_reported)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4));
    dense(&b, x, 5, "lost");
    finish(&b, dense(&b, x, 3, "out"));
    b.g->recipe.optimizer = (Optimizer){.kind = OPT_ADAM};
    run(&b, pass_infer);
    run(&b, pass_gradient);
    ck_assert_int_eq(count_op(b.g, "update"), 2);
    ck_assert_int_eq(b.g->nstate, 2);
    ck_contains(MESSAGES(&b), "the loss has no gradient for parameter lost.weight");
    run(&b, pass_dce);
    ck_assert_int_eq(count_op(b.g, "dense"), 1);
    ck_assert_int_eq(count_op(b.g, "param"), 2);
    ck_assert_int_eq(b.g->nparam, 4);
    arena_free(b.a);
}
END_TEST

/* Parameters have the initialisation of the recipe, unless they have their own or are biases. */
START_TEST(parameters_start_as_the_recipe_says)
{
    Bench b = bench_new();
    const Init own = {.kind = INIT_NORMAL, .b = 0.5};
    b.g->recipe.init = (Init){.kind = INIT_XAVIER, .a = 2};
    Node *x = dense(&b, input(&b, BATCHED(4)), 3, "d");
    Node *w = graph_param(b.g, b.d, "w", SINGLE(3, 3), &own, (Span){0});
    b.g->output = x;
    run(&b, pass_infer);
    ck_assert_int_eq(b.g->param[0]->init.kind, INIT_XAVIER);
    ck_assert(b.g->param[0]->init.a == 2);
    ck_assert_int_eq(b.g->param[1]->init.kind, INIT_CONSTANT);
    ck_assert_int_eq(w->param->init.kind, INIT_NORMAL);
    arena_free(b.a);
}
END_TEST

START_TEST(optimizers_have_states)
{
    static const struct {
        Optimizer o;
        int states;
    } row[] = {{{.kind = OPT_SGD}, 0},
               {{.kind = OPT_SGD, .momentum = 0.9}, 1},
               {{.kind = OPT_RMSPROP}, 1},
               {{.kind = OPT_RMSPROP, .momentum = 0.9}, 2},
               {{.kind = OPT_ADAM}, 2},
               {{.kind = OPT_ADAMW}, 2},
               {{.kind = OPT_ADAGRAD}, 1},
               {{.kind = OPT_LION}, 1},
               {{.kind = OPT_LARS, .momentum = 0.9}, 1},
               {{.kind = OPT_LARS}, 0},
               {{.kind = OPT_LAMB}, 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Bench b = bench_new();
        finish(&b, dense(&b, input(&b, BATCHED(4)), 3, "out"));
        b.g->recipe.optimizer = row[i].o;
        run(&b, pass_infer);
        run(&b, pass_gradient);
        ck_assert_int_eq(b.g->nstate, row[i].states);
        arena_free(b.a);
    }
}
END_TEST

/* ---- simplify: expression by expression.  x is a batched vector of 4. */

typedef Node *Make(Bench *b, Node *x);
/* clang-format off */
static Node *each(Bench *b, const char *op, Node *x) { return call1(b, args(b, op), x, ""); }
static Node *add_zero(Bench *b, Node *x)
{
    return call2(b, "add", number(b, 0), call2(b, "sub", x, number(b, 0)));
}
static Node *times_one(Bench *b, Node *x)
{
    return call2(b, "div", call2(b, "mul", number(b, 1), x), number(b, 1));
}
static Node *neg_neg(Bench *b, Node *x) { return each(b, "neg", each(b, "neg", x)); }
static Node *add_neg(Bench *b, Node *x)
{
    return call2(b, "add", each(b, "tanh", x), each(b, "neg", x));
}
static Node *sub_neg(Bench *b, Node *x)
{
    return call2(b, "sub", each(b, "tanh", x), each(b, "neg", x));
}
static Node *zero_minus(Bench *b, Node *x) { return call2(b, "sub", number(b, 0), x); }
static Node *power(Bench *b, Node *x, double e) { return call2(b, "pow", x, number(b, e)); }
static Node *pow_2(Bench *b, Node *x) { return power(b, x, 2); }
static Node *pow_1(Bench *b, Node *x) { return power(b, x, 1); }
static Node *pow_half(Bench *b, Node *x) { return power(b, x, 0.5); }
static Node *pow_3(Bench *b, Node *x) { return power(b, x, 3); }
static Node *factors(Bench *b, Node *x)
{
    return call2(b, "mul", number(b, 2), call2(b, "mul", x, number(b, 3)));
}
static Node *scaled_twice(Bench *b, Node *x, double by)
{
    return call2(b, "mul", number(b, by), call2(b, "mul", x, number(b, by)));
}
static Node *large_factors(Bench *b, Node *x) { return scaled_twice(b, x, 1e30); }
static Node *small_factors(Bench *b, Node *x) { return scaled_twice(b, x, 1e-30); }
static Node *large_number(Bench *b, Node *x)
{
    return call2(b, "add", x, call2(b, "mul", number(b, 1e30), number(b, 1e30)));
}
static Node *large_double(Bench *b, Node *x)
{
    b->g->recipe.dtype = "f64";
    return large_factors(b, x);
}
static Node *numbers(Bench *b, Node *x)
{
    return call2(b, "add", x, each(b, "sqrt", call2(b, "mul", number(b, 8), number(b, 2))));
}
static Node *no_number(Bench *b, Node *x)
{
    return call2(b, "add", x, each(b, "log", number(b, -1)));
}
static Node *times_zero(Bench *b, Node *x) { return call2(b, "mul", x, number(b, 0)); }
static Node *widen(Bench *b, Node *x)
{
    Node *ones = graph_const(b->g, 1, SINGLE(4), (Span){0});
    return call2(b, "add", x, call2(b, "mul", number(b, 1), ones));
}
static Node *relu_twice(Bench *b, Node *x) { return each(b, "relu", each(b, "relu", x)); }
static Node *abs_neg(Bench *b, Node *x) { return each(b, "abs", each(b, "neg", x)); }
static Node *reshapes(Bench *b, Node *x)
{
    Node *to = args(b, "reshape");
    node_set_ints(b->g, to, "shape", (int64_t[]){2, 2}, 2);
    return each(b, "flatten", call1(b, to, x, ""));
}

/* clang-format on */

/* A value as text: names of ops, inputs in parentheses, numbers. */
static const char *spelled(Bench *b, const Node *n)
{
    if (node_is(n, "input"))
        return "x";
    if (node_is(n, "const"))
        return arena_printf(b->a, "%g", node_float(n, "value"));
    const char *s = arena_printf(b->a, "%s(", n->op->name);
    for (int i = 0; i < n->nin; i++)
        s = arena_printf(b->a, "%s%s%s", s, i ? ", " : "", spelled(b, n->in[i]));
    return arena_printf(b->a, "%s)", s);
}

START_TEST(algebra)
{
    static const struct {
        Make *make;
        const char *before, *after;
    } row[] = {{add_zero, "add(0, sub(x, 0))", "x"},
               {times_one, "div(mul(1, x), 1)", "x"},
               {neg_neg, "neg(neg(x))", "x"},
               {add_neg, "add(tanh(x), neg(x))", "sub(tanh(x), x)"},
               {sub_neg, "sub(tanh(x), neg(x))", "add(tanh(x), x)"},
               {zero_minus, "sub(0, x)", "neg(x)"},
               {pow_2, "pow(x, 2)", "square(x)"},
               {pow_1, "pow(x, 1)", "x"},
               {pow_half, "pow(x, 0.5)", "sqrt(x)"},
               {pow_3, "pow(x, 3)", "pow(x, 3)"},
               {factors, "mul(2, mul(x, 3))", "mul(x, 6)"},
               {large_factors, "mul(1e+30, mul(x, 1e+30))", "mul(1e+30, mul(x, 1e+30))"},
               {small_factors, "mul(1e-30, mul(x, 1e-30))", "mul(1e-30, mul(x, 1e-30))"},
               {large_number, "add(x, mul(1e+30, 1e+30))", "add(x, mul(1e+30, 1e+30))"},
               {large_double, "mul(1e+30, mul(x, 1e+30))", "mul(x, 1e+60)"},
               {numbers, "add(x, sqrt(mul(8, 2)))", "add(x, 4)"},
               {no_number, "add(x, log(-1))", "add(x, log(-1))"},
               {times_zero, "mul(x, 0)", "mul(x, 0)"},
               {widen, "add(x, mul(1, 1))", "add(x, 1)"},
               {relu_twice, "relu(relu(x))", "relu(x)"},
               {abs_neg, "abs(neg(x))", "abs(x)"},
               {reshapes, "flatten(reshape(x))", "x"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Bench b = bench_new();
        b.g->output = row[i].make(&b, input(&b, BATCHED(4)));
        const Shape shape = b.g->output->shape;
        ck_assert_str_eq(spelled(&b, b.g->output), row[i].before);
        run(&b, pass_simplify);
        ck_assert_str_eq(spelled(&b, b.g->output), row[i].after);
        ck_assert(shape_same(&shape, &b.g->output->shape));
        arena_free(b.a);
    }
}
END_TEST

/* x * 1 keeps its multiplication where the 1 makes the result larger. */
START_TEST(broadcasting_is_kept)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(1)), *one = graph_const(b.g, 1, SINGLE(4), (Span){0});
    b.g->output = call2(&b, "mul", x, one);
    run(&b, pass_simplify);
    ck_assert_str_eq(spelled(&b, b.g->output), "mul(x, 1)");
    ck_text(&b, b.g->output->shape, "(N, 4)");
    arena_free(b.a);
}
END_TEST

/* A node of the backward pass that is replaced by a value of the forward pass does not move this value to the backward pass. */
START_TEST(forward_values_stay_forward)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)),
         *y = call2(&b, "pow", x, graph_const(b.g, 2, SINGLE(4), (Span){0}));
    Node *z = call2(&b, "mul", y, graph_const(b.g, 1, SINGLE(4), (Span){0}));
    z->backward = true;
    b.g->output = call2(&b, "add", y, z);
    run(&b, pass_simplify);
    ck_assert_str_eq(spelled(&b, b.g->output), "add(square(x), square(x))");
    ck_assert(!first_op(b.g, "square")->backward);
    arena_free(b.a);
}
END_TEST

/* ---- cse, dce */

START_TEST(equal_values_are_one)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *p = each(&b, "tanh", x), *q = each(&b, "tanh", x);
    Node *r = call2(&b, "add", p, x), *s = call2(&b, "add", x, q);
    b.g->output = call2(&b, "sub", r, s);
    run(&b, pass_cse);
    ck_assert_int_eq(b.g->nnode, 4);
    ck_assert_ptr_eq(b.g->output->in[0], b.g->output->in[1]);
    arena_free(b.a);
}
END_TEST

START_TEST(different_values_stay)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *a = args(&b, "dropout"), *k = args(&b, "leaky_relu");
    node_set_float(b.g, a, "rate", 0.5);
    Node *p = call1(&b, a, x, ""), *q = call1(&b, a, x, "");
    Node *r = call1(&b, k, x, "");
    node_set_float(b.g, k, "slope", 0.2);
    Node *s = call1(&b, k, x, "");
    b.g->output = call2(&b, "sub", call2(&b, "sub", p, q), call2(&b, "sub", r, s));
    const int before = b.g->nnode;
    run(&b, pass_cse);
    ck_assert_int_eq(b.g->nnode, before);
    arena_free(b.a);
}
END_TEST

START_TEST(dead_values_go)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4)), *y = each(&b, "tanh", x);
    each(&b, "exp", each(&b, "exp", y));
    Node *seen = each(&b, "abs", y);
    b.g->output = y;
    b.g->metric[b.g->nmetric++] = (Metric){"size", seen};
    label(&b);
    run(&b, pass_dce);
    ck_assert_int_eq(b.g->nnode, 4);
    ck_assert_int_eq(count_op(b.g, "exp"), 0);
    ck_assert_int_eq(count_op(b.g, "abs") + count_op(b.g, "label"), 2);
    arena_free(b.a);
}
END_TEST

/* ---- the table */

START_TEST(each_pass_has_a_reason)
{
    for (const Pass *p = pass_table; p->name; p++)
        ck_assert_msg(p->run && strlen(p->why) > 20, "pass %s", p->name);
}
END_TEST

static const char *passes_of(Arena *a, const Options *o)
{
    const char *text = "";
    for (const Pass *p = pass_table; p->name; p++)
        if (p->targets & target_of(o).kind)
            text = arena_printf(a, "%s%s%s", text, *text ? " " : "", p->name);
    return text;
}

START_TEST(each_target_has_its_passes)
{
    Bench b = bench_new();
#define FIRST "infer hoist gradient simplify store cse dce "
    ck_assert_str_eq(passes_of(b.a, &(Options){0}),
                     FIRST "stretch dce fuse dce chains choose wide layout steps slices schedule "
                           "plan recompute");
    ck_assert_str_eq(passes_of(b.a, &(Options){.half = HALF_BF16}),
                     FIRST "stretch dce fuse dce narrow dce chains layout steps slices schedule "
                           "plan recompute");
    ck_assert_str_eq(passes_of(b.a, &(Options){.blas = true}),
                     FIRST "stretch dce schedule plan recompute");
    ck_assert_str_eq(passes_of(b.a, &(Options){.cuda = true}),
                     FIRST "chains schedule plan recompute");
    ck_assert_str_eq(passes_of(b.a, &(Options){.cuda = true, .libraries = true}),
                     FIRST "epilogue dce chains schedule plan recompute");
    ck_assert_str_eq(passes_of(b.a, &(Options){.cuda = true, .libraries = true, .tf32 = true}),
                     FIRST "epilogue dce narrow dce chains layout lanes schedule plan recompute");
#undef FIRST
    arena_free(b.a);
}
END_TEST

START_TEST(a_wrong_order_is_named_with_its_reason)
{
    Bench b = bench_new();
    int rows = 1; /* the last row has no name */
    while (pass_table[rows - 1].name)
        rows++;
    Pass *table = arena_alloc(b.a, (size_t)rows * sizeof *table);
    memcpy(table, pass_table, (size_t)rows * sizeof *table);
    ck_assert_pstr_eq(pass_misplaced(b.a, table), NULL);
    int at = 0;
    while (strcmp(table[at].name, "layout"))
        at++;
    table[at] = pass_table[at + 1], table[at + 1] = pass_table[at]; /* lanes, layout */
    ck_assert_str_eq(pass_misplaced(b.a, table), "pass layout must run before pass lanes: lanes "
                                                 "pads channels, which layout makes "
                                                 "innermost");
    arena_free(b.a);
}
END_TEST

START_TEST(an_error_stops_the_pipeline)
{
    Bench b = bench_new();
    Node *x = input(&b, BATCHED(4));
    finish(&b, dense(&b, x, 3, "out"));
    x->shape = BATCHED(2, 2);
    ck_assert(!pass_run_all(b.g, &options, b.d));
    ck_assert_int_ge(diag_errors(b.d), 1);
    ck_assert_int_eq(count_op(b.g, "update"), 0);
    arena_free(b.a);
}
END_TEST

TEST_MAIN("passes", rules_agree_with_differences, no_gradient_passes_stop_gradient,
          gradient_of_two_layers, shared_parameters_sum, broadcasting_is_undone,
          unreached_parameters_are_reported, optimizers_have_states,
          parameters_start_as_the_recipe_says, algebra, broadcasting_is_kept,
          forward_values_stay_forward, equal_values_are_one, different_values_stay, dead_values_go,
          each_pass_has_a_reason, each_target_has_its_passes,
          a_wrong_order_is_named_with_its_reason, an_error_stops_the_pipeline)
