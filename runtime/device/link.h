/* link.h -- sums over ranks that their devices add among themselves (device.h), and rows that all of them know: what the runtime asks of NCCL.
 *
 * Rank 0 makes an id, comm brings it to the others, all open the link by it.  A sum is asked for like a launch: it comes behind what
 * the device was asked for before, and goes on beside what it is asked for next, until `await`.  Both may be recorded (device.h).
 * The order of its additions is that of tree.h where each rank's shards are one node of the tree.
 */
#ifndef LINK_H
#define LINK_H
#include "comm/comm.h"

enum { LINK_ID = 128 };                               /* bytes */

struct RtLink {
    const char *name;                                 /* "nccl" */
    void (*identify)(char id[LINK_ID]);               /* on rank 0 */
    /* most: reals of the largest sum; sums: of a step.  c says who is there, and whether the library may choose the order.  Then `opened`
     * is asked until it is true; what fails, there or later, ends the run. */
    void (*open)(const char id[LINK_ID], const Comm *c, const RtDevice *d, int64_t most, int sums);
    bool (*opened)(void);
    void *(*memory)(int64_t bytes);                   /* where sums are done best; NULL: it has no such place.  Once it is open */
    void (*sum)(int number, void *there, int64_t n);  /* of a step, from 0 */
    void (*await)(int number);                        /* what the device is asked for next comes behind this sum */
    /* What each rank has of every row, in order of ranks: at there + offset, `shards` times its bytes a rank.  What the device is asked for next
     * comes behind it. */
    void (*gather)(char *there, const RtKnown *row, int n, int shards);
    void (*look)(void);                               /* has it failed?  While the host waits */
    void (*let_go)(void);                             /* of the other ranks, one of which is lost */
    const char *(*describe)(void);                    /* "NCCL 2.28.9" */
};

#endif
