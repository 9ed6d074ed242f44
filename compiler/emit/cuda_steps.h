/* cuda_steps.h -- --kernels=persistent: many training steps of a GPU's program in one launch (runtime/cuda/persistent.cuh).
 *
 * A call of a kernel is a stage.  While Writer.stages is set kernel_launch() writes calls of stages, and target_cuda.c hands them to stage_write(),
 * which puts a place to meet before one that reads or writes what another has written or read since they last met; or, where a step is launches,
 * to group_write() (cuda_group.h), which begins a new launch there.
 */
#ifndef CUDA_STEPS_H
#define CUDA_STEPS_H
#include "emit/cuda_library.h"
#include "emit/nest.h"

/* Behind the phases of training: the stages of a step and the kernel of many, into Writer.steps; or, without that option, how many
 * steps are one graph at most; the row of the program's table. */
void steps_write(Writer *w);
void steps_of_graph(Writer *w);
void steps_row(const Writer *w, Text *t);

/* Stages are being written: of a step that is one launch with others; of launches of several (cuda_group.h). */
bool stage_together(const Writer *w);
bool stage_groups(const Writer *w);
/* A statement of stages, under what is known of their arguments; unordered: it touches nothing that the others of its phase touch. */
void stage_write(Writer *w, const char *statement);
void stage_unordered(Writer *w, const char *statement);
/* Blocks meet before the next stage, whatever it is. */
void stage_meet(Writer *w);
/* As a statement, for a stage made of several. */
const char *stage_meeting(const Writer *w);
/* Of the statement that is being made, how its numbers are shared out over threads.  Elementwise: in which order its loop is to go, as the text
 * that opens it ("dense_results(Dense{ ... }"), NULL: as any (FOR_EACH).  A block a sum; a kernel of runtime/cuda. */
const char *stage_elementwise(Writer *w, const Nest *t, const Node *n, int64_t count);
/* A move, whose loops go through so many numbers each: bit i of `which`, that its i'th argument is these in order. */
void stage_move(Writer *w, int64_t count, unsigned which);
bool stage_in_order(const Nest *t, const int64_t *stride);
/* The same as stage_elementwise of y = x, one of which may be an element of a sequence, as a walk; NULL: any. */
const char *stage_scan(Writer *w, const Node *n, const char *fn);
/* Blocks that a loop in that order takes. */
const char *stage_order_blocks(Arena *a, const char *order);
void stage_sums(Writer *w, const Nest *t, const Node *n, int64_t kept);
void stage_kernel(Writer *w, const Node *n, const char *fn, const char *sizes);
/* Where the threads that have made dy can go on with a pooling's gradient: a walk through their results, as runtime/cuda/results.cuh wants it; NULL: any threads do. */
const char *stage_pool(Writer *w, const Node *n, const char *fn, const char *size);

/* In target_cuda.c, for either: calls of a phase that are no node's. */
void cuda_clear_sums(Writer *w, int phase, bool backward);
void cuda_phases(Writer *w);                          /* of training; counts the launches of a step */
const char *cuda_metric(Writer *w, int i);            /* the statement that tells it */
void cuda_update(Writer *w, bool from_grad);
int  cuda_loss(const Graph *g);                       /* which metric; -1: none */
const char *cuda_rule(const Graph *g);                /* of the optimizer: "update_sgd" */
int  stage_shared(const Writer *w);                   /* bytes of shared memory, for one stage after another */

#endif
