/* loss_scale.c -- the loss's gradient, times the scale that keeps small numbers behind it from vanishing in f16.
 *
 *   y = s x, of each sample        s lies on the device and changes from step to step (runtime/cuda/loss_scale.cuh)
 *
 * Made by pass gradient with --dtype f16.  All that is behind it in the backward pass is linear in it, so that sums over samples
 * divided by s are the gradients.
 * Source: Micikevicius et al. 2018, "Mixed precision training", section 3.2.
 */
#include "ops/check.h"

static bool shape(Node *n, Diag *d)
{
    return check_result(n, n->in[0]->shape, d);
}

static void kernel(const Node *n, Call *c)
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
                             .shape = shape,
                             .kernel = kernel},
                            {0}};
