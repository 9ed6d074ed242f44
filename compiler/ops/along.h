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

/* The index of a dimension; a negative number counts from the end. */
static inline int along_index(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

/* The dimension `axis` of in[0]. */
static inline int along_axis(const Node *n)
{
    return along_index(node_int(n, "axis"), n->in[0]->shape.rank);
}

/* The place of the dimension `axis` in `samples` samples of the shape x. */
static inline Along along_of(const Shape *x, int axis, int64_t samples)
{
    Along a = {samples, x->dim[axis], 1};
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? &a.outer : &a.inner) *= i == axis ? 1 : x->dim[i];
    return a;
}

static inline Along along(const Node *n, const Call *c)
{
    return along_of(&n->in[0]->shape, along_axis(n), c->n);
}

#endif
