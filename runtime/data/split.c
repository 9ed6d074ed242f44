/* split.c -- see split.h.
 *
 *   0            test            test + validation            1
 *   |    test     |   validation  |          train            |
 */
#include "data/split.h"
#include "rt.h"
#include <string.h>

enum { MOST = 2 }; /* larger than each random number: nothing is lost by rounding */

Split split_all(const char *name)
{
    return (Split){name, 0, MOST, 0};
}

Split split_of(uint64_t seed, const char *name, double test, double validation)
{
    Split s = {name, test + validation, MOST, seed};
    if (strcmp(name, "test") == 0)
        s.from = 0, s.to = test;
    else if (strcmp(name, "validation") == 0)
        s.from = test, s.to = test + validation;
    return s;
}

bool split_takes(const Split *s, uint64_t key)
{
    uint32_t r[4];
    rt_philox(r, s->seed, (uint32_t)key, RT_PURPOSE_SPLIT, (uint32_t)(key >> 32), 0);
    const double u = ((double)r[0] + (double)r[1] * 0x1p-32) * 0x1p-32;
    return u >= s->from && u < s->to;
}
