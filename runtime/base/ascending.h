/* ascending.h -- sorts numbers, for medians of measured times. */
#ifndef ASCENDING_H
#define ASCENDING_H
#include <stdint.h>

void sort_ascending(double *x, int64_t n);

#endif
