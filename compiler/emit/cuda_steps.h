/* cuda_steps.h -- many training steps of a GPU's program in one launch, or in one CUDA graph. */
#ifndef CUDA_STEPS_H
#define CUDA_STEPS_H
#include "emit/cuda_stage.h"

/* --kernels=persistent, when the phases of training are written: the kernel of many steps, into
 * Writer.steps. */
void steps_write(Writer *w);
void steps_of_graph(Writer *w); /* otherwise: how many steps are one graph at most */
void steps_row(const Writer *w, Text *t);             /* of the program's table */

/* target_cuda.c */
void cuda_clear_sums(Writer *w, int phase, bool backward);
void cuda_phases(Writer *w); /* of training; counts the launches of a step */

#endif
