/* sum_to.c -- undoes broadcasting in a gradient: sums over what was repeated.
 *
 *   attributes: shape, batched = of the result;  align = "first" when the result keeps the leading dimensions (bias),
 *   else dimensions are matched from the right, 1 or a missing one having been repeated (numpy's rule)
 *
 * A result that is not batched from one that is: a sum over the samples, too.
 */
#include "ops/check.h"

static bool shape(Node *n, Diag *d)
{
    const Attr *s = node_attr(n, "shape");
    return s && check_result(n, shape_make(node_int(n, "batched") != 0, NULL, s->list, s->nlist), d);
}

/* The one form that has a kernel: the gradient of a bias, channels innermost.  Emitters write the loops of the others. */
static void kernel(const Node *n, Call *c)
{
    const Node *dy = n->in[0];
    const bool channels = n->shape.rank == 1 && dy->shape.rank >= 1 && !n->shape.batched &&
                          dy->shape.batched && n->shape.dim[0] == dy->shape.dim[0] &&
                          (dy->shape.rank == 1 || (node_attr(n, "align") && dy->layout == LAYOUT_LAST));
    if (c->plain || !channels)
        return;
    call_fn(c, "channel_sum");
    call_out(c, n);
    call_in(c, dy);
    call_text(c, "%lld, %lld", (long long)(c->n * (shape_count(&dy->shape) / n->shape.dim[0])),
              (long long)n->shape.dim[0]);
}

const Op op_sum_to[] = {
    {.name = "sum_to", .brief = "sums a gradient over what broadcasting had repeated",
     .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the broadcast value"},
             {"shape", ARG_INTS, NULL, "of the result"},
             {"batched", ARG_INT, NULL, "the result has one value a sample"},
             {"align", ARG_STRING, "none", "\"first\": the result keeps the leading dimensions"}},
     .flags = OP_HIDDEN | OP_SUM, .shape = shape, .kernel = kernel},
    {0}};
