/* core.h -- the nominal processor core for which prices are computed: one for each --cpu, never
 * the host.
 *
 * A price is a number of cycles of this core.  Choices of the compiler and numbers in generated
 * text follow from prices, so they are the same on all hosts.  `PROG bench --layers` scales the
 * price to the measured FMA peak.
 */
#ifndef CORE_H
#define CORE_H
#include <stdint.h>

typedef struct Core {
    const char *cpu;  /* "x86-64-v4", as --cpu says */
    const char *like; /* "Zen 4": the processor that the figures describe */
    double ghz;
    int vector_bytes;          /* 0: no vectors */
    double fma, loads, stores; /* whole vectors per cycle; a broadcast counts as a load */
    double latency;            /* cycles from an FMA to a dependent FMA */
    /* 64-byte lines that loads touch per cycle; a vector across two lines touches both */
    double lines;
    int64_t l1, l2, l3;                   /* bytes of cache for one core */
    double from_l2, from_l3, from_memory; /* bytes per cycle */
    /* register tiles: runtime/cpu/tile.h and conv_pool_run.h */
    int rows, rows_1, dx_rows, windows, runs;
} Core;

const Core *core_of(const char *cpu); /* cpu: a name that --cpu resolves to */

/* Cycles to read `bytes` from the smallest cache that holds `resident` bytes, or from memory if no
 * cache holds them.  0 for the L1 cache. */
double core_stream(const Core *c, double bytes, double resident);
/* A multiply-add counts as two operations. */
double core_peak_gflops(const Core *c, int real_bytes);

#endif
