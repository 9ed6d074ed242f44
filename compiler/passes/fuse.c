/* fuse.c -- let producers do their consumers' small work: bias, activation, pooling, and the masks
 * of the backward pass.
 *
 *   act(bias(conv(x, w), b))            ->  conv(x, w, b){act}                  likewise dense
 *   act(batch_norm(x, ...))             ->  batch_norm(x, ...){act}
 *   batch_norm(x, ...) + r              ->  batch_norm(x, ..., r)
 *   batch_norm_test(conv(x, w), ...)    ->  conv(x, batch_fold(w, ...), batch_fold_bias(...))
 *   max_pool(act(z))                    ->  act(max_pool(z))            act monotone
 *   max_pool(conv(x, w, b))             ->  conv(x, w, b){pool} + side index
 *   conv_dx(w, max_pool_dx(z, dy))      ->  conv2d_pool_dx(w, dy, index)  3 of 4 are zero
 *   act_d(dense_dx(w, dy), y)           ->  dense_dx(w, dy, y){mask}            likewise conv2d_dx
 *
 * Each rewrite keeps every value that something else still reads: it fires only when all readers
 * are accounted for.
 */
#include "ir/readers.h"
#include "ops/elementwise.h"
#include "ops/op.h"
#include "ops/window.h"
#include "passes/pass.h"
#include <string.h>

/* ------------------------------------------------------------------------------- helpers */

typedef struct Fuse {
    Graph *graph;
    Readers *readers;
} Fuse;

static int users(const Fuse *f, const Node *n, Node **list, int most)
{
    const int count = readers_count(f->readers, n);
    for (int i = 0; i < count && i < most; i++)
        list[i] = readers_at(f->readers, n, i);
    return count;
}

static Node *only_user(const Fuse *f, const Node *n)
{
    return readers_only(f->readers, n);
}

static void replace(Fuse *f, Node *old, Node *by)
{
    readers_replace(f->readers, old, by);
}

/* A node of `op` in the place of `old`: same span, name, attributes; takes its number and its
 * turn. */
static Node *stand_in(Fuse *f, Node *old, const char *op, Node *const *in, int nin, const Shape *s)
{
    Node *n = graph_add(f->graph, op_find(op), in, nin, old->span);

    readers_stand_in(f->readers, old, n);
    node_copy_attrs(f->graph, n, old);
    n->shape = *s, n->dtype = old->dtype;
    n->name = old->name, n->param = old->param;
    n->needs_grad = old->needs_grad, n->backward = old->backward;
    return n;
}

/* A node of `op` that has no predecessor, with the attributes of `like`. */
static Node *added(Fuse *f, const char *op, Node *const *in, int nin, const Node *like,
                   const Shape *s)
{
    Node *n = graph_add(f->graph, op_find(op), in, nin, like->span);

    readers_add(f->readers, n);
    node_copy_attrs(f->graph, n, like);
    n->shape = *s, n->dtype = like->dtype, n->name = like->name;
    return n;
}

static bool pool_is_2x2(const Node *p)
{
    const int64_t *x = p->in[0]->shape.dim;
    const Window v = window_of(p, x[1], x[2]);
    bool is = true;

    for (int i = 0; i < 2; i++)
        is &= v.kernel[i] == 2 && v.stride[i] == 2 && v.before[i] == 0 && v.out[i] == x[i + 1] / 2;
    return is;
}

/* -------------------------------------------------------------------------------
 * max_pool(act(z)) */

static bool swap_pool(Fuse *f, Node *p)
{
    Node *a = p->in[0], *u[4], *unpool = NULL, *mask = NULL;

    if (!(a->op->flags & OP_ELEMENTWISE) || a->nin != 1 || !elementwise_monotone(a->op) ||
        !elementwise_act(a->op) || graph_keeps(f->graph, a))
        return false;
    const int n = users(f, a, u, 4);
    for (int i = 0; i < n && i < 4; i++) {
        if (node_is(u[i], "max_pool_dx") && u[i]->in[0] == a)
            unpool = u[i];
        else if (elementwise_mask(u[i]->op) && u[i]->in[1] == a)
            mask = u[i];
        else if (u[i] != p)
            return false;
    }
    if (n > 3 || !unpool != !mask ||
        (unpool && (only_user(f, unpool) != mask || mask->in[0] != unpool)))
        return false;

    Node *z = a->in[0];
    Node *pool = stand_in(f, a, "max_pool", &z, 1, &p->shape);
    pool->nattr = 0;
    node_copy_attrs(f->graph, pool, p);
    Node *act = stand_in(f, p, a->op->name, &pool, 1, &p->shape);
    act->nattr = 0;
    node_copy_attrs(f->graph, act, a);
    if (unpool) {
        Node *in[2] = {unpool->in[1], act};
        Node *m = stand_in(f, unpool, mask->op->name, in, 2, &p->shape);
        m->nattr = 0;
        Node *back[2] = {z, m};
        Node *d = stand_in(f, mask, "max_pool_dx", back, 2, &z->shape);
        d->nattr = 0;
        node_copy_attrs(f->graph, d, unpool);
        replace(f, mask, d);
        readers_retire(f->readers, mask);
    }
    replace(f, p, act);
    readers_retire(f->readers, p);
    return true;
}

