/* launch.h -- a training step as launches on a GPU: which nodes share one, and which library computes it.
 *
 * Convolutions and attention go to cuDNN as graphs with what follows them fused, products to cuBLASLt with its epilogues, the rest to
 * kernels of our own, chains of elementwise operations as one.  Before pass fuse, whose patterns are the processor's: the graph is that
 * of --target cuda.
 */
#ifndef LAUNCH_H
#define LAUNCH_H
#include "base/text.h"
#include "ir/gpu.h"
#include "ir/graph.h"

typedef enum { BY_CUDNN, BY_CUBLAS, BY_KERNEL, BY_VIEW } LaunchBy;

typedef struct Launch {
    LaunchBy by;
    const Node *node;    /* whose name and line it bears */
    const char *pattern; /* "conv2d + bias + relu" */
    const char *ways; /* cuDNN: launch_ways() */
    int nfused;
    const Node *fused[2];
    double operations, bytes; /* of one launch */
    double rest_bytes;        /* of a kernel for what a later way leaves out */
    int64_t times;            /* launches a step: in a loop over time once a turn */
    int nread, nwrite;
    const Node **read, **write; /* values, in whichever memory they lie */
    int last;                   /* node of the list behind which it stands */
} Launch;

/* The launches of a training step, in order; returns how many. */
int launch_list(Arena *a, Graph *train, GpuType t, Launch **out);
double launch_bytes(const Graph *g, GpuType t,
                    const Node *n); /* of its value, as it lies in memory */

/* launch_memory.c: bytes of activations and their gradients, planned; *bound: what lives at once, which no plan is below. */
int64_t launch_memory(Arena *a, const Graph *train, GpuType t, const Launch *launch, int n,
                      int64_t *bound);
/* Parameters, gradients, optimizer's states, and a copy of parameters in the tensors' type. */
int64_t launch_fixed(const Graph *train, GpuType t);

/* How images and filters lie: as they are counted, or channels innermost; of these, parts of a value's channels where they are in it. */
typedef enum { LAUNCH_ROW, LAUNCH_LAST, LAUNCH_PARTS } LaunchOrder;

/* launch_graph.c: a node as a graph of cuDNN's, with so many of `fused`; the words are runtime/cuda/cudnn_graph.h's.  `fused`: ops
 * that follow a convolution (bias, add, activation, batch_moments) or its gradient (relu_d).  Tensors 1 to 3 are two operands and the result, 4 a
 * bias, which is of the type of n's third input, without one f32; behind it what is added, or the sums, or the value whose relu is undone. */
const char *launch_graph(Arena *a, int64_t batch, GpuType t, LaunchOrder order, const Node *n,
                         const char *const *fused, int nfused);
/* With all of `fused`, then with one fewer, and so on to none, split at " | "; number `way` of these. */
const char *launch_ways(Arena *a, int64_t batch, GpuType t, LaunchOrder order, const Node *n,
                        const char *const *fused, int nfused);
const char *launch_way(Arena *a, const char *ways, int way);

#endif
