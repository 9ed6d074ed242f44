/* norm.h -- what layer_norm and group_norm share. */
#ifndef NORM_H
#define NORM_H
#include "ops/op.h"

/* Scale or shift of a normalisation, `count` numbers v along `axis` ("F", "C"): the parameter
 * path.name, or a constant if it is not learned.  NULL after an error. */
Node *norm_vector(Graph *g, Diag *d, const char *path, const char *name, const char *axis,
                  int64_t count, double v, bool learned, Span at);

#endif
