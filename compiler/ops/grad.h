/* grad.h -- what pass gradient lends an op's gradient rule: the graph, and a sum of contributions for every value. */
#ifndef GRAD_H
#define GRAD_H
#include "ops/op.h"

struct Grad {
    Graph *graph;
    int    count;                                     /* values that can have a gradient: ids below count */
    Node **sum;                                       /* by id: the contributions so far, added in order of arrival; NULL = none */
};

Grad *grad_new(Graph *g);
Node *grad_of(const Grad *gr, const Node *x);         /* d loss / d x as known by now, NULL if loss does not depend on x */

#endif
