/* gradient.c -- reverse-mode differentiation, as a transformation of the graph.
 *
 *   d loss_n / d loss_n = 1 / batch       (the program's loss is the mean over the batch)
 *   dx = sum over the uses y of x of (dy/dx)^T dy, by the rule of y's op
 *
 * Nodes are visited from the last to the first, so that every dy is complete when its rule asks
 * for it; contributions are added in that order, always the same.  Then follows an update for
 * every parameter, in checkpoint order.
 */
#include "ops/grad.h"
#include "passes/pass.h"

static void backward(Graph *g, Grad *gr, int forward)
{
    Node *one = graph_const(g, 1.0 / (double)g->recipe.batch, g->loss->shape, g->loss->span);
    grad_add(gr, g->loss, one);
    for (int i = forward - 1; i >= 0; i--) {
        Node *n = g->node[i], *dy = grad_of(gr, n);
        if (!dy)
            continue;
        if (!dy->name && n->name)
            dy->name = arena_printf(g->arena, "d%s", n->name);
        if (n->op->gradient)
            n->op->gradient(gr, n, dy);
    }
}

static void update(Graph *g, Grad *gr, Param *p, Diag *d)
{
    Node *w = p->node, *dw = grad_of(gr, w);
    if (!dw) {
        diag_warn(d, p->span, "parameter %s does not reach the loss: it keeps its first value",
                  p->name);
        return;
    }
    Node *n = op_make(g, "update", p->span, 2, w, dw);
    n->param = p;
    node_set_attr(g->arena, n, (Attr){.key = "decay", .kind = ATTR_BOOL, .i = p->decay != 0});
    if (p->decay != 0 && p->decay != 1)
        node_set_float(g, n, "decay_factor", p->decay);
    if (p->lr != 1)
        node_set_float(g, n, "lr_factor", p->lr);
}

/* Numbers that the optimizer keeps for each parameter besides itself. */
static int states(const Optimizer *o)
{
    switch (o->kind) {
    case OPT_SGD:
        return o->momentum != 0;
    case OPT_RMSPROP:
        return o->momentum != 0 ? 2 : 1;
    case OPT_ADAM:
    case OPT_ADAMW:
        break;
    }
    return 2;
}

void pass_gradient(Graph *g, const Options *o, Diag *d)
{
    (void)o;
    if (!g->loss || !g->recipe.present)
        return;
    const int forward = g->nnode;
    Grad *gr = grad_new(g);
    backward(g, gr, forward);
    for (int i = 0; i < g->nparam; i++)
        if (!g->param[i]->average && !g->param[i]->frozen)
            update(g, gr, g->param[i], d);
    for (int i = forward; i < g->nnode; i++)
        g->node[i]->backward = true;
    g->nstate = states(&g->recipe.optimizer);
}
