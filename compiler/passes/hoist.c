/* hoist.c -- what a scan does with the elements of its sequences alone is done to the whole sequences, before the loop.
 *
 *   dense(scan_item(x), w)     ->  scan_item(dense(x, w))        one product for all steps; likewise bias
 *   f(scan_item(x), v)         ->  scan_item(f(x, v))            f elementwise, v a number or learned
 *   scan_stack(scan_item(x))   ->  x
 *
 * Only what the states do not reach: the rest of the body needs the step before.  Before gradient, so that the weights'
 * and the inputs' gradients are products over all steps as well.
 */
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

enum { INPUTS = 4 };

static bool row_by_row(const Node *n)
{
    return n->op->flags & OP_ELEMENTWISE || node_is(n, "dense") || node_is(n, "bias");
}

/* A vector or number for all samples and steps. */
static bool is_fixed(const Node *n, const Node *x)
{
    return !x->shape.batched && (x->shape.rank < 2 || node_is(n, "dense"));
}

static bool can_leave(const Node *n)
{
    bool items = false;
    if (!n->loop || !row_by_row(n) || n->shape.rank != 1 || n->nin > INPUTS)
        return false;
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        if (node_is(x, "scan_item") && x->loop == n->loop && x->shape.rank == 1)
            items = true;
        else if (!is_fixed(n, x))
            return false;
    }
    return items;
}

/* n of whole sequences, and its element. */
static Node *outside(Graph *g, Node *n)
{
    Node *in[INPUTS];
    for (int i = 0; i < n->nin; i++)
        in[i] = node_is(n->in[i], "scan_item") ? n->in[i]->in[0] : n->in[i];
    Node *all = graph_add(g, n->op, in, n->nin, n->span);
    node_copy_attrs(g, all, n);
    all->name = n->name, all->needs_grad = n->needs_grad, all->block = n->block;
    if (!n->op->shape(all, diag_new(g->arena, DIAG_NEVER)))
        return NULL;
    Node *item = scan_item(g, n->loop, all, n->span);
    item->block = n->block;
    return item;
}

static Node *hoisted(Graph *g, Node *n)
{
    if (node_is(n, "scan_stack") && node_is(n->in[0], "scan_item") && n->in[0]->loop == n->loop)
        return n->in[0]->in[0];
    return can_leave(n) ? outside(g, n) : NULL;
}

void pass_hoist(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    if (g->nloop == 0)
        return;
    Rewrite r = rewrite_begin(g);
    const int count = g->nnode;
    for (int i = 0; i < count; i++) {
        Node *n = g->node[i];
        rewrite_inputs(&r, n);
        Node *by = hoisted(g, n);
        if (by)
            rewrite_replace(&r, n, by);
    }
    rewrite_end(&r);
}
