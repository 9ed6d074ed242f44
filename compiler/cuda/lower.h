/* lower.h -- from nodes to calls of a GPU's program: to the end of Writer.list
 * (call.h). */
#ifndef CUDA_LOWER_H
#define CUDA_LOWER_H
#include "cuda/call.h"

void cuda_lower(Writer *w, const Node *n);      /* no calls where another node's call computes n */
void cuda_lower_node(Writer *w, const Node *n); /* the same, and the metric that n is */

void loop_lower(Writer *w, const Node *n); /* loop.c: elementwise */
void loop_lower_sum(Writer *w, const Node *n);
void move_lower(Writer *w, const Node *n); /* move.c */

/* Calls that write 0 to the sums of a phase that several calls add to; without `backward`, to those
 * of the forward pass. */
void cuda_clear_sums(Writer *w, int phase, bool backward);
/* Whether all nodes have a CUDA form; reports each node without one at its line. */
bool cuda_able(const Graph *train, const Graph *test, Diag *d);

#endif
