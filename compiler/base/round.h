/* round.h -- division and multiples, rounded up.  n >= 0, unit > 0. */
#ifndef ROUND_H
#define ROUND_H
#include <stdint.h>

static inline int64_t ceil_div(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

/* The smallest multiple of `unit` that is not smaller than n. */
static inline int64_t round_up(int64_t n, int64_t unit)
{
    return ceil_div(n, unit) * unit;
}

#endif
