/* loss.c -- writes the loss of the recipe as a function of outputs and targets. */
#include "scripts/network.h"
#include <string.h>

/* Columns of a matrix as a value of this shape: "output[:, 0:10]". */
static PyValue columns(Py *p, const char *matrix, int64_t at, const Shape *s, const char *more)
{
    PyValue v = network_variable(p, matrix);
    v.s = s->rank == 0 ? arena_printf(p->a, "%s[:, %lld]%s", matrix, (long long)at, more)
                       : arena_printf(p->a, "%s[:, %lld:%lld]%s", matrix, (long long)at,
                                      (long long)(at + shape_count(s)), more);
    if (s->rank > 1)
        v.s = arena_printf(p->a, "%s.reshape(-1, %s)", v.s, python_list(p->a, s->dim, s->rank, 0));
    return v;
}

/* Sets the values that losses compare.  With several outputs or targets, a row of the matrix holds
 * all outputs or all targets of a sample. */
static void give_compared(Py *p, Scope *s)
{
    const Graph *g = p->g;
    int64_t at = 0;
    s->value[g->output->id] = network_variable(p, "output");
    s->value[g->target->id] = network_variable(p, "label");
    for (int i = 0; i < g->noutput && g->noutput > 1; i++) {
        s->value[g->outputs[i].node->id] = columns(p, "output", at, &g->outputs[i].shape, "");
        at += shape_count(&g->outputs[i].shape);
    }
    at = 0;
    const bool own = g->recipe.target->kind == LEARN_INPUT; /* the input itself: it is in no row */
    for (int i = 0; i < g->recipe.ntarget && graph_several(g) && !own; i++) {
        const Node *t = g->targets[i];
        s->value[t->id] = columns(p, "label", at, &t->shape, t->dtype == DT_I32 ? ".long()" : "");
        at += shape_count(&t->shape);
    }
}

static bool is_output(const Graph *g, const Node *n)
{
    bool found = n == g->output;
    for (int i = 0; i < g->noutput; i++)
        found |= n == g->outputs[i].node;
    return found;
}

bool network_loss(Py *p)
{
    Scope s = network_scope(p, "");
    const Node *loss = p->g->unmixed ? p->g->unmixed : p->g->loss;
    give_compared(p, &s);
    bool *network = p->wanted;
    p->wanted = arena_alloc(p->a, sizeof *p->wanted * (size_t)p->g->next_id);
    memset(p->uses, 0, sizeof *p->uses * (size_t)p->g->next_id);
    for (int i = 0; i < p->g->nnode; i++)
        if (is_output(p->g, p->g->node[i]))
            p->wanted[p->g->node[i]->id] = true;
    network_want(p, loss);
    memcpy(s.left, p->uses, sizeof *s.left * (size_t)p->g->next_id);
    for (int i = 0; i < p->g->nnode; i++) {
        const Node *n = p->g->node[i];
        if (network_writes(p, n) && !is_output(p->g, n) && !network[n->id] &&
            !network_node(p, &s, n, n == loss))
            return false;
    }
    text_printf(p->out, "\n\ndef %s:\n    \"\"\"One number for each sample.\"\"\"\n",
                p->dialect->losses);
    /* lines of a function have less indentation than those of a method */
    text_shifted(p->out, s.body.s, -4);
    text_printf(p->out, "    return %s\n", s.value[loss->id].s);
    return true;
}
