/* value.c -- arithmetic at compile time: 64-bit integers and doubles.  Overflow is an error.
 *
 * int / int is an int and must divide exactly; // and % round towards minus infinity, so that
 * a == (a // b) * b + a % b and 0 <= a % b < b for b > 0.
 */
#include "front/value.h"
#include <math.h>
#include <string.h>

const char *value_kind(Value v)
{
    static const char *const word[] = {"a wrong value", "an int", "a float",  "a bool",
                                       "a string",      "a list", "a tensor", "a layer"};
    return word[v.kind];
}

const char *type_kind(Type t)
{
    static const char *const word[] = {"a tensor", "an int", "a float",  "a bool",
                                       "a string", "a list", "a tensor", "a value"};
    return word[t];
}

/* x / y rounded down.  The caller excludes y == 0 and INT64_MIN / -1, which overflows. */
static int64_t floor_div(int64_t x, int64_t y)
{
    const int64_t q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

/* Computes x to the power of n >= 0 by squaring; false on overflow. */
static bool int_pow(int64_t x, int64_t n, int64_t *out)
{
    int64_t r = 1;
    while (n) {
        if ((n & 1) && __builtin_mul_overflow(r, x, &r))
            return false;
        n >>= 1;
        if (n && __builtin_mul_overflow(x, x, &x))
            return false;
    }
    *out = r;
    return true;
}

static Value real_operation(Arena *a, Operator op, double x, double y, double r, const char **why)
{
    if (isfinite(r))
        return value_float(r);
    *why = arena_printf(a, "%g %s %g is not a finite number", x, operator_text(op), y);
    return value_poison();
}

static Value int_arithmetic(Arena *a, Operator op, int64_t x, int64_t y, const char **why,
                            const char **help)
{
    int64_t r = 0;
    bool over = false;
    switch (op) {
    case DO_ADD:
        over = __builtin_add_overflow(x, y, &r);
        break;
    case DO_SUB:
        over = __builtin_sub_overflow(x, y, &r);
        break;
    case DO_MUL:
        over = __builtin_mul_overflow(x, y, &r);
        break;
    case DO_POW:
        if (y < 0)
            return real_operation(a, op, (double)x, (double)y, pow((double)x, (double)y), why);
        over = !int_pow(x, y, &r);
        break;
    default: /* / // % */
        over = x == INT64_MIN && y == -1;
        if (over)
            break;
        if (op == DO_DIV && x % y != 0) {
            *why = arena_printf(a, "%lld / %lld leaves a remainder of %lld", (long long)x,
                                (long long)y, (long long)(x % y));
            *help = "write // to round down, or a decimal point for a fraction";
            return value_poison();
        }
        r = op == DO_MOD ? x - floor_div(x, y) * y : floor_div(x, y);
    }
    if (!over)
        return value_int(r);
    *why = arena_printf(a, "%lld %s %lld is beyond 64-bit integers", (long long)x,
                        operator_text(op), (long long)y);
    return value_poison();
}

static Value real_arithmetic(Arena *a, Operator op, double x, double y, const char **why)
{
    double r = 0;
    switch (op) {
    case DO_ADD:
        r = x + y;
        break;
    case DO_SUB:
        r = x - y;
        break;
    case DO_MUL:
        r = x * y;
        break;
    case DO_DIV:
        r = x / y;
        break;
    case DO_FLOOR:
        r = floor(x / y);
        break;
    case DO_MOD:
        r = x - floor(x / y) * y;
        break;
    default:
        r = pow(x, y);
        break;
    }
    return real_operation(a, op, x, y, r, why);
}

static bool truth(Operator op, int order) /* order: -1, 0 or 1 */
{
    switch (op) {
    case DO_EQ:
        return order == 0;
    case DO_NE:
        return order != 0;
    case DO_LT:
        return order < 0;
    case DO_LE:
        return order <= 0;
    case DO_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

/* Whether two values other than lists are equal. */
static bool items_equal(Value x, Value y)
{
    if (value_number(x) && value_number(y))
        return x.kind == V_INT && y.kind == V_INT ? x.i == y.i : value_real(x) == value_real(y);
    if (x.kind != y.kind)
        return false;
    if (x.kind == V_BOOL)
        return x.i == y.i;
    if (x.kind == V_STRING)
        return strcmp(x.s, y.s) == 0;
    return x.node == y.node;
}

/* Whether two lists are equal, item by item.  Uses its own stack of open lists and no recursion,
 * because a loop of the model can nest lists to any depth.  Adds the number of compared items to
 * *steps, and stops after STEPS_MAX: lists in lists can contain the same list many times. */
static bool lists_equal(Arena *a, Value x, Value y, int64_t *steps)
{
    struct Place {
        const Value *x, *y;
        int left;
    } first[16] = {{x.item, y.item, x.n}}, *open = first;
    int n = 1, room = 16;
    if (x.n != y.n || x.n == 0)
        return x.n == y.n;
    while (n > 0 && *steps <= STEPS_MAX) {
        struct Place *p = &open[n - 1];
        const Value u = *p->x++, v = *p->y++;
        ++*steps;
        if (u.kind != V_LIST || v.kind != V_LIST ? !items_equal(u, v) : u.n != v.n)
            return false;
        n -= --p->left == 0;
        if (u.kind != V_LIST || u.n == 0)
            continue;
        if (n == room) {
            struct Place *more = arena_alloc(a, 2 * (size_t)room * sizeof *more);
            memcpy(more, open, (size_t)room * sizeof *more);
            open = more, room *= 2;
        }
        open[n++] = (struct Place){u.item, v.item, u.n};
    }
    return true;
}

static Value compare(Arena *a, Operator op, Value x, Value y, const char **why, int64_t *steps)
{
    const bool only_equal = op == DO_EQ || op == DO_NE;
    if (value_number(x) && value_number(y)) {
        if (x.kind == V_INT && y.kind == V_INT)
            return value_bool(truth(op, (x.i > y.i) - (x.i < y.i)));
        const double p = value_real(x), q = value_real(y);
        return value_bool(truth(op, (p > q) - (p < q)));
    }
    if (x.kind == V_LIST && y.kind == V_LIST && only_equal)
        return value_bool(lists_equal(a, x, y, steps) == (op == DO_EQ));
    else if (x.kind == y.kind && only_equal)
        return value_bool(items_equal(x, y) == (op == DO_EQ));
    else
        *why = arena_printf(a, "'%s' cannot compare %s with %s", operator_text(op), value_kind(x),
                            value_kind(y));
    return value_poison();
}

static Value join_values(Arena *a, Value x, Value y, const char **why, int64_t *steps)
{
    if (x.n + y.n > LIST_MAX) {
        *why = arena_printf(a, "the list would have %d items, more than %d", x.n + y.n, LIST_MAX);
        return value_poison();
    }
    Value *item = arena_alloc(a, (size_t)(x.n + y.n) * sizeof *item);
    if (x.n)
        memcpy(item, x.item, (size_t)x.n * sizeof *item);
    if (y.n)
        memcpy(item + x.n, y.item, (size_t)y.n * sizeof *item);
    *steps += x.n + y.n;
    return (Value){.kind = V_LIST, .item = item, .n = x.n + y.n};
}

Value value_binary(Arena *a, Operator op, Value x, Value y, const char **why, const char **help,
                   int64_t *steps)
{
    if (x.kind == V_POISON || y.kind == V_POISON)
        return value_poison();
    if (op >= DO_EQ && op <= DO_GE)
        return compare(a, op, x, y, why, steps);
    if (x.kind == V_LIST && y.kind == V_LIST && op == DO_ADD)
        return join_values(a, x, y, why, steps);
    if (!value_number(x) || !value_number(y)) {
        *why = arena_printf(a, "'%s' cannot take %s and %s", operator_text(op), value_kind(x),
                            value_kind(y));
        return value_poison();
    }
    if ((op == DO_DIV || op == DO_FLOOR || op == DO_MOD) && value_real(y) == 0) {
        *why = "division by zero";
        return value_poison();
    }
    if (x.kind == V_INT && y.kind == V_INT)
        return int_arithmetic(a, op, x.i, y.i, why, help);
    return real_arithmetic(a, op, value_real(x), value_real(y), why);
}

Value value_unary(Arena *a, Operator op, Value x, const char **why)
{
    if (x.kind == V_POISON)
        return x;
    if (op == DO_NOT && x.kind == V_BOOL)
        return value_bool(!x.i);
    if (op == DO_NEG && x.kind == V_FLOAT)
        return value_float(-x.f);
    if (op == DO_NEG && x.kind == V_INT && x.i != INT64_MIN)
        return value_int(-x.i);
    *why = op == DO_NEG && x.kind == V_INT
               ? "the integer is too large to change its sign"
               : arena_printf(a, "'%s' cannot take %s", operator_text(op), value_kind(x));
    return value_poison();
}

bool value_as(Value v, Type t, Value *out)
{
    static const ValueKind kind[] = {
        [TYPE_TENSOR] = V_TENSOR, [TYPE_INT] = V_INT,       [TYPE_FLOAT] = V_FLOAT,
        [TYPE_BOOL] = V_BOOL,     [TYPE_STRING] = V_STRING, [TYPE_LIST] = V_LIST,
        [TYPE_INPUT] = V_TENSOR,
    };
    *out = v;
    if (v.kind == V_POISON || t == TYPE_BAD)
        return true;
    if (t == TYPE_FLOAT && v.kind == V_INT)
        *out = value_float((double)v.i);
    return out->kind == kind[t];
}
