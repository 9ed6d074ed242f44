/* gradient.c -- reverse-mode differentiation, as a transformation of the graph.
 *
 *   d loss_n / d loss_n = 1 / batch       the loss of a program is the mean over the batch;
 *                                         with --dtype f16 times the scale of the loss
 *   dx = sum over the readers y of x of (dy/dx)^T dy, by the rule of y's op
 *
 * The pass visits nodes from the last to the first, so the gradient dy of a node is complete when
 * the rule of the node's op reads dy.  The pass adds contributions in this order, which is always
 * the same.  Then the pass makes an update for each parameter, in the order of checkpoints.
 */
#include "ir/target.h"
#include "ops/grad.h"
#include "ops/scan.h"
#include "passes/pass.h"

/* ---- loops over time: a second loop passes gradients from each step to the previous step */

static Node *zeros(Graph *g, const Node *like)
{
    Shape s = like->shape;
    s.batched = true;
    return graph_const(g, 0, s, like->span);
}

/* Makes the backward loop of l.  If a step passes a value on, the gradient of the value comes from
 * the next step; for the last step, the gradient comes from the readers after the loop. */
static void enter(Graph *g, Grad *gr, Loop *l)
{
    l->mirror = graph_loop(g, l->steps, !l->reversed, l->span);
    for (int i = 0; i < l->ncarry; i++) {
        const Node *next = l->carry[i].next;
        Node *last = grad_of(gr, next);
        if (next->needs_grad)
            gr->sum[next->id] = scan_state(g, l->mirror, last ? last : zeros(g, next), next->span);
    }
}

/* Passes dy of a state to the previous step. dy is complete at the beginning of a step. */
static void carry_back(Graph *g, Grad *gr, Node *state)
{
    for (int i = 0; i < state->loop->ncarry; i++) {
        const Carry *c = &state->loop->carry[i];
        Node *arrived = grad_of(gr, c->next), *dy = grad_of(gr, state);
        if (c->state != state || !c->next->needs_grad)
            continue;
        scan_next(g, arrived, dy ? dy : zeros(g, state));
        if (grad_wanted(gr, state->in[0]))
            grad_add(gr, state->in[0], scan_last(g, arrived, state->span));
    }
}

/* The gradient dy of a node of a loop, as a value of each step of the backward loop. */
static Node *in_mirror(Graph *g, const Node *n, Node *dy)
{
    Loop *l = node_loop(n);
    return l && node_loop(dy) != l->mirror ? scan_keep(g, l->mirror, dy) : dy;
}

/* Calls the gradient rule of each node of the forward pass, from the last one to the first one. */
static void backward(Graph *g, Grad *gr, int forward, bool scaled)
{
    Node *one = graph_const(g, 1.0 / (double)g->recipe.batch, g->loss->shape, g->loss->span);
    grad_add(gr, g->loss, scaled ? op_make(g, "loss_scale", g->loss->span, 1, one) : one);
    for (int i = forward - 1; i >= 0; i--) {
        Node *n = g->node[i], *dy;
        if (n->loop && !n->loop->mirror)
            enter(g, gr, n->loop);
        if (n->op->scan == SCAN_STATE)
            carry_back(g, gr, n);
        dy = grad_of(gr, n);
        if (!dy)
            continue;
        if (!dy->name && n->name)
            dy->name = arena_printf(g->arena, "d%s", n->name);
        g->walked = n->loop;
        if (n->op->gradient)
            n->op->gradient(gr, n, in_mirror(g, n, dy));
    }
    g->walked = NULL;
}

static void update(Graph *g, Grad *gr, Param *p, Diag *d)
{
    Node *w = p->node, *dw = grad_of(gr, w);
    if (!dw) {
        diag_warn(d, p->span,
                  "the loss has no gradient for parameter %s: it keeps its initial value", p->name);
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

void pass_gradient(Graph *g, const Options *o, Diag *d)
{
    if (!g->loss || !g->recipe.present)
        return;
    const int forward = g->nnode;
    Grad *gr = grad_new(g);
    backward(g, gr, forward, target_of(o).scales_loss);
    for (int i = 0; i < g->nparam; i++)
        if (!g->param[i]->average && !g->param[i]->frozen)
            update(g, gr, g->param[i], d);
    for (int i = forward; i < g->nnode; i++)
        g->node[i]->backward = true;
    graph_sort(g);
    g->nstate = optimizer_states(&g->recipe.optimizer);
}
