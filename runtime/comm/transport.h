/* transport.h -- what moves bytes between the processes of a run: a table of functions.
 *
 * comm.c builds everything else on these functions: comparison, sums in the fixed tree, time
 * limits.  All calls except `abort` come from one thread at a time.  A receive matches a message by
 * its sender and tag; two messages with the same sender and tag arrive in order.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H
#include "rt.h"

struct RtTransport {
    const char *name; /* "mpi" */
    bool asks;        /* its library knows the ranks; false: the launcher's variables name them */

    /* Joins the run, within `limit` seconds if the transport can measure the time.  local: among
     * the ranks on this machine. */
    void (*open)(double limit, int *rank, int *size, int *local_rank, int *local_size);
    const char *(*describe)(void); /* "Open MPI v4.1.4", one line */

    /* Allocates memory for this number of pending requests; a smaller number than before changes
     * nothing.  Called before the first step; later calls of other functions do not allocate. */
    void (*room)(int requests);

    /* Start to transfer `bytes` bytes; the memory must not change until done(request) is true. */
    int (*send)(int to, int tag, const void *from, int bytes);
    int (*receive)(int from, int tag, void *to, int bytes);
    bool (*done)(int request); /* returns true once; then the request no longer exists */

    /* The sender of a message with this tag that no receive has matched, or -1. */
    int (*waiting)(int tag);

    /* A rank that has ended too early, or -1.  at_end: a rank that has announced its normal end
     * does not count.  NULL: the transport cannot tell. */
    int (*gone)(bool at_end);

    void (*close)(void);     /* on all ranks, at the end */
    void (*abort)(int code); /* ends the processes of all ranks; can take seconds, may return */
};

#endif
