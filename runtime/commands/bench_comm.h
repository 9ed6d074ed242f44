/* bench_comm.h -- `bench --comm`: what the link between the ranks gives, and what it makes of a step. */
#ifndef BENCH_COMM_H
#define BENCH_COMM_H
#include "files/log.h"
#include "step/net.h"

/* After measured steps: the median step, its time of communication, and the part of that time that no other work hides.
 * All ranks, two or more, call it; rank 0 prints on standard output and records "comm" to the log. */
void bench_comm(const Net *n, double step_seconds, double sum_seconds, double waited_seconds, Log *log);

#endif
