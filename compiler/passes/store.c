/* store.c -- stores a constant in memory, by a copy (scan_keep), if a kernel reads it from memory.
 *
 * A constant has no memory.  In elementwise loops and a few other kernels, the constant is a
 * literal (OP_LITERAL).  But a view of a constant would have no bytes, and loops that move or sum
 * numbers need a pointer.  Examples are zeros(4) + 1 read by dense, and the gradient of sum(output,
 * axes = [0]), which is 1 / batch in other shapes.
 */
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"

/* Whether the constant x is a literal in the kernel of n. */
static bool writes_number(const Node *n, const Node *x)
{
    if (n->op->flags & (OP_VIEW | OP_REDUCE) || n->op->move)
        return false;
    return n->op->flags & (OP_MAP | OP_LITERAL) ||
           (x->backward && x->shape.rank == 0); /* 1 / batch, the gradient of a loss */
}

/* Stores an output, loss or metric that is a constant: the program reads these values from
 * memory. */
static void store_result(Graph *g, Node **x)
{
    if (*x && (*x)->op->leaf == LEAF_CONST)
        *x = scan_keep(g, NULL, *x);
}

void pass_store(Graph *g, const Options *o, Diag *d)
{
    const int count = g->nnode;
    (void)o, (void)d;
    store_result(g, &g->output);
    store_result(g, &g->loss);
    for (int i = 0; i < g->nmetric; i++)
        store_result(g, &g->metric[i].node);
    for (int i = 0; i < count; i++) {
        Node *n = g->node[i];
        for (int k = 0; k < n->nin; k++) {
            Node *x = n->in[k];
            if (x->op->leaf != LEAF_CONST || !x->shape.batched || writes_number(n, x))
                continue;
            n->in[k] = scan_keep(g, n->loop, x);
            n->in[k]->backward = x->backward;
        }
    }
    if (g->nnode > count)
        graph_sort(g);
}
