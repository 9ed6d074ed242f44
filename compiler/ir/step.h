/* step.h -- the planned step: passes schedule and plan make it from a graph, and emitters print
 * it.
 *
 * The batch has G shards, a shard has a few slices, and a slice has a few chunks (of at most 16
 * samples, if a divisor of the slice allows it).  A slice is a unit of work and has its own partial
 * sums; kernels are specialised for the size of a chunk.  A step is a list of phases, with a
 * barrier between two phases:
 *
 *   prepare    values that depend on parameters only (packed weights), once per step
 *   slice      a unit is a slice: forward, loss, backward, partial sums over samples.  There are
 *              several slice phases if a layer needs the sums of its shard (batch_norm), if there
 *              are wide phases, or if ranks add buckets (passes/levels.c)
 *   wide       between two slice phases: a large dense layer for all samples of all shards; a
 *              unit is a few panels (passes/wide.c)
 *   gradient   a unit is a panel or a range: sums over slices and shards in the fixed tree, and
 *              the update
 *   update     the update alone, when a reduction over ranks or clipping by norm comes before it
 */
#ifndef STEP_H
#define STEP_H
#include "ir/graph.h"
#include "runtime/constants.h"

typedef enum { PHASE_PREPARE, PHASE_SLICE, PHASE_GRADIENT, PHASE_UPDATE, PHASE_WIDE } PhaseKind;
extern const char *const phase_kinds[]; /* their names: "prepare", "slice" ... (ir/dump.c) */
typedef struct Phase {
    PhaseKind kind;
    /* slice: its index, counted from 0; prepare and wide: that of the slice phase after them */
    int level;
    int nnode;
    Node **node; /* in the order of their calls */
    int nknown;
    Node **known; /* slice: values of each shard that all ranks need after the phase (OP_KNOWN) */
} Phase;

/* A planned piece of memory of a shard region or of a thread region.  `bytes` is the size in one
 * such region: for BATCH the samples of a shard, for PARTIAL all slices of a shard, for LOCAL one
 * chunk. */
typedef struct Buffer {
    const Node *node; /* the first of the nodes that share it */
    const char *name; /* for pictures and tables */
    Place place;
    int64_t bytes, offset;
    int first, last; /* lifetime: call numbers (LOCAL) or phase numbers, inclusive */
} Buffer;

/* A sum over samples: the gradient of a parameter, or a statistic. */
typedef struct Sum {
    Node *root;   /* the OP_SUM node, or the add of several, that computes the sum */
    Param *param; /* the parameter whose whole gradient is this sum, or NULL */
    Node *update; /* the update that reads the sum, directly or through an OP_KNOWN; or NULL */
    bool total;   /* a later slice phase reads the sum of the shard (batch_norm) */
    bool known;   /* the update reads the sums of all shards, without another reduction */
    /* true: computed over all shards at once, by panels of outputs (dense_dw), by blocks of filters
     * (conv2d_dw) or by rows of a table; false: computed for each slice and added by the tree */
    bool panels;
    bool stored;    /* panels: x is the input batch; the kernel reads the stored samples again */
    int64_t count;  /* reals in memory */
    int64_t offset; /* bytes in the gradient buffer */
} Sum;

/* Whether the update of this sum's parameter needs a trust ratio: a matrix or filters, but no bias
 * and no scale of a normalization layer. */
static inline bool sum_trusts(const Graph *g, const Sum *s)
{
    return s->param && s->param->file.rank > 1 && optimizer_trusts(&g->recipe.optimizer);
}

/* Neighbouring sums that ranks add in one operation. */
typedef struct Bucket {
    int first, sums;       /* indices of Step.sum */
    int64_t offset, bytes; /* in the gradient buffer */
    int ready;             /* the slice phase after which its sums are complete */
    /* the phase of the next step that first needs the updated parameters */
    int due;
} Bucket;

typedef struct Step {
    /* samples of the batch; shards of the batch; samples of a shard; slices of a shard; samples
     * of a slice; samples of a chunk */
    int64_t batch, shards, shard, slices, slice, chunk;
    int nphase;
    Phase *phase;
    int nsum, ngradient; /* gradients first, then the statistics for running averages */
    Sum *sum;
    int nbucket;
    Bucket *bucket;
    bool fused_update;
    bool late; /* ranks: updates of buckets run in the forward pass of the next step */
    int nbuffer;
    Buffer *buffer;
    /* of training; evaluation uses the same arena and fits into it */
    int64_t fixed_bytes, shard_bytes, thread_bytes, grad_bytes;
    /* scratch of kernels (Op.scratch): its offset in the thread region (0: none), and its bytes */
    int64_t scratch_at, scratch_bytes;
    int64_t parameter_bytes, state_bytes; /* parts of fixed_bytes */
    int64_t average_bytes; /* average = ...: averages of the parameters, in the host's memory */
    /* ema on a device: the offset of the averages in `fixed`, among the states; 0: none there */
    int64_t average_offset;
    int64_t kept_bytes; /* keep = best(...): a copy of the parameters, in the host's memory */
    /* --dtype f16: offset of the loss scale, among the states; 0: none */
    int64_t offset_scaling;
    int again; /* number of values that the backward pass recomputes (pass recompute) */
    const struct Step *without;        /* the plan of memory that stores these values instead */
    int64_t bound_shard, bound_thread; /* the largest live set: a lower bound for any plan */
} Step;

/* The largest number of thread regions of a program.  Only slices use thread regions. */
int step_regions(const Step *s, int threads);
/* Number of thread regions of a program whose slice phases have these n predicted times. */
int step_regions_of(const Step *s, int threads, const RtTeamCost *phase, int n);
/* Bytes of the thread regions.  With more threads than regions, threads share slices in teams, and
 * each thread has its own scratch. */
int64_t step_thread_bytes(const Step *s, int threads, int regions);
/* Bytes of the whole program: fixed + shards * shard + thread regions + averages + kept (+ grad
 * when the update is not fused); step_bytes counts step_regions regions, and step_bytes_of counts
 * `regions` regions. */
int64_t step_bytes(const Step *s, int threads);
int64_t step_bytes_of(const Step *s, int threads, int regions);

#endif
