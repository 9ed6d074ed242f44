/* node.c -- turns a checked call of an operation into a node: defaults, attributes, constants. */
#include "base/text.h"
#include "front/lower.h"
#include "ops/scan.h"
#include <stdlib.h>
#include <string.h>

/* Parses a default of the op table, which is written as in the language. */
static Value parse_default(const char *s)
{
    char *end;
    if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0)
        return value_bool(s[0] == 't');
    const long long i = strtoll(s, &end, 10);
    if (*s && !*end)
        return value_int(i);
    const double f = strtod(s, &end);
    if (*s && !*end)
        return value_float(f);
    return (Value){.kind = V_STRING, .s = s};
}

static void take_reals(Lower *l, Value v, Attr *a)
{
    double *list = arena_alloc(l->arena, (size_t)v.n * sizeof *list);
    Text t = text_new(l->arena);
    for (int i = 0; i < v.n; i++) {
        list[i] = value_real(v.item[i]);
        text_printf(&t, "%s%.17g", i ? ", " : "", list[i]);
    }
    a->s = t.s;
    a->reals = list;
    a->nlist = v.n;
}

static Attr attribute_of_arg(Lower *l, const OpArg *arg, Value v, Span span)
{
    Attr a = {.key = arg->name, .span = span};
    const bool pair = arg->type == ARG_PAIR || arg->type == ARG_PAD;
    if (arg->type == ARG_REALS) {
        a.kind = ATTR_REALS;
        take_reals(l, v, &a);
    } else if ((pair && v.kind == V_INT) || v.kind == V_LIST) {
        const int n = v.kind == V_LIST ? v.n : 2;
        int64_t *list = arena_alloc(l->arena, (size_t)(n ? n : 1) * sizeof *list);
        for (int i = 0; i < n; i++)
            list[i] = v.kind == V_LIST ? v.item[i].i : v.i;
        a.kind = ATTR_INTS;
        a.list = list;
        a.nlist = n;
    } else if (v.kind == V_STRING) {
        a.kind = ATTR_STRING;
        a.s = v.s;
    } else if (v.kind == V_FLOAT || arg->type == ARG_FLOAT) {
        a.kind = ATTR_FLOAT;
        a.f = value_real(v);
    } else {
        a.kind = v.kind == V_BOOL ? ATTR_BOOL : ATTR_INT;
        a.i = v.i;
    }
    return a;
}

static bool is_tensor(const OpArg *arg, const Slot *slot)
{
    return arg->type == ARG_TENSOR ||
           (arg->type == ARG_PLACES && slot->given && slot->v.kind == V_TENSOR);
}

/* The checked attributes of a call, as a node outside of the graph.  The attribute of an optional
 * tensor says whether it is given. */
static Node *attributes(Lower *l, const Op *op, const Slot *slot, Span at)
{
    Node *n = arena_alloc(l->arena, sizeof *n);
    n->op = op;
    n->span = at;
    for (int i = 0; i < OP_ARGS && op->arg[i].name; i++) {
        const OpArg *arg = &op->arg[i];
        const bool tensor = is_tensor(arg, &slot[i]);
        if (tensor && slot[i].given && (arg->fallback || arg->type == ARG_PLACES))
            ARENA_PUSH(l->arena, n->attr, n->nattr,
                       ((Attr){.key = arg->name, .kind = ATTR_BOOL, .i = 1, .span = slot[i].span}));
        if (tensor || arg->type == ARG_TENSORS ||
            (!slot[i].given && strcmp(arg->fallback, "none") == 0))
            continue;
        const Value v = slot[i].given ? slot[i].v : parse_default(arg->fallback);
        ARENA_PUSH(l->arena, n->attr, n->nattr, attribute_of_arg(l, arg, v, slot[i].span));
    }
    return n;
}

/* The tensors of a call; numbers among the operands of an elementwise op become constants. */
static int tensors_of_call(Lower *l, const Op *op, const Slot *slot, Node ***x, Span at)
{
    int n = 0;
    for (int i = 0; i < OP_ARGS && op->arg[i].name; i++) {
        const Value v = slot[i].v;
        for (int k = 0; op->arg[i].type == ARG_TENSORS && slot[i].given && k < v.n; k++)
            ARENA_PUSH(l->arena, *x, n, v.item[k].node);
        if (!is_tensor(&op->arg[i], &slot[i]) || !slot[i].given)
            continue;
        Node *one = v.kind == V_TENSOR
                        ? v.node
                        : graph_const(l->g, value_real(v), shape_make(false, "", NULL, 0), at);
        ARENA_PUSH(l->arena, *x, n, one);
    }
    return n;
}

