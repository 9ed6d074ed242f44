/* stats.h -- medians, and how sure a ratio of two of them is. */
#ifndef SWEEP_STATS_H
#define SWEEP_STATS_H

double stats_median(const double *v, int n);             /* n 0: NAN; does not reorder v */
double stats_quantile(const double *v, int n, double q); /* interpolated linearly */
double stats_least(const double *v, int n);
double stats_most(const double *v, int n);

typedef struct Interval {
    double value, low, high;
} Interval;

/* median(b) / median(a) with its bootstrap interval: both sides are drawn again, with replacement,
 * 10,000 times from a fixed seed, and the middle `level` of the ratios is the interval (percentile
 * bootstrap: Efron & Tibshirani 1993, chapter 13).  With 5 repeats on each side and level 0.99 it
 * excludes 1 in 1 to 2 % of comparisons of equal things (tests/sweep/test_compare.c counts). */
Interval stats_ratio(const double *a, int na, const double *b, int nb, double level);
/* median(b) - median(a), likewise. */
Interval stats_difference(const double *a, int na, const double *b, int nb, double level);

#endif
