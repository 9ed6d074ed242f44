/* net.h -- a program with its memory, and the operations on it: training steps, evaluation, one
 * token at a time.
 *
 * The memory is laid out as rt.h says: fixed | one region a shard | one region a thread | scratch
 * of each thread, if threads share regions | one gradient buffer a part | scratch of sums over
 * ranks.
 * The memory is the host's or a device's.  With a device, the host has a copy of `fixed`
 * (on_device.c).
 *
 * This rank's shards form parts.  A part is one of the largest nodes of the tree (comm/tree.h) that
 * contain only shards of this rank; with --groups, only shards of one simulated rank.  Usually
 * there is one part.
 */
#ifndef NET_H
#define NET_H
#include "base/threads.h"
#include "comm/comm.h"
#include "data/data.h"
#include "rt.h"

typedef struct Net {
    const RtProgram *p;
    Pool *pool;
    Comm *comm;
    int first, shards; /* this rank's shards: first .. first + shards - 1 of p->shards */
    Node *part;
    int nparts;
    bool reduced;                                  /* sums go through `grad`; updates follow */
    char *fixed, *grad;                            /* in the host's memory */
    char *shard, *thread;                          /* in the device's memory, if there is one */
    int64_t shard_bytes, thread_bytes, grad_bytes; /* from one region to the next */
    int64_t sum_bytes;                             /* scratch of sums over ranks */
    double *slot;                                  /* [slices of this rank][RT_METRICS] */
    double metric[RT_METRICS];                     /* sums over the last batch's valid samples */
    RtScaling scaling;                             /* in f16: after the last step */
    int *wrong;               /* 1: a token was not in the vocabulary (rt_tokens) */
    bool stop, all_stop;      /* this rank was asked to stop; any rank was asked */
    struct Ticks *ticks;      /* bench --layers, --trace; NULL: not measured */
    const struct NetOps *ops; /* step.h */
    struct NetHost *host;     /* on_host.c, or NULL */
    struct NetDevice *device; /* on_device.c, or NULL */
    struct Reports *reports;  /* report.c */
    struct Average *average;  /* net_average_open; NULL: there are no averages of the weights */
} Net;

/* The hyper-parameters of one step. */
typedef struct Hyper {
    double lr;
    int64_t step;
} Hyper; /* step: number of finished steps */

/* keep_gradients: sums go through gradient buffers, even if the update could be fused
 * (gradcheck, grads).  Dies if the number of ranks, or of groups, does not divide the shards. */
Net *net_new(const RtProgram *p, Pool *pool, Comm *comm, int groups, bool keep_gradients);
/* Thread regions: only slices use them (rt_regions); a device has one. */
int net_regions(const RtProgram *p, int threads, int shards);
int64_t net_bytes(const Net *n);                          /* planned bytes: what net_new maps */
int64_t net_bytes_alone(const RtProgram *p, int threads); /* of one rank, without groups */

/* One training step.  False when the loss is not finite: then nothing has been updated.  Sums of
 * gradients between ranks may be pending when it returns; the next step updates each bucket
 * before the first phase that needs it.  net_settle completes them; evaluation and net_fetch
 * call it first. */
bool net_step(Net *n, const Batch *b, Hyper h);
void net_settle(Net *n);
/* Computes the sums of a step, as net_step does, without an update.  The sums stay in n->grad. */
bool net_gradients(Net *n, const Batch *b);

/* Several steps as one launch of a device.  net_steps_most: the largest number of steps of a
 * launch.  net_steps_now: how many of the next `wanted` steps one launch makes; the host has
 * nothing to do between these steps.  (A graph has 1, 2, 4 ... steps, so that a few graphs serve
 * any number of steps.)  net_steps returns the number of steps before the first whose loss is not
 * finite; that step and later ones have updated nothing.  After that, net_step_metrics sets
 * n->metric to the metrics of step i of the launch, counted from 0. */
int net_steps_most(const Net *n);
int net_steps_now(const Net *n, int64_t wanted);
int net_steps(Net *n, const Batch *b, const Hyper *h, int count);
void net_step_metrics(Net *n, int i);
/* To be called before the first batch. where: the memory in which a device's program keeps its
 * samples ("gpu", "host" (device/feed.h), NULL: on the device if they fit), and the largest number
 * of steps of a launch (0: as many as the program allows). */
void net_samples(Net *n, const char *where, int64_t steps);
/* The batches of the launch after the next one, if they are known: their samples are prefetched
 * during the next launch. */
void net_ahead(Net *n, const Batch *b, int count);
/* If another rank's loss is not finite: waits until that rank has reported it, which ends the
 * run. */
void net_await_failure(Net *n);

/* Evaluates a batch. output: NULL or [batch][outputs] reals. */
void net_evaluate(Net *n, const Batch *b, void *output);

/* The state that the tokens of a text leave for the next token. */
typedef struct Trail {
    char *carried, *carry, *cache; /* as in Rt */
    int64_t position;
} Trail;
Trail net_trail(const RtProgram *p); /* of an empty text */

/* The next token of a text; output: [classes] reals, for the token after it. */
void net_token(Net *n, Trail *t, int32_t token, void *output);

/* In f16, before a step: the loss scale begins at `scale` and doubles after `every` good steps
 * (0: never).  scale 0 and every -1 mean the defaults. */
void net_scale(Net *n, double scale, int64_t every);
/* After a checkpoint has been read: continues with the scale in `fixed`.  Dies if the checkpoint
 * has another `every`, or another scale that never changes. */
void net_scale_resumed(Net *n);

/* Call net_changed after a write to `fixed`, and net_fetch before a read of it, because a device
 * has a copy of its own. */
void net_changed(Net *n);
void net_fetch(Net *n);

/* average = ...: from now on, steps also average the weights.  To be called once, before the first
 * step of a training. */
void net_average_open(Net *n);
/* After an epoch.  epochs: number of finished epochs, including this one. */
void net_average_epoch(Net *n, int64_t epochs);
/* shown: puts the averages in the place of the weights, for evaluations; not shown: puts the
 * weights back, for the next step.  Does nothing if there are no averages, or if this has been
 * done. */
void net_show_average(Net *n, bool shown);

/* The first value of this batch's forward pass that is not finite: an index into p->layer, or
 * -1. */
int net_first_nonfinite(Net *n, const Batch *b);

/* -1: the program has no such metric. */
int net_metric_index(const RtProgram *p, const char *name);

#endif
