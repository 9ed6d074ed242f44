/* side.c -- a second result of a node, as a node of its own, so that memory is planned for it.
 *
 *   side(conv2d with attribute pool)   u8, shape of the result: index of the maximum of each four
 *   side(dense with attribute act)     u8, one bit for each number of the result, in rows of at
 *                                      least 16 bytes: whether relu passed the number (pass
 *                                      epilogue: for a GPU)
 */
#include "ops/check.h"

static bool side_shape(Node *n, Diag *d)
{
    enum { BITS = 128 }; /* cuBLASLt needs rows of a multiple of 128 bits */
    const Node *maker = n->in[0];
    Shape s = maker->shape;
    if (node_is(maker, "dense"))
        s.dim[s.rank - 1] = (s.dim[s.rank - 1] + BITS - 1) / BITS * BITS / 8;
    if (!check_result(n, s, d))
        return false;
    n->dtype = DT_U8;
    return node_is(maker, "conv2d") || node_is(maker, "dense");
}

const Op op_side[] = {{.name = "side",
                       .brief = "the second result of a node",
                       .arg = {{"maker", ARG_TENSOR, NULL, "the node"}},
                       .flags = OP_HIDDEN | OP_SIDE,
                       .shape = side_shape},
                      {0}};
