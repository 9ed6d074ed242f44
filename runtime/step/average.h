/* average.h -- averages of the trained weights, beside the weights: the key `average` of the
 * recipe.
 *
 *   ema(decay)   a += (1 - decay) (w - a)   after each step; a = w after the first one
 *   swa(from)    a += (w - a) / (n + 1)     after each epoch from epoch `from` on; n = epochs that
 *                                           the average has before
 *
 * The averages have the layout of `fixed`.  They lie in the host's memory.  For ema on a device,
 * they lie after the states in `fixed`, of which the host has a copy (on_device.c).  Running
 * averages of batch_norm and frozen parameters have no average of their own.  For an evaluation,
 * averages and weights exchange their places.  Source: torch.optim.swa_utils.
 */
#ifndef AVERAGE_H
#define AVERAGE_H
#include "base/threads.h"
#include "rt.h"

typedef struct Average {
    const RtProgram *p;
    Pool *pool;
    char *memory;   /* the bytes of all parameters */
    bool *averaged; /* [nparam]: the parameter has an average */
    struct AveragePiece *piece;
    int *first;     /* [buckets + 1]: the first piece of a bucket's parameters */
    bool begun;     /* there is an average */
    int64_t epochs; /* swa: finished epochs when the weights were added last */
    bool shown;     /* the averages are in the place of the weights */
} Average;

/* NULL: the recipe has no `average`. */
Average *average_new(const RtProgram *p, Pool *pool, char *fixed);

/* ema: the share of the weights in their new average, in the step after `step` finished ones. */
double average_share(const RtProgram *p, int64_t step);
/* Records that the device has averaged the weights of a step. */
void average_stepped(Average *a);

/* Updates the averages after the update of a bucket (-1: of all parameters), in the step after
 * `step` finished ones. */
void average_step(Average *a, const char *fixed, int bucket, int64_t step);
/* Updates the averages after an epoch.  epochs: number of finished epochs, with this one.  An epoch
 * is added once, also if its evaluation failed and a resumed run repeats it. */
void average_epoch(Average *a, const char *fixed, int64_t epochs);
/* To be called after a checkpoint is loaded: finds out whether its averages have begun.  epochs: as
 * a->epochs; steps: finished ones. */
void average_resumed(Average *a, int64_t epochs, int64_t steps);
/* To be called before a checkpoint is saved: averages that have not begun become equal to the
 * weights. */
void average_fill(Average *a, const char *fixed);
void average_exchange(Average *a, char *fixed);

#endif
