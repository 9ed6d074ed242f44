/* along.h -- ops that work along one dimension of their operand: its place in memory.
 *
 * A value is (outer, K, inner): K numbers of the dimension, `inner` apart, for each of the outer x
 * inner places.  The batch belongs to `outer`.
 */
#ifndef ALONG_H
#define ALONG_H
#include "ops/op.h"

typedef struct Along {
    int64_t outer, k, inner;
} Along;

/* The dimension `axis` of in[0]; a negative number counts from the end. */
static inline int along_axis(const Node *n)
{
    const int64_t a = node_int(n, "axis");
    return (int)(a < 0 ? a + n->in[0]->shape.rank : a);
}

static inline Along along(const Node *n, const Call *c)
{
    const Shape *x = &n->in[0]->shape;
    const int axis = along_axis(n);
    Along a = {c->n, x->dim[axis], 1};
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? &a.outer : &a.inner) *= i == axis ? 1 : x->dim[i];
    return a;
}

#endif
