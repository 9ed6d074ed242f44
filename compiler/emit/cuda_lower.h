/* cuda_lower.h -- from nodes to calls of a GPU's program: to the end of Writer.list
 * (cuda_call.h). */
#ifndef CUDA_LOWER_H
#define CUDA_LOWER_H
#include "emit/cuda_call.h"

void cuda_lower(Writer *w, const Node *n);     /* no calls where another node's call computes n */
void cuda_lower_metric(Writer *w, int i);      /* metric i: from its value to the host */

void loop_lower(Writer *w, const Node *n);           /* loop.c: elementwise */
void loop_lower_sum(Writer *w, const Node *n);
void move_lower(Writer *w, const Node *n);           /* move.c */

#endif
