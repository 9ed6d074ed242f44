/* trainer.c -- see trainer.h: checkpoints of a run of `train`, and the time of an epoch. */
#include "train/trainer.h"
#include "base/clock.h"
#include "step/average.h"

double trainer_seconds(const Trainer *t)
{
    return t->at.seconds + clock_now() - t->began;
}

void trainer_save(Trainer *t)
{
    net_show_average(t->net, false); /* a broken data file can end an evaluation */
    net_fetch(t->net);
    if (t->net->average)
        average_fill(t->net->average, t->net->fixed);
    checkpoint_save(t->checkpoint, &t->at);
    t->saved_total = t->at.total;
    t->saved_time = clock_now();
}

bool trainer_save_due(const Trainer *t)
{
    const Options *o = t->o;
    return (o->every_steps && t->at.total - t->saved_total >= o->every_steps) ||
           (o->every_seconds > 0 && clock_now() - t->saved_time >= o->every_seconds);
}
