/* scan.c -- a loop over time: the body runs once at compile time and becomes a loop of the program.
 *
 *     h = zeros(128)
 *     scan x in xs {
 *         h = tanh(dense(x, 128) + dense(h, 128, bias = false))
 *         yield hs = h
 *     }
 *
 * An outer name that the body binds again is a state.  In the body, before it is bound, it has the
 * value of the previous step; after the scan, it has the value of the last step.
 */
#include "ops/scan.h"
#include "front/lower.h"
#include <limits.h>
#include <string.h>

typedef struct State {
    const Stmt *bind; /* its last binding in the body, for messages */
    Var *var;
    Node *node;
} State;

typedef struct Yield {
    const char *name;
    Node *value;
} Yield;

struct Scanned {
    Loop *loop;
    int first; /* index of its first node in graph->node */
    int nstate, nyield;
    bool unsure; /* a state may be missing: it was poison, or its binding is an error */
    State *state;
    Yield *yield;
};

/* ---- the sequences */

/* Evaluates a sequence of the head. *steps is the length of the sequences before it, 0 at the first
 * one. */
static Node *scan_sequence(Lower *l, const Item *item, int64_t *steps)
{
    const Value v = lower_eval(l, item->value);
    Expr *e = item->value;
    if (v.kind == V_POISON)
        return NULL;
    if (v.kind != V_TENSOR) {
        lower_fail(l, e, e->span, "a scan goes over sequences, this is %s", value_kind(v));
        return NULL;
    }
    const Shape *s = &v.node->shape;
    if (s->rank < 2 || !s->batched || v.node->dtype != DT_REAL) {
        lower_fail(l, e, e->span, "a scan goes over sequences (N, T, F), this is %s%s",
                   shape_text(l->arena, s), v.node->dtype == DT_REAL ? "" : " of class numbers");
        if (s->rank == 1 && v.node->dtype != DT_REAL)
            diag_help(l->diag,
                      "embedding(x, vocab, width) or one_hot(x, vocab) makes a vector of each");
        else if (s->rank == 1)
            diag_help(l->diag, "reshape(x, [%lld, 1]) turns every number into a step",
                      (long long)s->dim[0]);
        return NULL;
    }
    if (*steps && s->dim[0] != *steps) {
        lower_fail(l, e, e->span, "the sequences of a scan have different lengths: %lld and %lld",
                   (long long)*steps, (long long)s->dim[0]);
        diag_note(l->diag, "this one is %s", shape_text(l->arena, s));
        return NULL;
    }
    *steps = s->dim[0];
    return v.node;
}

/* ---- states */

static void add_state(Lower *l, struct Scanned *s, const Stmt *t)
{
    Var *var = lower_find(l, t->name);
    if (!var || var->v.kind == V_POISON) {
        s->unsure |= var != NULL;
        return;
    }
    for (int i = 0; i < s->nstate; i++)
        if (s->state[i].var == var) {
            s->state[i].bind = t;
            return;
        }
    if (var->v.kind == V_TENSOR && var->v.node->dtype == DT_REAL) {
        ARENA_PUSH(l->arena, s->state, s->nstate, ((State){t, var, NULL}));
        return;
    }
    diag_error(l->diag, t->name_span, "'%s' is %s: a scan passes tensors from step to step",
               t->name, value_kind(var->v));
    diag_help(l->diag, "the body is the same for all steps: bind the result to a new name");
}

static void find_states(Lower *l, struct Scanned *s, const Body *body)
{
    for (int i = 0; i < body->n; i++) {
        const Stmt *t = body->v[i];
        if (t->kind == ST_BIND)
            add_state(l, s, t);
        s->unsure |= t->kind == ST_SCAN || t->kind == ST_RETURN; /* reported (names.c) */
        if (t->kind == ST_FOR)
            find_states(l, s, &t->body);
        for (int k = 0; t->kind == ST_IF && k < t->branches.n; k++)
            find_states(l, s, &t->branches.v[k].body);
    }
}

/* The first value of a state, repeated for each sample. */
static Node *first_value(Graph *g, Node *x)
{
    Shape s = x->shape;
    s.batched = true;
    return x->shape.batched ? x : op_make(g, "add", x->span, 2, graph_const(g, 0, s, x->span), x);
}

