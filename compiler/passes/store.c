/* store.c -- constants that a kernel reads in memory are stored there, by a copy (scan_keep).
 *
 * A constant has no place of its own. Elementwise loops write its number where they read it, and so
 * do a few other kernels. A view would have no bytes to show, and loops that move or sum numbers no
 * pointer to follow: zeros(4) + 1 read by dense, or the gradient of sum(output, axes = [0]), which
 * is 1 / batch under other shapes.
 */
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"

/* Kernels that write the constant x where they read it. */
static bool writes_number(const Node *n, const Node *x)
{
    static const char *const loops[] = {"bias",        "dropout",   "scan_state",
                                        "scan_resume", "scan_keep", "token_state"};
    const bool sums = node_is(n, "sum_to") || node_is(n, "amax_to");
    bool writes = n->op->flags & OP_ELEMENTWISE;
    for (size_t i = 0; !writes && i < sizeof loops / sizeof *loops; i++)
        writes = node_is(n, loops[i]);
    if (n->op->flags & OP_VIEW || n->op->move || sums)
        return false;
    return writes || (x->backward && x->shape.rank == 0); /* 1 / batch, which losses begin with */
}

/* What the program reports is read in memory, too. */
static void store_result(Graph *g, Node **x)
{
    if (*x && node_is(*x, "const"))
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
            if (!node_is(x, "const") || !x->shape.batched || writes_number(n, x))
                continue;
            n->in[k] = scan_keep(g, n->loop, x);
            n->in[k]->backward = x->backward;
        }
    }
    if (g->nnode > count)
        graph_sort(g);
}
