/* kernels.c -- --target cuda without --kernels: chooses between many steps in one launch and
 * several launches per step.
 *
 * The step is planned in both forms (main.c), and a roofline predicts the time of each
 * (cuda/steps.c).  Two numbers of the roofline, the times of a barrier between blocks, are assumed.
 * So one launch is chosen only if its predicted time is at least a seventh shorter.
 */
#include "tool/kernels.h"
#include "cuda/cuda.h"
#include "tool/tool.h"
#include <string.h>

static bool has_ranks(const Command *c)
{
    return c->comm && strcmp(c->comm, "none") != 0;
}

bool kernels_open(const Command *c)
{
    if (!c->options.cuda || c->options.libraries || c->kernels || has_ranks(c))
        return false;
    return c->kind == COMMAND_SHOW || tool_makes_program(c);
}

static const char *forms_text(Arena *a, const EmitStep *launches, const EmitStep *together,
                              bool faster)
{
    return arena_printf(a,
                        "as launches: %lld a step, %.0f us; as one launch of many steps: %.0f us; "
                        "without --kernels the %s is taken",
                        (long long)launches->launches, 1e6 * launches->seconds,
                        1e6 * together->seconds, faster ? "second" : "first");
}

void kernels_choose(Command *c, Front *f, const Command *together, const Front *other)
{
    Arena *a = f->train->arena;
    Diag *quiet = diag_new(a, DIAG_NEVER);
    const EmitInput in = tool_emit_input(c, f), other_in = tool_emit_input(together, other);
    if (!cuda_target.able(&in, quiet) || !cuda_target.able(&other_in, quiet))
        return;
    const EmitStep first = emit_step(a, &in), second = emit_step(a, &other_in);
    const bool faster = second.seconds < first.seconds * 6 / 7;
    const char *forms = forms_text(a, &first, &second, faster);
    if (faster)
        *c = *together, *f = *other;
    c->forms = forms;
}
