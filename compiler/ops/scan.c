/* scan.c -- loops over time: inputs, states and results of the steps.
 *
 *   scan_item(x)        the element of the sequence x (N, T, ...) at this step: (N, ...)
 *   scan_state(first)   the value that the step before has passed on; in the first step: first
 *   scan_next(v)        passes v on: v becomes the state when the step is complete
 *   scan_last(next)     the value that the last step has passed on, for readers after the loop
 *   scan_stack(v)       the sequence (N, T, ...) of the values of v, for readers after the loop
 *   scan_keep(v)        a copy of v in the loop
 *   scan_save(state)    the sequence of the states at the first steps of stretches (recompute =
 *                       every k)
 *   scan_resume(saved)  scan_state of a loop that runs a stretch; it begins with the saved state
 *
 * All other nodes of a loop are ordinary nodes: a node belongs to the loop of its inputs
 * (graph_add).  The gradient is a second loop in the opposite direction (passes/gradient.c).  Where
 * the forward loop passes values to the next step, the backward loop passes their gradients to the
 * previous step.  The backward loop stacks the gradients of items, reads the gradients of stacks as
 * items, and reads values of the forward loop from stacks.  A stack of a loop that runs inside
 * another one (passes/stretch.c) has the steps of one stretch.
 */
#include "ops/scan.h"
#include "ops/check.h"
#include "ops/price.h"
#include <string.h>

/* ---- making the nodes */

static Node *make(Graph *g, const char *op, Loop *l, Node *x, Span at)
{
    Node *n = graph_add(g, op_find(op), &x, 1, at);
    n->loop = l;
    n->op->shape(n, diag_new(g->arena, DIAG_NEVER));
    n->needs_grad = x->needs_grad;
    return n;
}

static Shape item_shape(const Shape *x)
{
    const char *axes = strlen(x->axis) == (size_t)x->rank ? x->axis + 1 : NULL;
    return shape_make(x->batched, axes, x->dim + 1, x->rank - 1);
}

Node *scan_item(Graph *g, Loop *l, Node *x, Span at)
{
    if (x->op->leaf == LEAF_CONST)
        return graph_const(g, node_float(x, "value"), item_shape(&x->shape), at);
    return make(g, "scan_item", l, x, at);
}

Node *scan_state(Graph *g, Loop *l, Node *first, Span at)
{
    Node *n = make(g, "scan_state", l, first, at);
    ARENA_PUSH(g->arena, l->carry, l->ncarry, ((Carry){.state = n}));
    return n;
}

/* States get their new values one after another.  If a state is itself the new value of another
 * state, it is copied first. */
Node *scan_next(Graph *g, Node *state, Node *value)
{
    Loop *l = state->loop;
    if (value->op->scan == SCAN_STATE && value->loop == l)
        value = scan_keep(g, l, value);
    Node *n = make(g, "scan_next", l, value, value->span);
    for (int i = 0; i < l->ncarry; i++)
        if (l->carry[i].state == state)
            l->carry[i].next = n;
    return n;
}

Node *scan_save(Graph *g, Node *state)
{
    Node *n = make(g, "scan_save", state->loop, state, state->span);
    n->name = state->name;
    return n;
}

Node *scan_resume(Graph *g, Loop *l, Node *saved, Span at)
{
    Node *n = make(g, "scan_resume", l, saved, at);
    ARENA_PUSH(g->arena, l->carry, l->ncarry, ((Carry){.state = n}));
    return n;
}

Node *scan_last(Graph *g, const Node *state, Span at)
{
    Node *next = NULL;
    for (int i = 0; i < state->loop->ncarry; i++)
        if (state->loop->carry[i].state == state)
            next = state->loop->carry[i].next;
    return make(g, "scan_last", NULL, next, at);
}

Node *scan_keep(Graph *g, Loop *l, Node *v)
{
    return make(g, "scan_keep", l, v, v->span);
}

Node *scan_stack(Graph *g, Node *v)
{
    Loop *l = node_loop(v);
    if (!l)
        return v;
    if (v->op->scan == SCAN_ITEM)
        return v->in[0];
    for (int i = 0; i < l->nstack; i++)
        if (l->stack[i]->in[0] == v)
            return l->stack[i];
    Node *n = make(g, "scan_stack", l, v, v->span);
    n->name = v->name;
    ARENA_PUSH(g->arena, l->stack, l->nstack, n);
    return n;
}

bool scan_in_place(const Node *n)
{
    return n->op->scan == SCAN_ITEM && n->in[0]->layout == LAYOUT_TIME;
}

