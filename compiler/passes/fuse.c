/* fuse.c -- merges bias, activation, pooling and the masks of the backward pass into the product or
 * normalisation before them, for the kernels of processors.
 *
 *   act(bias(conv(x, w), b))            ->  conv(x, w, b){act}                  likewise dense
 *   act(batch_norm(x, ...))             ->  batch_norm(x, ...){act}
 *   batch_norm(x, ...) + r              ->  batch_norm(x, ..., r)
 *   batch_norm_test(conv(x, w), ...)    ->  conv(x, batch_fold(w, ...), batch_fold_bias(...))
 *   max_pool(act(z))                    ->  act(max_pool(z))            act monotone
 *   max_pool(conv(x, w, b))             ->  conv(x, w, b){pool} + side index
 *   conv_dx(w, max_pool_dx(z, dy))      ->  conv2d_pool_dx(w, dy, index)  3 of 4 numbers are 0
 *   act_d(dense_dx(w, dy), y)           ->  dense_dx(w, dy, y){mask}            likewise conv2d_dx
 *
 * Op.takes and Op.epilogue say which op can become part of which kernel. max_pool_dx is tested by
 * name, because it is the gradient of exactly this pooling.  A value stays if a node outside of the
 * pattern reads it.
 */
#include "ir/readers.h"
#include "ir/target.h"
#include "ops/elementwise.h"
#include "ops/op.h"
#include "ops/window.h"
#include "passes/join.h"
#include "passes/pass.h"
#include <string.h>

/* ---- editing */

typedef struct Fuse {
    Graph *graph;
    Readers *readers;
    bool all; /* Target.fuses_all */
} Fuse;

/* The epilogues that the kernel of n can apply.  If a loop recomputes its values (pass stretch),
 * its products take no activation: only one of a product and its recomputed copy could have it, and
 * pass narrow could not compare the two. */
static unsigned takes(const Fuse *f, const Node *n)
{
    const bool again = n->loop && n->loop->every > 0;
    const unsigned some = EPILOGUE_BIAS | EPILOGUE_MASK | (again ? 0 : EPILOGUE_ACT);
    return f->all || !op_half_fits(n) ? n->op->takes : n->op->takes & some;
}

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

