/* eval.c -- expressions at compile time. */
#include "front/lower.h"
#include <string.h>

/* The same, with a help for a tensor. */
static int condition(Lower *l, Expr *e, const char *help)
{
    const Value v = lower_eval(l, e);
    if (v.kind == V_BOOL)
        return v.i != 0;
    if (v.kind == V_TENSOR) {
        lower_fail(l, e, e->span, "a condition cannot depend on a tensor");
        diag_help(l->diag, "%s", help);
    } else if (v.kind != V_POISON) {
        lower_fail(l, e, e->span, "a condition is true or false, this is %s", value_kind(v));
    }
    return -1;
}

/* Evaluates a condition: 1, 0, or -1 for poison. */
int lower_condition(Lower *l, Expr *e)
{
    return condition(l, e,
                     "conditions are decided at compile time; where(h > 0, a, b) takes each "
                     "number by its value");
}

static Value logic(Lower *l, Expr *e)
{
    const char *help = e->op == DO_OR
                           ? "max(a > 0, b > 0) is 1 where one of two comparisons of tensors holds"
                           : "(a > 0) * (b > 0) is 1 where two comparisons of tensors hold";
    const int a = condition(l, e->a, help);
    if (a < 0 || a == (e->op == DO_OR))
        return a < 0 ? value_poison() : value_bool(a);
    const int b = condition(l, e->b, help);
    return b < 0 ? value_poison() : value_bool(b);
}

static Value eval_binary(Lower *l, Expr *e)
{
    static const char *const tensor_op[] =
        {[DO_ADD] = "add", [DO_SUB] = "sub", [DO_MUL] = "mul", [DO_DIV] = "div",
         [DO_POW] = "pow", [DO_EQ] = "eq",   [DO_NE] = "ne",   [DO_LT] = "lt",
         [DO_GT] = "gt",   [DO_LE] = "le",   [DO_GE] = "ge"};
    const bool on_tensors = e->op < (int)(sizeof tensor_op / sizeof *tensor_op) && tensor_op[e->op];
    const char *why = NULL, *help = NULL;
    int64_t steps = 0;
    const Value a = lower_eval(l, e->a), b = lower_eval(l, e->b);
    const bool tensor = a.kind == V_TENSOR || b.kind == V_TENSOR;
    const bool other =
        (a.kind == V_TENSOR || value_number(a)) && (b.kind == V_TENSOR || value_number(b));
    if (tensor && other && on_tensors)
        return node_elementwise(l, tensor_op[e->op], a, b, e);
    const Value v = value_binary(l->arena, e->op, a, b, &why, &help, &steps);
    if (steps && !lower_step(l, e->span, steps))
        return value_poison();
    if (tensor && e->op >= DO_EQ && e->op <= DO_GE)
        help = "a tensor is compared with numbers and with tensors";
    if (a.kind == V_LAYER || b.kind == V_LAYER)
        help = lower_layer_help(l, a.kind == V_LAYER ? a.layer : b.layer);
    if (why) {
        lower_fail(l, e, strcmp(why, "division by zero") == 0 ? e->b->span : e->span, "%s", why);
        if (help)
            diag_help(l->diag, "%s", help);
    }
    return v;
}

static Value unary(Lower *l, Expr *e)
{
    const char *why = NULL;
    const Value a = lower_eval(l, e->a);
    if (a.kind == V_TENSOR && e->op == DO_NEG)
        return node_elementwise(l, "neg", a, value_poison(), e);
    const Value v = value_unary(l->arena, e->op, a, &why);
    if (why)
        lower_fail(l, e, e->span, "%s", why);
    if (a.kind == V_TENSOR)
        diag_help(l->diag,
                  "write the opposite comparison, x <= 0 for x > 0, or 1 - c of a tensor c of "
                  "ones and zeros");
    if (a.kind == V_LAYER)
        diag_help(l->diag, "%s", lower_layer_help(l, a.layer));
    return v;
}

static Value list(Lower *l, Expr *e)
{
    if (e->list.n > LIST_MAX)
        return lower_fail(l, e, e->span, "the list has %d items, more than %d", e->list.n,
                          LIST_MAX);
    Value *item = arena_alloc(l->arena, (size_t)e->list.n * sizeof *item);
    bool poison = false;
    for (int i = 0; i < e->list.n; i++) {
        item[i] = lower_eval(l, e->list.v[i]);
        poison |= item[i].kind == V_POISON;
    }
    return poison ? value_poison() : (Value){.kind = V_LIST, .item = item, .n = e->list.n};
}

static Value subscript(Lower *l, Expr *e)
{
    const Value a = lower_eval(l, e->a), i = lower_eval(l, e->b);
    if (a.kind == V_POISON || i.kind == V_POISON)
        return value_poison();
    if (a.kind != V_LIST)
        return lower_fail(l, e, e->a->span, "only lists have items, this is %s", value_kind(a));
    if (i.kind != V_INT)
        return lower_fail(l, e, e->b->span, "an index is an int, this is %s", value_kind(i));
    if (i.i < 0 || i.i >= a.n) {
        lower_fail(l, e, e->b->span, "index %lld is outside a list of %d", (long long)i.i, a.n);
        if (a.n)
            diag_help(l->diag, "the items are 0 to %d", a.n - 1);
        return value_poison();
    }
    return a.item[i.i];
}

