/* progress.c -- reports of a run of `train`: records of the log (files/records.h), the progress
 * bar, a line for each epoch.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "files/params.h"
#include "options/place.h"
#include "train/evaluate.h"
#include "train/schedule.h"
#include "train/trainer.h"
#include <math.h>
#include <stdio.h>

/* Writes the fields of f16 for the records start, step and epoch: the scale of the next step, and
 * the number of skipped steps. */
static void log_scale(Trainer *t)
{
    if (!t->p->scaling)
        return;
    log_real(&t->log, FIELD(epoch, loss_scale), t->net->scaling.scale);
    log_count(&t->log, FIELD(epoch, skipped_steps), (int64_t)t->net->scaling.skipped);
}

void progress_start(Trainer *t)
{
    const RtProgram *p = t->p;
    Log *l = &t->log;
    log_begin(l, RECORD(start));
    log_text(l, FIELD(start, model), p->model);
    log_text(l, FIELD(start, program), p->source_hash);
    log_text(l, FIELD(start, target), p->target);
    log_text(l, FIELD(start, cpu), p->cpu);
    log_count(l, FIELD(start, batch), p->batch);
    log_count(l, FIELD(start, shards), p->shards);
    log_count(l, FIELD(start, ranks), t->o->comm->size);
    if (t->o->log_ranks) {
        log_count(l, FIELD(start, rank), t->o->comm->rank);
        log_text(l, FIELD(start, host), comm_host(t->o->comm, t->o->comm->rank));
    }
    log_text(l, FIELD(start, comm), comm_library(t->o->comm));
    log_text(l, FIELD(start, wire), t->o->wire);
    log_text(l, FIELD(start, reduce), t->o->reduce);
    log_count(l, FIELD(start, groups), t->o->groups);
    log_count(l, FIELD(start, threads), pool_threads(t->pool));
    log_count(l, FIELD(start, cores), t->o->cores.cores);
    log_text(l, FIELD(start, limit), place_limit(t->o));
    log_text(l, FIELD(start, pin), place_pin(t->o));
    log_count(l, FIELD(start, parameters), p->parameters);
    log_real(l, FIELD(start, flops_per_sample), p->flops_per_sample);
    log_count(l, FIELD(start, planned_bytes), net_bytes(t->net) + p->average_bytes + p->kept_bytes);
    log_count(l, FIELD(start, samples), t->data->n);
    if (p->recipe.average)
        log_text(l, FIELD(start, average), p->recipe.average == RT_AVERAGE_EMA ? "ema" : "swa");
    log_unsigned(l, FIELD(start, seed), t->o->seed);
    log_count(l, FIELD(start, epochs), t->o->epochs);
    log_count(l, FIELD(start, epoch), t->at.epoch);
    log_count(l, FIELD(start, step), t->at.step);
    log_scale(t);
    log_end(l);
}

void progress_start_weights(Trainer *t)
{
    const Pick *k = &t->pick;
    Log *l = &t->log;
    if (!k->done)
        return;
    log_begin(l, RECORD(weights));
    log_text(l, FIELD(weights, file), k->from.file);
    log_count(l, FIELD(weights, loaded), k->loaded);
    log_count(l, FIELD(weights, initial), k->initial);
    log_count(l, FIELD(weights, unused), k->unused);
    log_text(l, FIELD(weights, loaded_names), k->loaded_names);
    log_text(l, FIELD(weights, initial_names), k->initial_names);
    log_text(l, FIELD(weights, unused_names), k->unused_names);
    log_end(l);
}

/* n: the number of metrics. */
static void log_metrics(Trainer *t, const char *prefix, const double mean[RT_METRICS], int n)
{
    char key[64];
    for (int m = 0; m < n; m++) {
        snprintf(key, sizeof key, "%s_%.50s", prefix, t->p->metric[m]);
        log_real(&t->log, key, mean[m]);
    }
    snprintf(key, sizeof key, "%s_perplexity", prefix);
    if (t->p->perplexity)
        log_real(&t->log, key, evaluate_perplexity(t->p, mean));
}

