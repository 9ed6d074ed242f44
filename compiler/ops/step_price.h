/* step_price.h -- what a training step costs, call by call. */
#ifndef STEP_PRICE_H
#define STEP_PRICE_H
#include "ops/price.h"

/* The price of all calls of one step that compute n: one for what is prepared, else one a chunk. */
Price step_price(const Graph *g, const Node *n, const Options *o);

/* Of adding up a gradient over slices and shards, the update inside; from_grad: of the update from a reduced sum. */
Price step_price_sum(const Graph *g, const Sum *s, bool from_grad, const Options *o);

/* Does n's call write its slice's sum, which need not be cleared then?  Gradients of filters do where a slice is one chunk
 * and nothing else adds to the sum. */
bool step_writes_sum(const Graph *g, const Node *n, const Options *o);

/* Of the zeros that sums begin with, those of one phase. */
Price step_price_zero(const Graph *g, int phase, const Options *o);

/* "direct, pooled before tanh": how n is computed; "" when there is but one way. */
const char *step_price_words(Arena *a, const Node *n, const Price *p);

#endif