/* ------------------------------------------------------------------------------- bias, pool,
 * activation into conv and dense */

static bool absorb_bias(Fuse *f, Node *b)
{
    Node *c = b->in[0];

    if (!(node_is(c, "conv2d") || node_is(c, "dense")) || c->nin != 2 || only_user(f, c) != b)
        return false;
    Node *in[3] = {c->in[0], c->in[1], b->in[1]};
    Node *n = stand_in(f, c, c->op->name, in, 3, &b->shape);
    replace(f, b, n);
    readers_retire(f->readers, b);
    return true;
}

/* In evaluation batch_norm multiplies and adds constants: the filters and the bias take them up. */
static bool fold_norm(Fuse *f, Node *b)
{
    Node *c = b->in[0], *scale = b->in[1], *var = b->in[4];

    if (!node_is(c, "conv2d") || node_attr(c, "act") || node_attr(b, "act") ||
        only_user(f, c) != b || !c->in[1]->param)
        return false;
    Node *from[3] = {c->in[1], scale, var};
    Node *w = added(f, "batch_fold", from, 3, b, &c->in[1]->shape);
    Node *with[5] = {scale, b->in[2], b->in[3], var, c->nin > 2 ? c->in[2] : NULL};
    Node *bias = added(f, "batch_fold_bias", with, c->nin > 2 ? 5 : 4, b, &scale->shape);
    Node *in[3] = {c->in[0], w, bias};
    Node *n = stand_in(f, c, "conv2d", in, 3, &b->shape);
    replace(f, b, n);
    readers_retire(f->readers, b);
    return true;
}

/* The readers of max_pool_dx(c, dz) that can read dz itself: conv gradients by index, and the
 * bias's sum. */
static bool reads_unpooled(const Node *u, const Node *d)
{
    return ((node_is(u, "conv2d_dx") || node_is(u, "conv2d_dw")) && u->in[1] == d &&
            u->in[0] != d) ||
           (node_is(u, "sum_to") && u->shape.rank == 1 && !u->shape.batched);
}

static bool absorb_pool(Fuse *f, Node *p)
{
    Node *c = p->in[0], *u[4], *r[8], *unpool = NULL;

    if (!node_is(c, "conv2d") || !pool_is_2x2(p) || node_attr(c, "act") ||
        node_int(c, "groups") != 1 || graph_keeps(f->graph, c))
        return false;
    const int n = users(f, c, u, 4);
    for (int i = 0; i < n && i < 4; i++)
        if (node_is(u[i], "max_pool_dx") && u[i]->in[0] == c)
            unpool = u[i];
        else if (u[i] != p)
            return false;
    if (n > 2)
        return false;
    const int nr = unpool ? users(f, unpool, r, 8) : 0;
    if (nr > 8)
        return false;
    for (int i = 0; i < nr; i++)
        if (!reads_unpooled(r[i], unpool))
            return false;

    Node *conv = stand_in(f, c, "conv2d", c->in, c->nin, &p->shape);
    node_set_int(f->graph, conv, "pool", 2);
    if (unpool) {
        Node *dz = unpool->in[1];
        Node *index = graph_add(f->graph, op_find("side"), &conv, 1, p->span);
        readers_stand_in(f->readers, p, index);
        index->shape = p->shape, index->dtype = DT_U8;
        for (int i = 0; i < nr; i++) {
            Node *in[3] = {r[i]->in[0], dz, index};
            if (node_is(r[i], "sum_to")) {
                readers_set_input(f->readers, r[i], 0, dz);
                continue;
            }
            Node *k =
                stand_in(f, r[i], node_is(r[i], "conv2d_dx") ? "conv2d_pool_dx" : "conv2d_pool_dw",
                         in, 3, &r[i]->shape);
            node_set_int(f->graph, k, "pool", 2);
            replace(f, r[i], k);
            readers_retire(f->readers, r[i]);
        }
    }
    replace(f, p, conv);
    readers_retire(f->readers, p);
    return true;
}

/* Its kernel can apply an activation to what it is about to store. */
static bool takes_act(const Node *n)
{
    return node_is(n, "conv2d") || node_is(n, "dense") || node_is(n, "batch_norm") ||
           node_is(n, "batch_norm_test");
}

