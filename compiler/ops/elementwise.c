/* elementwise.c -- elementwise operations: shape, gradient and printing for all rows of
 * elementwise.def.
 *
 *   y[i] = f(a[i], b[i]);   da = (df/da) dy,  db = (df/db) dy
 *
 * Broadcasting follows numpy: dimensions match from the right, and a missing dimension or one of
 * size 1 is repeated.  A value without a batch is repeated over the samples.
 */
#include "ops/elementwise.h"
#include "base/text.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/rule.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MONOTONE = 1, COMMUTES = 2, F32 = 4 };

extern const Op op_elementwise[];

typedef struct Row {
    int flags;
    const char *fn, *expr, *gradient[2];
} Row;

static const Row row[] = {
#define ROW(name, arity, flags, fn, expr, da, db, ...) {flags, fn, expr, {da, db}},
#define GRADIENT_ROW(name, fn, expr, ...)              {0, fn, expr, {NULL, NULL}},
#define LAYER_ROW(name, expr, da, db, about)           {0, NULL, expr, {da, db}},
#include "ops/elementwise.def"
#undef ROW
#undef GRADIENT_ROW
#undef LAYER_ROW
};
enum { ROWS = sizeof row / sizeof *row };

static const Row *row_of(const Op *op)
{
    return op >= op_elementwise && op < op_elementwise + ROWS ? &row[op - op_elementwise] : NULL;
}

/* ---- shape */

/* Broadcasts *y with x.  Returns 0, or the number of a dimension that does not fit, counted from 1
 * at the right. */
static int broadcast(Shape *y, const Shape *x)
{
    Shape out = y->rank >= x->rank ? *y : *x;
    out.batched = y->batched || x->batched;
    for (int i = 1; i <= y->rank && i <= x->rank; i++) {
        const int64_t a = y->dim[y->rank - i], b = x->dim[x->rank - i];
        if (a != b && a != 1 && b != 1)
            return i;
        out.dim[out.rank - i] = a == 1 ? b : a;
    }
    *y = out;
    return 0;
}

/* Reports a range of clamp that is empty. */
static bool check_range(const Node *n, Diag *d)
{
    if (!node_attr(n, "low") || node_float(n, "low") <= node_float(n, "high"))
        return true;
    diag_error(d, node_span(n, "low"), "the range of %s is empty: low is %g, high is %g",
               n->op->name, node_float(n, "low"), node_float(n, "high"));
    diag_help(d, "use low <= high; min or max alone have one limit");
    return false;
}

static bool elementwise_shape(Node *n, Diag *d)
{
    Shape y = n->in[0]->shape;
    int misfit = 0;
    for (int i = 0; i < n->nin; i++)
        if (!check_real(n, i, d))
            return false;
    if (!check_range(n, d))
        return false;
    if (n->nin == 2)
        misfit = broadcast(&y, &n->in[1]->shape);
    if (!misfit)
        return check_result(n, y, d);
    const Shape *a = &n->in[0]->shape, *b = &n->in[1]->shape;
    diag_error(d, n->span, "%s of %s and %s does not fit: %lld against %lld", op_in_language(n),
               shape_text(diag_arena(d), a), shape_text(diag_arena(d), b),
               (long long)a->dim[a->rank - misfit], (long long)b->dim[b->rank - misfit]);
    check_note(n, 0, d);
    check_note(n, 1, d);
    diag_help(d, "dimensions counted from the right must be equal, or one of them 1");
    return false;
}

static void elementwise_gradient(Grad *gr, Node *n, Node *dy)
{
    const Row *r = row_of(n->op);
    for (int i = 0; i < n->nin; i++)
        if (r->gradient[i] && grad_wanted(gr, n->in[i]))
            grad_add(gr, n->in[i], rule_eval(grad_graph(gr), n, dy, r->gradient[i]));
}

/* ---- printing */

/* Whether the expression of a row has an operator outside of parentheses. */
static bool has_operator(const char *expr)
{
    int depth = 0;
    for (const char *s = expr; *s; s++) {
        depth += (*s == '(') - (*s == ')');
        if (!depth && strchr("+-*/", *s))
            return true;
    }
    return false;
}

