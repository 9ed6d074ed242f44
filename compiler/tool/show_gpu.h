/* show_gpu.h -- what `tenon show --target cuda` prints: the step as launches, and what memory it wants. */
#ifndef SHOW_GPU_H
#define SHOW_GPU_H
#include "front/front.h"
#include "tool/command.h"

/* Plans every cuDNN graph (or finds it in the cache) and prints a row a launch, the predicted time and the memory.  False after an
 * error: a graph without an engine is reported at its line. */
bool show_gpu(Arena *a, const Command *c, Graph *train, Diag *d);

#endif
