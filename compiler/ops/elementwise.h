/* elementwise.h -- functions for passes and emitters on the rows of elementwise.def. */
#ifndef ELEMENTWISE_H
#define ELEMENTWISE_H
#include "ops/op.h"

/* "a * (1 - b * b)"; NULL when op is not in the table. */
const char *elementwise_expr(const Op *op);

/* A C expression.  operates: it has an operator outside of parentheses, so it needs parentheses as
 * an operand. */
typedef struct Operand {
    const char *s;
    bool operates;
} Operand;

/* The C expression of n, with operand[i] for input i, literals for arguments such as slope, and
 * no unnecessary parentheses.  plain: for `real` (s_tanh), else for `vec` (v_tanh). */
Operand elementwise_format(Arena *a, const Node *n, const Operand *operand, bool plain);

/* The gradients as lines for the manual: "dx = dy * y"; NULL when op has none or is not in the
 * table. */
const char *elementwise_derivative(Arena *a, const Op *op);

bool elementwise_monotone(const Op *op);    /* a max-pool may come before it */
const char *elementwise_act(const Op *op);  /* "v_tanh" for tanh, as Act; else NULL */
const char *elementwise_mask(const Op *op); /* "d_tanh" for tanh_d, as Mask; else NULL */

/* Computes *y = op(a, b) in f64; b is ignored if op has one operand. false: the compiler cannot
 * compute op. */
bool elementwise_value(const Op *op, double a, double b, double *y);

/* Add the last arguments of fused kernels.  act: the function of attribute act, "v_tanh", or
 * v_identity.  mask: the function of attribute mask, "d_tanh", or d_identity; then y, which is
 * input i. */
void elementwise_call_act(const Node *n, Call *c);
void elementwise_call_mask(const Node *n, int i, Call *c);

#endif
