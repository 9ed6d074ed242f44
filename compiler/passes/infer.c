/* infer.c -- checks all shapes again, by the rule of each op, and marks the values that depend on a
 * trained parameter.
 *
 * The front end sets the shapes while it builds the graph.  Later passes rely on them.
 */
#include "ops/op.h"
#include "passes/pass.h"

static bool needs_grad(const Node *n)
{
    bool reached = n->op->leaf == LEAF_PARAM && !n->param->average && !n->param->frozen;
    for (int i = 0; i < n->nin; i++)
        reached |= n->in[i]->needs_grad;
    return reached;
}

/* Passes needs_grad from the next value of a Carry to its state; true if a state has changed. */
static bool carry_over(const Graph *g)
{
    bool more = false;
    for (int i = 0; i < g->nloop; i++)
        for (int k = 0; k < g->loop[i]->ncarry; k++) {
            const Carry *c = &g->loop[i]->carry[k];
            more |= c->next->needs_grad && !c->state->needs_grad;
            c->state->needs_grad |= c->next->needs_grad;
        }
    return more;
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
    while (carry_over(g))
        for (int i = 0; i < g->nnode; i++)
            g->node[i]->needs_grad |= needs_grad(g->node[i]);
}
