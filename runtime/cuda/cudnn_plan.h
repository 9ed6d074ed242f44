/* cudnn_plan.h -- the plan of a graph: an engine that keeps our rules, its workspace, and the text that it is kept as.
 *
 * Plans are made with or without a GPU, for the device that is named.  One that a text was made of is loaded in a millisecond; making
 * it takes some too, or seconds where the engine is compiled for the graph.
 */
#ifndef CUDNN_PLAN_H
#define CUDNN_PLAN_H
#include "cuda/cudnn_device.h"
#include "cuda/cudnn_graph.h"
#include <stdint.h>

/* What an engine may not do.  Sums in half precision are never allowed. */
typedef struct CudnnRules {
    bool
        exact; /* f32 as written: no tensor cores, no rounded inputs, no FFT or large Winograd tiles */
    bool any_order; /* sums in any order, other bits in each run, are allowed */
} CudnnRules;

/* What a plan is for.  Any difference makes it useless; engine numbers differ between versions and mean nothing. */
typedef struct CudnnKey {
    int cudnn, arch, sms, driver;
} CudnnKey;

typedef struct CudnnPlan {
    const CudnnApi *api;
    cudnnBackendDescriptor_t plan;
    CudnnKey key;
    int64_t engine, workspace; /* engine: for people */
    unsigned notes, behavior;  /* 1 << CUDNN_NUMERICAL_NOTE_..., 1 << CUDNN_BEHAVIOR_NOTE_... */
    char why[CUDNN_WHY];       /* why there is none */
} CudnnPlan;

/* The first engine, in the order of cuDNN's heuristics, that keeps the rules and whose plan can be made. */
bool cudnn_plan_make(CudnnPlan *p, const CudnnGraph *g, const CudnnDevice *d,
                     const CudnnRules *rules);
/* From the text, whose key must be this device's and library's. */
bool cudnn_plan_load(CudnnPlan *p, const CudnnDevice *d, const char *text, size_t n);
void cudnn_plan_free(CudnnPlan *p);

/* A head of one line (key, engine, notes, workspace), a line with the graph, then cuDNN's JSON, which carries compiled kernels: malloc'd,
 * *n bytes; NULL, with p->why, when cuDNN has none. */
char *cudnn_plan_text(CudnnPlan *p, const char *graph, size_t *n);
/* Reads the head alone; false when the text is no plan. */
bool cudnn_plan_head(CudnnPlan *p, const char *text, size_t n);
CudnnKey cudnn_key(const CudnnDevice *d);
bool cudnn_key_same(const CudnnKey *a, const CudnnKey *b);
/* "sm_90 with 132 multiprocessors, driver API 13.0, cuDNN 9.19.0" */
void cudnn_key_text(const CudnnKey *k, char to[128]);
/* "tensor-cores compiled", or "-" */
void cudnn_plan_notes(const CudnnPlan *p, char to[128]);

#endif
