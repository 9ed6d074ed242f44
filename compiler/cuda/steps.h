/* steps.h -- many training steps of a GPU's program in one launch, or in one CUDA graph. */
#ifndef CUDA_STEPS_H
#define CUDA_STEPS_H
#include "cuda/price.h"

/* --kernels=persistent, when the phases of training are written: the kernel of many steps, into
 * Writer.steps; the same counted, a row for each stage. */
void steps_write(Writer *w);
void steps_count(Writer *w, EmitStep *e);
void steps_of_graph(Writer *w);         /* otherwise: how many steps are one graph at most */
const char *steps_row(const Writer *w); /* of the program's table; NULL: none */
/* Whether a step can be one launch; reports the obstacle. */
bool steps_able(const EmitInput *in, Diag *d);

/* ---- stage.c: the calls of a step as stages of one kernel, and the barriers between them */

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

/* ---- own.c: parameters that the threads which sum their gradients update, and keep on the chip */

/* Writer.owned: which of the step's sums, from the calls so far. */
void own_choose(Writer *w, const CudaCalls *l);
void own_lower(Writer *w); /* their update, at the end of a step */
/* n's call with the update inside, as c->with_update. */
void own_lower_product(Writer *w, const Node *n, CudaCall *c);
bool own_can_update(Writer *w, const Stages *s, CudaCall *c); /* may that one stand here? */
bool own_is_updated(const Stages *s, const CudaCall *c);      /* has a product made this update? */
/* Of the update of a sum, by all blocks (cluster = 0) or by one cluster. */
CallPrice own_price(const Writer *w, int sum, int cluster);
void own_spell(Writer *w, Text *t); /* what the kernel of many steps wants to know of them */
const char *own_said(const Writer *w, int cluster);

#endif
