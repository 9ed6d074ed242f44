/* launch.h -- which calls of a GPU program share a launch or a loop, and which read packs. */
#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H
#include "cuda/call.h"

/* Adds the calls of a node of a phase to CudaState.list, and the call for its metric. */
void launch_node(Writer *w, const Node *n, int *line, const char *indent);
/* Numbers the launches of CudaState.list and their loops, and puts metrics where they can share a
 * launch.  Returns the list in its new order. */
CudaCalls *launch_share(Writer *w);
/* Lets threads read and write packs of adjacent numbers in loops over many numbers.  The order of
 * such a call becomes WALK_PACKS.  The order of an operand becomes WALK_PACKS, too, if a thread can
 * access the operand in packs. */
void launch_pack(Writer *w, CudaCalls *l);
int64_t launch_count(const CudaCalls *l); /* number of launches in a step */

#endif
