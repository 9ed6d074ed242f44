/* launch.h -- which calls of a GPU's program share a launch. */
#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H
#include "cuda/call.h"

/* A node of a phase: its calls behind those in Writer.list, and the metric that it is. */
void launch_node(Writer *w, const Node *n, int *line, const char *indent);
/* Numbers the launches of Writer.list, with metrics where they share one; the list comes back in
 * its new order. */
CudaCalls *launch_share(Writer *w);
int64_t launch_count(const CudaCalls *l); /* how many launches a step makes of it */

#endif
