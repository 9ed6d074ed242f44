/* grad.h -- state of pass gradient for the rules of ops: the graph, and a sum of contributions
 * for each value. */
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
