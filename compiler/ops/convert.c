/* convert.c -- converts f32 to bf16 or f16, rounded to nearest, or back.  Node.half is the type
 * of the result.  Pass narrow makes at most one convert of a value, and all readers of the other
 * type share it.  The convert of a parameter runs once per step.
 */
#include "ops/check.h"

static void convert_kernel(const Node *n, Call *c)
{
    const int64_t count = shape_count(&n->shape) * (n->shape.batched ? c->n : 1),
                  lanes = node_lanes(n);
    c->parts = true;
    call_fn(c, lanes ? "convert_padded" : "convert");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_text(c, "%lld", (long long)(lanes ? node_reals(n) : count));
    if (lanes)
        call_text(c, "%lld, %lld", (long long)n->shape.dim[1], (long long)lanes);
}

const Op op_convert[] = {{.name = "convert",
                          .brief = "the same numbers, stored in another type",
                          .arg = {{"x", ARG_TENSOR, NULL, "any value"}},
                          .flags = OP_HIDDEN | OP_CAST | OP_KEEPS_LAYOUT,
                          .shape = check_like_first,
                          .kernel = convert_kernel},
                         {0}};
