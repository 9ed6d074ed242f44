/* place.h -- how many threads a rank has, on which cores they run, and what limits their number.
 *
 * By default a thread computes on each core of the affinity mask.  The quota of the control group
 * limits the threads, and ranks of one host with the same mask share its cores in equal parts.
 * Threads are pinned by default if they use all these cores and the cores have several caches or
 * sockets.  With one cache, Linux places threads as well as pinning does, and leaves other programs
 * more freedom.
 */
#ifndef PLACE_H
#define PLACE_H
#include "options/options.h"

/* What a rank reports to the others: its cores, and those of its machine or of its cpuset, at most
 * the quota. */
typedef struct RankCores {
    uint64_t mask;
    int32_t host; /* the first rank of the same host */
    int32_t cores, machine;
} RankCores;

/* The rank's part of its host. */
typedef struct HostShare {
    int here;           /* ranks of the host */
    int sharing, index; /* number of these with the same mask; index of this rank among them */
    int bound; /* the first rank of the run with fewer cores than its part of its host; -1: none */
    int part;  /* the cores of that host for each of its ranks */
} HostShare;
HostShare place_share(const RankCores *rank, int ranks, int own);

/* Sets o->threads and o->place, by the options and the ranks; all ranks call it.  Rank 0 prints a
 * note if there are more threads than cores or quota, or if a launcher has bound ranks to fewer
 * cores than their part. */
void place_threads(Options *o, const RtProgram *p, Comm *c);

/* "option", "quota", "ranks", "affinity" or "none": what limits the number of threads. */
const char *place_limit(const Options *o);
/* "cores" or "none". */
const char *place_pin(const Options *o);
/* "4 of 64 cores, limited by the quota of the control group; not pinned" */
const char *place_text(const Options *o);

#endif
