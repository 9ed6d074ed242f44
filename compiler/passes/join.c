/* join.c -- replaces a node and its reader by one node that computes both. */
#include "passes/join.h"
#include "ops/op.h"

Node *join_stand_in(Graph *g, Readers *r, Node *old, const Op *op, Node *const *in, int nin,
                    const Shape *s)
{
    Node *n = graph_add(g, op, in, nin, old->span);

    readers_stand_in(r, old, n);
    node_copy_attrs(g, n, old);
    n->shape = *s, n->dtype = old->dtype;
    n->name = old->name, n->param = old->param, n->looped = old->looped;
    n->needs_grad = old->needs_grad, n->backward = old->backward;
    return n;
}

/* Adds a node of `op` with the attributes, type and name of `like`. */
static Node *join_add(Graph *g, Readers *r, const char *op, Node *const *in, int nin,
                      const Node *like, const Shape *s)
{
    Node *n = graph_add(g, op_find(op), in, nin, like->span);

    readers_add(r, n);
    node_copy_attrs(g, n, like);
    n->shape = *s, n->dtype = like->dtype, n->name = like->name;
    return n;
}

Node *join_reader(Graph *g, Readers *r, Node *old, Node *last, Node *const *in, int nin)
{
    Node *n = join_stand_in(g, r, old, old->op, in, nin, &last->shape);
    readers_replace(r, last, n);
    readers_retire(r, last);
    return n;
}

Node *join_norm(Graph *g, Readers *r, Node *n, Node *b)
{
    Node *w = n->in[1], *scale = b->in[1], *var = b->in[4];

    if (!(n->op->takes & EPILOGUE_NORM) || node_attr(n, "act") || node_attr(b, "act") ||
        readers_only(r, n) != b || !w->param)
        return NULL;
    Node *from[3] = {w, scale, var};
    Node *folded = join_add(g, r, "batch_fold", from, 3, b, &w->shape);
    Node *with[5] = {scale, b->in[2], b->in[3], var, n->nin > 2 ? n->in[2] : NULL};
    Node *bias = join_add(g, r, "batch_fold_bias", with, n->nin > 2 ? 5 : 4, b, &scale->shape);
    return join_reader(g, r, n, b, (Node *[]){n->in[0], folded, bias}, 3);
}