/* Records the means over one batch, taken before its update. */
void progress_step(Trainer *t, int samples)
{
    double mean[RT_METRICS];
    evaluate_means(t->p, t->data, t->net->metric, samples, mean);
    log_begin(&t->log, RECORD(step));
    log_count(&t->log, FIELD(step, step), t->at.total);
    log_count(&t->log, FIELD(step, samples), samples);
    log_metrics(t, "train", mean, evaluate_trained(t->p));
    log_scale(t);
    log_end(&t->log);
}

void progress_bar(Trainer *t)
{
    const Position *a = &t->at;
    const int loss = net_metric_index(t->p, "loss"), accuracy = net_metric_index(t->p, "accuracy");
    const double n = (double)a->samples, now = clock_now();
    if (!t->bar.shown || now - t->bar.drawn < 0.1)
        return;
    const double rate = (n - t->rate_from) / (now - t->began);
    const double left = (double)(t->o->epochs - a->epoch) * (double)t->data->n - n;
    bar_draw(&t->bar, a->epoch + 1, t->o->epochs, (double)a->step / (double)t->steps, rate,
             loss >= 0 ? a->sum[loss] / n : 0, accuracy >= 0 ? a->sum[accuracy] / n : -1,
             left / rate);
}

/* ", waiting for ranks 4 % of the time: 18 % of the communication".  Empty for GPUs: the
 * host does not measure their sums. */
static const char *hidden_text(const Trainer *t, char text[128])
{
    *text = '\0';
    if (t->o->comm->size > 1 && t->busy > 0 && !t->p->link)
        snprintf(text, 128, ", waiting for ranks %.0f %% of the time: %.0f %% of the communication",
                 100 * t->waited / t->at.seconds, 100 * fmin(1, t->waited / t->busy));
    return text;
}

/* ", loss scale 32768, 2 steps left out" */
static const char *scale_text(const Trainer *t, char text[128])
{
    const RtScaling *s = &t->net->scaling;
    *text = '\0';
    if (t->p->scaling && s->skipped > 0)
        snprintf(text, 128, ", loss scale %.10g, %.0f step%s left out", s->scale, s->skipped,
                 s->skipped == 1 ? "" : "s");
    else if (t->p->scaling)
        snprintf(text, 128, ", loss scale %.10g", s->scale);
    return text;
}

/* Writes the metrics of the validation and of the test split, in a record `epoch` or `best`. */
static void log_splits(Trainer *t, bool best)
{
    const Result *r = &t->result;
    if (t->validation)
        log_metrics(t, "validation", r->validation, t->p->nmetric);
    if (t->validation && !isnan(r->validation_auc))
        log_real(&t->log, best ? FIELD(best, validation_auc) : FIELD(epoch, validation_auc),
                 r->validation_auc);
    log_metrics(t, "test", r->test, t->p->nmetric);
    if (!isnan(r->test_auc))
        log_real(&t->log, best ? FIELD(best, test_auc) : FIELD(epoch, test_auc), r->test_auc);
}

/* "test loss 0.0913, test accuracy 0.9720", or "no test label counts". */
static const char *split_text(const Trainer *t, const Data *d, const double mean[RT_METRICS],
                              const char *prefix, char text[EVALUATE_TEXT])
{
    if (!data_unscored(d))
        return evaluate_brief(t->p, mean, prefix, text);
    snprintf(text, EVALUATE_TEXT, "no %slabel counts", prefix);
    return text;
}

/* "validation loss 0.0913, validation accuracy 0.9720, test loss ..." */
static const char *splits_text(const Trainer *t, char text[2 * EVALUATE_TEXT + 160])
{
    char one[EVALUATE_TEXT], area[64];
    const Result *r = &t->result;
    int n = 0;
    if (t->validation)
        n = snprintf(text, EVALUATE_TEXT + 80, "%s%s, ",
                     split_text(t, t->validation, r->validation, "validation ", one),
                     evaluate_auc_text(r->validation_auc, "validation ", area));
    snprintf(text + n, EVALUATE_TEXT + 80, "%s%s", split_text(t, t->test, r->test, "test ", one),
             evaluate_auc_text(r->test_auc, "test ", area));
    return text;
}

