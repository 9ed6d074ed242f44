/* compared.c -- what losses and metrics of a recipe compare: outputs with targets. */
#include "front/lower.h"

static const char *output_name(const Graph *g, const Node *output)
{
    int i = 0;
    while (lower_output(g, i) != output)
        i++;
    return lower_output_name(g, i);
}

/* Whether n is an operation of these two values, in any order. */
static bool operates_on(const Node *n, const Node *a, const Node *b)
{
    return (n->op->flags & OP_ELEMENTWISE) && n->nin == 2 &&
           ((n->in[0] == a && n->in[1] == b) || (n->in[1] == a && n->in[0] == b));
}

/* Reports an operation of output and target that would broadcast one to the shape of the other: a
 * formula such as (output - price) ** 2 would then not compare each number with its own target. */
static bool check_pair(const Unit *u, const Graph *g, const Node *output, const Node *target)
{
    for (int i = 0; target->dtype == DT_REAL && i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!operates_on(n, output, target) || shape_same(&output->shape, &target->shape))
            continue;
        diag_error(u->diag, n->span, "%s of the output %s and the target %s: the shapes differ",
                   n->op->name, shape_text(u->arena, &output->shape),
                   shape_text(u->arena, &target->shape));
        diag_help(u->diag, "reshape or slice one to the shape of the other, as in reshape(%s, [1])",
                  output_name(g, output));
        return false;
    }
    return true;
}

bool lower_check_fit(const Unit *u, const Graph *g)
{
    for (int i = 0; i < lower_output_count(g); i++)
        for (int k = 0; k < g->recipe.ntarget; k++)
            if (!check_pair(u, g, lower_output(g, i), g->targets[k]))
                return false;
    return true;
}

bool lower_uses_compared(const Graph *g, const Node *n)
{
    const bool *needed = graph_needed(g, n);
    bool any = false;
    for (int i = 0; i < lower_output_count(g); i++)
        any |= needed[lower_output(g, i)->id];
    for (int i = 0; i < g->recipe.ntarget; i++)
        any |= needed[g->targets[i]->id];
    return any;
}
