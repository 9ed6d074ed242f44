/* plans.h -- gets plans of cuDNN graphs from the cache, or from the program tenon-plan. */
#ifndef PLANS_H
#define PLANS_H
#include "base/diag.h"
#include "base/text.h"
#include "cuda/cuda.h"

/* The GPU and the driver that plans are for, and limits of the plans. */
typedef struct PlanWish {
    const char *arch, *driver; /* "sm_90", "13.0" */
    bool exact;                /* engines without tensor cores */
    bool no_cache;
    int jobs;
} PlanWish;

typedef struct GraphPlan {
    /* variants of the graph, in order of preference, separated by " | " */
    const char *variants;
    bool planned;                /* false: `why` has the reason */
    int variant;                 /* the variant with a plan */
    long long engine, workspace; /* number of the engine, for tables; workspace in bytes */
    const char *notes;           /* "tensor-cores,compiled" or "-" */
    double ms;                   /* milliseconds of planning, if it was not in the cache */
    const char *why;
    const char *text; /* the plan, which the program embeds */
    size_t bytes;
    bool kept; /* found in the cache */
} GraphPlan;

/* The version of tenon-plan, "cudnn 91900 rules 1"; NULL, with the reason in *why, if tenon-plan is
 * missing or does not find cuDNN. */
const char *plans_version(Arena *a, const char **why);
/* Plans all graphs; equal graphs are planned once.  Returns false after an error; a graph without
 * an engine is no error. */
bool plans_make(Arena *a, const char *version, const PlanWish *w, GraphPlan *p, int n, Diag *d);

/* Plans the graphs of a program's convolutions.  If planning is impossible on this machine, warns
 * and leaves *in without plans: the program plans when it starts.  Returns false after an error,
 * such as a graph without an engine. */
bool plans_embed(Arena *a, const PlanWish *w, EmitInput *in, EmitPlan *plan, int n, Diag *d);

#endif
