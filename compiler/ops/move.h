/* move.h -- operations that only move numbers: concat, slice, pad, transpose.
 *
 *   gather    y[i0, i1, ..] = x[j0, j1, ..]      j[axis[d]] = start[axis[d]] + i[d]
 *   scatter   y[start + i] = x[i], for all of x; if `filled` is set, y is filled with `fill` first
 *
 * Op.move describes the move of one input; the emitter writes the loops for the layouts of both
 * values.
 */
#ifndef MOVE_H
#define MOVE_H
#include "ops/op.h"
#include "ops/price.h"

struct Move {
    bool scatter;
    bool filled; /* scatter: x does not cover y */
    double fill;
    int axis[SHAPE_MAX];      /* gather: axis[d] is the dimension of x for dimension d of y */
    int64_t start[SHAPE_MAX]; /* first index by dimension: of x for gather, of y for scatter */
};

/* Op.price of these operations: each number of the smaller side is read once and written once, and
 * each filled number is written once. */
void move_price(const Node *n, const Market *m, Price *p);

#endif
