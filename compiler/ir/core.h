/* core.h -- the processor core that prices are quoted for: a nominal one for each --cpu, never the host.
 *
 * A price is a count of cycles of this core.  Choices and the numbers in generated text follow from it, so they are the
 * same wherever the compiler runs; `PROG bench --layers` scales it to the FMA peak that it measures.
 */
#ifndef CORE_H
#define CORE_H
#include <stdint.h>

typedef struct Core {
    const char *cpu;                                  /* "x86-64-v4", as --cpu says */
    const char *like;                                 /* "Zen 4": whose figures these are */
    double  ghz;
    int     vector_bytes;                             /* 0: one number at a time */
    double  fma, loads, stores;                       /* of whole vectors a cycle; a broadcast is a load */
    double  latency;                                  /* cycles from an FMA to one that needs its result */
    double  lines;                                    /* 64-byte lines that loads touch a cycle: a vector across two costs both */
    int64_t l1, l2, l3;                               /* bytes of cache that one core can count on */
    double  from_l2, from_l3, from_memory;            /* bytes a cycle */
    int     rows, rows_1, dx_rows, windows, runs;     /* register tiles: runtime/cpu/tile.h and conv_pool_run.h */
} Core;

const Core *core_of(const char *cpu);                 /* of a name that --cpu resolves to */

/* Cycles in which `bytes` stream in from wherever `resident` bytes fit: nothing from the first level. */
double core_stream(const Core *c, double bytes, double resident);
/* Multiply-adds count as two. */
double core_peak_gflops(const Core *c, int real_bytes);

#endif