static bool absorb_act(Fuse *f, Node *a)
{
    Node *c = a->nin == 1 ? a->in[0] : NULL, *u[4];

    if (!c || !takes_act(c) || node_attr(c, "act") || !elementwise_act(a->op) ||
        graph_keeps(f->graph, c))
        return false;
    const int n = users(f, c, u, 4);
    for (int i = 0; i < n && i < 4; i++)
        if (u[i] != a && !node_is(u[i], "side"))
            return false;
    if (n > 2)
        return false;
    Node *y = stand_in(f, c, c->op->name, c->in, c->nin, &c->shape);
    node_set_string(f->graph, y, "act", a->op->name);
    for (int i = 0; i < n; i++)
        if (node_is(u[i], "side"))
            readers_set_input(f->readers, u[i], 0, y);
    if (a->name && !y->name)
        y->name = a->name;
    replace(f, a, y);
    readers_retire(f->readers, a);
    return true;
}

/* A residual joins the normalising loop, and the activation after it. */
static bool absorb_residual(Fuse *f, Node *a)
{
    for (int i = 0; i < 2; i++) {
        Node *b = a->in[i], *r = a->in[1 - i];
        if (!node_is(b, "batch_norm") || b->nin > 4 || node_attr(b, "act") ||
            only_user(f, b) != a || r == b || b->shape.rank != 3 || !r->shape.batched ||
            !shape_same(&r->shape, &b->shape) || node_is(r, "const"))
            continue;
        Node *in[5] = {b->in[0], b->in[1], b->in[2], b->in[3], r};
        Node *n = stand_in(f, b, "batch_norm", in, 5, &b->shape);
        replace(f, a, n);
        readers_retire(f->readers, a);
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------- masks into the
 * gradients that they cut */

/* A node with the bytes of y under the shape s: y itself, or a flatten of it that the forward
 * pass made. */
static Node *same_bytes(const Fuse *f, Node *y, const Shape *s)
{
    if (shape_same(&y->shape, s))
        return y;
    for (int i = 0; i < readers_count(f->readers, y); i++) {
        Node *v = readers_at(f->readers, y, i);
        if ((v->op->flags & OP_VIEW) && shape_same(&v->shape, s))
            return v;
    }
    return NULL;
}

static bool absorb_mask(Fuse *f, Node *m)
{
    Node *d = m->in[0], *view = NULL, *y = m->in[1];

    if (d->op->flags & OP_VIEW && only_user(f, d) == m)
        view = d, d = d->in[0];
    if (!(node_is(d, "dense_dx") || node_is(d, "conv2d_dx") || node_is(d, "conv2d_pool_dx")) ||
        node_attr(d, "mask") || only_user(f, d) != (view ? view : m) ||
        !(y = same_bytes(f, y, &d->shape)))
        return false;
    Node *in[4];
    for (int i = 0; i < d->nin; i++)
        in[i] = d->in[i];
    in[d->nin] = y;
    Node *dx = stand_in(f, d, d->op->name, in, d->nin + 1, &d->shape);
    node_set_string(f->graph, dx, "mask", m->op->name);
    if (view)
        readers_set_input(f->readers, view, 0, dx);
    replace(f, m, view ? view : dx);
    readers_retire(f->readers, m);
    readers_retire(f->readers, d);
    return true;
}

/* ------------------------------------------------------------------------------- the pass */

static bool try(Fuse *f, Node *n)
{
    if (node_is(n, "max_pool"))
        return swap_pool(f, n) || absorb_pool(f, n);
    if (node_is(n, "bias"))
        return absorb_bias(f, n);
    if (node_is(n, "batch_norm_test"))
        return fold_norm(f, n);
    if (node_is(n, "add") && n->shape.batched)
        return absorb_residual(f, n);
    if (n->op->flags & OP_ELEMENTWISE && n->nin == 1 && elementwise_act(n->op))
        return absorb_act(f, n);
    if (n->op->flags & OP_ELEMENTWISE && n->nin == 2 && elementwise_mask(n->op))
        return absorb_mask(f, n);
    return false;
}

/* Until nothing more joins.  What has been joined stays in the list, reading nothing, for dce. */
static void join(Fuse *f, bool pools_only)
{
    const Graph *g = f->graph;
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < g->nnode; i++) {
            Node *n = g->node[i];
            if (readers_retired(f->readers, n) ||
                (pools_only && !node_is(n, "max_pool") && !node_is(n, "bias")))
                continue;
            again |= try(f, n);
        }
    }
}

void pass_fuse(Graph *g, const Options *o, Diag *d)
{
    Fuse f = {g, readers_new(g)};

    (void)o, (void)d;
    join(&f, true); /* an activation moves into its conv only after the pool between them has */
    join(&f, false);
    graph_sort(g);
}
