/* bench.h -- steps on samples in memory, which `bench` measures and `bench --simulate` simulates.
 */
#ifndef BENCH_H
#define BENCH_H
#include "data/data.h"
#include "files/log.h"
#include "measure/median.h"
#include "options/options.h"
#include "step/net.h"

typedef struct Bench {
    const RtProgram *p;
    const Options *o;
    Pool *pool;
    Net *net;
    Data *data;
    Order order;
    int64_t batches, total; /* number of different batches; number of steps so far */
    double first;           /* seconds from the start of the process to the end of the first step */
} Bench;

/* A net with initial weights, and a few batches: synthetic ones, or the first ones of --data. */
Bench bench_open(const RtProgram *p, const Options *o, Pool *pool);
double bench_step(Bench *b); /* makes a step, also gathers its batch; returns its seconds */

/* Measured steps. */
typedef struct BenchSteps {
    /* [n] seconds of each step; the steps of a launch have equal times.  Sorted, once there is a
     * median. */
    double *time;
    int64_t n, launches; /* number of steps; number of launches that made them */
    double seconds;      /* of the whole measurement */
    double mean;         /* of a step */
    double waited, busy; /* in all steps: waiting for other ranks; communication */
    Median median;
} BenchSteps;

/* Number of decimals for times of about `seconds` that are printed in ms: differences of a
 * thousandth are visible, also for steps of a few microseconds. */
int bench_decimals(double seconds);

/* Makes n steps, in few launches if the program can, and adds their times to `to`. */
void bench_steps(Bench *b, int64_t n, BenchSteps *to);

/* bench_measure.c: without --steps, measurement ends when the median is known to this share. */
#define BENCH_KNOWN 0.01
BenchSteps bench_measure(Bench *b);

/* simulate.c: `bench --simulate`; returns the exit code. */
int bench_simulate(const RtProgram *p, const Options *o);

#endif
