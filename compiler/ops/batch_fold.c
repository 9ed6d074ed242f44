/* batch_fold.c -- folds batch_norm into the convolution before it, for evaluation.
 *
 *   batch_norm_test(conv2d(x, w, c), scale, shift, mean, var)  =  conv2d(x, w', b')
 *   s = scale / sqrt(var + epsilon)       w' = w s, each filter by the s of its output channel
 *   b' = shift + (c - mean) s
 *
 *   w, w' (O, I, R, S)                    all others (O); c, the bias of the convolution, is
 *                                         optional
 *
 * Passes fuse and epilogue make these ops.  The ops run once per evaluation batch, before w' is
 * packed, because training has changed the averages since the last evaluation.
 */
#include "ops/check.h"

/* Describes the call without its last two arguments, unit and units: the emitter adds these, and
 * threads divide the filters by them. */
static void batch_fold_kernel_fold(const Node *n, Call *c)
{
    const Shape *w = &n->shape;
    const int64_t lanes = node_lanes(n);
    call_fn(c, lanes ? "batch_fold_padded" : "batch_fold");
    call_out(c, n);
    for (int i = 0; i < n->nin; i++)
        call_in(c, n->in[i]);
    call_text(c, "%.17g", node_float(n, "epsilon"));
    call_text(c, "%lld", (long long)w->dim[0]);
    call_text(c, "%lld", (long long)(node_reals(n) / w->dim[0]));
    if (lanes)
        call_text(c, "%lld, %lld", (long long)w->dim[1], (long long)lanes);
}

static void batch_fold_kernel_bias(const Node *n, Call *c)
{
    call_fn(c, "batch_fold_bias");
    call_out(c, n);
    for (int i = 0; i < 4; i++)
        call_in(c, n->in[i]);
    call_in(c, n->nin > 4 ? n->in[4] : NULL);
    call_text(c, "%.17g", node_float(n, "epsilon"));
    call_text(c, "%lld", (long long)n->shape.dim[0]);
}

const Op op_batch_fold[] = {{.name = "batch_fold",
                             .brief = "filters, multiplied by the factors of batch_norm",
                             .arg = {{"w", ARG_TENSOR, NULL, "filters"},
                                     {"scale", ARG_TENSOR, NULL, "of batch_norm"},
                                     {"var", ARG_TENSOR, NULL, "running variance"}},
                             .flags = OP_HIDDEN | OP_PACK | OP_CAST,
                             .half = HALF_USE_WEIGHTS,
                             .shape = check_like_first,
                             .kernel = batch_fold_kernel_fold},
                            {.name = "batch_fold_bias",
                             .brief = "bias of a convolution with filters from batch_fold",
                             .arg = {{"scale", ARG_TENSOR, NULL, "of batch_norm"},
                                     {"shift", ARG_TENSOR, NULL, "of batch_norm"},
                                     {"mean", ARG_TENSOR, NULL, "running mean"},
                                     {"var", ARG_TENSOR, NULL, "running variance"},
                                     {"bias", ARG_TENSOR, "none", "of the convolution"}},
                             .flags = OP_HIDDEN,
                             .half = HALF_USE_WEIGHTS,
                             .shape = check_like_first,
                             .kernel = batch_fold_kernel_bias},
                            {0}};
