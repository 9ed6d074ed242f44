/* number.c -- functions of numbers: min, max, abs, sqrt, exp, log, int, float, len. */
#include "front/lower.h"
#include <math.h>

static Value extreme(Lower *l, Expr *e, const Value *v, int n, bool max)
{
    int best = 0;
    if (n == 1 && v[0].kind == V_LIST) {
        n = v[0].n;
        v = v[0].item;
        if (!lower_step(l, e->span, n))
            return value_poison();
    }
    for (int i = 0; i < n; i++) {
        if (!value_number(v[i]))
            return lower_fail(l, e, e->span, "'%s' compares numbers, not %s", e->a->s,
                              value_kind(v[i]));
        if (max ? value_real(v[i]) > value_real(v[best]) : value_real(v[i]) < value_real(v[best]))
            best = i;
    }
    return n ? v[best] : lower_fail(l, e, e->span, "'%s' needs at least one value", e->a->s);
}

static Value to_int(Lower *l, Expr *e, Value x)
{
    if (x.kind == V_FLOAT && fabs(x.f) < 9.2e18)
        return value_int((int64_t)x.f); /* towards zero */
    if (x.kind == V_BOOL || x.kind == V_INT)
        return value_int(x.i);
    return lower_fail(l, e, e->span, "int cannot take %s",
                      x.kind == V_FLOAT ? "such a large number" : value_kind(x));
}

static Value real_result(Lower *l, Expr *e, double x, double y)
{
    if (isfinite(y))
        return value_float(y);
    return lower_fail(l, e, e->span, "%s(%g) is not a finite number", e->a->s, x);
}

Value number_compute(Lower *l, Expr *e, Function fn, const Value *v)
{
    const int n = e->args.n;
    if (fn == FN_ZEROS)
        return lower_zeros(l, e, v);
    if (fn == FN_MIN || fn == FN_MAX)
        return extreme(l, e, v, n, fn == FN_MAX);
    if (n != 1)
        return lower_fail(l, e, e->span, "'%s' takes one value, not %d", e->a->s, n);
    if (fn == FN_LEN)
        return v[0].kind == V_LIST
                   ? value_int(v[0].n)
                   : lower_fail(l, e, e->span, "only lists have a length, and this is %s",
                                value_kind(v[0]));
    if (fn == FN_INT)
        return to_int(l, e, v[0]);
    if (!value_number(v[0]))
        return lower_fail(l, e, e->span, "'%s' cannot take %s", e->a->s, value_kind(v[0]));
    const double x = value_real(v[0]);
    switch (fn) {
    case FN_ABS:
        if (v[0].kind == V_INT && v[0].i != INT64_MIN)
            return value_int(v[0].i < 0 ? -v[0].i : v[0].i);
        return value_float(fabs(x));
    case FN_SQRT:
        return real_result(l, e, x, sqrt(x));
    case FN_EXP:
        return real_result(l, e, x, exp(x));
    case FN_LOG:
        return real_result(l, e, x, log(x));
    default:
        return value_float(x);
    }
}

/* Whether the function of numbers is meant where an op has the same name: max(3, 4) is a number,
 * max(x, 0) is a tensor. */
bool number_computes(const Callee *c, const Expr *e, const Value *v)
{
    if (!c->fn || c->decl)
        return false;
    if (!c->op)
        return true;
    bool numbers = e->args.n > 0;
    for (int i = 0; i < e->args.n; i++)
        numbers &= !e->args.v[i].name && (value_number(v[i]) || v[i].kind == V_LIST);
    return numbers;
}
