/* replay_text.c -- texts of the faults that a replay finds. */
#include "ops/op.h"
#include "passes/replay.h"

void replay_fail(Replay *v, const char *fmt, ...)
{
    va_list ap;
    if (v->wrong)
        return;
    va_start(ap, fmt);
    v->wrong = arena_vprintf(v->arena, fmt, ap);
    va_end(ap);
}

const char *replay_value(const Replay *v, const Node *n)
{
    return n->name ? arena_printf(v->arena, "%%%d %s (%s)", n->id, n->op->name, n->name)
                   : arena_printf(v->arena, "%%%d %s", n->id, n->op->name);
}

const char *replay_bytes(const Replay *v, Extent e)
{
    return arena_printf(v->arena, "bytes %lld to %lld of %s", (long long)e.from,
                        (long long)e.to - 1, v->memory[e.region].name);
}

const char *replay_phase(const Replay *v, const Graph *g, int phase)
{
    return arena_printf(v->arena, "phase %d (%s) of %s", phase,
                        phase_kinds[g->step->phase[phase].kind],
                        g->training ? "training"
                        : g->token  ? "a token"
                                    : "evaluation");
}

const char *replay_here(const Replay *v)
{
    return replay_phase(v, v->graph, v->at);
}

const char *replay_held(const Replay *v, int region, const Held *h)
{
    return arena_printf(v->arena, "%s, %s, of %s", replay_value(v, h->by),
                        replay_bytes(v, (Extent){region, h->from, h->to, 0}),
                        replay_phase(v, h->graph, h->phase));
}
