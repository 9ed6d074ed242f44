/* side.c -- what a node makes besides its value, as a node, so that memory is planned for it.
 *
 *   side(conv2d with attribute pool)   u8, shape of the result: which of each four won
 *   side(dense with attribute act)     u8, a bit a number of the result in rows of 16 bytes and more: was the relu open?  (pass epilogue: for a GPU)
 */
#include "ops/check.h"

static bool shape(Node *n, Diag *d)
{
    enum { BITS = 128 }; /* of rows of bits cuBLASLt wants a multiple */
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
                       .brief = "what a node makes besides its value",
                       .arg = {{"maker", ARG_TENSOR, NULL, "the node"}},
                       .flags = OP_HIDDEN,
                       .shape = shape},
                      {0}};
