/* host.h -- the machine: its description, and its load by other processes. */
#ifndef SWEEP_HOST_H
#define SWEEP_HOST_H
#include "base/text.h"

typedef struct Host {
    const char *cpu;  /* its name */
    int processors;   /* that this process may use */
    const char *text; /* the description, a line for each fact: "cpu: ...", "L1d: 32K", ... */
} Host;

void host_look(Arena *a, Host *h);

/* Counters at a moment; the difference of two describes the time between them. */
typedef struct Meter {
    double now, busy, stolen; /* s; busy and stolen of all processors together */
    double joules;            /* NAN: not known */
} Meter;

/* The energy is that of all packages (RAPL) and of that many GPUs (NVML), as far as it is known. */
Meter host_meter(int gpus);
double host_mhz(void); /* of the fastest processor now; NAN: not known */

/* Runs tenon-peak (`program`) on that many threads: FMA peak in GFLOP/s, or bandwidth of memory in GB/s; NAN if it fails.
 * `output` is a file for its output. */
double host_peak(Arena *a, const char *program, const char *output, int threads, bool memory);

#endif
