/* bias.h -- the learned vector that a layer adds to its result. */
#ifndef BIAS_H
#define BIAS_H
#include "ops/op.h"

/* Returns bias(x, parameter path.bias); NULL after an error.  The parameter has one number for each
 * channel of an image, or for each feature of a vector or of a step. */
Node *bias_build(Graph *g, Node *x, const char *path, Span at, Diag *d);

#endif
