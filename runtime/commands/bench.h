/* bench.h -- steps on samples in memory, which `bench` measures and `bench --simulate` simulates.
 */
#ifndef BENCH_H
#define BENCH_H
#include "data/data.h"
#include "options/options.h"
#include "step/net.h"

typedef struct Bench {
    const RtProgram *p;
    const Options *o;
    Pool *pool;
    Net *net;
    Data *data;
    Order order;
    int64_t batches, total;
} Bench;

/* A net with initial weights, and a few batches: synthetic ones, or the first ones of --data. */
Bench bench_open(const RtProgram *p, const Options *o, Pool *pool);
double bench_step(Bench *b); /* makes a step, also gathers its batch; returns its seconds */

/* simulate.c: `bench --simulate`; returns the exit code. */
int bench_simulate(const RtProgram *p, const Options *o);

#endif
