/* comm.h -- the processes ("ranks") of one run: comparison, broadcast, gather and sums.
 *
 * A program that was built with --comm none, or started alone, has a Comm of size 1, whose calls
 * return at once.  All ranks call these functions in the same order.  No result depends on the
 * order in which ranks arrive.  A wait that is longer than the limit ends the run and names the
 * missing ranks.
 */
#ifndef COMM_H
#define COMM_H
#include "comm/tree.h"
#include "rt.h"

enum { WIRE_RANKS = 1024 }; /* ranks of a run with sums in bf16, at most (wire.c) */

typedef struct Comm {
    int rank, size;
    int local_rank, local_size; /* among the ranks on this machine */
    bool bf16;                  /* sums are sent rounded to bf16 (wire.c) */
    bool any_order;             /* --reduce=nccl: NCCL chooses the order of additions (link.h) */
    int64_t step;               /* of the run, for messages */
    double waited;              /* seconds that the calling thread has waited so far */
    double busy;                /* seconds of communication so far, overlapped or not */
    struct CommState *state;    /* NULL: size 1 */
} Comm;

/* Joins the run if a launcher (mpirun, srun) has started several processes, and compares their
 * programs.  limit: seconds that a wait may last.  at_start: the limit until comm_started, because
 * ranks first read their data and touch their memory for the first time.  Dies if the
 * program cannot run under this launcher. */
void comm_open(Comm *c, const RtProgram *p, double limit, double at_start);
void comm_started(Comm *c); /* after the first step; later calls do nothing */
void comm_close(Comm *c);

/* Sets a function that is called when the run ends with an error, after the other ranks have been
 * informed. */
void comm_at_death(Comm *c, void (*let_go)(void));

const char *comm_host(const Comm *c, int rank); /* "node3" */
const char *comm_library(const Comm *c);        /* "Open MPI v4.1.4"; "none" if size is 1 */

/* Dies and names the ranks whose `hash` is not rank 0's.  what: "other data" */
void comm_same(Comm *c, uint64_t hash, const char *what);

/* Sends rank 0's n bytes to all ranks.  during: "the weights", for messages, here and below. */
void comm_broadcast(Comm *c, void *bytes, int64_t n, const char *during);

/* Gathers `each` bytes of each rank in `all`, in order of ranks.  The caller has filled in the
 * bytes of its own rank. */
void comm_gather(Comm *c, void *all, int64_t each, const char *during);

/* Several gathers that share their messages. */
typedef struct CommPart {
    void *all;
    int64_t each;
} CommPart;
void comm_gather_parts(Comm *c, const CommPart *part, int n, const char *during);

/* A sum over all shards.  This rank's shards are nodes of the tree (tree.h); node i is n reals at
 * buffer + i * next.  Rank r holds the shards from r * shards / size on. */
typedef struct CommSum {
    char *buffer;
    int64_t next, n;
    int real_bytes, shards;
    int places; /* number of sums, over parts of the buffer, that can be pending; 0: one */
    /* comm_sum_plan sets: */
    int64_t scratch_bytes;
    char *scratch;           /* set by the caller after comm_sum_plan */
    Node *node;              /* nodes of all ranks; NULL: the sum exchanges halves (sum.c) */
    int *first;              /* [size + 1]: index of each rank's first node */
    struct Halving *halving; /* [places], if the sum exchanges halves; else NULL */
    int64_t stretch;         /* reals of a stretch (sum.c) */
} CommSum;

void comm_sum_plan(Comm *c, CommSum *s);  /* on all ranks: measures the links */
void comm_sum(Comm *c, const CommSum *s); /* each rank gets the sum in its first node */

/* Asynchronous sums and gathers ("posts").  A separate thread runs them.  All ranks make the same
 * posts in the same order, and wait in the same order.  Gathers, and sums in one piece, run in the
 * order of posts.  Sums in halves are all pending at the same time, each with its own messages: the
 * sum that is waited for has priority, then the latest one, which holds gradients of the first
 * layers.  All other functions of this header wait for all posts first.  A post returns its number
 * for comm_await. */
void comm_posts(Comm *c, int most); /* most: pending posts */
/* The sum of reals from .. from + n - 1.  place: an index below s->places that no pending sum has.
 * during: "the sum of gradients, bucket 2" */
int64_t comm_post_sum(Comm *c, const CommSum *s, int place, int64_t from, int64_t n,
                      const char *during);
int64_t comm_post_gather(Comm *c, void *all, int64_t each, const char *during);
void comm_await(Comm *c, int64_t post);

/* Waits until done() is true, with the time limit and the messages of other waits.  For operations
 * between devices. */
void comm_poll(Comm *c, bool (*done)(void), const char *during);

#endif
