/* step.h -- the step program: what the passes schedule and plan make of a graph, and the emitters print.
 *
 * The batch is G shards, a shard is a few slices (the unit of work, and of partial sums), a slice a few chunks of the
 * 8-16 samples for which kernels are specialised.  A step is a list of phases with a barrier between two:
 *
 *   prepare    once a step: what depends on parameters only (packed weights)
 *   slice      a unit a slice: forward, loss, backward; sums over samples go to the slice's own place.  Several, where a
 *              layer needs its shard's sums before it can go on (batch norm): each op runs in the first phase it can
 *   wide       between two of these: a large dense layer for all samples of all shards, a unit a few panels (passes/wide.c)
 *   gradient   units over panels and ranges: sums over slices and shards in the fixed tree, and the update inside
 *   update     the update alone, from reduced gradients: only where something stands between (ranks, clipping by norm)
 */
#ifndef STEP_H
#define STEP_H
#include "ir/graph.h"

typedef enum { PHASE_PREPARE, PHASE_SLICE, PHASE_GRADIENT, PHASE_UPDATE, PHASE_WIDE } PhaseKind;
typedef struct Phase {
    PhaseKind   kind;
    int         level;                                /* of a slice phase, and of phases before it: index, counted from 0 */
    int         nnode;
    Node      **node;                                 /* in the order of their calls */
    int         nknown;
    Node      **known;                                /* slice: what each shard has behind it, for all ranks (OP_KNOWN) */
} Phase;

/* A planned piece of memory.  For FIXED and LOCAL `bytes` is the whole; BATCH: one shard's worth; PARTIAL: a slice's. */
typedef struct Buffer {
    const Node *node;                                 /* the first of the nodes that share it */
    const char *name;                                 /* for pictures and tables */
    Place       place;
    int64_t     bytes, offset;
    int         first, last;                          /* lifetime: call numbers (LOCAL) or phase numbers, inclusive */
} Buffer;

/* How one parameter gets its gradient. */
typedef struct Sum {
    Node   *root;                                     /* the OP_SUM node, or the add of several, whose value is the sum */
    Param  *param;                                    /* whose whole gradient it is, or NULL */
    Node   *update;                                   /* the update that follows directly, or NULL */
    bool    total;                                    /* a later slice phase reads the shard's sum (batch norm), */
    bool    known;                                    /* and the update what all shards have: no reduction of its own */
    bool    panels;                                   /* dense_dw run by output panels, conv2d_dw in squares, over all shards; else slices + tree */
    bool    stored;                                   /* of these: x is the batch's samples, read again where they are stored */
    int64_t count;                                    /* reals in memory */
    int64_t offset;                                   /* bytes in the gradient buffer */
} Sum;

/* A few neighbours of the sums, which ranks add as one. */
typedef struct Bucket {
    int     first, sums;                              /* of Step.sum */
    int64_t offset, bytes;                            /* of the gradient buffer */
    int     ready;                                    /* the slice phase behind which its sums are complete */
    int     due;                                      /* the phase of the next step before which its parameters are updated at the latest */
} Bucket;

typedef struct Step {
    int64_t batch, shards, shard, slices, slice, chunk;   /* shards in the batch; samples a shard; slices a shard; samples a slice; samples a chunk */
    int     nphase;
    Phase  *phase;
    int     nsum, ngradient;                          /* gradients first, then what running averages follow */
    Sum    *sum;
    int     nbucket;
    Bucket *bucket;
    bool    fused_update;
    bool    late;                                     /* ranks: a bucket's update waits for the next step's forward pass */
    int     nbuffer;
    Buffer *buffer;
    int64_t fixed_bytes, shard_bytes, thread_bytes, grad_bytes;   /* of training: evaluation, which shares the arena, fits in */
    int64_t scratch_at;                               /* in a thread's region: what its kernels make and forget (Op.scratch); 0: none does */
    int64_t parameter_bytes, state_bytes;             /* parts of fixed_bytes */
    int64_t offset_scaling;                           /* --dtype f16: the loss's scale, among the states; 0: there is none */
    int     again;                                    /* values that pass recompute has the backward pass make again */
    int64_t bytes_without;                            /* what the program would need if it kept them */
    int64_t bound_shard, bound_thread;                /* the largest live set: no plan can be smaller */
} Step;

/* Bytes of the whole program: fixed + shards * shard + threads * thread (+ grad when the update is not fused). */
int64_t step_bytes(const Step *s, int threads);

#endif
