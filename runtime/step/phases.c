/* phases.c -- which phases a training step consists of, and how many units they have.
 *
 * A bucket consists of complete units of the phase `to_grad`.  Where gradients go through a buffer
 * (Rt.grad), this phase runs bucket by bucket, and the phase `from_grad` updates from the buffer.
 * Otherwise the update is part of the phase `to_grad`.
 */
#include "step/step.h"
#include <stddef.h>

bool phase_in_step(const RtPhase *phase, const Rt *r)
{
    return !phase->from_grad && !(phase->to_grad && r->grad);
}

int phase_units(const Net *n, const Rt *r, const RtPhase *phase)
{
    return phase->per_slice ? r->shards * n->p->slices : phase->count;
}

const RtPhase *phase_of_sums(const RtProgram *p)
{
    const RtPhase *phase = p->train;
    while (!phase->to_grad)
        phase++;
    return phase;
}

const RtPhase *phase_of_updates(const RtProgram *p)
{
    for (int i = 0; i < p->ntrain; i++)
        if (p->train[i].from_grad)
            return &p->train[i];
    return NULL;
}

int phase_first_update(const RtProgram *p, int bucket)
{
    int unit = 0;
    for (int b = 0; b < bucket; b++)
        unit += p->bucket[b].updates;
    return unit;
}
