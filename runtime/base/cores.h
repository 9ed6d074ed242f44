/* cores.h -- the processors that this process may use: cores, caches, sockets, and the limits.
 *
 * A processor is what Linux numbers; a core with hyper-threads has two or more of them, its
 * siblings.  Threads compute on cores, one thread a core.  The affinity mask, which includes the
 * cpuset, limits the cores; the quota of the control group limits the threads.
 */
#ifndef CORES_H
#define CORES_H
#include <stdbool.h>
#include <stdint.h>

enum { CORES_MOST = 8192 }; /* processors of a machine, in Linux's numbers */

/* A processor.  Two processors share a socket, node, cache or core if this field is equal; the
 * values have no other meaning. */
typedef struct Processor {
    int number;                    /* Linux's */
    int sibling;                   /* index in its core, among processors that may be used */
    int socket, node, cache, core; /* cache: the last level that several cores share */
} Processor;

typedef struct Cores {
    int machine;                /* cores of the machine, or of the control group's cpuset */
    int processors;             /* in the affinity mask */
    int cores, caches, sockets; /* among these */
    double quota;               /* seconds of processor time a second; 0: no limit */
    bool real;                  /* the processors are those of this machine */
    uint64_t mask;              /* hash of the affinity mask */
    Processor *processor;       /* [processors]: by sibling, then socket, node, cache, core */
} Cores;

/* Reads the processors of a machine. root: the directory that is read as "/"; "": this machine.
 * Without files in sys/, each processor counts as a core, and all share a cache.  The memory comes
 * from rt_alloc. */
void cores_read(Cores *c, const char *root);

/* The default number of threads: one a core, and no more than whole seconds of quota; at least 1.
 * `ranks` processes share the quota. */
int cores_threads(const Cores *c, int ranks);

#endif
