/* cudnn_load.h -- a program's plans when it starts: the embedded one, one kept on disk, or one made now.
 *
 * A program is built for a GPU that may be another than the one it meets, under another driver or cuDNN.  Where the key of an embedded
 * plan is not the machine's, the plan is made anew from its graph, which takes seconds for a fused one, and kept for the next start.
 */
#ifndef CUDNN_LOAD_H
#define CUDNN_LOAD_H
#include "cuda/cudnn_plan.h"

/* What a generated program says of a graph. */
typedef struct CudnnPlanned {
    const char *graph; /* the line, in the words of cudnn_graph.h */
    const char *plan;  /* tenon-plan's text, `bytes` long; NULL: made at the first start */
    size_t bytes;
    CudnnRules rules;
} CudnnPlanned;

typedef enum { CUDNN_EMBEDDED, CUDNN_KEPT, CUDNN_MADE } CudnnFrom;

/* `dir` is where plans are kept, NULL: nowhere; one that cannot be written to is no error.  False, with p->why, when cuDNN
 * has no engine for the graph on this GPU. */
bool cudnn_load(CudnnPlan *p, const CudnnDevice *d, const CudnnPlanned *planned, const char *dir,
                CudnnFrom *from);
/* $TENON_CACHE/plans, $XDG_CACHE_HOME/tenon/plans or ~/.cache/tenon/plans, made if need be; false when there can be none. */
bool cudnn_load_dir(char *to, size_t room);

/* Launches on the stream of `handle`: id[i], as cudnn_graph_id numbers them, is bound to data[i]; `workspace` has p->workspace bytes. */
bool cudnn_plan_run(CudnnPlan *p, cudnnHandle_t handle, int n, const int64_t *id, void *const *data,
                    void *workspace);

#endif
