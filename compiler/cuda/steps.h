/* steps.h -- many training steps of a GPU's program in one launch, or in one CUDA graph. */
#ifndef CUDA_STEPS_H
#define CUDA_STEPS_H
#include "cuda/stage.h"

/* --kernels=persistent, when the phases of training are written: the kernel of many steps, into
 * Writer.steps; the same counted, a row for each stage. */
void steps_write(Writer *w);
void steps_count(Writer *w, EmitStep *e);
void steps_of_graph(Writer *w);         /* otherwise: how many steps are one graph at most */
const char *steps_row(const Writer *w); /* of the program's table; NULL: none */
/* Whether a step can be one launch; reports the obstacle. */
bool steps_able(const EmitInput *in, Diag *d);

#endif
