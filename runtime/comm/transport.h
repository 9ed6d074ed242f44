/* transport.h -- what carries bytes between the processes of a run: one small table.
 *
 * comm.c makes everything else of it: agreement, sums in the fixed tree, watching.  All calls but
 * `abort` come from one thread at a time.  A message is found again by its sender and tag; two of
 * the same sender and tag arrive in order.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H
#include "rt.h"

struct RtTransport {
    const char *name; /* "mpi" */
    bool asks;        /* its library knows the ranks; else the launcher's variables say who they are */

    /* Joins the run, within `limit` seconds where it can tell; local: those of the ranks that
     * share this machine. */
    void (*open)(double limit, int *rank, int *size, int *local_rank, int *local_size);
    const char *(*describe)(void); /* "Open MPI v4.1.4", one line */

    /* Allocates for this number of pending requests; called before the first step.  A smaller
     * number than before changes nothing.  Between calls no transport allocates. */
    void (*room)(int requests);

    /* Begin to move `bytes` bytes; the memory stays as it is until done(request). */
    int  (*send)(int to, int tag, const void *from, int bytes);
    int  (*receive)(int from, int tag, void *to, int bytes);
    bool (*done)(int request);  /* true once, then the request is gone */

    /* The sender of a message with this tag that has no receive yet, or -1. */
    int  (*waiting)(int tag);

    /* A rank that is known to have ended too early, or -1; at_end: one that has said goodbye has
     * not.  NULL: nobody can tell. */
    int  (*gone)(bool at_end);

    void (*close)(void);        /* all ranks, at the end */
    void (*abort)(int code);    /* ends the processes of all ranks; may take seconds, may return */
};

#endif
