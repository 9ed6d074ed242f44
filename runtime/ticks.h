/* ticks.h -- where the time of a step goes, call by call: what bench --layers measures and
 * prints. */
#ifndef TICKS_H
#define TICKS_H
#include "rt.h"

/* A unit begins on this thread: its calls count into `sums` (nanoseconds by call), or nowhere
 * when NULL. */
void ticks_begin(int64_t *sums);

/* The account of `steps` steps of `wall` seconds in all: every call's time and rate beside the
 * peak (GFLOP/s of all threads), then what the threads spent outside calls (barriers, idle), so
 * that all adds up to threads x wall. */
void ticks_print(const RtProgram *p, const int64_t *sums, int threads, int64_t steps, double wall,
                 double peak);

#endif
