/* stop.c -- ends of a run of `train` before its last epoch: signals, damaged data files, a loss or
 * gradients that are not finite.
 */
#include "base/error.h"
#include "base/mapped.h"
#include "files/params.h"
#include "train/trainer.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stop;

/* A second Ctrl-C ends the run at once, and removes its incomplete files. */
static void on_signal(int number)
{
    stop = number;
    if (number == SIGINT)
        signal(SIGINT, rt_end_by_signal);
}

void stop_watch(void)
{
    const struct sigaction mine = {.sa_handler = on_signal};
    sigaction(SIGINT, &mine, NULL);
    sigaction(SIGTERM, &mine, NULL); /* also when it comes again: launchers repeat it */
    output_watch(&stop);
}

bool stop_asked(void)
{
    return stop != 0;
}

/* To be called after a step whose reports (step/report.c) say that a rank was asked to stop. */
bool stop_wanted(const Trainer *t)
{
    return t->o->comm->size > 1 ? t->net->all_stop : stop != 0;
}

int stop_run(Trainer *t)
{
    if (t->o->comm->rank > 0)
        return t->o->checkpoint ? EXIT_STOPPED : EXIT_FAILURE;
    const char *name = stop == SIGINT ? "SIGINT" : stop ? "SIGTERM" : "a signal to another rank";
    bar_clear(&t->bar);
    if (!t->checkpoint)
        rt_die("stopped by %s in epoch %lld after %lld steps; nothing was saved: with --checkpoint "
               "DIR the run can be "
               "resumed",
               name, (long long)t->at.epoch + 1, (long long)t->at.step);
    trainer_save(t);
    checkpoint_close(t->checkpoint);
    rt_note("stopped by %s in epoch %lld after %lld steps; saved in %s: continue with --resume",
            name, (long long)t->at.epoch + 1, (long long)t->at.step, t->o->checkpoint);
    return EXIT_STOPPED;
}

/* A data file became unreadable or wrong during the run. whole: no step has used the missing data,
 * so the state is that of the last finished step, and rank 0 saves it. Otherwise the last
 * checkpoint stays. */
static void __attribute__((noreturn)) data_lost(Trainer *t, bool whole)
{
    const Position *a = &t->at;
    const char *why = mapped_why(), *where = rt_format("in epoch %lld after %lld steps",
                                                       (long long)a->epoch + 1, (long long)a->step);
    bar_clear(&t->bar);
    if (!t->o->checkpoint)
        rt_die("%s; the run ends %s, and nothing was saved: with --checkpoint DIR it can be "
               "resumed",
               why, where);
    if (!t->checkpoint || !whole)
        rt_die("%s; the run ends %s: %s, and the last checkpoint in %s stays as it was; then "
               "continue with --resume",
               why, where,
               whole ? "rank 0 alone saves" : "the last step may have used wrong samples",
               t->o->checkpoint);
    if (a->total > t->saved_total) {
        if (a->step < t->steps)
            t->at.seconds = trainer_seconds(t);
        trainer_save(t);
    }
    rt_die("%s; the run ends %s, saved in %s: no step has used wrong samples; then continue with "
           "--resume",
           why, where, t->o->checkpoint);
}

void stop_if_files_broke(Trainer *t, bool whole)
{
    if (*t->net->wrong)
        data_wrong_token(t->data);
    if (mapped_broken())
        data_lost(t, whole);
}

/* The parameters are still those that gave the loss, because no update has followed. */
void stop_nonfinite(Trainer *t, const Batch *b)
{
    const RtProgram *p = t->p;
    stop_if_files_broke(t, true);
    net_await_failure(t->net);
    net_fetch(t->net);
    const RtParam *bad = params_nonfinite(p, t->net->fixed);
    const int layer = net_first_nonfinite(t->net, b);
    char where[400] = "";
    if (layer == 0 && !bad)
        rt_die("the samples hold numbers that are not finite: in epoch %lld, step %lld of %lld; "
               "the loss is not finite, and nothing was updated by them",
               (long long)t->at.epoch + 1, (long long)t->at.step + 1, (long long)t->steps);
    if (layer >= 0 && layer < p->nlayer)
        snprintf(where, sizeof where, "; the first value that is not finite is %s",
                 p->layer[layer]);
    const size_t n = strlen(where);
    if (bad)
        snprintf(where + n, sizeof where - n, "; the previous update made parameter %s non-finite",
                 bad->name);
    rt_die("the loss is not finite in epoch %lld, step %lld of %lld%s; try a smaller learning "
           "rate, warm-up or clipping",
           (long long)t->at.epoch + 1, (long long)t->at.step + 1, (long long)t->steps, where);
}

/* A smaller scale does not help: the gradients are too large for f16, or not finite themselves. */
static void __attribute__((noreturn)) not_scalable(const Trainer *t)
{
    rt_die("a gradient is not finite in f16 in epoch %lld, step %lld of %lld, though the loss is, "
           "and the loss scale has come down to 1; try a smaller learning rate or warm-up, or "
           "build with --dtype bf16",
           (long long)t->at.epoch + 1, (long long)t->at.step + 1, (long long)t->steps);
}

void stop_if_unscalable(const Trainer *t, RtScaling before)
{
    if (before.every > 0 && before.scale <= RT_SCALE_LEAST &&
        t->net->scaling.skipped > before.skipped)
        not_scalable(t);
}