bool scan_carries(const Node *n)
{
    return scan_begins(n) || n->op->scan == SCAN_NEXT;
}

bool scan_begins(const Node *n)
{
    return n->op->scan == SCAN_STATE || n->op->scan == SCAN_RESUME;
}

int64_t scan_stretches(const Loop *l)
{
    return (l->steps + l->every - 1) / l->every;
}

const char *scan_place(Arena *a, const Node *x)
{
    const Loop *l = x->op->scan == SCAN_STACK && x->loop->inside ? x->loop : NULL;
    return l ? arena_printf(a, "step %% %lld", (long long)l->every) : "step";
}

/* An expression for generated code: the index of the stretch with the current step of l. */
static const char *scan_stretch(Arena *a, const Loop *l)
{
    return l->reversed ? arena_printf(a, "(%lld - step) / %lld", (long long)(l->steps - 1),
                                      (long long)l->every)
                       : arena_printf(a, "step / %lld", (long long)l->every);
}

/* ---- shapes */

static bool scan_shape_item(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    return x->rank > 0 && check_result(n, item_shape(x), d);
}

static bool scan_shape_same_as(Node *n, Diag *d)
{
    Shape s = n->in[0]->shape;
    s.batched = true;
    return check_result(n, s, d);
}

/* Sets the shape of n: a sequence of `steps` values like in[0]. */
static bool sequence(Node *n, int64_t steps, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    int64_t dim[SHAPE_MAX] = {steps};

    if (x->rank == SHAPE_MAX)
        return false;
    memcpy(dim + 1, x->dim, (size_t)x->rank * sizeof *dim);
    return check_result(n, shape_make(true, x->rank == 1 ? "TF" : NULL, dim, x->rank + 1), d);
}

static bool scan_shape_stack(Node *n, Diag *d)
{
    const Loop *l = n->loop;
    return l && sequence(n, l->inside && l->every < l->steps ? l->every : l->steps, d);
}

static bool scan_shape_save(Node *n, Diag *d)
{
    return n->loop && n->loop->every > 0 && sequence(n, scan_stretches(n->loop), d);
}

/* ---- gradients; pass gradient makes those of scan_state and scan_next */

static void scan_gradient_item(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], scan_stack(grad_graph(gr), dy));
}

static void scan_gradient_stack(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], scan_item(grad_graph(gr), n->loop->mirror, dy, n->span));
}

static void scan_gradient_pass(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], dy);
}

/* ---- kernels */

static long long numbers(const Node *n, const Call *c)
{
    return (long long)(shape_count(&n->shape) * c->n);
}

static void scan_kernel_copy(const Node *n, Call *c)
{
    const bool fills = n->half && n->in[0]->op->leaf == LEAF_CONST;
    call_fn(c, fills ? "scan_fill_bf16" : n->half ? "scan_copy_bf16" : "scan_copy");
    c->parts = true;
    call_out(c, n);
    if (!fills)
        call_in(c, n->in[0]);
    call_text(c, "%lld", numbers(n, c));
    if (fills)
        call_text(c, "%.17g", node_float(n->in[0], "value"));
}

Sizes *scan_sizes(Arena *a, int64_t n, int64_t steps, int64_t size)
{
    Sizes *s = sizes_new(a, "Scan");
    sizes_int(s, "n", n);
    sizes_int(s, "steps", steps);
    sizes_int(s, "size", size);
    return s;
}

/* Describes the call of fn, or of its version for two-byte numbers, for element `at` of a
 * sequence. */
static void strided(const Node *n, Call *c, const char *fn, const char *at, const Shape *step,
                    int64_t steps)
{
    call_fn(c, n->half ? arena_printf(c->arena, "%s_bf16", fn) : fn);
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_step(c, at);
    call_sizes(c, scan_sizes(c->arena, c->n, steps, shape_count(step)));
}

static void scan_kernel_item(const Node *n, Call *c)
{
    strided(n, c, "scan_item", scan_place(c->arena, n->in[0]), &n->shape, n->in[0]->shape.dim[0]);
}

static void scan_kernel_resume(const Node *n, Call *c)
{
    strided(n, c, "scan_item", scan_stretch(c->arena, n->loop), &n->shape, n->in[0]->shape.dim[0]);
}

/* The kernel stores the state only at the first step of a stretch. */
static void scan_kernel_save(const Node *n, Call *c)
{
    const Loop *l = n->loop;
    const char *at =
        l->reversed ? arena_printf(c->arena, "%lld - step", (long long)(l->steps - 1)) : "step";
    strided(n, c, "scan_save", at, &n->in[0]->shape, n->shape.dim[0]);
    call_text(c, "%lld", (long long)l->every);
}

