/* grad.h -- what pass gradient lends an op's gradient rule: the graph, and a sum of contributions
 * for every value. */
#ifndef GRAD_H
#define GRAD_H
#include "ops/op.h"

struct Grad {
    Graph *graph;
    int    count;                                     /* only ids below it can have a gradient */
    Node **sum;                                       /* by id: what has arrived, or NULL */
};

Grad *grad_new(Graph *g);
Node *grad_of(const Grad *gr, const Node *x);         /* d loss / d x as known by now, or NULL */

#endif
