/* loss_scale.c -- multiplies the gradient of the loss by a scale, so that small gradients do not
 * vanish in f16.
 *
 *   y = s x for each sample        s is stored on the device and changes between steps
 *                                  (runtime/cuda/loss_scale.cuh)
 *
 * Pass gradient makes this op with --dtype f16.  The rest of the backward pass is linear in s, so a
 * gradient is the sum over samples, divided by s.  Source: Micikevicius et al. 2018, "Mixed
 * precision training", section 3.2.
 */
#include "ops/check.h"

static void loss_scale_kernel(const Node *n, Call *c)
{
    call_fn(c, "loss_scale");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_given(c, CALL_RT);
    call_text(c, "%lld", (long long)(shape_count(&n->shape) * c->n));
}

const Op op_loss_scale[] = {{.name = "loss_scale",
                             .brief = "the loss's gradient, times the scale of a step in f16",
                             .arg = {{"x", ARG_TENSOR, NULL, "the gradient of the loss"}},
                             .flags = OP_HIDDEN,
                             .shape = check_like_first,
                             .kernel = loss_scale_kernel},
                            {0}};
