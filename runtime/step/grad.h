/* grad.h -- gradient buffers between the sums and the update: added over groups, clipped by their
 * norm. */
#ifndef GRAD_H
#define GRAD_H
#include "base/threads.h"
#include "comm/tree.h"
#include "rt.h"

int64_t grad_blocks(const RtProgram *p); /* of clipping: how many partial sums there are */

/* Adds the buffers of n consecutive nodes, `next` bytes apart, into the first, in the order of the
 * tree. */
void grad_tree(const RtProgram *p, Pool *pool, char *grad, int64_t next, const Node *node, int n);

/* Scales all sums by limit / norm where their common Euclidean norm is larger than limit (Pascanu
 * et al. 2013). partial: room for grad_blocks(p) doubles. */
void grad_clip(const RtProgram *p, Pool *pool, char *grad, double *partial, double limit);

#endif
