/* epilogue.c -- bias and relu join the product or convolution before them, as cuBLASLt and cuDNN compute all three in one.
 *
 *   relu(bias(dense(x, w), b))   ->   dense(x, w, b){act = relu}             likewise conv2d
 *
 * For --kernels=cudnn alone, where pass fuse, whose patterns are the processor's kernels', does not run.  As there, only what nobody else
 * reads is joined.  Other activations stay: cuBLASLt's gelu is another (by tanh), and it has no tanh.  What of it cuDNN has no engine for is a
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

void pass_epilogue(Graph *g, const Options *o, Diag *d)
{
    if (!o->libraries)
        return;
    Readers *r = readers_new(g);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i], *next = takes_more(n) ? readers_only(r, n) : NULL;
        if (next && node_is(next, "bias") && next->loop == n->loop) {
            n = join(g, r, n, next, (Node *[]){n->in[0], n->in[1], next->in[1]}, 3);
            next = readers_only(r, n);
        }
        if (next && node_is(next, "relu") && next->loop == n->loop) {
            n = join(g, r, n, next, n->in, n->nin);
            node_set_string(g, n, "act", "relu");
        }
    }
    graph_sort(g);
    pass_dce(g, o, d);
}
