/* side.c -- what a node makes besides its value, as a node, so that memory is planned for it.
 *
 *   side(conv2d with attribute pool)         u8, shape of the result: which of each four won
 *   side(conv2d_pool_dw with attribute db)   (O): the gradient of the bias, summed on the way
 */
#include "ops/check.h"

static bool shape(Node *n, Diag *d)
{
    const Node *maker = n->in[0];
    const bool index = node_is(maker, "conv2d");
    if (!check_result(n, index ? maker->shape : shape_make(false, "O", maker->shape.dim, 1), d))
        return false;
    n->dtype = index ? DT_U8 : DT_REAL;
    return index || node_is(maker, "conv2d_pool_dw");
}

const Op op_side[] = {{.name = "side",
                       .brief = "what a node makes besides its value",
                       .arg = {{"maker", ARG_TENSOR, NULL, "the node"}},
                       .flags = OP_HIDDEN,
                       .shape = shape},
                      {0}};
