/* ascending.c -- sorts numbers, for medians of measured times. */
#include "base/ascending.h"
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_ascending(double *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
}
