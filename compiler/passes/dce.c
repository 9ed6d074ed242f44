/* dce.c -- dead-code elimination: drops each node from which no output, loss, metric or root of the
 * graph (OP_ROOT) can be reached.
 *
 * Inputs and labels are roots: they belong to the program and stay without readers.
 */
#include "ops/op.h"
#include "passes/pass.h"

static void keep(Node *n)
{
    if (n)
        n->mark = 1;
}

/* Marks the state and the next value of a Carry if one of them is marked; true if a mark was
 * added. */
static bool keep_carried(const Graph *g)
{
    bool more = false;
    for (int i = 0; i < g->nloop; i++)
        for (int k = 0; k < g->loop[i]->ncarry; k++) {
            const Carry *c = &g->loop[i]->carry[k];
            more |= c->state->mark != c->next->mark;
            c->state->mark = c->next->mark = c->state->mark | c->next->mark;
        }
    return more;
}

/* Clears the marks of the stacks of loops.  An earlier pass can have dropped such a stack from
 * graph->node, while its loop still points to it. */
static void forget_marks(const Graph *g)
{
    for (int i = 0; i < g->nloop; i++)
        for (int k = 0; k < g->loop[i]->nstack; k++)
            g->loop[i]->stack[k]->mark = 0;
}

static void forget_dead(const Graph *g)
{
    for (int i = 0; i < g->nloop; i++) {
        Loop *l = g->loop[i];
        const int count = l->nstack;
        l->nstack = 0;
        for (int k = 0; k < count; k++)
            if (l->stack[k]->mark)
                l->stack[l->nstack++] = l->stack[k];
    }
}

void pass_dce(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    int kept = 0;
    forget_marks(g);
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->mark = (g->node[i]->op->flags & OP_ROOT) != 0;
    keep(g->output);
    keep(g->loss);
    for (int i = 0; i < g->nmetric; i++)
        keep(g->metric[i].node);
    do
        for (int i = g->nnode - 1; i >= 0; i--) /* readers come after their inputs */
            for (int j = 0; g->node[i]->mark && j < g->node[i]->nin; j++)
                keep(g->node[i]->in[j]);
    while (keep_carried(g));
    forget_dead(g);
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->mark)
            g->node[kept++] = g->node[i];
    while (g->nnode > kept)
        g->node[--g->nnode] = NULL;
}
