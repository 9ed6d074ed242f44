/* stage.h -- --kernels=persistent: the calls of a step as stages of one kernel, and the
 * barriers between them. */
#ifndef CUDA_STAGE_H
#define CUDA_STAGE_H
#include "cuda/price.h"

enum { CLUSTER = 16 }; /* blocks of the largest cluster */

/* A step as it has been scheduled. */
typedef struct Stages {
    CudaCalls *out;     /* the calls in order, with metrics behind a barrier after their values */
    Pending pending;    /* since the last barrier */
    bool must, barrier; /* a barrier stands before the next call: it is wanted; it is there */
    int64_t stages, barriers; /* of a step, as they are executed */
    double all, few;          /* seconds of work, by all of the GPU and by one cluster */
    CudaCall *metric[4];      /* not written yet */
    unsigned written;         /* metrics of this phase: a bit each */
    bool *done;               /* nodes by id: a stage has computed it */
    bool *updated; /* the step's sums: the product that computes it updates its parameter */
    int phase;
} Stages;

/* A step behind one that has left these operands without a barrier; NULL: behind a barrier. */
void stage_schedule(Writer *w, const CudaCalls *list, const Pending *last, Stages *s);
/* Predicted seconds of a run by all blocks (cluster = 0), or by one cluster; *p: its price. */
double stage_seconds(const Writer *w, const CudaCall *c, int cluster, CallPrice *p);

#endif
