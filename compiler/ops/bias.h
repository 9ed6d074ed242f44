/* bias.h -- the learned vector that layers add to their result. */
#ifndef BIAS_H
#define BIAS_H
#include "ops/op.h"

/* bias(x, parameter path.bias), a number for each index of x's first dimension.  NULL after
 * reporting. */
Node *bias_build(Graph *g, Node *x, const char *path, Span at, Diag *d);

#endif
