/* limits.c -- the table of bounds. */
#include "base/limits.h"
#include <stddef.h>

const Limit limit_table[] = {
#define LIMIT(name, value, what) {value, what},
#include "base/limits.def"
#undef LIMIT
    {0, NULL}};
