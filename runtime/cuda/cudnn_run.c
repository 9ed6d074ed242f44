/* cudnn_run.c -- a program's convolutions with cuDNN; see cudnn_run.h. */
#include "cuda/cudnn_run.h"
#include "base/error.h"
#include "cuda/cudnn_load.h"
#include "cuda/gpu.h"
#include "device/device.h"
#include <limits.h>
#include <stdlib.h>

static CudnnApi api;
static CudnnDevice device;
static cudnnHandle_t handle;
static CudnnPlan *plan; /* for each graph */
static const RtGraphCall *call;
static int64_t room; /* bytes of the workspace of each call */
static void *larger; /* workspace for plans that need more */

static void open_cudnn(void)
{
    char why[CUDNN_WHY];
    cudnnStatus_t s;
    if (!cudnn_open(&api, NULL, why))
        rt_die("%s; this program computes its convolutions with it, and built without "
               "--kernels=cudnn it needs no library",
               why);
    s = api.Create(&handle);
    if (!s)
        s = api.SetStream(handle, rt_cuda_stream);
    if (s)
        rt_die("cuDNN cannot start: %s", api.GetErrorString(s));
    if (!cudnn_device_present(&device, &api, 0, why))
        rt_die("%s", why);
}

/* The layer of the first call of a graph, for messages. */
static const char *layer_of(const RtGraphCall *c, int graph)
{
    while (c->graph != graph)
        c++;
    return c->layer;
}

static void note_other(const RtGraph *g, int n)
{
    const CudnnKey here = cudnn_key(&device);
    CudnnPlan head;
    char planned[128], found[128];
    if (!cudnn_plan_head(&head, g->plan, (size_t)g->bytes))
        return;
    cudnn_key_text(&head.key, planned);
    cudnn_key_text(&here, found);
    rt_note("%d of cuDNN's plans are for %s; here is %s: they are made again and kept", n, planned,
            found);
}

/* What the loading of all plans has found. */
typedef struct Loading {
    const char *dir; /* NULL: plans are not kept */
    const RtGraph *graph;
    bool exact;
    int64_t workspace; /* the largest */
    int other, first;  /* embedded plans that are not for this machine, and the first of them */
} Loading;

/* Returns false if another process is making this plan and `wait` is false. */
static bool load_plan(Loading *l, int i, bool wait)
{
    const RtGraph *g = &l->graph[i];
    const CudnnPlanned planned = {.graph = g->graph,
                                  .plan = g->plan,
                                  .bytes = (size_t)g->bytes,
                                  .rules = {.exact = l->exact}};
    CudnnFrom from;
    const bool ok = cudnn_load(&plan[i], &device, &planned, l->dir, wait, &from);
    if (from == CUDNN_BUSY)
        return false;
    if (!ok)
        rt_die("cuDNN has no engine for %s: %s; the graph: %s; build it where this cuDNN is, for "
               "this GPU, or without --kernels=cudnn",
               layer_of(call, i), plan[i].why, g->graph);
    if (g->plan && (from == CUDNN_MADE || wait) && !l->other++)
        l->first = i;
    l->workspace = plan[i].workspace > l->workspace ? plan[i].workspace : l->workspace;
    return true;
}

/* Processes that start at the same time make different plans. */
void rt_graphs_open(const RtGraph *graph, int ngraph, const RtGraphCall *calls, int ncall,
                    bool exact, int64_t workspace)
{
    char place[PATH_MAX];
    Loading l = {.dir = cudnn_load_dir(place, sizeof place) ? place : NULL,
                 .graph = graph,
                 .exact = exact,
                 .workspace = workspace};
    bool *busy = rt_alloc((size_t)ngraph * sizeof *busy);
    (void)ncall;
    open_cudnn();
    plan = rt_alloc((size_t)ngraph * sizeof *plan);
    call = calls, room = workspace;
    for (int i = 0; i < ngraph; i++)
        busy[i] = !load_plan(&l, i, false);
    for (int i = 0; i < ngraph; i++)
        if (busy[i])
            load_plan(&l, i, true);
    free(busy);
    if (l.other)
        note_other(&graph[l.first], l.other);
    if (l.workspace > workspace)
        larger = rt_cuda.memory(l.workspace, "cuDNN's workspace");
}

void rt_graph(int which, const void *a, const void *b, void *result, const void *c, const void *d,
              void *workspace)
{
    static const int64_t id[] = {1, 2, 3, 4, 5};
    CudnnPlan *p = &plan[call[which].graph];
    void *const data[] = {(void *)a, (void *)b, result, (void *)c, (void *)d};
    if (!cudnn_plan_run(p, handle,
                        d   ? 5
                        : c ? 4
                            : 3,
                        id, data, p->workspace > room ? larger : workspace))
        rt_die("cuDNN failed at %s: %s", call[which].layer, p->why);
}
