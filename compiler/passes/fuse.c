/* fuse.c -- let producers do their consumers' small work: bias, activation, pooling, and the masks
 * of the backward pass.
 *
 *   act(bias(conv(x, w), b))            ->  conv(x, w, b){act}                  likewise dense
 *   max_pool(act(z))                    ->  act(max_pool(z))            act monotone
 *   max_pool(conv(x, w, b))             ->  conv(x, w, b){pool} + side index
 *   conv_dx(w, max_pool_dx(z, dy))      ->  conv2d_pool_dx(w, dy, index)  3 of 4 are zero
 *   act_d(dense_dx(w, dy), y)           ->  dense_dx(w, dy, y){mask}            likewise conv2d_dx
 *   elementwise of elementwise          ->  one loop (attribute inline)
 *
 * Each rewrite keeps every value that something else still reads: it fires only when all readers
 * are accounted for.
 */
#include "ops/elementwise.h"
#include "ops/op.h"
#include "ops/window.h"
#include "passes/pass.h"
#include <string.h>

/* ------------------------------------------------------------------------------- helpers */

static int users(const Graph *g, const Node *n, Node **list, int most)
{
    int count = 0;
    for (int i = 0; i < g->nnode; i++) {
        Node *u = g->node[i];
        for (int k = 0; k < u->nin; k++)
            if (u->in[k] == n) {
                if (count < most)
                    list[count] = u;
                count++;
                break;
            }
    }
    return count;
}

static bool is_result(const Graph *g, const Node *n)
{
    if (n == g->output || n == g->loss)
        return true;
    for (int i = 0; i < g->nmetric; i++)
        if (g->metric[i].node == n)
            return true;
    return false;
}

static Node *only_user(const Graph *g, const Node *n)
{
    Node *u[2];
    return !is_result(g, n) && users(g, n, u, 2) == 1 ? u[0] : NULL;
}

/* Moves the newest node of the list to just behind `old`: the schedule follows the list. */
static void move_behind(Graph *g, const Node *old)
{
    Node *n = g->node[g->nnode - 1];
    int at = g->nnode - 1;

    for (; at > 0 && g->node[at - 1] != old; at--)
        g->node[at] = g->node[at - 1];
    g->node[at] = n;
}

/* A node of `op` in the place of `old`: same span, name, attributes; takes its number and its
 * turn. */
