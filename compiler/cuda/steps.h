/* steps.h -- many training steps of a GPU program in one launch, or in one CUDA graph. */
#ifndef CUDA_STEPS_H
#define CUDA_STEPS_H
#include "cuda/price.h"

/* For --kernels=persistent, after the phases of training are written: writes the kernel of many
 * steps to CudaState.steps. */
void steps_write(Writer *w);
/* Counts the stages of this kernel, with a row for each stage. */
void steps_count(Writer *w, EmitStep *e);
/* Without --kernels=persistent: sets the largest number of steps in one CUDA graph. */
void steps_of_graph(Writer *w);
void steps_fields(const Writer *w, Text *t); /* writes fields of RtProgram */
/* Whether a step can be one launch; reports the obstacle. */
bool steps_able(const EmitInput *in, Diag *d);

/* ---- stage.c: the calls of a step as stages of one kernel, and the barriers between them */

enum { CLUSTER = 16 }; /* blocks of the largest cluster */

/* A scheduled step. */
typedef struct Stages {
    CudaCalls *out;  /* the calls in order; a metric comes after a barrier that follows its value */
    Pending pending; /* operands since the last barrier */
    bool must, barrier;       /* before the next call: a barrier is needed; a barrier is added */
    int64_t stages, barriers; /* executed stages and barriers of a step */
    double all, few;          /* seconds on the whole GPU, and on one cluster */
    CudaCall *metric[RT_METRICS]; /* pending metrics */
    unsigned written;             /* metrics of this phase that are written, one bit each */
    bool *done;                   /* by id of a node: a stage has computed it */
    bool *updated; /* by index of a sum: the product that computes the sum updates its parameter */
    int phase;
} Stages;

/* Schedules a step after a step that has left the operands `last` without a barrier; NULL: after a
 * barrier. */
void stage_schedule(Writer *w, const CudaCalls *list, const Pending *last, Stages *s);
/* Predicted seconds of a run on all blocks (cluster = 0), or on one cluster; *p gets the price. */
double stage_seconds(const Writer *w, const CudaCall *c, int cluster, CallPrice *p);

/* ---- own.c: parameters in shared memory, updated by the threads that add their gradients */

/* Sets CudaState.owned, the sums of such parameters, from the calls so far. */
void own_choose(Writer *w, const CudaCalls *l);
void own_lower(Writer *w); /* adds their updates, at the end of a step */
/* Sets c->with_update: the call of n that also updates. */
void own_lower_product(Writer *w, const Node *n, CudaCall *c);
bool own_can_update(Writer *w, const Stages *s, CudaCall *c); /* whether the update can run here */
/* The price of the update of a sum, on all blocks (cluster = 0) or on one cluster. */
CallPrice own_price(const Writer *w, int sum, int cluster);
void own_spell(Writer *w, Text *t); /* writes the declarations for the kernel of many steps */
const char *own_said(const Writer *w, int cluster);

#endif
