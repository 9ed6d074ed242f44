/* link.h -- all-reduce and all-gather between the devices of several ranks (device.h): what the
 * runtime asks of NCCL.
 *
 * Rank 0 makes an id, comm sends it to the others, and all ranks open the link with this id.  A sum
 * is asynchronous: it begins after the device's earlier operations, and overlaps with later ones
 * until `await`.  Sums and awaits can be recorded (device.h).  Additions have the order of
 * comm/tree.h if each rank's shards are one node of the tree.
 */
#ifndef LINK_H
#define LINK_H
#include "comm/comm.h"

enum { LINK_ID = 128 }; /* bytes */

struct RtLink {
    const char *name;                   /* "nccl" */
    void (*identify)(char id[LINK_ID]); /* on rank 0 */
    /* most: reals of the largest sum; sums: number of sums in a step.  c->any_order: the
     * library may choose the order of additions.  The caller then polls `opened` until it is true.
     * A failure, now or later, ends the run. */
    void (*open)(const char id[LINK_ID], const Comm *c, const RtDevice *d, int64_t most, int sums);
    bool (*opened)(void);
    void *(*memory)(int64_t bytes); /* the best memory for sums, once open; NULL: any memory */
    void (*sum)(int number, void *there, int64_t n); /* sum `number` of a step, from 0 */
    void (*await)(int number);                       /* later operations wait for this sum */
    /* Gathers rows of all ranks, in order of ranks: rank k's are at there + offset + k * shards *
     * bytes. Later operations wait for them. */
    void (*gather)(char *there, const RtKnown *row, int n, int shards);
    void (*look)(void);            /* while the host waits: dies if the library has failed */
    void (*let_go)(void);          /* stops pending operations: another rank is lost */
    const char *(*describe)(void); /* "NCCL 2.28.9" */
};

#endif