static void add_operand(Text *t, Operand operand, const char *before, const char *expr,
                        const char *after)
{
    while (before > expr && before[-1] == ' ')
        before--;
    const bool opens = before == expr || before[-1] == '(' || before[-1] == ',';
    const bool closes = !*after || *after == ')' || *after == ',';
    text_printf(t, (opens && closes) || !operand.operates ? "%s" : "(%s)", operand.s);
}

static void add_number(Text *t, double v, bool plain)
{
    text_printf(t, plain ? v < 0 ? "(real)(%.17g)" : "(real)%.17g" : "v_set(%.17g)", v);
}

/* Prints a name in the text of a row: an operand, an argument of the op, or a function.  Returns
 * the text after the name. */
static const char *add_name(Text *t, const Node *n, const Operand *operand, bool plain,
                            const char *expr, const char *at)
{
    const char *end = at;
    while (isalnum((unsigned char)*end) || *end == '_')
        end++;
    const char *word = arena_strndup(t->arena, at, (size_t)(end - at));
    if (!strcmp(word, "a") || !strcmp(word, "b"))
        add_operand(t, operand[*word - 'a'], at, expr, end);
    else if (!strncmp(word, "v_set", 6)) {
        char *close;
        const double v = strtod(end + 1, &close);
        add_number(t, v, plain);
        return close + 1;
    } else if (*end == '(')
        text_printf(t, "%s%s", plain ? "s_" : "v_", word + 2);
    else
        add_number(t, node_float(n, word), plain);
    return end;
}

Operand elementwise_format(Arena *a, const Node *n, const Operand *operand, bool plain)
{
    const char *expr = elementwise_expr(n->op);
    Text t = text_new(a);
    for (const char *at = expr; *at;)
        if (isalpha((unsigned char)*at))
            at = add_name(&t, n, operand, plain, expr, at);
        else
            text_addn(&t, at++, 1);
    return (Operand){t.s, has_operator(expr)};
}

const char *elementwise_expr(const Op *op)
{
    const Row *r = row_of(op);
    return r ? r->expr : NULL;
}

/* The gradient of one operand for the manual, such as "dy * y".  If there is only one operand, its
 * name is x.  The name of a gradient row is replaced by the formula of the row. */
static const char *rule_text(Arena *a, const char *rule, bool alone)
{
    Text t = text_new(a);
    const Op *op = op_find(arena_strndup(a, rule, strcspn(rule, "(")));
    char p[16], q[16], sign[3];
    if (op && (op->flags & OP_HIDDEN))
        return op->brief;
    if (sscanf(rule, "dy * g%1[et](%15[a-z], %15[a-z])", sign, p, q) == 3)
        return arena_printf(a, "dy if %s %s %s, else 0", p, *sign == 'e' ? ">=" : ">", q);
    for (const char *s = rule; *s; s++) {
        const bool word = isalpha((unsigned char)s[0]) && !isalpha((unsigned char)s[1]) &&
                          (s == rule || !isalpha((unsigned char)s[-1]));
        text_addn(&t, word && *s == 'a' && alone ? "x" : s, 1);
    }
    return t.s;
}

const char *elementwise_derivative(Arena *a, const Op *op)
{
    const Row *r = row_of(op);
    if (!r || !r->gradient[0])
        return NULL;
    if (!r->gradient[1])
        return arena_printf(a, "dx = %s", rule_text(a, r->gradient[0], true));
    return arena_printf(a, "da = %s\ndb = %s", rule_text(a, r->gradient[0], false),
                        rule_text(a, r->gradient[1], false));
}

bool elementwise_monotone(const Op *op)
{
    const Row *r = row_of(op);
    return r && (r->flags & MONOTONE);
}

const char *elementwise_act(const Op *op)
{
    const Row *r = row_of(op);
    return r && r->fn && r->fn[0] == 'v' ? r->fn : NULL;
}

const char *elementwise_mask(const Op *op)
{
    const Row *r = row_of(op);
    return r && r->fn && r->fn[0] == 'd' ? r->fn : NULL;
}

/* ---- values of constants, computed at compile time */

/* clang-format off */
static double value_add(double a, double b) { return a + b; }
static double value_sub(double a, double b) { return a - b; }
static double value_mul(double a, double b) { return a * b; }
static double value_div(double a, double b) { return a / b; }
static double value_neg(double a, double b) { return (void)b, -a; }
static double value_exp(double a, double b) { return (void)b, exp(a); }
static double value_log(double a, double b) { return (void)b, log(a); }
static double value_sqrt(double a, double b) { return (void)b, sqrt(a); }
static double value_square(double a, double b) { return (void)b, a * a; }
static double value_reciprocal(double a, double b) { return (void)b, 1 / a; }
/* clang-format on */

