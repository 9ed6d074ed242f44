/* net.h -- a program with its memory: what runs its phases.
 *
 * The arena, as rt.h describes it: fixed | one region a shard | one region a thread | one
 * gradient buffer a part | what sums over ranks need.
 *
 * This rank's shards fall into parts, the nodes of the tree (tree.h) that lie inside them; with
 * --groups there are those of each rank that is played.  One part is the rule.
 */
#ifndef NET_H
#define NET_H
#include "base/threads.h"
#include "comm/comm.h"
#include "data/data.h"
#include "rt.h"

typedef struct Net {
    const RtProgram *p;
    Pool       *pool;
    Comm       *comm;
    int         first, shards;                        /* this rank's, of all p->shards */
    Node       *part; int nparts;
    Node       *leaf;                                 /* [p->shards]: of the tree that adds metrics */
    bool        reduced;                              /* sums go through `grad`, updates follow */
    char       *fixed, *shard, *thread, *grad;
    CommSum     sum;
    int64_t    *posted;                               /* [buckets]: the number of the sum (comm_post_sum) */
    bool       *late; void *before;                   /* [buckets]: its update stands out, of the step that `before` shows */
    int64_t     shard_bytes, thread_bytes, grad_bytes;/* from one region to the next */
    double     *slot;                                 /* [slices of this rank][RT_METRICS] */
    int64_t     told;                                 /* the number of the gather of reports (comm_post_gather) */
    double     *report;                               /* [ranks][steps told at once][shards of a rank][RT_METRICS], [.. + 1]: one that stops */
    int         reports, at;                          /* steps told at once; the one at hand */
    int        *end;      /* [threads]: of the shares of the job at hand */
    double     *until;    /* [units of sums + 1]: predicted; NULL: all alike */
    double     *partial;  /* clipping by norm: squares, a block of sums each */
    struct Remote *remote; /* where the program's memory lies when a device runs it: fixed is a copy, shard and thread its addresses */
    void       *step;     /* several steps at once: what each of them sees */
    const Batch *ahead; int nahead; /* of the launch behind the next one */
    int         steps_most; /* --launch-steps: no more of them are one launch; 0: as many as the program says */
    struct Ticks *ticks;  /* ticks.h: bench --layers, --trace; NULL: not measured */
    double      metric[RT_METRICS];  /* of the last batch: sums over its valid samples */
    RtScaling   scaling;             /* in f16: as the last step has left it */
    int        *wrong;               /* 1: a token was read that is none (rt_tokens) */
    bool        of_others;           /* what net_steps has found not to be finite is another rank's loss */
    bool        stop, all_stop;      /* this rank was asked to stop; some rank was, as all know after a step */
} Net;

/* The hyper-parameters of one step. */
typedef struct Hyper { double lr; int64_t step; } Hyper;          /* step: finished ones */

/* keep_gradients: through gradient buffers even where the update could be fused (gradcheck,
 * grads).  Dies when the shards do not divide into the ranks, or groups. */
Net    *net_new(const RtProgram *p, Pool *pool, Comm *comm, int groups, bool keep_gradients);
int64_t net_bytes(const Net *n);                      /* what net_new maps: the plan */
int64_t net_bytes_alone(const RtProgram *p, int threads);         /* of one rank, without groups */

/* One training step.  False when the loss is not finite: nothing has been updated then.  Between ranks the sums of gradients may go on
 * when it returns, and each bucket is updated when the next step's forward pass comes to it. net_settle does what is left,
 * and so does first what evaluates, or fetches parameters. */
bool    net_step(Net *n, const Batch *b, Hyper h);
void    net_settle(Net *n);
/* Several steps as one launch, at most so many, and of `wanted` that nobody has to look at between them the first so many: a graph is of 1, 2,
 * 4 ... steps, so that a few of them do for any number.  net_steps returns how many were done before the first whose loss is not finite,
 * which has updated nothing, nor have those behind it.  Then n->metric of each in turn. */
int     net_steps_most(const Net *n);
int     net_steps_now(const Net *n, int64_t wanted);
int     net_steps(Net *n, const Batch *b, const Hyper *h, int count);
void    net_step_metrics(Net *n, int i);
/* Where a device's program has its samples: "gpu", "host" (feed.h), NULL: there where they fit; and how many steps are a launch at most,
 * 0: as many as the program says.  Before the first batch. */
void    net_samples(Net *n, const char *where, int64_t steps);
/* What the launch behind the next one will read, of stored samples, if it is known: fetched while that one runs. */
void    net_ahead(Net *n, const Batch *b, int count);
void    net_leave_word(Net *n);                 /* where it is another rank's loss: waits until that rank has said so and ends the run */
bool    net_gradients(Net *n, const Batch *b);  /* the same up to the sums, which stay in n->grad */

/* output: NULL or [batch][outputs] reals. */
void    net_evaluate(Net *n, const Batch *b, void *output);

/* What the tokens of a text leave for the one behind them. */
typedef struct Trail {
    char   *carried, *carry, *cache;                  /* as in Rt */
    int64_t position;
} Trail;
Trail   net_trail(const RtProgram *p);                /* of a text without tokens yet */

/* One token more; output: [classes] reals, what may come next. */
void    net_token(Net *n, Trail *t, int32_t token, void *output);

/* In f16, before a step: the loss's scale begins at `scale` and doubles after `every` good steps, 0: never; 0 and -1: as usual.
 * Behind a checkpoint: it goes on from what `fixed` holds, and dies when that was to move in another way. */
void    net_scale(Net *n, double scale, int64_t every);
void    net_scale_resumed(Net *n);

/* fixed was written here, where a device has another; fixed is to be read here. */
void    net_changed(Net *n);
void    net_fetch(Net *n);

/* Where in the forward pass of this batch the first value is not finite: an index into p->layer,
 * or -1. */
int     net_first_nonfinite(Net *n, const Batch *b);

/* -1: the program has no such metric. */
int     net_metric_index(const RtProgram *p, const char *name);

#endif
