/* random_ops.h -- operations of random_model.c: each rule makes a value from values of a pool, and
 * returns false if no value fits.
 *
 * A rule is a function and a row of the table `rules`.  An operation of one or two values that fits
 * everywhere needs no rule: it is a row of the list in `unary` or `binary`.
 */
#ifndef RANDOM_OPS_H
#define RANDOM_OPS_H
#include "random_layers.h"
#include "random_moves.h"

/* ---- formulas */

static bool unary(Pool *p, Value *y)
{
    static const char *const form[] = {
        "tanh(%s)",
        "sigmoid(%s)",
        "softplus(%s)",
        "gelu(%s)",
        "silu(%s)",
        "erf(%s)",
        "sin(%s)",
        "cos(3 * %s)",
        "clamp(%s, -0.3, 0.4)",
        "where(%s > 0.1, 0.5, -0.25)",
        "stop_gradient(%s)",
        "cumsum(%s)",
        "cumsum(%s, axis = 0, reverse = true)",
        "ge(%s, 0)",
        "square(tanh(%s))",
        "abs(%s)",
        "-%s",
        "relu(%s)",
        "relu6(%s)",
        "leaky_relu(%s)",
        "leaky_relu(%s, slope = 0.3)",
        "hard_sigmoid(%s)",
        "hard_swish(%s)",
        "exp(tanh(%s))",
        "bell(%s)",
        "bell(%s, w = 0.25)",
        "log(1.5 + tanh(%s))",
        "sqrt(2 + sin3(%s))",
        "reciprocal(2 + tanh(%s))",
        "(1.5 + tanh(%s)) ** 0.5",
        "tanh(%s) ** 3",
        "sigmoid(%s) ** 2",
        "1 - %s",
        "0.5 * %s",
        "%s * 2 - 1",
        "1 / (2 + tanh(%s))",
        "max(%s, 0.1)",
        "min(%s, 0.7)",
        "neg(%s)",
        "add(%s, 0.25)",
        "pow(sigmoid(%s), 1.5)",
        "step(%s) * 0.5",
        "sign(%s) * 0.5",
        "2 ** tanh(%s)",
        "-tanh(%s) ** 2",
    };
    const Value *x = any(p);
    *y = *x;
    say(y, ONE_OF(form), x->text);
    return true;
}

/* Sets y to the shape of a + b; false if there is none. */
static bool broadcast(const Value *a, const Value *b, Value *y)
{
    *y = a->rank >= b->rank ? *a : *b;
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        const int m = a->dim[a->rank - i], n = b->dim[b->rank - i];
        if (m != n && m != 1 && n != 1)
            return false;
        y->dim[y->rank - i] = m == 1 ? n : m;
    }
    return true;
}

static bool binary(Pool *p, Value *y)
{
    static const char *const form[] = {
        "(%s + %s)",
        "(%s - %s)",
        "%s * %s",
        "tanh(%s) * %s",
        "max(%s, %s)",
        "min(%s, %s)",
        "%s / (2 + tanh(%s))",
        "(1.5 + tanh(%s)) ** tanh(%s)",
        "mixed(%s, %s)",
        "where(%s > 0, %s, 0.5)",
        "where(gt(%s, 0.21), -1, 0.3 * %s)",
        "le(%s, 0.5) - lt(%s, -0.5)",
        "eq(sign(%s), 1) + ne(step(%s), 0)",
        "mul(%s, sigmoid(%s))",
        "sub(%s, %s)",
        "div(%s, 1 + exp(-tanh(%s)))",
    };
    const Value *a = any(p), *b = NULL;
    for (int i = 0; i < 8 && !b; i++) {
        const Value *c = any(p);
        b = broadcast(a, c, y) ? c : NULL;
    }
    if (!b)
        return false;
    say(y, ONE_OF(form), a->text, b->text);
    return true;
}

/* zeros(4) + 0.5 as the second or the first operand. */
static bool constant(Pool *p, Value *y)
{
    Value *x = any(p);
    char zeros[160];
    *y = *x;
    if (x->rank < 1)
        return false;
    snprintf(zeros, sizeof zeros, "zeros(%s)", list(x->dim, x->rank));
    switch (below(4)) {
    case 0:
        say(y, "%s * (%s + 0.5)", x->text, zeros);
        return true;
    case 1:
        say(y, "max(%s, %s)", x->text, zeros);
        return true;
    case 2:
        y->dim[0] *= 2;
        say(y, "concat(%s, %s + 0.5)", x->text, zeros);
        return true;
    default:
        say(y, "(%s + %s)", zeros, x->text);
        return true;
    }
}

/* ---- any of them */

/* A rule that stands twice is taken twice as often. */
typedef bool Rule(Pool *p, Value *y);
static Rule *const rules[] = {
    /* for any pool: FREE rules */
    unary, unary, binary, binary, constant, reshape, transpose, concat, slice, stack, gather,
    reduce, reduce, product, softmax, pooling, image, attention, places,
    /* for a pool with weights */
    windows_1d, dense, dense, again, norm, batched_norm, convolution, convolution, dropout,
    recurrent};
enum { RULES = sizeof rules / sizeof *rules, FREE = 19 };

/* Makes y by a random rule; false if none of 200 attempts gives a value that is small enough. */
static bool derive(Pool *p, Value *y)
{
    for (int i = 0; i < 200; i++) {
        y->used = false;
        if (rules[below(p->weights ? RULES : FREE)](p, y) && y->rank >= 0 && size_of(y) <= MOST &&
            (y->rank || !p->scan))
            return true;
    }
    return false;
}

/* ---- a loss */

/* Reduces all dimensions of x, together or one after the other.  A squared value gets no l2: a
 * fourth power of unbounded values would let training diverge.
 */
static void to_number(Value *x, bool squared)
{
    static const char *const word[] = {"sum", "mean", "amax", "0.3 * sum"};
    static const int all[] = {0, 1, 2};
    Value y = *x;
    const char *f = word[below(4)];
    if (x->rank == 0)
        return;
    if (!squared && chance(15)) {
        y.rank = 0;
        say(&y, "l2(%s)", x->text);
    } else if (x->rank > 1 && chance(40)) {
        const int axis = below(x->rank);
        y.rank = 0;
        for (int i = 0; i < x->rank; i++)
            if (i != axis)
                y.dim[y.rank++] = x->dim[i];
        say(&y, "%s(%s, axes = [%d])", f, x->text, axis);
    } else {
        y.rank = 0;
        say(&y, "%s(%s, axes = %s)", f, x->text, list(all, x->rank));
    }
    *x = y;
    to_number(x, squared);
}

#endif