bool elementwise_value(const Op *op, double a, double b, double *y)
{
    static const struct {
        const char *op;
        double (*f)(double a, double b);
    } known[] = {{"add", value_add},
                 {"sub", value_sub},
                 {"mul", value_mul},
                 {"div", value_div},
                 {"neg", value_neg},
                 {"exp", value_exp},
                 {"log", value_log},
                 {"sqrt", value_sqrt},
                 {"pow", pow},
                 {"min", fmin},
                 {"max", fmax},
                 {"square", value_square},
                 {"reciprocal", value_reciprocal}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(op->name, known[i].op))
            return *y = known[i].f(a, b), true;
    return false;
}

/* ---- functions in kernels */

/* Pass fuse sets only attributes that kernels support. */
static const char *function_of(const Attr *a, const char *(*kind)(const Op *op))
{
    const char *fn = kind(op_find(a->s));
    if (!fn) {
        fprintf(stderr, "tenon: internal error: no kernel takes %s as its %s\n", a->s, a->key);
        abort();
    }
    return fn;
}

void elementwise_call_act(const Node *n, Call *c)
{
    const Attr *act = node_attr(n, "act");
    call_text(c, "%s", act ? function_of(act, elementwise_act) : "v_identity");
}

void elementwise_call_mask(const Node *n, int i, Call *c)
{
    const Attr *mask = node_attr(n, "mask");
    call_text(c, "%s", mask ? function_of(mask, elementwise_mask) : "d_identity");
    call_in(c, mask && n->nin > i ? n->in[i] : NULL);
}

/* ---- the table */

#define EXAMPLE_OF(use)                                                                            \
    "model example(x: f32[6]) {\n"                                                                 \
    "    h = dense(x, 5)\n"                                                                        \
    "    h = " use "\n"                                                                            \
    "    return dense(h, 3)\n"                                                                     \
    "}\n" EXAMPLE_TRAIN
#define EACH OP_ELEMENTWISE | OP_MAP | OP_INPLACE
/* clang-format off */
#define ARGS_1 {"x", ARG_TENSOR, NULL, "a tensor of any shape, no tokens or labels"}
#define ARGS_2                                                                                     \
    {"a", ARG_TENSOR, NULL, "a tensor, no tokens or labels"},                                      \
    {"b", ARG_TENSOR, NULL, "a tensor, or a number, whose shape fits; no tokens or labels"}
#define SHAPES_1 "x, y (N, ..)"
#define SHAPES_2 "a, b (N, ..) or numbers   y (N, ..), the larger of both in each dimension"
#define NOTE_1 NULL
#define NOTE_2                                                                                     \
    "Dimensions are matched from the right; 1 or a missing one is repeated, as in NumPy. The "     \
    "gradient of a repeated operand is the sum over its repetitions."

const Op op_elementwise[] = {
#define ROW(id, arity, flag, fn, expr, da, db, about, form, use, ...)                              \
    {.name = #id, .brief = about, .shapes = SHAPES_##arity, .formula = "y = " form,                \
     .note = NOTE_##arity, .arg = {ARGS_##arity, __VA_ARGS__},                                     \
     .flags = EACH | ((flag)&COMMUTES ? OP_COMMUTES : 0),                                          \
     .half = (flag)&F32 ? HALF_USE_NONE : HALF_USE_IN_OUT,                                         \
     .shape = elementwise_shape, .gradient = elementwise_gradient, .example = EXAMPLE_OF(use)},
#define GRADIENT_ROW(id, fn, expr, about, ...)                                                     \
    {.name = #id, .brief = about, .arg = {ARGS_2, __VA_ARGS__}, .flags = EACH | OP_HIDDEN,         \
     .half = HALF_USE_IN_OUT, .shape = elementwise_shape},
#define LAYER_ROW(id, expr, da, db, about)                                                         \
    {.name = #id, .brief = about, .arg = {ARGS_2}, .flags = EACH | OP_HIDDEN,                      \
     .half = HALF_USE_IN_OUT, .shape = elementwise_shape, .gradient = elementwise_gradient},
#include "ops/elementwise.def"
    {0}};
/* clang-format on */
