/* cuda.h -- programs for GPUs. */
#ifndef CUDA_H
#define CUDA_H
#include "emit/emit.h"

extern const EmitTarget cuda_target;

/* A launch of a training step on a GPU, or a stage of a launch of many steps.  FLOPs, bytes and
 * predicted seconds are sums over all its runs in a step. */
typedef struct EmitLaunch {
    const Node *node;         /* node of its first call; NULL: the update, a metric */
    const char *what;         /* "conv2d + tanh" */
    const char *last;         /* the part of `what` for its last call */
    bool more;                /* `what` does not name all calls */
    const char *from_library; /* "cuDNN", "cuBLASLt"; NULL: kernels of Tenon */
    const EmitPlan *plan;     /* of a convolution by cuDNN */
    bool barrier;             /* a stage with a barrier before it */
    int64_t times, blocks;
    double flops, bytes, seconds;
} EmitLaunch;

/* A training step: sums over the calls of the program. */
typedef struct EmitStep {
    EmitLaunch *row;
    int n;
    int64_t launches, external_calls; /* launches and library calls of a step */
    int64_t stages, barriers;         /* of a step, with --kernels=persistent */
    int steps_most;                   /* largest number of steps of a launch, with
                                       * --kernels=persistent */
    int64_t workspace, samples;       /* bytes after the scratch */
    double seconds;                   /* predicted by a roofline */
    const char *said; /* with --kernels=persistent: the prediction in words, as in the program */
} EmitStep;
EmitStep emit_step(Arena *a, const EmitInput *in);

/* Stores the graphs of the convolutions, without duplicates and before planning, in *plan;
 * returns their number. */
int emit_plans(Arena *a, const EmitInput *in, EmitPlan **plan);
/* Sets the chosen variant of p: the index of the first one that has an engine. */
void emit_plan_take(Arena *a, EmitPlan *p, int variant);
/* Writes the C file that embeds the plans. */
void emit_plans_text(const EmitPlan *plan, int n, Text *out);

#endif