/* The mark that the screen and the log report: that of `keep`, else of `stop`; NULL: the recipe has
 * neither, or no epoch had a value. */
static const Mark *best_mark(const Trainer *t)
{
    const RtRecipe *q = &t->p->recipe;
    const Mark *m = q->keep.result ? &t->best.keep : q->stop.result ? &t->best.stop : NULL;
    return m && !isnan(m->value) ? m : NULL;
}

void progress_epoch(Trainer *t)
{
    const Result *r = &t->result;
    const Position *a = &t->at;
    const Mark *best = best_mark(t);
    char hash[17], train[EVALUATE_TEXT], hidden[128], scale[128], splits[2 * EVALUATE_TEXT + 160];
    const double rate = (double)a->samples / a->seconds;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)params_hash(t->p, t->net->fixed));
    bar_clear(&t->bar);
    rt_print("epoch %2lld/%lld  %6.2f s  %7.0f samples/s  %s, %s%s%s%s\n", (long long)a->epoch + 1,
             (long long)t->o->epochs, a->seconds, rate, evaluate_brief(t->p, r->train, "", train),
             splits_text(t, splits), best && best->epoch == a->epoch + 1 ? ", the best so far" : "",
             scale_text(t, scale), hidden_text(t, hidden));
    log_begin(&t->log, RECORD(epoch));
    log_count(&t->log, FIELD(epoch, epoch), a->epoch + 1);
    log_count(&t->log, FIELD(epoch, samples), a->samples);
    log_real(&t->log, FIELD(epoch, seconds), a->seconds);
    log_real(&t->log, FIELD(epoch, samples_per_s), rate);
    if (t->o->comm->size > 1) {
        log_real(&t->log, FIELD(epoch, comm_seconds), t->busy);
        log_real(&t->log, FIELD(epoch, comm_wait_seconds), t->waited);
    }
    log_real(&t->log, FIELD(epoch, lr),
             schedule_lr(&t->p->recipe, t->plateau.rate, a->total - 1, t->steps));
    log_metrics(t, "train", r->train, evaluate_trained(t->p));
    log_splits(t, false);
    if (best)
        log_count(&t->log, FIELD(epoch, best_epoch), best->epoch);
    if (t->p->recipe.stop.result)
        log_count(&t->log, FIELD(epoch, waited_epochs), best_waited(&t->best, a->epoch + 1));
    log_scale(t);
    log_count(&t->log, FIELD(epoch, peak_bytes), memory_peak());
    log_text(&t->log, FIELD(epoch, weights_hash), hash);
    log_end(&t->log);
}

void progress_rate(Trainer *t)
{
    const Plateau *s = &t->plateau;
    const char *result = t->p->recipe.plateau.result;
    if (isnan(s->best))
        rt_print("the learning rate falls to %.6g: no epoch had a %s\n", s->rate, result);
    else
        rt_print("the learning rate falls to %.6g: %s has not improved enough on %.6g\n", s->rate,
                 result, s->best);
}

/* The results are those of the kept weights, which train_run has evaluated. */
void progress_best(Trainer *t)
{
    const RtWatch *w = &t->p->recipe.keep;
    const Mark *m = &t->best.keep;
    char splits[2 * EVALUATE_TEXT + 160];
    if (!w->result)
        return;
    if (isnan(m->value)) {
        rt_note("no epoch had a %s: the weights are those of the last epoch", w->result);
        return;
    }
    rt_print("the weights are those of epoch %lld, with the best %s, %.6g: %s\n",
             (long long)m->epoch, w->result, m->value, splits_text(t, splits));
    log_begin(&t->log, RECORD(best));
    log_count(&t->log, FIELD(best, epoch), m->epoch);
    log_text(&t->log, FIELD(best, result), w->result);
    log_real(&t->log, FIELD(best, value), m->value);
    log_splits(t, true);
    log_end(&t->log);
}

void progress_metrics(Trainer *t)
{
    if (!t->tallied)
        return;
    log_begin(&t->log, RECORD(metrics));
    tally_log(t->tally, &t->log);
    log_end(&t->log);
}
