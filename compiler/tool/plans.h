/* plans.h -- plans of cuDNN graphs, made by the program tenon-plan and kept in the cache. */
#ifndef PLANS_H
#define PLANS_H
#include "base/diag.h"
#include "base/text.h"
#include "cuda/cuda.h"

/* The GPU, driver and rules of the plans. */
typedef struct PlanWish {
    const char *arch, *driver; /* "sm_90", "13.0" */
    bool exact;                /* engines without tensor cores */
    bool no_cache;
    int jobs;
} PlanWish;

typedef struct GraphPlan {
    const char *ways; /* the graph, and those to take if it has no engine, split at " | " */
    bool planned;     /* false: `why` */
    int way;          /* the variant with a plan */
    long long engine, workspace; /* engine: for people; workspace in bytes */
    const char *notes;           /* "tensor-cores,compiled" or "-" */
    double ms;                   /* milliseconds of planning, if done now */
    const char *why;
    const char *text; /* the plan that a program embeds */
    size_t bytes;
    bool kept; /* found in the cache */
} GraphPlan;

/* The version of tenon-plan, "cudnn 91900 rules 1"; NULL, with the reason in *why, if tenon-plan is
 * missing or does not find cuDNN. */
const char *plans_version(Arena *a, const char **why);
/* Plans all graphs, equal ones once.  Returns false after an error; a graph without an engine is no
 * error. */
bool plans_make(Arena *a, const char *version, const PlanWish *w, GraphPlan *p, int n, Diag *d);

/* Plans the graphs of a program's convolutions.  If planning is impossible here, it warns, and *in
 * keeps no plans: the program plans when it starts.  Returns false after an error: a graph has no
 * engine. */
bool plans_embed(Arena *a, const PlanWish *w, EmitInput *in, EmitPlan *plan, int n, Diag *d);

#endif
