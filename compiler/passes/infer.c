/* infer.c -- proves all shapes again, by each op's own rule; marks the values that a
 * parameter reaches.
 *
 * The front end has set the shapes as it built the graph; from here on no pass needs to doubt them.
 */
#include "ops/op.h"
#include "passes/pass.h"

static bool needs_grad(const Node *n)
{
    bool reached = node_is(n, "param") && !n->param->average && !n->param->frozen;
    for (int i = 0; i < n->nin; i++)
        reached |= n->in[i]->needs_grad;
    return reached;
}

void pass_infer(Graph *g, const Options *o, Diag *d)
{
    (void)o;
    graph_sort(g);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        if (n->op->shape && !n->op->shape(n, d))
            return;
        n->needs_grad = needs_grad(n);
    }
}
