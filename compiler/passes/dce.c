/* dce.c -- drops what nobody needs: nodes from which no output, loss, metric or update can be
 * reached.
 *
 * Inputs and labels stay, used or not: they are the program's, not the network's.
 */
#include "ir/vocabulary.h"
#include "passes/pass.h"

static void keep(Node *n)
{
    if (n)
        n->mark = 1;
}

/* The two ends of what a loop hands from step to step live together; true when one came to life now. */
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

static bool is_root(const Node *n)
{
    return node_updates(n) || node_is(n, "input") || node_is(n, "label") ||
           node_is(n, "token_next");
}

/* Loops remember their sequences: also of those that an earlier pass has dropped. */
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
        g->node[i]->mark = is_root(g->node[i]);
    keep(g->output);
    keep(g->loss);
    for (int i = 0; i < g->nmetric; i++)
        keep(g->metric[i].node);
    do
        for (int i = g->nnode - 1; i >= 0; i--) /* users stand behind what they use */
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
