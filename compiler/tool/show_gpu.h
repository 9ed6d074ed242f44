/* show_gpu.h -- what `tenon show --target cuda` prints: the step as launches, and what memory it wants. */
#ifndef SHOW_GPU_H
#define SHOW_GPU_H
#include "emit/emit.h"
#include "front/front.h"
#include "tool/command.h"

/* Plans every cuDNN graph (or finds it in the cache) and prints a row a launch, the predicted time and the memory.  False after an
 * error: a graph without an engine is reported at its line. */
bool show_gpu(Arena *a, const Command *c, Graph *train, Diag *d);

/* With --kernels=cudnn: the convolutions of the program that `build` makes, a row a graph: what is inside of it, what is a kernel of ours
 * behind it. */
void show_graphs(Arena *a, const Command *c, const EmitPlan *plan, int n, bool planned);

#endif
