/* stats.c -- medians, and how sure a ratio of two of them is. */
#include "sweep/stats.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 10000, MOST = 1024 }; /* MOST: repeats that are used */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A quantile of sorted numbers. */
static double quantile(const double *v, int n, double q)
{
    const double at = q * (n - 1);
    const int i = (int)at;
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

double stats_quantile(const double *v, int n, double q)
{
    double sorted[MOST];
    n = n < MOST ? n : MOST;
    if (n == 0)
        return NAN;
    memcpy(sorted, v, sizeof *v * (size_t)n);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return quantile(sorted, n, q);
}

double stats_median(const double *v, int n)
{
    return stats_quantile(v, n, 0.5);
}

double stats_least(const double *v, int n)
{
    return stats_quantile(v, n, 0);
}

double stats_most(const double *v, int n)
{
    return stats_quantile(v, n, 1);
}

/* xorshift64*: Vigna 2016. */
static uint32_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

/* The median of n numbers drawn from v, with replacement; sorted by insertion, because n is small. */
static double median_again(const double *v, int n, uint64_t *state)
{
    double sorted[MOST];
    for (int i = 0; i < n; i++) {
        const double x = v[((uint64_t)draw(state) * (uint64_t)n) >> 32];
        int j = i;
        for (; j > 0 && sorted[j - 1] > x; j--)
            sorted[j] = sorted[j - 1];
        sorted[j] = x;
    }
    return quantile(sorted, n, 0.5);
}

static double ratio(double a, double b)
{
    return b / a;
}

static double difference(double a, double b)
{
    return b - a;
}

static Interval bootstrap(const double *a, int na, const double *b, int nb, double level,
                          double (*of)(double, double))
{
    static double drawn[DRAWS];
    uint64_t state = 0x9e3779b97f4a7c15u;
    na = na < MOST ? na : MOST;
    nb = nb < MOST ? nb : MOST;
    if (na == 0 || nb == 0)
        return (Interval){NAN, NAN, NAN};
    for (int i = 0; i < DRAWS; i++) {
        const double x = median_again(a, na, &state);
        drawn[i] = of(x, median_again(b, nb, &state));
    }
    qsort(drawn, DRAWS, sizeof *drawn, ascending);
    return (Interval){of(stats_median(a, na), stats_median(b, nb)),
                      quantile(drawn, DRAWS, (1 - level) / 2),
                      quantile(drawn, DRAWS, (1 + level) / 2)};
}

Interval stats_ratio(const double *a, int na, const double *b, int nb, double level)
{
    return bootstrap(a, na, b, nb, level, ratio);
}

Interval stats_difference(const double *a, int na, const double *b, int nb, double level)
{
    return bootstrap(a, na, b, nb, level, difference);
}
