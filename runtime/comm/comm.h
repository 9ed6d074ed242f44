/* comm.h -- the processes ("ranks") of one run: who is there, what all know, sums of what each has.
 *
 * A program built with --comm none, or started alone, has a Comm of size 1 whose calls cost nothing.
 * Everything here is called by all ranks in the same order.  No result depends on who arrives
 * first. A wait that lasts longer than the limit ends the run and names the ranks that are missing.
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
 * programs.  limit: seconds that a wait may last; at_start: until comm_started, because ranks then read their data, and touch
 * their memory for the first time.  Dies when launch and program do not fit each other. */
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

/* Several at once, in as many messages one after another as one takes. */
typedef struct CommPart { void *all; int64_t each; } CommPart;
void comm_gather_parts(Comm *c, const CommPart *part, int n, const char *during);

/* What is to be added over all shards: n reals of each node of this rank's shards, the i-th at buffer + i * next.  Rank r
 * has shards r * shards / size and following; nodes: see tree.h. */
typedef struct CommSum {
    char   *buffer;
    int64_t next, n;
    int     real_bytes, shards;
    int     places;                                   /* so many sums of parts of it are under way at a time; 0: one */
    /* by comm_sum_plan: */
    int64_t scratch_bytes;
    char   *scratch;                                  /* to be set by the caller */
    Node   *node;                                     /* of all ranks; NULL: halves are exchanged */
    int    *first;                                    /* [size + 1]: a rank's first one */
    struct Halving *halving;                          /* [places]: where halves are exchanged, */
    int64_t stretch;                                  /* so many reals at a time */
} CommSum;

void comm_sum_plan(Comm *c, CommSum *s);              /* all ranks: they look how fast their links are */
void comm_sum(Comm *c, const CommSum *s);             /* the sum of all into the first buffer of every rank */

/* The same beside other work: posts are done by a thread of their own. All ranks post the same in the same order, and wait for them in the
 * same order. Gathers, and sums that go in one piece, are done in the order of posts. Of sums in halves all are under way, each with messages
 * of its own: the one that is waited for goes first, then the latest, which holds the first layers' gradients.  Anything else in
 * here waits first for all posts to be done.  A post returns its number; comm_await returns when that one is done. */
void    comm_posts(Comm *c, int most);                /* room for so many at a time */
/* Of reals from .. from + n - 1.  place: below s->places, not in use.  during: "the sum of gradients, bucket 2" */
int64_t comm_post_sum(Comm *c, const CommSum *s, int place, int64_t from, int64_t n, const char *during);
int64_t comm_post_gather(Comm *c, void *all, int64_t each, const char *during);
void    comm_await(Comm *c, int64_t post);

/* Until done(): for what devices do between them.  The limit and the blame are those of messages. */
void    comm_poll(Comm *c, bool (*done)(void), const char *during);

#endif