static void open_states(Lower *l, struct Scanned *s)
{
    for (int i = 0; i < s->nstate; i++) {
        State *a = &s->state[i];
        a->node = scan_state(l->g, s->loop, first_value(l->g, a->var->v.node), a->bind->span);
        a->node->name = a->var->name;
        a->var->v = value_node(a->node);
    }
}

static bool close_state(Lower *l, State *a)
{
    const Value v = a->var->v;
    if (v.kind == V_POISON)
        return false;
    if (v.kind == V_TENSOR && v.node->dtype == DT_REAL &&
        shape_same(&v.node->shape, &a->node->shape)) {
        scan_next(l->g, a->node, v.node);
        return true;
    }
    diag_error(l->diag, a->bind->span,
               "the state '%s' of the scan is %s, and a step changes it to %s", a->var->name,
               shape_text(l->arena, &a->node->shape),
               v.kind == V_TENSOR ? shape_text(l->arena, &v.node->shape) : value_kind(v));
    diag_note(l->diag, "its first value was made on line %d", a->node->in[0]->span.line);
    diag_help(l->diag, "every step must keep the shape of the state");
    return false;
}

/* ---- the body */

/* Whether a layer is allowed in a scan: pass gradient can compute the gradients of its weights from
 * sequences. layer_norm, rms_norm and batch_norm are tested by name, because messages name them. */
static bool works_in_loop(const Node *n)
{
    const bool vector = op_computes(n, PRODUCT_DENSE, ROLE_Y) || n->op->epilogue == EPILOGUE_BIAS;
    return !n->op->layer || node_is(n, "layer_norm") || node_is(n, "rms_norm") ||
           (n->shape.rank == 1 && vector);
}

static const char *instead_of(const Node *n)
{
    return node_is(n, "batch_norm") ? "normalise with layer_norm or rms_norm here"
           : n->shape.rank == 3     ? "apply it before the scan: call one layer for each step in a "
                                      "for, and stack the results"
                                    : "apply it to the whole sequence, before the scan or after it";
}

static bool check_body(Lower *l, const struct Scanned *s)
{
    bool ok = true;
    for (int i = s->first; i < l->g->nnode; i++) {
        const Node *n = l->g->node[i];
        const bool own = n->op->epilogue == EPILOGUE_BIAS &&
                         n->in[0]->op->layer; /* the bias of a layer that is already reported */
        if (n->loop != s->loop || works_in_loop(n) || own)
            continue;
        diag_error(l->diag, n->span, "%s cannot be used in a scan", op_written(l->arena, n));
        diag_note(l->diag, "of the layers with weights, dense and bias of vectors, layer_norm and "
                           "rms_norm can");
        diag_help(l->diag, "%s", instead_of(n));
        ok = false;
    }
    return ok;
}

void lower_yield(Lower *l, Stmt *t)
{
    struct Scanned *s = l->scan;
    l->scope->leaf = NULL;
    const Value v = lower_eval(l, t->value);
    for (int i = 0; s && i < s->nyield; i++)
        if (s->yield[i].value && !strcmp(s->yield[i].name, t->name)) {
            diag_error(l->diag, t->name_span, "'%s' is yielded twice", t->name);
            return;
        }
    if (v.kind != V_POISON && (v.kind != V_TENSOR || v.node->dtype != DT_REAL))
        lower_fail(l, t->value, t->value->span, "a scan yields tensors, this is %s", value_kind(v));
    if (s)
        ARENA_PUSH(l->arena, s->yield, s->nyield,
                   ((Yield){t->name, v.kind == V_TENSOR ? v.node : NULL}));
}

void lower_yield_poison(Lower *l, const Stmt *t)
{
    struct Scanned *s = l->scan;
    if (s)
        ARENA_PUSH(l->arena, s->yield, s->nyield, ((Yield){t->name, NULL}));
}

/* The sequence that a yield collects. */
static Value collected(Lower *l, const struct Scanned *s, const Yield *y)
{
    Node *v = y->value;
    if (!v)
        return value_poison();
    if (node_loop(v) != s->loop)
        v = scan_keep(l->g, s->loop, first_value(l->g, v));
    Node *n = scan_stack(l->g, v);
    if (!n->name)
        n->name = y->name;
    return value_node(n);
}

/* ---- the statement */

