/* loss.h -- functions that all losses share: one number for each sample from vectors of k, and
 * its gradient. */
#ifndef LOSS_H
#define LOSS_H
#include "ops/op.h"

bool loss_result(Node *n, Diag *d); /* one number for each sample of in[0] */
/* The same for a loss of x = in[0] and a target in[1] of the same shape; reports other shapes. */
bool loss_of_numbers(Node *n, Diag *d);
/* The arguments of such a loss, and of its gradient, the op NAME_dx. */
/* clang-format off */
#define LOSS_NUMBERS                                                                               \
    {"x", ARG_TENSOR, NULL, "the output"}, {"t", ARG_TENSOR, NULL, "the target, of the same shape"}
#define LOSS_NUMBERS_DX                                                                            \
    {"x", ARG_TENSOR, NULL, "what the network says"},                                              \
    {"t", ARG_TENSOR, NULL, "what it should say"},                                                 \
    {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"}
/* clang-format on */
/* Adds the result of the op NAME_dx as gradient of x, and the negative result as gradient of t. */
void loss_numbers_gradient(Grad *gr, Node *n, Node *dy);
/* Describes the call of the kernel that is named like the op. */
void loss_kernel(const Node *n, Call *c);
/* Price: an exponential for each number; the largest number, a sum and a logarithm for each row. */
void loss_price(const Node *n, const Market *m, Price *p);
/* Describes the call fn(out, all inputs, n, k): in[0] has k numbers for each sample. */
void loss_call(const Node *n, Call *c, const char *fn);
/* The same for labels: fn for a class per sample; fn_each(out, all inputs, n, t, k) for a class per
 * position. */
void loss_call_labelled(const Node *n, Call *c, const char *fn);
/* The same with weights of classes: fn_each, also for a class per sample, where t is 1.  The last
 * argument is RT_WEIGHTS(weights). */
void loss_call_weighted(const Node *n, Call *c, const char *fn, const char *weights);

#endif
