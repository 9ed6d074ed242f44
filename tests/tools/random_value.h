/* random_value.h -- values of random_model.c: texts with known shapes, the pool that holds them,
 * and the random numbers that choose.
 */
#ifndef RANDOM_VALUE_H
#define RANDOM_VALUE_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    TEXT = 1200, /* characters of a value */
    VALUES = 60, /* values of a pool */
    MOST = 160,  /* numbers of a value */
};

typedef struct Value {
    char text[TEXT]; /* a name, or in a loss an expression */
    int rank, dim[3];
    bool used; /* another value reads it */
} Value;

typedef struct Pool {
    Value value[VALUES];
    int count;
    bool weights; /* its operations can have parameters */
    bool scan;    /* the body of a scan */
    bool loss;    /* the values of a loss */
} Pool;

static uint64_t state; /* of the random numbers; begins with the seed */

/* 0 to n - 1.  Source: the generator splitmix64. */
static int below(int n)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

static bool chance(int percent)
{
    return below(100) < percent;
}

static int from(int low, int high)
{
    return low + below(high - low + 1);
}

/* An item of an array. */
#define ONE_OF(array) (array)[below((int)(sizeof(array) / sizeof *(array)))]

static int size_of(const Value *v)
{
    int n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dim[i];
    return n;
}

/* A value of the pool; in every second call one of the last three. */
static Value *any(Pool *p)
{
    const int last = chance(50) && p->count > 3 ? p->count - 3 : 0;
    return &p->value[from(last, p->count - 1)];
}

/* Adds y to the pool, under a name if one is given. */
static Value *keep(Pool *p, const Value *y, const char *name)
{
    Value *v = &p->value[p->count++];
    *v = *y;
    v->used = false;
    if (name)
        snprintf(v->text, sizeof v->text, "%s", name);
    return v;
}

/* Sets the text of y.  A rank of -1 says that the text is too long. */
static void say(Value *y, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(y->text, TEXT, fmt, ap) >= TEXT)
        y->rank = -1;
    va_end(ap);
}

/* [2, 3]; the text lasts for three more calls. */
static const char *list(const int *v, int n)
{
    static char text[4][128];
    static int next;
    char *t = text[next++ % 4];
    int len = sprintf(t, "[");
    for (int i = 0; i < n; i++)
        len += sprintf(t + len, "%s%d", i ? ", " : "", v[i]);
    sprintf(t + len, "]");
    return t;
}

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

#endif
