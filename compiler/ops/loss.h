/* loss.h -- functions that all losses share: one number for each sample from vectors of k, and
 * its gradient. */
#ifndef LOSS_H
#define LOSS_H
#include "ops/op.h"

bool loss_result(Node *n, Diag *d); /* one number for each sample of in[0] */
/* The same for a loss of x = in[0] and a target in[1] of the same shape; reports other shapes. */
bool loss_of_numbers(Node *n, Diag *d);
/* Adds dx, the gradient of in[0] by the op `dx`, and -dx for the target. */
void loss_gradient(Grad *gr, Node *n, Node *dx);
/* Price: an exponential for each number; the largest number, a sum and a logarithm for each row. */
void loss_price(const Node *n, const Market *m, Price *p);
/* The call fn(out, all inputs, n, k): in[0] has k numbers for each sample. */
void loss_call(const Node *n, Call *c, const char *fn);
/* The same for labels: fn for a class per sample; fn_each(out, all inputs, n, t, k) for a class per
 * position. */
void loss_call_labelled(const Node *n, Call *c, const char *fn);

#endif
