/* nans.h -- counts the samples of a split whose outputs have a NaN.
 *
 * Comparisons with NaN are false, so a NaN is easily taken for class 0 or for "no".  Metrics never
 * count such an output as right (compared_best); this count tells the user why.
 */
#ifndef NANS_H
#define NANS_H
#include "comm/comm.h"
#include "step/net.h"
#include "train/evaluate.h"

typedef struct Nans {
    OutputReader reader; /* for evaluate_split */
    const RtProgram *p;
    Pool *pool;
    Comm *comm;
    bool *found;    /* of a batch, this rank's samples */
    int64_t *count; /* [ranks] */
    int64_t all;    /* after nans_end */
} Nans;

/* NULL: texts, whose outputs are large.  A NaN is seen in their loss. */
Nans *nans_new(const RtProgram *p, Pool *pool, Comm *c);
void nans_end(Nans *n); /* after the last batch: adds the counts of all ranks */

#endif
