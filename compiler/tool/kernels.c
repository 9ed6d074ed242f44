/* kernels.c -- --target cuda without --kernels: many steps in one launch, or several launches a
 * step.
 *
 * The model is planned and written for many steps in one launch; a roofline predicts the time of a
 * step in both forms (emit/cuda_steps.c).  Two of its numbers, the times of a barrier between
 * blocks, are assumed.  So one launch is chosen only if its predicted time is shorter by a seventh
 * at least.
 */
#include "tool/kernels.h"
#include "emit/emit.h"
#include "tool/tool.h"
#include <string.h>

static bool stands_in_the_way(const Command *c)
{
    return c->comm && strcmp(c->comm, "none") != 0;
}

/* Plans the step for one kernel form, on a copy of the command.  Its diagnostics are dropped: the
 * form that is chosen reports them.  able: many steps can be one launch. */
static bool plan_form(Command c, bool persistent, EmitSteps *e, bool *able, Diag *d)
{
    Arena *a = diag_arena(d);
    Diag *quiet = diag_new(a, DIAG_NEVER);
    Front f;

    c.options.persistent = persistent, c.options.dump = NULL;
    if (!front_load(a, c.file, &c.front, quiet, &f) || !f.train ||
        !pass_run_all(f.train, &c.options, quiet))
        return false;
    f.test->peer = f.train;
    if (!pass_run_all(f.test, &c.options, quiet) || !emit_cuda_able(f.train, f.test, quiet))
        return false;
    const EmitInput in = tool_emit_input(&c, &f);
    *able = emit_steps_able(&in, quiet);
    *e = emit_steps_expected(a, &in);
    return true;
}

/* Each form has its own memory plan. */
static bool expect_forms(const Command *c, EmitSteps *e, bool *able, Diag *d)
{
    EmitSteps together;
    if (!plan_form(*c, false, e, able, d) || !plan_form(*c, true, &together, able, d))
        return false;
    e->together = together.together;
    return true;
}

static bool faster(const EmitSteps *e)
{
    return e->together < e->launches * 6 / 7;
}

void kernels_choose(Command *c, Diag *d)
{
    const bool own = c->options.cuda && !c->kernels && !c->options.libraries;
    bool able = false;
    EmitSteps e;
    if (own && !stands_in_the_way(c) && expect_forms(c, &e, &able, d))
        c->options.persistent = able && faster(&e);
}

const char *kernels_said(const Command *c, Diag *d)
{
    Arena *a = diag_arena(d);
    bool able;
    EmitSteps e;
    if (!expect_forms(c, &e, &able, d))
        return "";
    const char *launches =
        arena_printf(a, "%lld launches a step, %.0f us", (long long)e.count, 1e6 * e.launches);
    return able ? arena_printf(a,
                               "%s; many steps in one launch, %.0f us; without --kernels the %s is "
                               "taken",
                               launches, 1e6 * e.together, faster(&e) ? "second" : "first")
                : launches;
}
