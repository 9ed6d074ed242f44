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

/* Plans the graphs of a program's convolutions.  If planning is impossible on this machine, warns
 * and leaves *in without plans: the program plans when it starts.  Returns false after an error,
 * such as a graph without an engine. */
bool plans_embed(Arena *a, const PlanWish *w, EmitInput *in, EmitPlan *plan, int n, Diag *d);

#endif
