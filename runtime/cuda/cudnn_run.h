/* cudnn_run.h -- a program's convolutions through cuDNN: its graphs made ready when it starts, a call a line between launches.
 *
 * A graph is a line in the words of cudnn_graph.h whose first three tensors are two operands and the result; the next two a bias and what is added, one of
 * these, the value whose relu is undone, or where sums of the result go.  Its plan is embedded; made for
 * another GPU, driver or cuDNN, or missing, it is made anew, and kept for the next start (cudnn_load.h).
 */
#ifndef CUDNN_RUN_H
#define CUDNN_RUN_H
#include "rt.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct RtGraph {
    const char *graph;
    const char *plan; /* tenon-plan's text, `bytes` long; NULL: made at the first start */
    int64_t bytes;
} RtGraph;

typedef struct RtGraphCall {
    const char *layer; /* "conv1 (lenet.tn:8)", for messages */
    int graph;
} RtGraphCall;

/* Opens cuDNN and readies the graphs of all calls; what cannot be had ends the program, by the layer's name.  exact: no tensor cores and
 * nothing rounded.  workspace: bytes that every call brings; where a plan made here needs more, they are asked for now. */
void rt_graphs_open(const RtGraph *graph, int ngraph, const RtGraphCall *call, int ncall,
                    bool exact, int64_t workspace);

/* Call `which`, in the one stream; may be recorded.  c and d: the graph's fourth and fifth tensor, NULL where it has none. */
void rt_graph(int which, const void *a, const void *b, void *result, const void *c, const void *d,
              void *workspace);

#ifdef __cplusplus
}
#endif
#endif
