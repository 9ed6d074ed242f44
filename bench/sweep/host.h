/* host.h -- the machine: what it is, and how busy it is with other things. */
#ifndef SWEEP_HOST_H
#define SWEEP_HOST_H
#include "base/text.h"

typedef struct Host {
    const char *cpu;  /* its name */
    int processors;   /* that we may use */
    const char *text; /* all that is known, a line each: "cpu: ...", "L1d: 32K", ... */
} Host;

void host_look(Arena *a, Host *h);

/* Counters at a moment; two of them tell of the time between. */
typedef struct Meter {
    double now, busy, stolen; /* s; busy and stolen of all processors together */
    double joules;            /* NAN: not told */
} Meter;

/* The energy is that of all packages (RAPL) and of so many GPUs (NVML), what of them is told. */
Meter host_meter(int gpus);
double host_mhz(void); /* of the fastest processor now; NAN: not told */

/* What tenon-peak (`program`) measures on so many threads: FMA peak in GFLOP/s, or bandwidth of memory in GB/s; NAN when it
 * fails.  `output` is a file for it. */
double host_peak(Arena *a, const char *program, const char *output, int threads, bool memory);

#endif