/* In layout TIME, all samples of a step are one element. */
static void scan_kernel_stack(const Node *n, Call *c)
{
    if (n->layout == LAYOUT_TIME) {
        call_fn(c, n->half ? "scan_put_bf16" : "scan_put");
        c->parts = true;
        call_out(c, n);
        call_in(c, n->in[0]);
        call_step(c, scan_place(c->arena, n));
        call_sizes(c, scan_sizes(c->arena, 1, n->shape.dim[0], numbers(n->in[0], c)));
        return;
    }
    strided(n, c, "scan_put", scan_place(c->arena, n), &n->in[0]->shape, n->shape.dim[0]);
}

/* A call reads and writes the numbers of one step. */
static void scan_price(const Node *n, const Market *m, Price *p)
{
    const Shape *s = n->op->flags & OP_LEAVES ? &n->in[0]->shape : &n->shape;
    const double numbers = 2 * (double)(shape_count(s) * m->n);
    p->values = numbers * m->real;
    p->cycles = 20 + 2 * numbers / m->lanes;
    price_stream(p, m, p->values, p->values);
}

#define VALUE                                                                                      \
    {                                                                                              \
        {                                                                                          \
            "x", ARG_TENSOR, NULL, "a value a sample"                                              \
        }                                                                                          \
    }

const Op op_scan[] = {{.name = "scan_item",
                       .brief = "the element of a sequence at the step of a scan",
                       .arg = {{"x", ARG_TENSOR, NULL, "a sequence (N, T, ...)"}},
                       .flags = OP_HIDDEN,
                       .scan = SCAN_ITEM,
                       .shape = scan_shape_item,
                       .gradient = scan_gradient_item,
                       .price = scan_price,
                       .kernel = scan_kernel_item},
                      {.name = "scan_state",
                       .brief = "the value that the previous step has passed on",
                       .arg = VALUE,
                       .flags = OP_HIDDEN | OP_LITERAL,
                       .scan = SCAN_STATE,
                       .shape = scan_shape_same_as,
                       .price = scan_price,
                       .kernel = scan_kernel_copy},
                      {.name = "scan_next",
                       .brief = "passes a value on to the next step",
                       .arg = VALUE,
                       .flags = OP_HIDDEN,
                       .scan = SCAN_NEXT,
                       .shape = scan_shape_same_as,
                       .gradient = scan_gradient_pass,
                       .price = scan_price,
                       .kernel = scan_kernel_copy},
                      {.name = "scan_last",
                       .brief = "the value that the last step has passed on",
                       .arg = VALUE,
                       .flags = OP_HIDDEN | OP_VIEW,
                       .scan = SCAN_LAST,
                       .shape = scan_shape_same_as,
                       .gradient = scan_gradient_pass},
                      {.name = "scan_stack",
                       .brief = "the sequence of a value of a scan",
                       .arg = VALUE,
                       .flags = OP_HIDDEN | OP_LEAVES,
                       .scan = SCAN_STACK,
                       .shape = scan_shape_stack,
                       .gradient = scan_gradient_stack,
                       .price = scan_price,
                       .kernel = scan_kernel_stack},
                      {.name = "scan_keep",
                       .brief = "a copy of a value in the loop of a scan",
                       .arg = VALUE,
                       .flags = OP_HIDDEN | OP_LITERAL,
                       .scan = SCAN_KEEP,
                       .shape = scan_shape_same_as,
                       .gradient = scan_gradient_pass,
                       .price = scan_price,
                       .kernel = scan_kernel_copy},
                      {.name = "scan_save",
                       .brief = "the states at the beginning of each stretch of a scan",
                       .arg = VALUE,
                       .flags = OP_HIDDEN | OP_LEAVES,
                       .scan = SCAN_SAVE,
                       .shape = scan_shape_save,
                       .price = scan_price,
                       .kernel = scan_kernel_save},
                      {.name = "scan_resume",
                       .brief = "scan_state of a stretch, which begins with the saved state",
                       .arg = {{"x", ARG_TENSOR, NULL, "a sequence (N, T, ...)"}},
                       .flags = OP_HIDDEN | OP_LITERAL,
                       .scan = SCAN_RESUME,
                       .shape = scan_shape_item,
                       .price = scan_price,
                       .kernel = scan_kernel_resume},
                      {0}};
