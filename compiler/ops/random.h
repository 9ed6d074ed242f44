/* random.h -- ops with random numbers: dropout and normal_like. */
#ifndef RANDOM_H
#define RANDOM_H
#include "ops/op.h"

/* Sets the attribute `purpose` of a new node of this op: the number of such nodes that the graph
 * already has.  The counter of its random numbers contains it, so no two nodes share numbers. */
static inline void random_set_purpose(Graph *g, Node *n, const Op *op)
{
    int before = 0;
    for (int i = 0; i < g->nnode; i++)
        before += g->node[i]->op == op && g->node[i] != n;
    node_set_int(g, n, "purpose", before);
}

#endif
