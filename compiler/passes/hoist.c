/* hoist.c -- moves operations that read only elements of sequences out of a scan: they are computed
 * before the loop, for whole sequences.
 *
 *   dense(scan_item(x), w)     ->  scan_item(dense(x, w))        one product for all steps
 *   f(scan_item(x), v)         ->  scan_item(f(x, v))            f elementwise, v unbatched
 *   scan_stack(scan_item(x))   ->  x
 *
 * Values that depend on states stay, because they need the previous step.  This pass runs before
 * gradient, so that the gradients of weights and inputs are products over all steps, too.
 */
#include "passes/hoist.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

enum { INPUTS = 4 };

static bool computes_rows(const Node *n)
{
    return n->op->flags & OP_MAP || op_computes(n, PRODUCT_DENSE, ROLE_Y);
}

/* Whether x is the same for all samples and steps: a vector or a number; for dense, a matrix. */
static bool is_fixed(const Node *n, const Node *x)
{
    return !x->shape.batched && (x->shape.rank < 2 || op_computes(n, PRODUCT_DENSE, ROLE_Y));
}

bool hoist_can_leave(const Node *n, const bool *leaves)
{
    bool items = false;
    if (!n->loop || !computes_rows(n) || n->shape.rank != 1 || n->nin > INPUTS)
        return false;
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        const bool item = x->op->scan == SCAN_ITEM || (leaves && leaves[x->id]);
        if (item && x->loop == n->loop && x->shape.rank == 1)
            items = true;
        else if (!is_fixed(n, x))
            return false;
    }
    return items;
}

/* Makes n for whole sequences, and returns its scan_item. */
static Node *outside(Graph *g, Node *n)
{
    Node *in[INPUTS];
    for (int i = 0; i < n->nin; i++)
        in[i] = n->in[i]->op->scan == SCAN_ITEM ? n->in[i]->in[0] : n->in[i];
    Node *all = graph_add(g, n->op, in, n->nin, n->span);
    node_copy_attrs(g, all, n);
    all->name = n->name, all->needs_grad = n->needs_grad, all->call = n->call;
    if (!n->op->shape(all, diag_new(g->arena, DIAG_NEVER)))
        return NULL;
    Node *item = scan_item(g, n->loop, all, n->span);
    item->call = n->call;
    return item;
}

static Node *hoisted(Graph *g, Node *n)
{
    if (n->op->scan == SCAN_STACK && n->in[0]->op->scan == SCAN_ITEM && n->in[0]->loop == n->loop)
        return n->in[0]->in[0];
    return hoist_can_leave(n, NULL) ? outside(g, n) : NULL;
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
