/* grad.c -- functions for the gradient rules of ops: making nodes by name, adding gradients.
 *
 * The gradient of a value has the shape of the value.  Contributions are added in the order of
 * their arrival, which pass gradient fixes: later consumers come first.
 */
#include "ops/grad.h"
#include "ops/scan.h"
#include <stdio.h>
#include <stdlib.h>

/* Whether the op sums over samples.  In the gradient of a loop, such a node stands after the loop,
 * reads whole sequences, and so adds the steps as well. */
static bool sums(const Op *op, const Node *attrs)
{
    const Attr *batched = attrs ? node_attr(attrs, "batched") : NULL;
    return op->flags & OP_SUM && !(batched && batched->i);
}

/* The value that a node of a rule reads in place of x: the backward loop reads values of the
 * forward loop from sequences. */
static Node *reachable(Graph *g, const Op *op, const Node *attrs, Node *x)
{
    Loop *l = node_loop(x);
    if (l && sums(op, attrs))
        return scan_stack(g, x);
    return l && l == g->walked ? scan_item(g, l->mirror, scan_stack(g, x), x->span) : x;
}

static Node *make(Graph *g, const char *name, const Node *attrs, Span at, int nin, va_list ap)
{
    Node *in[8], *given[8];
    Diag *scratch = diag_new(g->arena, DIAG_NEVER);
    const Op *op = op_find(name);
    for (int i = 0; i < nin && i < 8; i++)
        given[i] = va_arg(ap, Node *);
    for (int i = 0; op && i < nin && i < 8; i++)
        in[i] = reachable(g, op, attrs, given[i]);
    Node *n = op ? graph_add(g, op, in, nin, at) : NULL;
    if (n && attrs)
        node_copy_attrs(g, n, attrs);
    /* the input is now a sequence, where features are the last dimension */
    if (n && nin > 0 && in[0] != given[0] && sums(op, attrs))
        node_drop_attr(g->arena, n, "align");
    if (!n || (op->shape && !op->shape(n, scratch))) {
        fprintf(stderr, "tenon: internal error: cannot make a node of op %s\n", name);
        diag_print(scratch, stderr);
        abort();
    }
    return n;
}

Node *op_make(Graph *g, const char *op, Span at, int nin, ...)
{
    va_list ap;
    va_start(ap, nin);
    Node *n = make(g, op, NULL, at, nin, ap);
    va_end(ap);
    return n;
}

Node *op_make_like(Graph *g, const char *op, const Node *from, int nin, ...)
{
    va_list ap;
    va_start(ap, nin);
    Node *n = make(g, op, from, from->span, nin, ap);
    va_end(ap);
    return n;
}

Grad *grad_new(Graph *g)
{
    Grad *gr = arena_alloc(g->arena, sizeof *gr);
    gr->graph = g;
    gr->count = g->next_id;
    gr->sum = arena_alloc(g->arena, (size_t)(gr->count + 1) * sizeof *gr->sum);
    return gr;
}

Graph *grad_graph(Grad *gr)
{
    return gr->graph;
}

bool grad_wanted(const Grad *gr, const Node *x)
{
    return x->needs_grad && x->id < gr->count;
}

Node *grad_of(const Grad *gr, const Node *x)
{
    return x->id < gr->count ? gr->sum[x->id] : NULL;
}

/* Broadcasting has repeated the numbers of x, so their gradients are added. */
static Node *undo_broadcast(Graph *g, Node *x, Node *dx)
{
    Node like = {.op = dx->op, .span = dx->span};
    if (shape_same(&x->shape, &dx->shape))
        return dx;
    node_set_ints(g, &like, "shape", x->shape.dim, x->shape.rank);
    node_set_int(g, &like, "batched", x->shape.batched);
    return op_make_like(g, "sum_to", &like, 1, dx);
}

void grad_add(Grad *gr, Node *x, Node *dx)
{
    if (!grad_wanted(gr, x))
        return;
    if (x->shape.batched && !node_loop(x)) /* x is outside of the loop, and all steps read it */
        dx = scan_stack(gr->graph, dx);
    dx = undo_broadcast(gr->graph, x, dx);
    Node *old = gr->sum[x->id];
    gr->sum[x->id] = old ? op_make(gr->graph, "add", x->span, 2, old, dx) : dx;
}
