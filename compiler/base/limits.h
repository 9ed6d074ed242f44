/* limits.h -- the bounds of limits.def as constants, and as a table for the manual. */
#ifndef LIMITS_H
#define LIMITS_H
#include "runtime/constants.h"
#include <stdint.h>

#define LIMIT(name, value, what) enum { name = value };
#include "base/limits.def"
#undef LIMIT

typedef struct Limit {
    long long most;
    const char *what; /* "bytes in a model file" */
} Limit;

extern const Limit limit_table[]; /* the last row has no text */

#endif
