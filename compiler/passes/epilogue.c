/* epilogue.c -- merges bias, addition and relu into the product before them: cuBLASLt and cuDNN
 * compute all of them in one call.
 *
 *   relu(bias(dense(x, w), b))        ->  dense(x, w, b){act = relu}           likewise conv2d
 *   relu(bias(conv2d(x, w), b) + r)   ->  conv2d(x, w, b, r){act = relu, residual}
 *   batch_norm_test(conv2d(x, w) ..)  ->  conv2d(x, batch_fold(w, ..), batch_fold_bias(..))
 *   relu_d(conv2d_dx(w, dy), y)       ->  conv2d_dx(w, dy, y){mask = relu}
 *   relu_d(dense_dx(w, dy), y)        ->  dense_dx(w, dy, y, side(y)){mask = relu}
 *                                         if y = dense(..){act = relu}
 *   relu(batch_norm(x, ...) + r)      ->  batch_norm(x, ..., r){act = relu}    a kernel of Tenon
 *
 * Each part is optional.  An operation is merged only if nothing else reads its input.
 *
 * This pass runs with --kernels=cudnn, in place of pass fuse, which has the patterns of the kernels
 * for processors.  The ops relu, its gradient and the addition are tested by name, because the
 * libraries offer exactly these epilogues.  cuBLASLt has no epilogue tanh, and its gelu is another
 * function (the approximation by tanh).  The side of a dense layer has one bit for each number; the
 * bit is 1 if relu passed the number.  The product writes these bits, and cuBLASLt needs them for
 * the gradient of the relu.  If cuDNN has no engine for an epilogue, a kernel of Tenon computes the
 * epilogue after the convolution; cuda/graph.c decides this when it plans the graphs of cuDNN.
 */
#include "ir/readers.h"
#include "ops/op.h"
#include "passes/join.h"
#include "passes/pass.h"

static bool takes_more(const Node *n)
{
    return n->op->takes & EPILOGUE_BIAS;
}

static bool is_norm(const Node *n)
{
    return n->op->takes & EPILOGUE_RESIDUAL;
}

/* The only reader of n, if it is in the same loop; else NULL. */
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
    n = join_reader(g, r, n, next, n->in, n->nin);
    node_set_string(g, n, "act", "relu");
    return n;
}

/* The other operand, if `next` adds n and a value of the same shape; else NULL. */
static Node *other_term(const Node *next, const Node *n)
{
    if (!next || !node_is(next, "add") || next->in[0] == next->in[1])
        return NULL;
    Node *r = next->in[next->in[0] == n];
    return r->op->leaf != LEAF_CONST && shape_same(&r->shape, &n->shape) ? r : NULL;
}

/* Merges an addition that reads n into n: the other operand becomes the last input. */
static Node *join_added(Graph *g, Readers *r, Node *n)
{
    Node *next = next_of(r, n), *other = other_term(next, n), *in[6];
    if (!other)
        return n;
    for (int i = 0; i < n->nin; i++)
        in[i] = n->in[i];
    in[n->nin] = other;
    n = join_reader(g, r, n, next, in, n->nin + 1);
    node_set_int(g, n, "residual", 1);
    return n;
}

/* Folds a batch_norm_test that reads n into n, if possible.  Returns the resulting node. */
static Node *join_fold(Graph *g, Readers *r, Node *n)
{
    Node *b = next_of(r, n);
    Node *folded = b && b->op->epilogue == EPILOGUE_NORM ? join_norm(g, r, n, b) : NULL;
    return folded ? folded : n;
}

static void join_product(Graph *g, Readers *r, Node *n)
{
    Node *next = next_of(r, n);
    if (next && next->op->epilogue == EPILOGUE_BIAS)
        n = join_reader(g, r, n, next, (Node *[]){n->in[0], n->in[1], next->in[1]}, 3);
    if (n->op->takes & EPILOGUE_NORM)
        n = join_added(g, r, join_fold(g, r, n));
    join_relu(g, r, n);
}

/* The only reader of n, if it is the gradient of a relu for which n is the gradient of its result;
 * else NULL. */
static Node *mask_of(const Readers *r, const Node *n)
{
    Node *next = next_of(r, n);
    return next && node_is(next, "relu_d") && next->in[0] == n ? next : NULL;
}

static void join_dx(Graph *g, Readers *r, Node *n)
{
    Node *next = mask_of(r, n);
    if (!next || next->in[1] == n)
        return;
    n = join_reader(g, r, n, next, (Node *[]){n->in[0], n->in[1], next->in[1]}, 3);
    node_set_string(g, n, "mask", "relu");
}

static void join_dense_dx(Graph *g, Readers *r, Node *n)
{
    Node *next = mask_of(r, n);
    if (!next)
        return;
    Node *y = next->in[1];
    if (n->loop || y->loop || !op_computes(y, PRODUCT_DENSE, ROLE_Y) || !node_attr(y, "act"))
        return;
    Node *side = op_make(g, "side", y->span, 1, y);
    readers_add(r, side);
    n = join_reader(g, r, n, next, (Node *[]){n->in[0], n->in[1], y, side}, 4);
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
            join_relu(g, r, join_added(g, r, n));
        else if (op_computes(n, PRODUCT_CONV, ROLE_DX) && n->nin == 2)
            join_dx(g, r, n);
        else if (op_computes(n, PRODUCT_DENSE, ROLE_DX) && n->nin == 2)
            join_dense_dx(g, r, n);
    }
    graph_sort(g);
}
