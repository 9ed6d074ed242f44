/* value.h -- the value of an expression at compile time, and the arithmetic of numbers.
 *
 * Poison is the value of an expression with an error, and of all that depends on it.  The error is
 * reported once; poison causes no further message.
 */
#ifndef VALUE_H
#define VALUE_H
#include "front/ast.h"
#include "ir/graph.h"

typedef struct Layer Layer; /* lower.h */
typedef enum { V_POISON, V_INT, V_FLOAT, V_BOOL, V_STRING, V_LIST, V_TENSOR, V_LAYER } ValueKind;

typedef struct Value {
    ValueKind kind;
    union {
        int64_t i; /* INT, BOOL */
        double f;
        const char *s;
        struct {
            const struct Value *item;
            int n;
        }; /* LIST; never changed */
        Node *node;
        Layer *layer;
    };
} Value;

static inline Value value_poison(void)
{
    return (Value){.kind = V_POISON};
}
static inline Value value_int(int64_t i)
{
    return (Value){.kind = V_INT, .i = i};
}
static inline Value value_float(double f)
{
    return (Value){.kind = V_FLOAT, .f = f};
}
static inline Value value_bool(bool b)
{
    return (Value){.kind = V_BOOL, .i = b};
}
static inline Value value_node(Node *n)
{
    return n ? (Value){.kind = V_TENSOR, .node = n} : value_poison();
}

static inline bool value_number(Value v)
{
    return v.kind == V_INT || v.kind == V_FLOAT;
}
static inline double value_real(Value v)
{
    return v.kind == V_INT ? (double)v.i : v.f;
}

const char *value_kind(Value v); /* "an int", "a tensor": for messages */
const char *type_kind(Type t);

/* The result of an operator on numbers, booleans, strings and lists.  If there is none: poison,
 * with the reason in *why and perhaps *help.  An operand that is poison gives poison only.
 * Adds the number of items of lists that it copies or compares to *steps; more than STEPS_MAX: the
 * result is wrong. */
Value value_binary(Arena *a, Operator op, Value x, Value y, const char **why, const char **help,
                   int64_t *steps);
Value value_unary(Arena *a, Operator op, Value x, const char **why);

/* Converts v to type t; an int also fits a float.  Returns false if v does not fit. */
bool value_as(Value v, Type t, Value *out);

#endif
