/* steps.c -- the steps of an epoch: one at a time, or several as one launch of a device. */
#include "base/error.h"
#include "data/data.h"
#include "train/schedule.h"
#include "train/trainer.h"

/* --trace: the file is written when its steps are done, or at the end of a shorter run. */
void steps_end_trace(Trainer *t)
{
    if (!t->ticks)
        return;
    trace_write(t->ticks, t->o->trace);
    ticks_free(t->ticks);
    t->ticks = NULL;
}

/* Number of samples of the step `ahead` steps from now. The last step of an epoch can have
 * fewer. */
static int step_samples(const Trainer *t, int ahead)
{
    const int64_t left = t->data->n - (t->at.step + ahead) * t->p->batch;
    return left < t->p->batch ? (int)left : t->p->batch;
}

static Batch step_batch(Trainer *t, int ahead)
{
    const Position *a = &t->at;
    Batch b = {.seed = t->o->seed, .epoch = a->epoch};
    data_batch(t->data, t->pool, &t->order[a->epoch % 2].order, a->step + ahead,
               step_samples(t, ahead), &b);
    return b;
}

static Hyper hyper_of(const Trainer *t, int ahead)
{
    const int64_t step = t->at.total + ahead;
    return (Hyper){schedule_lr(&t->p->recipe, t->plateau.rate, step, t->steps), step};
}

/* Counts a finished step, whose metrics are in net->metric. */
static void count_step(Trainer *t)
{
    Position *a = &t->at;
    const int samples = step_samples(t, 0);
    for (int m = 0; m < RT_METRICS; m++)
        a->sum[m] += t->net->metric[m];
    a->samples += samples;
    a->step++;
    a->total++;
    if (t->o->log_steps && a->total % t->o->log_steps == 0)
        progress_step(t, samples);
}

static void one_step(Trainer *t)
{
    t->net->ticks = t->ticks;
    if (t->ticks)
        ticks_step_begin(t->ticks);
    const Batch b = step_batch(t, 0);
    stop_if_files_broke(t, true);
    if (t->ticks)
        ticks_batch_ready(t->ticks);
    const RtScaling before = t->net->scaling;
    t->net->stop = stop_asked();
    if (!net_step(t->net, &b, hyper_of(t, 0)))
        stop_nonfinite(t, &b);
    stop_if_unscalable(t, before);
    t->net->ticks = NULL; /* an evaluation is not measured */
    if (t->ticks) {
        ticks_step_end(t->ticks);
        if (t->ticks->steps == TRACE_STEPS)
            steps_end_trace(t);
    }
    count_step(t);
    stop_if_files_broke(t, t->p->device);
}

/* Number of steps of the launch that begins `ahead` steps from now: up to the end of the epoch, or
 * to the next checkpoint that is due by steps. It is one for synthetic samples, which are in memory
 * for one step at a time, and for a trace, which has a row for each step. All ranks take the same
 * number, although only rank 0 traces, saves, and knows its last save. */
static int steps_at_once(const Trainer *t, int ahead)
{
    const Options *o = t->o;
    const int64_t due = t->saved_total + o->every_steps - t->at.total - ahead,
                  unsaved = due > 0 ? due : o->every_steps;
    int64_t n = t->steps - t->at.step - ahead;
    const bool counts = o->comm->size > 1 && (o->trace || o->every_steps);
    if (t->data->synthetic || t->ticks || counts)
        return 1;
    if (t->checkpoint && o->every_steps && n > unsaved)
        n = unsaved;
    return net_steps_now(t->net, n);
}

/* Prefetches the samples of the launch after the next n steps, if the epoch goes on. */
static void prefetch_next(Trainer *t, int n)
{
    const bool more = t->p->device && !t->data->synthetic && t->at.step + n < t->steps;
    const int next = more ? steps_at_once(t, n) : 0;
    for (int i = 0; i < next; i++)
        t->ahead[i] = step_batch(t, n + i);
    net_ahead(t->net, t->ahead, next);
}

static void several_steps(Trainer *t, int n)
{
    for (int i = 0; i < n; i++) {
        t->batch[i] = step_batch(t, i);
        t->hyper[i] = hyper_of(t, i);
    }
    stop_if_files_broke(t, true);
    RtScaling before = t->net->scaling;
    t->net->stop = stop_asked();
    const int done = net_steps(t->net, t->batch, t->hyper, n);
    for (int i = 0; i < done; i++) {
        net_step_metrics(t->net, i);
        stop_if_unscalable(t, before);
        count_step(t);
        before = t->net->scaling;
    }
    if (done < n)
        stop_nonfinite(t, &t->batch[done]);
    stop_if_files_broke(t, true);
}

void steps_run(Trainer *t)
{
    const int n = steps_at_once(t, 0);
    prefetch_next(t, n);
    if (n > 1)
        several_steps(t, n);
    else
        one_step(t);
}