static Node *stand_in(Graph *g, Node *old, const char *op, Node *const *in, int nin, const Shape *s)
{
    Node *n = graph_add(g, op_find(op), in, nin, old->span);
    const int id = n->id;

    move_behind(g, old);
    node_copy_attrs(g, n, old);
    n->id = old->id, old->id = id;
    n->shape = *s, n->dtype = old->dtype;
    n->name = old->name, n->param = old->param;
    n->needs_grad = old->needs_grad, n->backward = old->backward;
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

static bool swap_pool(Graph *g, Node *p)
{
    Node *a = p->in[0], *u[4], *unpool = NULL, *mask = NULL;

    if (!(a->op->flags & OP_ELEMENTWISE) || a->nin != 1 || !elementwise_monotone(a->op) ||
        !elementwise_act(a->op) || is_result(g, a))
        return false;
    const int n = users(g, a, u, 4);
    for (int i = 0; i < n && i < 4; i++) {
        if (node_is(u[i], "max_pool_dx") && u[i]->in[0] == a)
            unpool = u[i];
        else if (elementwise_mask(u[i]->op) && u[i]->in[1] == a)
            mask = u[i];
        else if (u[i] != p)
            return false;
    }
    if (n > 3 || !unpool != !mask ||
        (unpool && (only_user(g, unpool) != mask || mask->in[0] != unpool)))
        return false;

    Node *z = a->in[0];
    Node *pool = stand_in(g, a, "max_pool", &z, 1, &p->shape);
    pool->nattr = 0;
    node_copy_attrs(g, pool, p);
    Node *act = stand_in(g, p, a->op->name, &pool, 1, &p->shape);
    act->nattr = 0;
    node_copy_attrs(g, act, a);
    if (unpool) {
        Node *in[2] = {unpool->in[1], act};
        Node *m = stand_in(g, unpool, mask->op->name, in, 2, &p->shape);
        m->nattr = 0;
        Node *back[2] = {z, m};
        Node *d = stand_in(g, mask, "max_pool_dx", back, 2, &z->shape);
        d->nattr = 0;
        node_copy_attrs(g, d, unpool);
        graph_replace(g, mask, d);
    }
    graph_replace(g, p, act);
    return true;
}

/* ------------------------------------------------------------------------------- bias, pool,
 * activation into conv and dense */

static bool absorb_bias(Graph *g, Node *b)
{
    Node *c = b->in[0];

    if (!(node_is(c, "conv2d") || node_is(c, "dense")) || c->nin != 2 || only_user(g, c) != b)
        return false;
    Node *in[3] = {c->in[0], c->in[1], b->in[1]};
    Node *n = stand_in(g, c, c->op->name, in, 3, &b->shape);
    graph_replace(g, b, n);
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

static bool absorb_pool(Graph *g, Node *p)
{
    Node *c = p->in[0], *u[4], *r[8], *unpool = NULL;

    if (!node_is(c, "conv2d") || !pool_is_2x2(p) || node_attr(c, "act") ||
        node_int(c, "groups") != 1 || is_result(g, c))
        return false;
    const int n = users(g, c, u, 4);
    for (int i = 0; i < n && i < 4; i++)
        if (node_is(u[i], "max_pool_dx") && u[i]->in[0] == c)
            unpool = u[i];
        else if (u[i] != p)
            return false;
    if (n > 2)
        return false;
    const int nr = unpool ? users(g, unpool, r, 8) : 0;
    if (nr > 8)
        return false;
    for (int i = 0; i < nr; i++)
        if (!reads_unpooled(r[i], unpool))
            return false;

    Node *conv = stand_in(g, c, "conv2d", c->in, c->nin, &p->shape);
    node_set_int(g, conv, "pool", 2);
    if (unpool) {
        Node *dz = unpool->in[1];
        Node *index = graph_add(g, op_find("side"), &conv, 1, p->span);
        const int id = index->id;
        move_behind(g, conv);
        index->id = p->id, p->id = id;
        index->shape = p->shape, index->dtype = DT_U8;
        for (int i = 0; i < nr; i++) {
            Node *in[3] = {r[i]->in[0], dz, index};
            if (node_is(r[i], "sum_to")) {
                r[i]->in[0] = dz;
                continue;
            }
            Node *k =
                stand_in(g, r[i], node_is(r[i], "conv2d_dx") ? "conv2d_pool_dx" : "conv2d_pool_dw",
                         in, 3, &r[i]->shape);
            node_set_int(g, k, "pool", 2);
            graph_replace(g, r[i], k);
        }
    }
    graph_replace(g, p, conv);
    return true;
}

static bool absorb_act(Graph *g, Node *a)
{
    Node *c = a->nin == 1 ? a->in[0] : NULL, *u[4];

    if (!c || !(node_is(c, "conv2d") || node_is(c, "dense")) || node_attr(c, "act") ||
        !elementwise_act(a->op) || is_result(g, c))
        return false;
    const int n = users(g, c, u, 4);
    for (int i = 0; i < n && i < 4; i++)
        if (u[i] != a && !node_is(u[i], "side"))
            return false;
    if (n > 2)
        return false;
    Node *f = stand_in(g, c, c->op->name, c->in, c->nin, &c->shape);
    node_set_string(g, f, "act", a->op->name);
    for (int i = 0; i < n; i++)
        if (node_is(u[i], "side"))
            u[i]->in[0] = f;
    if (a->name && !f->name)
        f->name = a->name;
    graph_replace(g, a, f);
    return true;
}

/* ------------------------------------------------------------------------------- masks into the
 * gradients that they cut */

/* A node with the bytes of y under the shape s: y itself, or a flatten of it that the forward
 * pass made. */
static Node *same_bytes(const Graph *g, Node *y, const Shape *s)
{
    if (shape_same(&y->shape, s))
        return y;
    for (int i = 0; i < g->nnode; i++)
        if ((g->node[i]->op->flags & OP_VIEW) && g->node[i]->in[0] == y &&
            shape_same(&g->node[i]->shape, s))
            return g->node[i];
    return NULL;
}

static bool absorb_mask(Graph *g, Node *m)
{
    Node *d = m->in[0], *view = NULL, *y = m->in[1];

    if (d->op->flags & OP_VIEW && only_user(g, d) == m)
        view = d, d = d->in[0];
    if (!(node_is(d, "dense_dx") || node_is(d, "conv2d_dx") || node_is(d, "conv2d_pool_dx")) ||
        node_attr(d, "mask") || only_user(g, d) != (view ? view : m) ||
        !(y = same_bytes(g, y, &d->shape)))
        return false;
    Node *in[4];
    for (int i = 0; i < d->nin; i++)
        in[i] = d->in[i];
    in[d->nin] = y;
    Node *f = stand_in(g, d, d->op->name, in, d->nin + 1, &d->shape);
    node_set_string(g, f, "mask", m->op->name);
    if (view)
        view->in[0] = f;
    graph_replace(g, m, view ? view : f);
    return true;
}

/* ------------------------------------------------------------------------------- one loop for
 * elementwise chains */

static bool in_loop(const Node *n)
{
    return (n->op->flags & OP_ELEMENTWISE) || node_is(n, "bias");
}

/* How much the loop of a node computes once its operands are inlined: operations, and operands in
 * memory. */
typedef struct Tree {
    int ops, leaves;
} Tree;

static Tree own_tree(const Node *n)
{
    Tree t = {.ops = 1};
    for (int i = 0; i < n->nin; i++)
        t.leaves += !node_is(n->in[i], "const");
    return t;
}

/* A value read twice by its one user stays in memory: written into the loop twice, h = h * h
 * after itself would double the program at each step. */
static void inline_chains(Graph *g)
{
    Tree *tree = arena_alloc(g->arena, (size_t)g->next_id * sizeof *tree);

    for (int i = 0; i < g->nnode; i++)
        tree[g->node[i]->id] = own_tree(g->node[i]);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i], *u = in_loop(n) && n->shape.batched ? only_user(g, n) : NULL;
        if (!u || !in_loop(u) || !shape_same(&n->shape, &u->shape) || graph_uses(g, n) != 1)
            continue;
        const Tree *t = &tree[n->id], *whole = &tree[u->id];
        const Tree both = {t->ops + whole->ops, t->leaves + whole->leaves - 1};
        if (both.ops > LOOP_OPS || both.leaves > LOOP_LEAVES)
            continue;
        tree[u->id] = both;
        node_set_int(g, n, "inline", 1);
    }
}

/* ------------------------------------------------------------------------------- the pass */

static bool try(Graph *g, Node *n)
{
    if (node_is(n, "max_pool"))
        return swap_pool(g, n) || absorb_pool(g, n);
    if (node_is(n, "bias"))
        return absorb_bias(g, n);
    if (n->op->flags & OP_ELEMENTWISE && n->nin == 1 && elementwise_act(n->op))
        return absorb_act(g, n);
    if (n->op->flags & OP_ELEMENTWISE && n->nin == 2 && elementwise_mask(n->op))
        return absorb_mask(g, n);
    return false;
}

void pass_fuse(Graph *g, const Options *o, Diag *d)
{
    bool again = true;

    /* an activation moves into its conv only after the pool between them has: pools first */
    for (int stage = 0; stage < 2; stage++)
        for (again = true; again;) {
            again = false;
            for (int i = 0; i < g->nnode; i++) {
                Node *n = g->node[i];
                if (stage == 0 && !node_is(n, "max_pool") && !node_is(n, "bias"))
                    continue;
                if (try(g, n)) {
                    graph_sort(g);
                    pass_dce(g, o, d);
                    again = true;
                }
            }
        }
    inline_chains(g);
}
