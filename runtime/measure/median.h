/* median.h -- the median of measured times, and how well it is known.
 *
 * Of n independent times, the number of times below the true median is binomial (n, 1/2).  So the
 * true median lies between the times of ranks n/2 - 0.98 sqrt(n) and n/2 + 0.98 sqrt(n) with a
 * probability of 95 %, whatever the distribution of the times is.  Six times are the fewest with
 * such an interval: the shortest and the longest.
 *
 * Source: Le Boudec 2010, "Performance Evaluation of Computer and Communication Systems", theorem
 * 2.1.
 */
#ifndef MEDIAN_H
#define MEDIAN_H
#include <stdint.h>

typedef struct Median {
    double median;
    double low, high; /* the interval of 95 %; 0 and infinity if there are fewer than 6 launches */
} Median;

/* Sorts time[n].  launches: the number of independent times; all steps of a launch have the same
 * time. */
Median median_of(double *time, int64_t n, int64_t launches);

/* The larger distance from the median to an end of the interval, divided by the median. */
double median_error(Median m);

#endif
