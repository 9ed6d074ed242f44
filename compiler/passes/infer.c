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

/* What a loop hands on carries it back to the step's head; true when a state learned of it now. */
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
