/* move.h -- operations that only put numbers elsewhere: concat, slice, pad, transpose.
 *
 *   gather    y[i0, i1, ..] = x[j0, j1, ..]      j[axis[d]] = start[axis[d]] + i[d]
 *   scatter   y[start + i] = x[i], for all of x; where `fill` is set, the rest of y gets that number first
 *
 * Op.move says it for one input; the emitter writes the loops, in whatever order both lie in memory.
 */
#ifndef MOVE_H
#define MOVE_H
#include "ops/op.h"
#include "ops/price.h"

struct Move {
    bool    scatter;
    bool    filled;                                   /* scatter: x does not cover y */
    double  fill;
    int     axis[SHAPE_MAX];                          /* gather: the dimension of x that dimension d of y follows */
    int64_t start[SHAPE_MAX];                         /* gather: by dimension of x; scatter: of y */
};

/* Op.price of them: every number of the smaller side is read and written once, what is filled written. */
void move_price(const Node *n, const Market *m, Price *p);

#endif
