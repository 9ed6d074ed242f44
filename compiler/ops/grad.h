/* grad.h -- the state of pass gradient that gradient rules use: the graph, and the sum of gradients
 * of each value. */
#ifndef GRAD_H
#define GRAD_H
#include "ops/op.h"

struct Grad {
    Graph *graph;
    int count;  /* only nodes with ids below count can have a gradient */
    Node **sum; /* by id: the sum so far, or NULL */
};

Grad *grad_new(Graph *g);
Node *grad_of(const Grad *gr, const Node *x); /* d loss / d x so far, or NULL */

#endif
