/* train.c -- the command `train`: epochs of steps, a test after each epoch, checkpoints between
 * epochs.
 *
 * Everything that depends only on the order of samples is computed ahead: batch s of an epoch has
 * the indices s B .. s B + B - 1 of a permutation (data/order.h). The loader thread lists the
 * permutation during the previous epoch. After the first step nothing is allocated.
 */
#include "train/train.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/data.h"
#include "files/params.h"
#include "train/evaluate.h"
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>

/* Makes the remaining steps of the current epoch; false if a signal came. */
static bool train_epoch(Trainer *t)
{
    start_order(t, t->at.epoch + 1);
    t->began = clock_now();
    t->rate_from = (double)t->at.samples;
    const double waited = t->o->comm->waited, busy = t->o->comm->busy;
    while (t->at.step < t->steps && !stop_wanted(t)) {
        steps_run(t);
        progress_bar(t);
        if (t->checkpoint && trainer_save_due(t) && t->at.step < t->steps) {
            const double spent = t->at.seconds;
            t->at.seconds = trainer_seconds(t);
            trainer_save(t);
            t->at.seconds = spent;
        }
    }
    net_settle(t->net);
    t->at.seconds = trainer_seconds(t);
    t->waited = t->o->comm->waited - waited;
    t->busy = t->o->comm->busy - busy;
    return !stop_wanted(t);
}

static void evaluate(Trainer *t, const Data *d, const Order *order, double mean[RT_METRICS],
                     double *auc, OutputReader *readers)
{
    evaluate_split(t->net, d, order, mean, t->scores, readers);
    *auc = t->scores ? t->scores->auc : __builtin_nan("");
    if (*t->net->wrong)
        data_wrong_token(d);
    stop_if_files_broke(t, true);
}

/* tally: the weights may be those that the run leaves, so further metrics are computed, too. */
static void test_split(Trainer *t, bool tally)
{
    t->tallied = tally && t->tally;
    if (t->tallied)
        tally_begin(t->tally);
    evaluate(t, t->test, &t->test_order, t->result.test, &t->result.test_auc,
             t->tallied ? &t->tally->reader : NULL);
    t->result.unscored = data_unscored(t->test);
    if (t->tallied)
        tally_end(t->tally);
}

static void test(Trainer *t, bool tally)
{
    if (t->validation)
        evaluate(t, t->validation, &t->validation_order, t->result.validation,
                 &t->result.validation_auc, NULL);
    test_split(t, tally);
}

/* Whether the run may end after this epoch, and leave its weights. */
static bool may_end(const Trainer *t)
{
    const RtRecipe *q = &t->p->recipe;
    const bool last = t->at.epoch + 1 == t->o->epochs;
    return !q->keep.result && (last || q->stop.result || t->o->stop_at > 0);
}

static void finish_epoch(Trainer *t)
{
    Position *a = &t->at;
    loader_wait(t->loader); /* for the test set and the order of the next epoch */
    evaluate_means(t->p, t->data, a->sum, (double)a->samples, t->result.train);
    net_average_epoch(t->net, a->epoch + 1);
    net_show_average(t->net, true);
    test(t, may_end(t));
    t->result.known = true;
    net_fetch(t->net);
    comm_same(t->o->comm, params_hash(t->p, t->net->fixed), "other weights");
    best_compare(&t->best, &t->result, t->net->fixed, a->epoch + 1, a->total);
    progress_epoch(t);
    if (plateau_epoch(&t->plateau, t->p, &t->result) && a->epoch + 1 < t->o->epochs)
        progress_rate(t);
    net_show_average(t->net, false);
    *a = (Position){.epoch = a->epoch + 1, .total = a->total};
    if (t->checkpoint)
        trainer_save(t);
}

static void finish_run(Trainer *t)
{
    char hash[17];
    net_fetch(t->net);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)params_hash(t->p, t->net->fixed));
    if (t->save)
        st_write(t->save, t->o->save);
    checkpoint_close(t->checkpoint);
    log_begin(&t->log, RECORD(end));
    log_real(&t->log, FIELD(end, seconds), clock_now() - clock_start());
    log_count(&t->log, FIELD(end, epochs), t->at.epoch);
    if (t->stopped)
        log_text(&t->log, FIELD(end, stopped), t->stopped);
    log_text(&t->log, FIELD(end, weights_hash), hash);
    log_end(&t->log);
}

/* Says why the run ends before its last epoch. */
static void say_end(const Trainer *t)
{
    const RtWatch *w = &t->p->recipe.stop;
    const Mark *m = &t->best.stop;
    const long long waited = best_waited(&t->best, t->at.epoch);
    if (t->result.reached)
        expect_say_reached(t->p, t->o, &t->result, t->at.epoch);
    else if (t->stopped && isnan(m->value))
        rt_print("stopped after epoch %lld of %lld: no epoch had a %s (patience %lld)\n",
                 (long long)t->at.epoch, (long long)t->o->epochs, w->result, (long long)w->epochs);
    else if (t->stopped)
        rt_print("stopped after epoch %lld of %lld: no better %s than %.6g of epoch %lld in %lld "
                 "epoch%s (patience %lld)\n",
                 (long long)t->at.epoch, (long long)t->o->epochs, w->result, m->value,
                 (long long)m->epoch, waited, waited == 1 ? "" : "s", (long long)w->epochs);
}

int train_run(const RtProgram *p, const Options *o)
{
    static Trainer trainer; /* static: it is large, with a log line and paths */
    Trainer *t = &trainer;
    *t = (Trainer){.p = p, .o = o};
    stop_watch();
    start_training(t);
    while (t->at.epoch < o->epochs && !t->stopped) {
        if (best_ends(&t->best, t->at.epoch)) {
            t->stopped = "patience";
            break;
        }
        if (stop_wanted(t) || !train_epoch(t))
            return stop_run(t);
        finish_epoch(t);
        t->result.reached = expect_reached(p, o, &t->result);
        t->stopped = t->result.reached ? "stop-at" : NULL;
    }
    loader_wait(t->loader);
    steps_end_trace(t);
    say_end(t);
    const bool best = best_restore(&t->best, t->net, t->at.epoch);
    if (!best)
        net_show_average(t->net, true);
    if (best || !t->result.known) /* not known: nothing was left to train */
        test(t, true);
    else if (t->tally && !t->tallied) /* `keep`, and no epoch had its result */
        test_split(t, true);
    progress_best(t);
    progress_metrics(t);
    finish_run(t);
    return expect_report(p, o, &t->result, t->at.epoch, best_ends(&t->best, t->at.epoch),
                         clock_now() - clock_start());
}
