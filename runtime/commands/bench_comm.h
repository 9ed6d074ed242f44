/* bench_comm.h -- `bench --comm`: rates of the link between ranks, and predicted steps. */
#ifndef BENCH_COMM_H
#define BENCH_COMM_H
#include "files/log.h"
#include "step/net.h"

/* To be called after the measured steps, with the median step, its time of communication, and the
 * part of this time that overlaps with no other work. All ranks, at least two, call it; rank 0
 * prints to standard output and writes records "comm" to the log. */
void bench_comm(const Net *n, double step_seconds, double sum_seconds, double waited_seconds,
                Log *log);

#endif
