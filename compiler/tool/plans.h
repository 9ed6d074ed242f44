/* plans.h -- cuDNN graphs planned by tenon-plan, a program beside the compiler, and kept in the cache by content. */
#ifndef PLANS_H
#define PLANS_H
#include "base/diag.h"
#include "base/text.h"
#include "emit/emit.h"

/* Which GPU, driver and rules the plans are for. */
typedef struct PlanWish {
    const char *arch, *driver; /* "sm_90", "13.0" */
    bool exact;                /* engines without tensor cores */
    bool no_cache;
    int jobs;
} PlanWish;

typedef struct GraphPlan {
    const char *ways; /* the graph, and others to take when it has no engine, split at " | " */
    bool planned;     /* false: `why` */
    int way;          /* which one it is for */
    long long engine, workspace; /* engine: for people; bytes */
    const char *notes;           /* "tensor-cores,compiled" or "-" */
    double ms;                   /* that planning took, when it was done */
    const char *why;
    const char *text; /* what a program embeds */
    size_t bytes;
    bool kept; /* found in the cache */
} GraphPlan;

/* Is tenon-plan here, and does it find cuDNN?  Its version ("cudnn 91900 rules 1"), or NULL, with the reason in *why. */
const char *plans_version(Arena *a, const char **why);
/* Plans all of them; equal graphs once.  False after an error: a graph without an engine is none, it is an answer. */
bool plans_make(Arena *a, const char *version, const PlanWish *w, GraphPlan *p, int n, Diag *d);

/* The graphs of a program's convolutions, planned; where that cannot be, it is a warning, and *in keeps none: the program plans them when it starts.
 * False after an error: no engine for one of them. */
bool plans_embed(Arena *a, const PlanWish *w, EmitInput *in, EmitPlan *plan, int n, Diag *d);

#endif
