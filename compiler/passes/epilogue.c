/* epilogue.c -- bias and relu join the product or convolution before them, as cuBLASLt and cuDNN compute all three in one.
 *
 *   relu(bias(dense(x, w), b))        ->   dense(x, w, b){act = relu}              likewise conv2d
 *   relu(bias(conv2d(x, w), b) + r)   ->   conv2d(x, w, b, r){act = relu, residual}
 *   batch_norm_test(conv2d(x, w) ..)  ->   conv2d(x, batch_fold(w, ..), batch_fold_bias(..))    as pass fuse does
 *   relu_d(conv2d_dx(w, dy), y)       ->   conv2d_dx(w, dy, y){mask = relu}
 *   relu_d(dense_dx(w, dy), y)        ->   dense_dx(w, dy, y, side(y)){mask = relu}    where y = dense(..){act = relu}
 *   relu(batch_norm(x, ...) + r)      ->   batch_norm(x, ..., r){act = relu}       a kernel of ours
 *
 * or any of it alone.
 *
 * For --kernels=cudnn alone, where pass fuse, whose patterns are the processor's kernels', does not run.  As there, only what nobody else
 * reads is joined.  The side of a dense layer is a bit a number, whether the relu was open: its product writes it, and cuBLASLt undoes
 * a relu by such bits alone.  Other activations stay: cuBLASLt's gelu is another (by tanh), and it has no tanh.  What of it cuDNN has no engine for is a
 * kernel of ours behind the convolution: the emitter's to decide, once its graphs are planned (emit/cuda_graph.c).
 */
#include "ir/readers.h"
#include "ops/op.h"
#include "passes/pass.h"

/* `old` with these inputs, (x, w, b?), in its place, which its one reader `last` makes unnecessary with itself. */
static Node *join(Graph *g, Readers *r, Node *old, Node *last, Node *const *in, int nin)
{
    Node *n = graph_add(g, old->op, in, nin, old->span);

    readers_stand_in(r, old, n);
    node_copy_attrs(g, n, old);
    n->shape = old->shape, n->dtype = old->dtype;
    n->name = old->name, n->param = old->param;
    n->needs_grad = old->needs_grad, n->backward = old->backward;
    readers_replace(r, last, n);
    readers_retire(r, last);
    return n;
}

static bool takes_more(const Node *n)
{
    return node_is(n, "dense") || node_is(n, "conv2d");
}

static bool is_norm(const Node *n)
{
    return node_is(n, "batch_norm") || node_is(n, "batch_norm_test");
}

/* Only what is followed by one thing, in its loop. */
static Node *next_of(const Readers *r, const Node *n)
{
    Node *next = readers_only(r, n);
    return next && next->loop == n->loop ? next : NULL;
}

static Node *join_relu(Graph *g, Readers *r, Node *n)
{
    Node *next = next_of(r, n);
    if (!next || !node_is(next, "relu"))
        return n;
    n = join(g, r, n, next, n->in, n->nin);
    node_set_string(g, n, "act", "relu");
    return n;
}

/* The other operand of an addition of n to something of its shape; NULL: next is none. */
static Node *added(const Node *next, const Node *n)
{
    if (!next || !node_is(next, "add") || next->in[0] == next->in[1])
        return NULL;
    Node *r = next->in[next->in[0] == n];
    return !node_is(r, "const") && shape_same(&r->shape, &n->shape) ? r : NULL;
}

/* With what is added behind n as its last input. */
static Node *join_added(Graph *g, Readers *r, Node *n)
{
    Node *next = next_of(r, n), *other = added(next, n), *in[6];
    if (!other)
        return n;
    for (int i = 0; i < n->nin; i++)
        in[i] = n->in[i];
    in[n->nin] = other;
    n = join(g, r, n, next, in, n->nin + 1);
    node_set_int(g, n, "residual", 1);
    return n;
}

static void join_norm(Graph *g, Readers *r, Node *n)
{
    join_relu(g, r, join_added(g, r, n));
}

/* A node of `op` that has no predecessor, with the attributes of `like`. */
static Node *made(Graph *g, Readers *r, const char *op, Node *const *in, int nin, const Node *like)
{
    Node *n = graph_add(g, op_find(op), in, nin, like->span);

    readers_add(r, n);
    node_copy_attrs(g, n, like);
    n->shape = in[0]->shape, n->dtype = like->dtype, n->name = like->name;
    return n;
}

/* In evaluation batch_norm multiplies and adds constants: the filters and the bias take them up. */
static Node *join_fold(Graph *g, Readers *r, Node *n)
{
    Node *b = next_of(r, n), *scale, *var;
    if (!b || !node_is(b, "batch_norm_test") || !n->in[1]->param)
        return n;
    scale = b->in[1], var = b->in[4];
    Node *w = made(g, r, "batch_fold", (Node *[]){n->in[1], scale, var}, 3, b);
    Node *with[5] = {scale, b->in[2], b->in[3], var, n->nin > 2 ? n->in[2] : NULL};
    Node *bias = made(g, r, "batch_fold_bias", with, n->nin > 2 ? 5 : 4, b);
    return join(g, r, n, b, (Node *[]){n->in[0], w, bias}, 3);
}

static void join_product(Graph *g, Readers *r, Node *n)
{
    Node *next = next_of(r, n);
    if (next && node_is(next, "bias"))
        n = join(g, r, n, next, (Node *[]){n->in[0], n->in[1], next->in[1]}, 3);
    if (node_is(n, "conv2d"))
        n = join_added(g, r, join_fold(g, r, n));
    join_relu(g, r, n);
}

static void join_dx(Graph *g, Readers *r, Node *n)
{
    Node *next = next_of(r, n);
    if (!next || !node_is(next, "relu_d") || next->in[0] != n || next->in[1] == n)
        return;
    n = join(g, r, n, next, (Node *[]){n->in[0], n->in[1], next->in[1]}, 3);
    node_set_string(g, n, "mask", "relu");
}

static void join_dense_dx(Graph *g, Readers *r, Node *n)
{
    Node *next = next_of(r, n);
    if (!next || !node_is(next, "relu_d") || next->in[0] != n)
        return;
    Node *y = next->in[1];
    if (n->loop || y->loop || !node_is(y, "dense") || !node_attr(y, "act"))
        return;
    Node *side = op_make(g, "side", y->span, 1, y);
    readers_add(r, side);
    n = join(g, r, n, next, (Node *[]){n->in[0], n->in[1], y, side}, 4);
    node_set_string(g, n, "mask", "relu");
}

void pass_epilogue(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    Readers *r = readers_new(g);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        if (takes_more(n))
            join_product(g, r, n);
        else if (is_norm(n) && !node_attr(n, "act"))
            join_norm(g, r, n);
        else if (node_is(n, "conv2d_dx") && n->nin == 2)
            join_dx(g, r, n);
        else if (node_is(n, "dense_dx") && n->nin == 2)
            join_dense_dx(g, r, n);
    }
    graph_sort(g);
}
