/* cudnn_plan.h -- the plan of a graph: an engine that keeps the rules, its workspace, and the text
 * in which it is kept.
 *
 * Plans are made for a named device, with or without a GPU.  To load a plan from its text takes a
 * millisecond.  To make one takes some milliseconds, or seconds if the engine is compiled for the
 * graph.
 */
#ifndef CUDNN_PLAN_H
#define CUDNN_PLAN_H
#include "cuda/cudnn_device.h"
#include "cuda/cudnn_graph.h"
#include <stdint.h>

/* What an engine may do.  Sums in half precision are never allowed. */
typedef struct CudnnRules {
    /* f32 as written: no tensor cores, no rounded inputs, no FFT or large Winograd tiles */
    bool exact;
    bool any_order; /* sums in any order, with other bits in each run, are allowed */
} CudnnRules;

/* What a plan is for.  A plan with another key is useless: engine numbers have no meaning in
 * another version. */
typedef struct CudnnKey {
    int cudnn, arch, sms, driver;
} CudnnKey;

typedef struct CudnnPlan {
    const CudnnApi *api;
    cudnnBackendDescriptor_t plan;
    CudnnKey key;
    int64_t engine, workspace; /* engine: for messages; workspace: bytes */
    unsigned notes, behavior;  /* 1 << CUDNN_NUMERICAL_NOTE_..., 1 << CUDNN_BEHAVIOR_NOTE_... */
    char why[CUDNN_WHY];       /* the reason if there is no plan */
} CudnnPlan;

enum { CUDNN_RULES = 3 }; /* version of the choice of engines: older plans are not used */

/* Takes the first engine, in the order of cuDNN's heuristics, that keeps the rules and for which a
 * plan can be made.  Returns false, with p->why, if there is none. */
bool cudnn_plan_make(CudnnPlan *p, const CudnnGraph *g, const CudnnDevice *d,
                     const CudnnRules *rules);
/* Loads a plan from its text, whose key must be that of this device and library. */
bool cudnn_plan_load(CudnnPlan *p, const CudnnDevice *d, const char *text, size_t n);
void cudnn_plan_free(CudnnPlan *p);

/* The text: a head of one line (key, engine, notes, workspace), a line with the graph, then cuDNN's
 * JSON, which contains compiled kernels.  Memory of malloc, *n bytes.  NULL, with p->why, if cuDNN
 * gives no JSON. */
char *cudnn_plan_text(CudnnPlan *p, const char *graph, size_t *n);
/* Reads only the head; false: the text is no plan. */
bool cudnn_plan_head(CudnnPlan *p, const char *text, size_t n);
CudnnKey cudnn_key(const CudnnDevice *d);
/* Writes "sm_90 with 132 multiprocessors, driver API 13.0, cuDNN 9.19.0". */
void cudnn_key_text(const CudnnKey *k, char to[128]);
/* "tensor-cores compiled", or "-" */
void cudnn_plan_notes(const CudnnPlan *p, char to[128]);

#endif