static Node *stand_in(Fuse *f, Node *old, const char *op, Node *const *in, int nin, const Shape *s)
{
    return join_stand_in(f->graph, f->readers, old, op_find(op), in, nin, s);
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

/* Whether u is the gradient of a max_pool of x. */
static bool is_unpool(const Node *u, const Node *x)
{
    return node_is(u, "max_pool_dx") && u->in[0] == x;
}

/* ---- max_pool(act(z)) */

/* Replaces max_pool(act(z)) by act(max_pool(z)), also in the gradients: the activation then has
 * fewer numbers. */
static bool swap_pool(Fuse *f, Node *p)
{
    Node *a = p->in[0], *u[4], *unpool = NULL, *mask = NULL;

    if (!(a->op->flags & OP_ELEMENTWISE) || a->nin != 1 || !elementwise_monotone(a->op) ||
        !elementwise_act(a->op) || graph_keeps(f->graph, a))
        return false;
    const int n = users(f, a, u, 4);
    for (int i = 0; i < n && i < 4; i++) {
        if (is_unpool(u[i], a))
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

/* ---- bias, pooling and activation in a product or a normalisation */

static bool absorb_bias(Fuse *f, Node *b)
{
    Node *c = b->in[0];

    if (!(takes(f, c) & EPILOGUE_BIAS) || c->nin != 2 || only_user(f, c) != b)
        return false;
    Node *in[3] = {c->in[0], c->in[1], b->in[1]};
    join_reader(f->graph, f->readers, c, b, in, 3);
    return true;
}

/* Whether u, a reader of d = max_pool_dx(c, dz), can read dz in place of d.  The gradient of the
 * bias can; the gradients of the convolution can if they also read the index. */
static bool reads_unpooled(const Node *u, const Node *d)
{
    return (u->op->product == PRODUCT_CONV && u->op->role != ROLE_Y && u->in[1] == d &&
            u->in[0] != d) ||
           (u->op->flags & OP_REDUCE && u->op->flags & OP_SUM && u->shape.rank == 1 &&
            !u->shape.batched);
}

/* Merges a 2x2 max-pool into its convolution.  The gradients of the convolution then read the
 * pooled gradient and the index of each maximum. */
static bool absorb_pool(Fuse *f, Node *p)
{
    Node *c = p->in[0], *u[4], *r[8], *unpool = NULL;

    if (!(takes(f, c) & EPILOGUE_POOL) || !pool_is_2x2(p) || node_attr(c, "act") ||
        node_int(c, "groups") != 1 || graph_keeps(f->graph, c))
        return false;
    const int n = users(f, c, u, 4);
    for (int i = 0; i < n && i < 4; i++)
        if (is_unpool(u[i], c))
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

    Node *conv = stand_in(f, c, c->op->name, c->in, c->nin, &p->shape);
    node_set_int(f->graph, conv, "pool", 2);
    if (unpool) {
        Node *dz = unpool->in[1];
        Node *index = graph_add(f->graph, op_find("side"), &conv, 1, p->span);
        readers_stand_in(f->readers, p, index);
        index->shape = p->shape, index->dtype = DT_U8;
        for (int i = 0; i < nr; i++) {
            Node *in[3] = {r[i]->in[0], dz, index};
            if (r[i]->op->flags & OP_REDUCE) {
                readers_set_input(f->readers, r[i], 0, dz);
                continue;
            }
            Node *k =
                stand_in(f, r[i], r[i]->op->role == ROLE_DX ? "conv2d_pool_dx" : "conv2d_pool_dw",
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

/* Merges an activation into its producer, if all other readers of the producer are ops "side". */
static bool absorb_act(Fuse *f, Node *a)
{
    Node *c = a->nin == 1 ? a->in[0] : NULL, *u[4];

    if (!c || !(takes(f, c) & EPILOGUE_ACT) || node_attr(c, "act") || !elementwise_act(a->op) ||
        graph_keeps(f->graph, c))
        return false;
    const int n = users(f, c, u, 4);
    for (int i = 0; i < n && i < 4; i++)
        if (u[i] != a && !(u[i]->op->flags & OP_SIDE))
            return false;
    if (n > 2)
        return false;
    Node *y = stand_in(f, c, c->op->name, c->in, c->nin, &c->shape);
    node_set_string(f->graph, y, "act", a->op->name);
    for (int i = 0; i < n; i++)
        if (u[i]->op->flags & OP_SIDE)
            readers_set_input(f->readers, u[i], 0, y);
    replace(f, a, y);
    readers_retire(f->readers, a);
    return true;
}

/* Merges the addition of a residual into batch_norm; absorb_act can then merge the activation after
 * the addition.  The test of `add` is by name, because only an addition has a residual.  A
 * batch_norm with four inputs has no residual yet. */
static bool absorb_residual(Fuse *f, Node *a)
{
    for (int i = 0; i < 2; i++) {
        Node *b = a->in[i], *r = a->in[1 - i];
        if (!(takes(f, b) & EPILOGUE_RESIDUAL) || b->nin != 4 || node_attr(b, "act") ||
            only_user(f, b) != a || r == b || b->shape.rank != 3 || !r->shape.batched ||
            !shape_same(&r->shape, &b->shape) || r->op->leaf == LEAF_CONST)
            continue;
        Node *in[5] = {b->in[0], b->in[1], b->in[2], b->in[3], r};
        join_reader(f->graph, f->readers, b, a, in, 5);
        return true;
    }
    return false;
}

/* ---- masks in the gradients that they multiply */

/* A node with the bytes of y and the shape s: y itself, or a view of y; NULL: none. */
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

/* Merges the mask of an activation into the gradient that it multiplies, also through a view. */
static bool absorb_mask(Fuse *f, Node *m)
{
    Node *d = m->in[0], *view = NULL, *y = m->in[1];

    if (d->op->flags & OP_VIEW && only_user(f, d) == m)
        view = d, d = d->in[0];
    if (!(takes(f, d) & EPILOGUE_MASK) || node_attr(d, "mask") ||
        only_user(f, d) != (view ? view : m) || !(y = same_bytes(f, y, &d->shape)))
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

/* ---- the pass */

static bool fuse_one(Fuse *f, Node *n)
{
    if (n->op->epilogue == EPILOGUE_POOL)
        return swap_pool(f, n) || absorb_pool(f, n);
    if (n->op->epilogue == EPILOGUE_BIAS)
        return absorb_bias(f, n);
    if (n->op->epilogue == EPILOGUE_NORM)
        return takes(f, n->in[0]) & EPILOGUE_NORM &&
               join_norm(f->graph, f->readers, n->in[0], n) != NULL;
    if (node_is(n, "add") && n->shape.batched)
        return absorb_residual(f, n);
    if (n->op->flags & OP_ELEMENTWISE && n->nin == 1 && elementwise_act(n->op))
        return absorb_act(f, n);
    if (n->op->flags & OP_ELEMENTWISE && n->nin == 2 && elementwise_mask(n->op))
        return absorb_mask(f, n);
    return false;
}

/* Merges until nothing changes.  A merged node stays in the list, without inputs, until pass dce
 * drops it. */
static void join_all(Fuse *f, bool pools_only)
{
    const Graph *g = f->graph;
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < g->nnode; i++) {
            Node *n = g->node[i];
            if (readers_retired(f->readers, n) ||
                (pools_only && !(n->op->epilogue & (EPILOGUE_POOL | EPILOGUE_BIAS))))
                continue;
            again |= fuse_one(f, n);
        }
    }
}

void pass_fuse(Graph *g, const Options *o, Diag *d)
{
    Fuse f = {g, readers_new(g), target_of(o).fuses_all};

    (void)d;
    /* poolings first: an activation after a pooling can be merged only after the pooling */
    join_all(&f, true);
    join_all(&f, false);
    graph_sort(g);
}
