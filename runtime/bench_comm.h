/* bench_comm.h -- `bench --comm`: what the link between the ranks gives, and what it makes of a step. */
#ifndef BENCH_COMM_H
#define BENCH_COMM_H
#include "log.h"
#include "net.h"

/* After measured steps: step_seconds and sum_seconds are the medians of a step and of what stood in it for other ranks.
 * All ranks, two or more, call it; rank 0 prints on standard output and records "comm" to the log. */
void bench_comm(const Net *n, double step_seconds, double sum_seconds, Log *log);

#endif
