/* pooling.h -- functions that max_pool and avg_pool share: the shape, and the literal for their
 * kernels. */
#ifndef POOLING_H
#define POOLING_H
#include "ops/op.h"

#define POOLING_ARGS                                                                               \
    {"x", ARG_TENSOR, NULL, "images (N, C, H, W)"},                                                \
        {"kernel", ARG_PAIR, NULL, "rows and columns of the window, at least 1"},                  \
        {"stride", ARG_PAIR, "none",                                                               \
         "pixels from one window to the next, at least 1; default: the kernel"},                   \
    {                                                                                              \
        "pad", ARG_PAD, "0", "rows and columns of padding, 0 to kernel - 1; \"same\" or \"valid\"" \
    }

bool pooling_shape(Node *n, Diag *d);    /* (C, H', W'); each window must contain a pixel */
bool pooling_shape_dx(Node *n, Diag *d); /* the shape of x, from attribute x_shape */
Cost pooling_cost(const Node *n);
/* Adds the sizes (Pool) to the call.  y is the result or its gradient, which may lie within
 * another value. */
void pooling_literal(const Node *n, const Node *y, Call *c);

#endif
