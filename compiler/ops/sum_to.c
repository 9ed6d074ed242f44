/* sum_to.c -- sums over repeated dimensions, to undo broadcasting in a gradient.  Reductions
 * (reduce.c) use this op, too; their gradient is dy, repeated.
 *
 *   shape, batched   of the result
 *   align            "first": the result keeps the leading dimensions (bias); else dimensions are
 *                    matched from the right, and the op sums over each dimension that is 1 or
 *                    missing in the result (numpy)
 *
 * If the input is batched and the result is not, the op also sums over samples.  Emitters write the
 * loop.
 */
#include "ops/check.h"

static bool sum_to_shape(Node *n, Diag *d)
{
    const Attr *s = node_attr(n, "shape");
    return s &&
           check_result(n, shape_make(node_int(n, "batched") != 0, NULL, s->list, s->nlist), d);
}

/* Only a sum_to of a reduction has a gradient: its input and its result are batched. */
static void sum_to_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    grad_add(gr, n->in[0],
             op_make(g, "add", n->span, 2, graph_const(g, 0, n->in[0]->shape, n->span), dy));
}

const Op op_sum_to[] = {{.name = "sum_to",
                         .brief = "sums a gradient over what broadcasting had repeated",
                         .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the broadcast value"},
                                 {"shape", ARG_INTS, NULL, "of the result"},
                                 {"batched", ARG_INT, NULL, "the result has one value a sample"},
                                 {"align", ARG_STRING, "none",
                                  "\"first\": the result keeps the leading dimensions"}},
                         .flags = OP_HIDDEN | OP_SUM | OP_REDUCE,
                         .half = HALF_USE_IN,
                         .half_cpu = HALF_USE_IN,
                         .shape = sum_to_shape,
                         .gradient = sum_to_gradient},
                        {0}};
