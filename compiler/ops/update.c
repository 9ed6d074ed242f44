/* update.c -- one optimizer step of one parameter, node.param, from its gradient.
 *
 *   in = [parameter, gradient], both in the parameter's file shape
 *   decay: weight decay applies
 *
 * Emitters choose the kernel; runtime/cpu/update.h has the formulas.
 */
#include "ops/check.h"

static bool update_shape(Node *n, Diag *d)
{
    return shape_same(&n->in[0]->shape, &n->in[1]->shape) && check_result(n, n->in[0]->shape, d);
}

const Op op_update[] = {{.name = "update",
                         .brief = "the optimizer's step for one parameter",
                         .arg = {{"w", ARG_TENSOR, NULL, "parameter"},
                                 {"dw", ARG_TENSOR, NULL, "gradient of the loss"}},
                         .flags = OP_HIDDEN | OP_UPDATE | OP_ROOT,
                         .shape = update_shape},
                        {0}};