/* The value of layer.weight: the tensor exists only after a call of the layer. */
static Value weight_of(Lower *l, Expr *e, const Layer *layer, Span at)
{
    const char *name = arena_printf(l->arena, "%s.weight", layer->path);
    const Param *p = graph_find_param(l->g, name);
    if (p)
        return value_node(p->node);
    lower_fail(l, e, at, "the layer %s has no weight yet", layer->name);
    diag_help(l->diag, "call it first: its input says how large the weight is");
    return value_poison();
}

static const char *const query_names[] = {"channels", "height", "width", "time",
                                          "features", "rank",   "count", "shape"};
enum { QUERY_NAMES = sizeof query_names / sizeof *query_names };

const char *const *lower_queries(int *n)
{
    *n = QUERY_NAMES;
    return query_names;
}

/* The value of x.channels and the like.  A dimension is found by its letter; if the dimensions have
 * no letters, by its position. */
static Value eval_field(Lower *l, Expr *e)
{
    static const struct {
        const char *name;
        char axis;
        int rank, at;
    } query[] = {
        {"channels", 'C', 3, 0}, {"height", 'H', 3, 1},   {"width", 'W', 3, 2},
        {"time", 'T', 2, 0},     {"features", 'F', 1, 0},
    };
    enum { QUERIES = sizeof query / sizeof *query };
    const Value a = lower_eval(l, e->a);
    Span at = e->span;
    at.line = at.end_line;
    at.col = at.end_col - (int)strlen(e->field);
    if (a.kind == V_POISON)
        return a;
    if (a.kind == V_LAYER && strcmp(e->field, "weight") == 0)
        return weight_of(l, e, a.layer, at);
    if (a.kind != V_TENSOR)
        return lower_fail(l, e, at, "only tensors have '.%s', this is %s", e->field, value_kind(a));
    const Shape *s = &a.node->shape;
    if (strcmp(e->field, "rank") == 0)
        return value_int(s->rank);
    if (strcmp(e->field, "count") == 0)
        return value_int(shape_count(s));
    if (strcmp(e->field, "shape") == 0) {
        Value *item = arena_alloc(l->arena, (size_t)s->rank * sizeof *item);
        for (int i = 0; i < s->rank; i++)
            item[i] = value_int(s->dim[i]);
        return (Value){.kind = V_LIST, .item = item, .n = s->rank};
    }
    for (int i = 0; i < QUERIES; i++) {
        if (strcmp(query[i].name, e->field) != 0)
            continue;
        const int64_t n = shape_axis(s, query[i].axis);
        if (n || s->rank == query[i].rank || (query[i].axis == 'F' && s->rank == 2))
            return value_int(n ? n : s->dim[s->rank == query[i].rank ? query[i].at : s->rank - 1]);
        lower_fail(l, e, at, "a tensor %s has no %s", shape_text(l->arena, s), e->field);
        diag_help(l->diag, "the list .shape has all its dimensions");
        return value_poison();
    }
    lower_fail(l, e, at, "a tensor has no '%s'", e->field);
    suggest(l->diag, e->field, query_names, QUERY_NAMES, "the queries");
    return value_poison();
}

static Value choose(Lower *l, Expr *e)
{
    for (int i = 0; i < e->arms.n; i++) {
        const Arm *arm = &e->arms.v[i];
        const int yes = arm->cond ? lower_condition(l, arm->cond) : 1;
        if (yes)
            return yes < 0 ? value_poison() : lower_eval(l, arm->value);
    }
    return value_poison(); /* not reached: the grammar requires an else */
}

static Value eval_name(Lower *l, Expr *e)
{
    const Var *var = lower_find(l, e->s);
    if (var)
        return var->v;
    return e->bad ? value_poison() : lower_fail(l, e, e->span, "unknown name '%s'", e->s);
}

/* Evaluates the operands of an expression with an error, because they can have errors, too. */
static Value eval_bad(Lower *l, Expr *e)
{
    if (e->kind == EX_CALL) {
        for (int i = 0; i < e->args.n; i++)
            lower_eval(l, e->args.v[i].value);
    } else if (e->kind == EX_BINARY) {
        lower_eval(l, e->a);
        lower_eval(l, e->b);
    }
    return value_poison();
}

static Value eval(Lower *l, Expr *e)
{
    if (e->bad)
        return eval_bad(l, e);
    switch (e->kind) {
    case EX_BAD:
    case EX_TYPED:
    case EX_TARGETS:
        break;
    case EX_INT:
        return value_int(e->i);
    case EX_FLOAT:
        return value_float(e->f);
    case EX_BOOL:
        return value_bool(e->i);
    case EX_STRING:
        return (Value){.kind = V_STRING, .s = e->s};
    case EX_NAME:
        return eval_name(l, e);
    case EX_LIST:
        return list(l, e);
    case EX_UNARY:
        return unary(l, e);
    case EX_BINARY:
        return e->op == DO_AND || e->op == DO_OR ? logic(l, e) : eval_binary(l, e);
    case EX_INDEX:
        return subscript(l, e);
    case EX_FIELD:
        return eval_field(l, e);
    case EX_CALL:
        return lower_call(l, e);
    case EX_IF:
        return choose(l, e);
    }
    return value_poison();
}

Value lower_eval(Lower *l, Expr *e)
{
    if (!lower_step(l, e->span, 1) || !lower_enter(l, e->span))
        return value_poison();
    const Value v = eval(l, e);
    if (e->kind > EX_STRING && e->kind != EX_CALL)
        lower_trace(l, e, v, 0);
    l->depth--;
    return v;
}
