/* token.c -- one token at a time: `generate`, on the processor. */
#include "base/error.h"
#include "base/memory.h"
#include "step/step.h"

Trail net_trail(const RtProgram *p)
{
    const size_t state = (size_t)(p->carried * p->real_bytes);
    return (Trail){.carried = rt_alloc(state + 1),
                   .carry = rt_alloc(state + 1),
                   .cache = rt_alloc((size_t)(p->cached * p->real_bytes) + MEMORY_SLACK)};
}

/* Phases that depend only on parameters run once, before the first token. */
void net_token(Net *n, Trail *t, int32_t token, void *output)
{
    const uint32_t first = 0;
    const Batch b = {.x = &token,
                     .x_stride = sizeof token,
                     .x_type = RT_I32,
                     .index = &first,
                     .valid = 1};
    View v = net_view(n, &b, (Hyper){0, 0}, n->first, 1);
    net_settle(n);
    v.rt.output = output;
    v.rt.carried = t->carried, v.rt.carry = t->carry, v.rt.cache = t->cache;
    v.rt.position = t->position++;
    for (int i = 0; i < n->p->ntoken; i++) {
        const RtPhase *phase = &n->p->token[i];
        if (phase->per_slice || v.rt.position == 0)
            host_run(n, &v.rt, phase, 0, phase->per_slice ? 1 : phase->count);
    }
    char *const left = t->carry;
    t->carry = t->carried, t->carried = left;
}
