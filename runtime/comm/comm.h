/* comm.h -- the processes ("ranks") of one run: comparison, broadcast, gather and sums.
 *
 * A program built with --comm none, or started alone, has a Comm of size 1 whose calls cost
 * nothing. All ranks call these functions in the same order.  No result depends on the order in
 * which ranks arrive.  A wait that is longer than the limit ends the run and names the ranks that
 * are missing.
 */
#ifndef COMM_H
#define COMM_H
#include "comm/tree.h"
#include "rt.h"

enum { WIRE_RANKS = 1024 };                           /* at most, where sums travel as bf16 (wire.c) */

typedef struct Comm {
    int     rank, size;
    int     local_rank, local_size;                   /* of the ranks on this machine */
    bool    bf16;                                     /* sums travel rounded: see wire.c */
    bool    any_order;                                /* --reduce=nccl: a library adds, in an order of its own (link.h) */
    int64_t step;                                     /* of the run: for messages */
    double  waited;                                   /* seconds that the caller spent in here so far */
    double  busy;                                     /* seconds of communication: more, where it went on beside other work */
    struct CommState *state;                          /* NULL: alone */
} Comm;

/* Joins the run when a launcher (mpirun, srun) started several processes, and compares the
 * programs.  limit: seconds that a wait may last; at_start: until comm_started, because ranks
 * then read their data, and touch their memory for the first time.  Dies when launch and program
 * do not fit each other. */
void comm_open(Comm *c, const RtProgram *p, double limit, double at_start);
void comm_started(Comm *c);                           /* the first step is done; again: nothing */
void comm_close(Comm *c);

/* Called when the run ends too early, once the others know. */
void comm_at_death(Comm *c, void (*let_go)(void));

const char *comm_host(const Comm *c, int rank);       /* "node3" */
const char *comm_library(const Comm *c);              /* "Open MPI v4.1.4"; "none" when alone */

/* Dies, naming the ranks, when `hash` is not rank 0's everywhere. what: "other data" */
void comm_same(Comm *c, uint64_t hash, const char *what);

/* Rank 0's bytes to all.  during: "the weights", for messages, here and below. */
void comm_broadcast(Comm *c, void *bytes, int64_t n, const char *during);

/* all: `each` bytes a rank, in order of ranks; this rank's own are there already. */
void comm_gather(Comm *c, void *all, int64_t each, const char *during);

/* Several gathers with the messages of one. */
typedef struct CommPart { void *all; int64_t each; } CommPart;
void comm_gather_parts(Comm *c, const CommPart *part, int n, const char *during);

/* A sum over all shards: n reals of each node (tree.h) of this rank's shards, node i at buffer +
 * i * next.  Rank r has the shards from r * shards / size on. */
typedef struct CommSum {
    char   *buffer;
    int64_t next, n;
    int     real_bytes, shards;
    int     places;                                   /* sums of its parts that can be pending at a time; 0: one */
    /* by comm_sum_plan: */
    int64_t scratch_bytes;
    char   *scratch;                                  /* to be set by the caller */
    Node   *node;                                     /* of all ranks; NULL: halves are exchanged */
    int    *first;                                    /* [size + 1]: a rank's first one */
    struct Halving *halving;                          /* [places]: where halves are exchanged, */
    int64_t stretch;                                  /* reals of an exchange */
} CommSum;

void comm_sum_plan(Comm *c, CommSum *s);              /* all ranks: measures the links */
void comm_sum(Comm *c, const CommSum *s);             /* the sum of all into the first buffer of every rank */

/* Asynchronous sums and gathers, by a thread of their own ("posts").  All ranks post the same in
 * the same order, and wait in the same order.  Gathers, and sums that go in one piece, run in
 * the order of posts.  Sums in halves all run at the same time, each with its own messages: the
 * sum that is waited for has priority, then the latest, which holds the first layers' gradients.
 * All other functions of this header wait for all posts first.  A post returns its number;
 * comm_await(number) waits for it. */
void    comm_posts(Comm *c, int most);                /* most: pending posts */
/* Of reals from .. from + n - 1.  place: below s->places, not in use.  during: "the sum of
 * gradients, bucket 2" */
int64_t comm_post_sum(Comm *c, const CommSum *s, int place, int64_t from, int64_t n, const char *during);
int64_t comm_post_gather(Comm *c, void *all, int64_t each, const char *during);
void    comm_await(Comm *c, int64_t post);

/* Waits until done(), with the time limit and the messages of other waits: for work between
 * devices. */
void    comm_poll(Comm *c, bool (*done)(void), const char *during);

#endif
