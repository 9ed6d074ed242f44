/* show_gpu.h -- what `tenon show --target cuda` prints: the launches of a step, and its memory. */
#ifndef SHOW_GPU_H
#define SHOW_GPU_H
#include "emit/emit.h"
#include "front/front.h"
#include "tool/command.h"

/* Plans every cuDNN graph, or finds its plan in the cache.  Prints a row for each launch, the
 * predicted time and the memory.  Returns false after an error: a graph without an engine is
 * reported at its line. */
bool show_gpu(Arena *a, const Command *c, Graph *train, Diag *d);

/* With --kernels=cudnn: prints the convolutions of the program that `build` makes, a row for each
 * graph: what is inside of the graph, and what is a kernel of Tenon after it. */
void show_graphs(Arena *a, const Command *c, const EmitPlan *plan, int n, bool planned);

#endif
