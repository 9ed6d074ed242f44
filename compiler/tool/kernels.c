/* kernels.c -- --target cuda without --kernels: many steps in one launch, or several launches a
 * step.
 *
 * The step is planned in both forms (main.c), and a roofline predicts the time of each
 * (emit/cuda_steps.c).  Two numbers of the roofline, the times of a barrier between blocks, are
 * assumed.  So one launch is chosen only if its predicted time is shorter by a seventh at least.
 */
#include "tool/kernels.h"
#include "emit/emit.h"
#include "tool/tool.h"
#include <string.h>

static bool stands_in_the_way(const Command *c)
{
    return c->comm && strcmp(c->comm, "none") != 0;
}

bool kernels_open(const Command *c)
{
    if (!c->options.cuda || c->options.libraries || c->options.persistent)
        return false;
    if (c->kind == COMMAND_SHOW)
        return strcmp(c->gpu_dtype, "f32") == 0;
    return tool_makes_program(c) && !c->kernels && !stands_in_the_way(c);
}

/* able: many steps can be one launch.  False: there is no such program on a GPU. */
static bool expect_form(const Command *c, const Front *f, EmitSteps *e, bool *able)
{
    Arena *a = f->train->arena;
    Diag *quiet = diag_new(a, DIAG_NEVER);
    const EmitInput in = tool_emit_input(c, f);
    if (!emit_cuda_able(f->train, f->test, quiet))
        return false;
    *able = emit_steps_able(&in, quiet);
    *e = emit_steps_expected(a, &in);
    return true;
}

static const char *forms_text(Arena *a, const EmitSteps *e, bool able, bool second)
{
    const char *launches =
        arena_printf(a, "%lld launches a step, %.0f us", (long long)e->count, 1e6 * e->launches);
    return able ? arena_printf(a,
                               "%s; many steps in one launch, %.0f us; without --kernels the %s is "
                               "taken",
                               launches, 1e6 * e->together, second ? "second" : "first")
                : launches;
}

void kernels_choose(Command *c, Front *f, const Command *together, const Front *other)
{
    EmitSteps first, second;
    bool able;
    if (!expect_form(c, f, &first, &able) || !expect_form(together, other, &second, &able))
        return;
    first.together = second.together;
    const bool faster = able && first.together < first.launches * 6 / 7;
    if (c->kind == COMMAND_SHOW)
        c->forms = forms_text(f->train->arena, &first, able, faster);
    else if (faster)
        *c = *together, *f = *other;
}
