/* loss.h -- what the losses share: a number a sample from vectors of k, and its gradient. */
#ifndef LOSS_H
#define LOSS_H
#include "ops/op.h"

bool loss_result(Node *n, Diag *d);                   /* one number a sample of in[0] */
/* fn(out, every input, n, k): k numbers a sample in in[0]. */
void loss_call(const Node *n, Call *c, const char *fn);

#endif
