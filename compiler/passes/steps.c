/* steps.c -- stores the sequences of scans step by step in a chunk, (T, N, F), so that the values
 * of one step are neighbours.
 *
 *   scan_stack(v)    the kernel of v writes into the sequence; nothing is copied
 *   scan_item(x)     is a part of x in memory; nothing is copied
 *
 * Dense layers, biases and elementwise ops accept the rows of a sequence in any order, if all
 * operands have the same order.  Such ops next to a scan get the order of the scan.  If an op of
 * another kind reads a sequence, the sequence keeps the order of the language.  If an op of another
 * kind makes a sequence, a relayout copies the sequence.  A step of lstm_synthetic, batch 128, on
 * one thread took 28.4 ms with the copies and takes 27.1 ms without them.
 *
 * This pass runs after layout.  It runs before slices, which does not move values that lie in a
 * sequence.
 */
#include "ir/readers.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"

enum { NO, CAN, WANTED };

static bool is_sequence(const Node *n)
{
    return n->shape.batched && n->shape.rank == 2 && n->dtype == DT_REAL && !node_loop(n);
}

/* Whether n can read x in any order of rows: x has as many rows as n, or x is one vector for all
 * rows. */
static bool takes_any_order(const Node *n, const Node *x)
{
    return x->op->leaf == LEAF_CONST || (!x->shape.batched && x->shape.rank < 2) ||
           (is_sequence(x) && shape_same(&n->shape, &x->shape));
}

static bool can_follow(const Graph *g, const Node *n)
{
    bool can = n->op->flags & (OP_MAP | OP_CAST);
    for (int i = 0; i < n->nin && can; i++)
        can = takes_any_order(n, n->in[i]);
    can |= n->op->scan == SCAN_STACK || (n->op->product == PRODUCT_DENSE && op_weights(n) >= 0);
    return can && is_sequence(n) && n->layout == LAYOUT_ROW && !graph_keeps(g, n);
}

/* Whether the result of u does not depend on the order of rows. */
static bool forgets_order(const Node *u)
{
    return u->op->scan == SCAN_ITEM || op_computes(u, PRODUCT_DENSE, ROLE_DW) ||
           (u->op->flags & OP_REDUCE && !u->shape.batched && u->shape.rank < 2);
}

static bool all_follow(const Readers *r, const Node *n)
{
    for (int i = 0; i < readers_count(r, n); i++) {
        const Node *u = readers_at(r, n, i);
        if (!forgets_order(u) && u->mark == NO)
            return false;
    }
    return true;
}

/* Whether n is next to a scan, or next to a node that wants layout TIME. */
static bool wants(const Readers *r, const Node *n)
{
    bool want = n->op->scan == SCAN_STACK;
    for (int i = 0; i < n->nin; i++)
        want |= n->in[i]->mark == WANTED;
    for (int i = 0; i < readers_count(r, n); i++)
        want |= readers_at(r, n, i)->op->scan == SCAN_ITEM || readers_at(r, n, i)->mark == WANTED;
    return want;
}

/* Marks the sequences that get layout TIME.  Such a sequence can have this layout, all its readers
 * accept this layout, and the sequence is connected with a scan. */
static void mark(const Graph *g, const Readers *r)
{
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->mark = can_follow(g, g->node[i]) ? CAN : NO;
    for (bool again = true; again;) {
        again = false;
        for (int i = g->nnode - 1; i >= 0; i--)
            if (g->node[i]->mark == CAN && !all_follow(r, g->node[i]))
                g->node[i]->mark = NO, again = true;
    }
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < g->nnode; i++)
            if (g->node[i]->mark == CAN && wants(r, g->node[i]))
                g->node[i]->mark = WANTED, again = true;
    }
}

/* The value of x in layout TIME: x itself, or one copy for all readers. */
static Node *by_steps(Graph *g, Node *x)
{
    if (!is_sequence(x) || x->layout == LAYOUT_TIME || x->op->leaf == LEAF_CONST)
        return x;
    const Op *op = op_find("relayout");
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->layout == LAYOUT_TIME && g->node[i]->op == op && g->node[i]->in[0] == x)
            return g->node[i];
    node_drop_attr(g->arena, x, "inline");
    Node *n = graph_add(g, op, &x, 1, x->span);
    n->shape = x->shape, n->dtype = x->dtype, n->half = x->half, n->layout = LAYOUT_TIME;
    n->name = x->name, n->backward = x->backward, n->needs_grad = x->needs_grad;
    node_set_string(g, n, "to", "time");
    return n;
}

static void read_by_steps(Graph *g, Node *n)
{
    bool any = n->layout == LAYOUT_TIME;
    for (int i = 0; i < n->nin && op_computes(n, PRODUCT_DENSE, ROLE_DW); i++)
        any |= n->in[i]->layout == LAYOUT_TIME;
    for (int i = 0; i < n->nin && any; i++)
        n->in[i] = by_steps(g, n->in[i]);
}

/* Whether v can lie in its stack.  A state cannot: it is written at the end of the previous step,
 * so it has its own memory. */
static bool moves_in(const Node *v, const Node *stack)
{
    return v->loop == stack->loop && !v->within && !(v->op->flags & OP_VIEW) && v->shape.batched &&
           !scan_carries(v) && v->op->scan != SCAN_ITEM;
}

void pass_steps(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    if (g->nloop == 0)
        return;
    const int count = g->nnode;
    mark(g, readers_new(g));
    for (int i = 0; i < count; i++)
        if (g->node[i]->mark == WANTED)
            g->node[i]->layout = LAYOUT_TIME;
    for (int i = 0; i < count; i++)
        read_by_steps(g, g->node[i]);
    for (int i = 0; i < count; i++) {
        Node *n = g->node[i];
        if (n->op->scan == SCAN_STACK && n->layout == LAYOUT_TIME && moves_in(n->in[0], n))
            n->in[0]->within = n;
    }
    graph_sort(g);
}