static void run_step(Lower *l, struct Scanned *s, Stmt *t, Node *const *x)
{
    struct Scanned *outer = l->scan;
    const int mark = l->scope->nlive;
    for (int i = 0; i < t->items.n; i++) {
        const Item *item = &t->items.v[i];
        Node *n = s->loop ? scan_item(l->g, s->loop, x[i], item->span) : NULL;
        if (n)
            n->name = item->name;
        lower_declare(l, item->name, value_node(n));
    }
    if (s->loop)
        open_states(l, s);
    l->scan = s;
    lower_run(l, &t->body);
    l->scan = outer;
    lower_leave(l->scope, mark);
}

static bool may_begin(Lower *l, const Stmt *t)
{
    if (!l->scan)
        return true;
    diag_error(l->diag, t->span, "a scan cannot be inside another scan");
    diag_note(l->diag, "its block is called inside of a scan");
    diag_help(l->diag, "use two scans: collect values with 'yield' in the first, and scan them in "
                       "the second");
    return false;
}

/* Evaluates the k of `recompute = every k`; 0 without it. */
static bool stretch_option(Lower *l, Expr *e, int64_t *every)
{
    const Value v = e ? lower_eval(l, e) : value_int(0);
    *every = v.kind == V_INT ? v.i : 0;
    if (v.kind == V_POISON || !e)
        return v.kind != V_POISON;
    if (v.kind == V_INT && v.i >= 1 && v.i <= INT_MAX)
        return true;
    if (v.kind == V_INT)
        lower_fail(l, e, e->span, "recompute is every %lld steps, %s", (long long)v.i,
                   v.i < 1 ? "less than 1" : "more than 2147483647");
    else
        lower_fail(l, e, e->span, "recompute = every k takes an int, this is %s", value_kind(v));
    return false;
}

void lower_scan(Lower *l, Stmt *t)
{
    const int before = diag_errors(l->diag);
    struct Scanned s = {0};
    int64_t steps = 0, every = 0;
    bool ok = may_begin(l, t) && stretch_option(l, t->marks.every, &every);
    Node **x = arena_alloc(l->arena, (size_t)(t->items.n + 1) * sizeof *x);

    for (int i = 0; i < t->items.n; i++) {
        x[i] = scan_sequence(l, &t->items.v[i], &steps);
        ok &= x[i] != NULL;
    }
    ok &= t->items.n > 0;
    find_states(l, &s, &t->body);
    if (ok && !s.nstate && !s.unsure && diag_errors(l->diag) == before && !t->body.broken) {
        diag_error(l->diag, t->span, "this scan passes no state from step to step");
        diag_note(l->diag, "a state is a name that is bound before the scan and again inside it");
        diag_help(l->diag, "bind its first value: h = zeros(128); or work on the whole sequence");
    }
    ok &= diag_errors(l->diag) == before;
    s.first = l->g ? l->g->nnode : 0;
    s.loop = ok ? graph_loop(l->g, steps, t->marks.reversed, t->span) : NULL;
    if (s.loop)
        s.loop->every = every;
    run_step(l, &s, t, x);
    ok &= diag_errors(l->diag) == before && !l->stop && check_body(l, &s);
    for (int i = 0; i < s.nstate; i++)
        ok = ok && close_state(l, &s.state[i]);
    for (int i = 0; i < s.nstate; i++)
        s.state[i].var->v =
            ok ? value_node(scan_last(l->g, s.state[i].node, t->span)) : value_poison();
    for (int i = 0; i < s.nyield; i++)
        lower_assign(l, s.yield[i].name, ok ? collected(l, &s, &s.yield[i]) : value_poison());
}

Value lower_zeros(Lower *l, Expr *e, const Value *v)
{
    int64_t dim[SHAPE_MAX];
    const bool list = e->args.n == 1 && v[0].kind == V_LIST;
    const Value *item = list ? v[0].item : v;
    const int n = list ? v[0].n : e->args.n;

    if (!l->g)
        return lower_fail(l, e, e->span, "'zeros' makes a tensor, and there are only numbers here");
    if (n < 1 || n > SHAPE_MAX)
        return lower_fail(l, e, e->span, "'zeros' takes the size of 1 to %d dimensions, not %d",
                          SHAPE_MAX, n);
    for (int i = 0; i < n; i++) {
        if (item[i].kind != V_INT || item[i].i < 1 || item[i].i > INT32_MAX)
            return lower_fail(l, e, e->span, "a dimension is an int from 1 to 2147483647");
        dim[i] = item[i].i;
    }
    return value_node(graph_const(l->g, 0, shape_make(true, n == 1 ? "F" : NULL, dim, n), e->span));
}
