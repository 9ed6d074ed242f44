/* step_price.h -- prices of the calls of a training step. */
#ifndef STEP_PRICE_H
#define STEP_PRICE_H
#include "ops/price.h"

/* The price of all calls of one step that compute n: one call in phase prepare, else one per
 * chunk. */
Price step_price(const Graph *g, const Node *n, const Options *o);

/* The price of a sum over slices and shards, with its update.  from_grad: only of the update, from
 * a reduced sum. */
Price step_price_sum(const Graph *g, const Sum *s, bool from_grad, const Options *o);

/* Whether the call of n writes the sum of its slice, which then needs no clearing.  This is so if a
 * slice is one chunk and no other call adds to the sum: on a processor for gradients of filters, on
 * a GPU for all sums but those in loops and of tables. */
bool step_writes_sum(const Graph *g, const Node *n, const Options *o);

/* The price of clearing the sums of one phase. */
Price step_price_zero(const Graph *g, int phase, const Options *o);

/* Computes the bytes that a phase moves in a step if no cache holds them.  *kept: values that lie
 * outside of the region of a thread, each once; *local: values inside of it, written and read. */
void step_price_moved(const Graph *g, int phase, double *kept, double *local);

/* The price of the calls of a phase prepare, wide or gradient in a step. */
Price step_price_phase(const Graph *g, int phase, const Options *o);

/* Microseconds of a step, all calls and sums, on one nominal core. */
double step_price_all(const Graph *g, const Options *o);

/* The algorithm of n, such as "direct, pooled before tanh"; "" when there is only one. */
const char *step_price_words(Arena *a, const Node *n, const Price *p);

#endif
