/* side.c -- what a node makes besides its value, as a node, so that memory is planned for it.
 *
 *   side(conv2d with attribute pool)   u8, shape of the result: which of each four won
 */
#include "ops/check.h"

static bool shape(Node *n, Diag *d)
{
    const Node *maker = n->in[0];
    if (!check_result(n, maker->shape, d))
        return false;
    n->dtype = DT_U8;
    return node_is(maker, "conv2d");
}

const Op op_side[] = {{.name = "side",
                       .brief = "what a node makes besides its value",
                       .arg = {{"maker", ARG_TENSOR, NULL, "the node"}},
                       .flags = OP_HIDDEN,
                       .shape = shape},
                      {0}};
