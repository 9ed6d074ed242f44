/* bias.h -- the learned vector that a layer adds to its result. */
#ifndef BIAS_H
#define BIAS_H
#include "ops/op.h"

/* Returns bias(x, parameter path.bias) with a number for each index of the first dimension of x;
 * NULL after an error. */
Node *bias_build(Graph *g, Node *x, const char *path, Span at, Diag *d);

#endif
