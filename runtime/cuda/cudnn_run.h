/* cudnn_run.h -- a program's convolutions with cuDNN: graphs are prepared when the program starts,
 * and run between the launches of kernels.
 *
 * A graph is a line in the language of cudnn_graph.h.  Its first three tensors are two operands and
 * the result.  The fourth and fifth, if there are any, are a bias, a value that is added, the
 * output of a relu whose gradient is computed, or the destination of sums of the result.  The plan
 * of a graph is embedded.  If the plan is missing, or was made for another GPU, driver or cuDNN, it
 * is made again and kept for the next start (cudnn_load.h).
 */
#ifndef CUDNN_RUN_H
#define CUDNN_RUN_H
#include "rt.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct RtGraph {
    const char *graph;
    const char *plan; /* tenon-plan's text of `bytes` bytes; NULL: made at the first start */
    int64_t bytes;
} RtGraph;

typedef struct RtGraphCall {
    const char *layer; /* "conv1 (lenet.tn:8)", for messages */
    int graph;
} RtGraphCall;

/* Opens cuDNN and prepares the graphs of all calls; dies and names the layer if it cannot.  exact:
 * no tensor cores, and no rounding.  workspace: bytes of the workspace of each call; if a plan that
 * is made here needs more, it is allocated now. */
void rt_graphs_open(const RtGraph *graph, int ngraph, const RtGraphCall *call, int ncall,
                    bool exact, int64_t workspace);

/* Runs call `which` in the one stream; can be recorded.  c and d: the graph's fourth and fifth
 * tensor; NULL if it has none. */
void rt_graph(int which, const void *a, const void *b, void *result, const void *c, const void *d,
              void *workspace);

#ifdef __cplusplus
}
#endif
#endif
