/* cse.c -- common subexpressions: nodes with equal op, inputs, attributes and shape become one
 * node.
 *
 * Nodes with randomness or state are never merged: dropout nodes differ in the attribute purpose,
 * parameters and updates differ in their parameter.  Nodes of different loops over time always
 * differ.
 */
#include "base/text.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

static bool same_value(const Node *a, const Node *b)
{
    if (a->op != b->op || a->nin != b->nin || a->dtype != b->dtype || a->param != b->param ||
        a->loop != b->loop || a->looped != b->looped || !shape_same(&a->shape, &b->shape))
        return false;
    for (int i = 0; i < a->nin; i++)
        if (a->in[i] != b->in[i])
            return false;
    return node_same_attrs(a, b);
}

static uint64_t hash(const Node *n)
{
    uint64_t h = text_hash(&n->op, sizeof n->op, 0);
    for (int i = 0; i < n->nin; i++)
        h = text_hash(&n->in[i]->id, sizeof n->in[i]->id, h);
    return text_hash(n->shape.dim, (size_t)n->shape.rank * sizeof *n->shape.dim, h);
}

/* Sorts operands by id if their order does not change bits, so that a + b equals b + a. */
static void order_inputs(Node *n)
{
    if (n->op->flags & OP_COMMUTES && n->in[0]->id > n->in[1]->id) {
        Node *first = n->in[1];
        n->in[1] = n->in[0];
        n->in[0] = first;
    }
}

/* Whether n can be merged with an equal node.  A sum over samples cannot, because pass schedule
 * expects one reader for each sum. */
static bool may_merge(const Node *n)
{
    const bool sum = (n->op->flags & OP_SUM) && !n->shape.batched;
    return !sum && !scan_carries(n) && !(n->op->flags & OP_ROOT);
}

/* The node of the table that equals n.  If there is none, adds n to the table and returns NULL.
 * Open addressing; size is a power of two. */
static Node *look_up(Node **table, size_t size, Node *n)
{
    size_t at = hash(n) & (size - 1);
    for (; table[at]; at = (at + 1) & (size - 1))
        if (same_value(table[at], n))
            return table[at];
    table[at] = n;
    return NULL;
}

void pass_cse(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    Rewrite r = rewrite_begin(g);
    size_t size = 16;
    while (size < 2 * (size_t)g->nnode)
        size *= 2;
    Node **table = arena_alloc(g->arena, size * sizeof *table);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        rewrite_inputs(&r, n);
        order_inputs(n);
        Node *same = may_merge(n) ? look_up(table, size, n) : NULL;
        if (same)
            rewrite_replace(&r, n, same);
    }
    rewrite_end(&r);
}
