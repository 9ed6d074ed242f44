/* machine.h -- named machines with many cores, for simulated steps (base/simulation.h).
 *
 * A machine is its shape, the time to move a cache line between two cores, the rate of its memory
 * and the peak of its cores.  machine.c has the table, with a source for each figure.
 */
#ifndef MACHINE_H
#define MACHINE_H
#include "base/cores.h"

enum {
    MACHINE_SOCKET,
    MACHINE_CACHE,
    MACHINE_CORE
}; /* distances: other socket, other cache, same */

typedef struct Machine {
    const char *name, *what;    /* "56-core", "Intel Xeon Platinum 8480+" */
    int sockets, caches, cores; /* caches of a socket; cores of a cache */
    double line_ns[3];          /* time to move a cache line, by distance */
    double cache_bytes;         /* last-level caches of a socket */
    double memory_gbs; /* 1e9 bytes a second of a socket's memory, with all its cores busy */
    double ghz;        /* with all cores busy with multiply-adds of the widest vectors */
    int flops;         /* f32 operations a cycle of a core with the widest vectors: 32 or 64 */
    const char *source;
} Machine;

/* NULL: no machine has this name. */
const Machine *machine_named(const char *name);
/* The first machine of the table with at least `threads` cores, or else the largest. */
enum { MACHINE_CORES_MOST = 192 }; /* of the largest machine in the table */
const Machine *machine_for(int threads);
int machine_cores(const Machine *m);
/* "2-core, 16-core, ...": the names of all machines. */
const char *machine_names(void);

/* Distance of two cores.  Cores are numbered by socket, then cache. */
int machine_distance(const Machine *m, int a, int b);
/* The first `threads` cores of m as processors (fanout.h); the memory comes from rt_alloc. */
Processor *machine_processors(const Machine *m, int threads);

#endif
