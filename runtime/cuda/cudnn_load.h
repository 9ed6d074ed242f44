/* cudnn_load.h -- the plans of a program at its start: embedded, kept on disk, or made now.
 *
 * The GPU of a run can differ from the one for which the program was built; so can the driver and
 * cuDNN.  If the key of an embedded plan is not the machine's, the plan is made again from its
 * graph, which takes seconds for a fused one, and is kept for the next start.
 *
 * Ranks, and other programs that start at the same time, make each plan once: the process that
 * makes a plan has locked a file beside it, and the others make other plans meanwhile.
 */
#ifndef CUDNN_LOAD_H
#define CUDNN_LOAD_H
#include "cuda/cudnn_plan.h"

/* A graph, as a generated program describes it. */
typedef struct CudnnPlanned {
    const char *graph; /* the line, in the language of cudnn_graph.h */
    const char *plan;  /* tenon-plan's text of `bytes` bytes; NULL: made at the first start */
    size_t bytes;
    CudnnRules rules;
} CudnnPlanned;

/* CUDNN_BUSY: another process is making the plan. */
typedef enum { CUDNN_EMBEDDED, CUDNN_KEPT, CUDNN_MADE, CUDNN_BUSY } CudnnFrom;

/* Loads a plan, or makes it. dir: where plans are kept; NULL: nowhere.  An error of a write there
 * is ignored.  wait: waits for a plan that another process is making.  Returns false without `wait`
 * if another process is making it (*from is CUDNN_BUSY), or, with p->why, if cuDNN has no engine
 * for the graph on this GPU. */
bool cudnn_load(CudnnPlan *p, const CudnnDevice *d, const CudnnPlanned *planned, const char *dir,
                bool wait, CudnnFrom *from);
/* Finds the directory of plans: $TENON_CACHE/plans, $XDG_CACHE_HOME/tenon/plans or
 * ~/.cache/tenon/plans.  Makes the directory if necessary. Returns false if there is none. */
bool cudnn_load_dir(char *to, size_t room);

/* Runs the plan in the stream of `handle`; id[i], as cudnn_graph_id numbers them, is bound to
 * data[i]. workspace: p->workspace bytes. */
bool cudnn_plan_run(CudnnPlan *p, cudnnHandle_t handle, int n, const int64_t *id, void *const *data,
                    void *workspace);

#endif