/* Whether an op has only numbers as operands: its result would have no sample. */
static bool all_numbers(const Op *op, const Slot *slot)
{
    for (int i = 0; i < OP_ARGS && op->arg[i].name; i++)
        if (slot[i].given && (op->arg[i].type == ARG_TENSORS ||
                              (op->arg[i].type == ARG_TENSOR && slot[i].v.kind == V_TENSOR)))
            return false;
    return true;
}

/* Returns the weight of a dense layer or convolution in x, also behind stop_gradient, or NULL. */
static const Node *product_weight(const Graph *g, const Node *x)
{
    while (x->op->flags & OP_VIEW && x->nin > 0)
        x = x->in[0];
    for (int i = 0; x->op->leaf == LEAF_PARAM && i < g->nnode; i++) {
        const Node *n = g->node[i];
        if ((n->op->product == PRODUCT_DENSE || n->op->product == PRODUCT_CONV) && n->nin > 1 &&
            n->in[1] == x)
            return x;
    }
    return NULL;
}

/* Whether an operation may read the weight of a product; gather reports it itself. */
static bool takes_weights(const Op *op)
{
    return op == op_find("matmul") || op == op_find("stop_gradient") || op == op_find("gather");
}

/* Reports an operation that reads the weight of a product.  Its memory has the order of the kernel
 * of its layer, which only products know. */
static bool check_weights(Lower *l, const Op *op, Node *const *x, int nx, Expr *e)
{
    for (int i = 0; i < nx; i++) {
        const Node *w = product_weight(l->g, x[i]);
        if (!w || takes_weights(op))
            continue;
        lower_fail(l, e, e->span, "'%s' cannot use the weight %s: only matmul can", op->name,
                   w->param->name);
        diag_help(l->diag,
                  "the memory of such a weight has the order of its layer's kernel; compute with "
                  "the results of the layer");
        return false;
    }
    return true;
}

/* The results of an op that returns a list. */
static Value list_of_parts(Lower *l, const Op *op, Node *const *x, const Node *attrs, Expr *e)
{
    Node **part = NULL;
    const int n = op->parts(l->g, x, attrs, l->diag, &part);
    Value *item = arena_alloc(l->arena, (size_t)(n ? n : 1) * sizeof *item);
    e->bad |= n == 0;
    for (int i = 0; i < n; i++)
        item[i] = value_node(part[i]);
    return n ? (Value){.kind = V_LIST, .item = item, .n = n} : value_poison();
}

Value node_make(Lower *l, const Op *op, const Slot *slot, const char *path, Expr *e)
{
    Node **x = NULL;
    if (!l->g)
        return lower_fail(l, e, e->span, "'%s' works on tensors, and there are only numbers here",
                          op->name);
    if (all_numbers(op, slot))
        return lower_fail(l, e, e->span,
                          "'%s' needs a tensor here, but all its arguments are numbers", op->name);
    const int before = diag_errors(l->diag), nx = tensors_of_call(l, op, slot, &x, e->span);
    if (!check_weights(l, op, x, nx, e))
        return value_poison();
    if (!l->g->training && op->flags & OP_TRAINING)
        return value_node(x[0]);
    for (int i = 0; i < nx && !(op->flags & OP_ELEMENTWISE); i++)
        /* zeros(n) becomes a value in memory, because kernels read memory */
        if (x[i]->op->leaf == LEAF_CONST)
            x[i] = scan_keep(l->g, NULL, x[i]);
    const Node *attrs = attributes(l, op, slot, e->span);
    Node *n;
    if (op->parts)
        return list_of_parts(l, op, x, attrs, e);
    if (op->build) {
        n = op->build(l->g, x, nx, attrs, path, l->diag);
    } else {
        n = graph_add(l->g, op, x, nx, e->span);
        node_copy_attrs(l->g, n, attrs);
        if (op->shape && !op->shape(n, l->diag))
            n = NULL;
    }
    e->bad |= diag_errors(l->diag) != before;
    return e->bad ? value_poison() : value_node(n);
}

Value node_elementwise(Lower *l, const char *name, Value x, Value y, Expr *e)
{
    const Op *op = op_find(name);
    Slot slot[OP_ARGS] = {{x, e->a->span, true}};
    if (y.kind != V_POISON)
        slot[1] = (Slot){y, e->b->span, true};
    return node_make(l, op, slot, NULL, e);
}
