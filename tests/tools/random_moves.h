/* random_moves.h -- rules that move numbers: other shapes, parts, several values as one. */
#ifndef RANDOM_MOVES_H
#define RANDOM_MOVES_H
#include "random_value.h"
#include <string.h>

static bool reshape(Pool *p, Value *y)
{
    const Value *x = any(p);
    int left = size_of(x);
    *y = *x;
    if (x->rank < 1)
        return false;
    if (chance(30)) {
        y->rank = 1, y->dim[0] = left;
        say(y, "flatten(%s)", x->text);
        return true;
    }
    y->rank = from(1, 3);
    for (int i = 0; i < y->rank; i++) {
        int d = i == y->rank - 1 ? left : from(1, 4);
        while (left % d)
            d--;
        y->dim[i] = d;
        left /= d;
    }
    say(y, "reshape(%s, %s)", x->text, list(y->dim, y->rank));
    return true;
}

static bool transpose(Pool *p, Value *y)
{
    static const int order[5][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const Value *x = any(p);
    const int *o = order[x->rank == 2 ? 1 : below(5)];
    if (x->rank < 2)
        return false;
    *y = *x;
    for (int i = 0; i < x->rank; i++)
        y->dim[i] = x->dim[o[i]];
    say(y, "transpose(%s, %s)", x->text, list(o, x->rank));
    return true;
}

static bool concat(Pool *p, Value *y)
{
    const Value *x = any(p), *z = x;
    if (x->rank < 1)
        return false;
    const int axis = below(x->rank);
    for (int i = 0; i < 8; i++) {
        const Value *c = any(p);
        bool fits = c->rank == x->rank;
        for (int d = 0; fits && d < x->rank; d++)
            fits = d == axis || c->dim[d] == x->dim[d];
        z = fits ? c : z;
    }
    *y = *x;
    y->dim[axis] += z->dim[axis];
    if (z == x)
        say(y, chance(50) ? "concat(tanh(%s), %s, axis = %d)" : "concat([%s, 0.5 * %s], axis = %d)",
            x->text, x->text, axis);
    else
        say(y, chance(50) ? "concat(%s, %s, axis = %d)" : "concat([%s, %s], axis = %d)", x->text,
            z->text, axis);
    return true;
}

static bool slice(Pool *p, Value *y)
{
    const Value *x = any(p);
    if (x->rank < 1)
        return false;
    const int axis = below(x->rank), d = x->dim[axis], size = from(1, d);
    const int parts = d % 3 == 0 ? 3 : d % 2 == 0 ? 2 : 1;
    *y = *x;
    if (chance(40)) {
        y->dim[axis] = d / parts;
        say(y, "split(%s, %d, axis = %d)[%d]", x->text, parts, axis, below(parts));
    } else {
        y->dim[axis] = size;
        say(y, "slice(%s, axis = %d, start = %d, size = %d)", x->text, axis, from(0, d - size),
            size);
    }
    return true;
}

static bool stack(Pool *p, Value *y)
{
    const Value *x = any(p), *z = x;
    if (x->rank < 1 || x->rank > 2)
        return false;
    for (int i = 0; i < 8; i++) {
        const Value *c = any(p);
        if (c->rank == x->rank && !memcmp(c->dim, x->dim, sizeof *x->dim * (size_t)x->rank))
            z = c;
    }
    const int axis = from(0, x->rank);
    *y = *x;
    y->rank++;
    for (int i = 0, k = 0; i < y->rank; i++)
        y->dim[i] = i == axis ? 2 : x->dim[k++];
    say(y, chance(50) ? "stack(%s, %s, axis = %d)" : "stack([%s, tanh(%s)], axis = %d)", x->text,
        z->text, axis);
    return true;
}

static bool gather(Pool *p, Value *y)
{
    const Value *x = any(p), *by = any(p);
    if (x->rank < 1)
        return false;
    const int axis = below(x->rank), n = from(1, 4);
    int place[4];
    for (int i = 0; i < n; i++)
        place[i] = below(x->dim[axis]);
    *y = *x;
    y->dim[axis] = n;
    if (by->rank == 1 && by->dim[0] <= 6 && chance(30)) { /* indices that the network computes */
        y->dim[axis] = by->dim[0];
        say(y, "gather(%s, %d * sigmoid(3 * %s), axis = %d)", x->text, x->dim[axis], by->text,
            axis);
    } else {
        say(y, "gather(%s, %s, axis = %d)", x->text, list(place, n), axis);
    }
    return true;
}

#endif
