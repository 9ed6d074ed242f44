/* median.c -- the median of measured times, and how well it is known. */
#include "measure/median.h"
#include "base/ascending.h"
#include <math.h>

enum { LAUNCHES_LEAST = 6 }; /* the shortest and the longest of 6 are an interval of 96.9 % */

Median median_of(double *time, int64_t n, int64_t launches)
{
    sort_ascending(time, n);
    Median m = {time[n / 2], 0, INFINITY};
    if (launches < LAUNCHES_LEAST)
        return m;
    const double away = 0.98 / sqrt((double)launches);
    m.low = time[(int64_t)floor((double)n * (0.5 - away))];
    m.high = time[(int64_t)ceil((double)n * (0.5 + away)) - 1];
    return m;
}

double median_error(Median m)
{
    return fmax(m.high - m.median, m.median - m.low) / m.median;
}
