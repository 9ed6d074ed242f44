/* train.c -- the command `train`: epochs of steps, a test after each, checkpoints between.
 *
 * Everything that can be decided from the samples' order is: batch s of an epoch is places s B
 * .. s B + B - 1 of a permutation (order.h), which the loader thread has listed during the epoch
 * before. After the first step nothing is allocated.
 */
#include "train/train.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/loader.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "base/output.h"
#include "data/vocab.h"
#include "files/file.h"
#include "files/log.h"
#include "files/params.h"
#include "measure/ticks.h"
#include "step/net.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/expect.h"
#include "train/init.h"
#include "train/schedule.h"
#include "train/weights.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Trainer Trainer;

/* An epoch's order to be made: a job of the loader. */
typedef struct OrderJob {
    const Trainer *t;
    int64_t epoch;
    Order order;
} OrderJob;

struct Trainer {
    const RtProgram *p;
    const Options *o;
    Pool *pool;
    Net *net;
    Data *data, *test;
    Loader *loader;
    Checkpoint *checkpoint; /* NULL: none, or another rank writes it */
    StWriter *save;         /* NULL: no --save */
    Log log;
    Bar bar;
    int64_t steps;  /* an epoch */
    OrderJob order[2]; /* of even and odd epochs */
    Batch *batch;   /* of several steps at once */
    Batch *ahead;   /* of those behind them */
    Hyper *hyper;
    Order test_order;
    Position at;
    int64_t saved_total;     /* the last checkpoint: step, */
    double saved_time;       /* and moment */
    double began, rate_from; /* this process's part of the epoch */
    double waited, busy;     /* of comm, in it */
    Result result;
    Ticks *ticks; /* --trace: of the first steps */
};

static volatile sig_atomic_t stop;

/* A second Ctrl-C ends at once, and takes with it what is half written. */
static void on_signal(int number)
{
    stop = number;
    if (number == SIGINT)
        signal(SIGINT, rt_end_by_signal);
}

static void watch_signals(void)
{
    const struct sigaction mine = {.sa_handler = on_signal};
    sigaction(SIGINT, &mine, NULL);
    sigaction(SIGTERM, &mine, NULL); /* launchers repeat themselves */
    output_watch(&stop);
}

static void make_order(void *arg)
{
    OrderJob *j = arg;
    const Trainer *t = j->t;
    j->order.by = order_by(t->data->n, t->o->seed, j->epoch, t->o->shuffle);
    order_fill(&j->order.by, j->order.sample, t->steps * t->p->batch);
}

static void fill_test(void *arg)
{
    data_fill(arg, NULL);
}

static void post_order(Trainer *t, int64_t epoch)
{
    OrderJob *j = &t->order[epoch % 2];
    j->epoch = epoch;
    loader_post(t->loader, make_order, j);
}

static void open_orders(Trainer *t)
{
    for (int i = 0; i < 2; i++)
        t->order[i] =
            (OrderJob){.t = t, .order.sample = memory_map(t->steps * t->p->batch * 4, false,
                                                          "the order of samples")};
}

/* Rank 0 has the checkpoint; the others get what it has read. */
static bool resumed(Trainer *t)
{
    struct {
        bool found;
        Position at;
    } r = {false, t->at};
    if (t->checkpoint)
        r.found = checkpoint_resume(t->checkpoint, &r.at);
    comm_broadcast(t->o->comm, &r, sizeof r, "the checkpoint's position");
    if (!r.found)
        return false;
    comm_broadcast(t->o->comm, t->net->fixed, t->p->fixed_bytes, "the checkpoint");
    t->at = r.at;
    net_scale_resumed(t->net);
    return true;
}

static void start_from(Trainer *t)
{
    if (t->o->checkpoint && t->o->resume && resumed(t)) {
        if (t->o->weights)
            rt_note("the weights are the checkpoint's: --weights %s is only used when a run begins",
                    t->o->weights);
        return;
    }
    if (t->o->weights) {
        weights_load(t->net, t->o->weights);
    } else {
        init_params(t->p, t->net->fixed, t->o->seed, t->pool);
        data_mean(t->data, t->p, t->pool, t->net->fixed);
    }
}

/* A schedule over all epochs is the recipe's: --epochs ends the run, and never changes a rate. */
static void say_schedule(const Trainer *t)
{
    const RtRecipe *r = &t->p->recipe;
    const bool spans = r->schedule == RT_SCHED_COSINE || r->schedule == RT_SCHED_POLYNOMIAL;
    if (spans && t->o->epochs != r->epochs && t->at.epoch < t->o->epochs)
        rt_note("the %s schedule spans the recipe's %lld epoch%s, also with --epochs %lld%s; build with --set "
                "epochs=%lld to have it end there",
                r->schedule == RT_SCHED_COSINE ? "cosine" : "polynomial", (long long)r->epochs,
                r->epochs == 1 ? "" : "s", (long long)t->o->epochs,
                t->o->epochs > r->epochs ? ": the rate stays at its end from there on" : "",
                (long long)t->o->epochs);
}

static void say_scale(const Trainer *t)
{
    const RtScaling *s = &t->net->scaling;
    if (t->p->scaling && s->every > 0)
        rt_note("loss scale %.10g: halved, and the step left out, when a gradient is not finite in f16; doubled after "
                "%.0f steps in a row with finite gradients",
                s->scale, s->every);
    else if (t->p->scaling)
        rt_note("loss scale %.10g, fixed: a step is left out when a gradient is not finite in f16",
                s->scale);
}

static void say_steps(const Trainer *t)
{
    if (t->p->steps)
        rt_note("up to %d steps are one launch, by %s", t->p->steps_most, t->p->steps_how);
}

/* Ranks that differ would train different networks. */
static void compare_ranks(Trainer *t)
{
    Comm *c = t->o->comm;
    comm_same(c, data_hash_rows(t->data), "other training data");
    comm_same(c, data_hash_rows(t->test), "other test data");
    comm_same(c, params_hash(t->p, t->net->fixed), "other weights");
}

/* Of start, step and epoch: the scale of the next step, and how many steps have been left out in all. */
static void log_scale(Trainer *t)
{
    if (!t->p->scaling)
        return;
    log_real(&t->log, FIELD(epoch, loss_scale), t->net->scaling.scale);
    log_count(&t->log, FIELD(epoch, skipped_steps), (int64_t)t->net->scaling.skipped);
}

static void log_start(Trainer *t)
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
    log_count(l, FIELD(start, threads), t->o->threads);
    log_count(l, FIELD(start, parameters), p->parameters);
    log_real(l, FIELD(start, flops_per_sample), p->flops_per_sample);
    log_count(l, FIELD(start, planned_bytes), net_bytes(t->net));
    log_count(l, FIELD(start, samples), t->data->n);
    log_count(l, FIELD(start, seed), (int64_t)t->o->seed);
    log_count(l, FIELD(start, epochs), t->o->epochs);
    log_count(l, FIELD(start, epoch), t->at.epoch);
    log_count(l, FIELD(start, step), t->at.step);
    log_scale(t);
    log_end(l);
}

static void open_all(Trainer *t)
{
    const RtProgram *p = t->p;
    const Options *o = t->o;
    const char *name = o->data ? o->data : p->recipe.data;
    const bool traces = o->trace && o->comm->rank == 0;
    if (o->save)
        file_check(o->save);
    if (traces)
        file_check(o->trace);
    t->pool = pool_new(o->threads);
    if (o->weights)
        vocab_of_weights(p, o->weights);
    t->data = data_open(p, name, "train", o->limit);
    t->test = data_open(p, name, "test", 0);
    t->net = net_new(p, t->pool, o->comm, o->groups, false);
    net_scale(t->net, o->loss_scale, o->loss_scale_steps);
    net_samples(t->net, o->samples_in, o->launch_steps);
    t->batch = rt_alloc(sizeof *t->batch * (size_t)net_steps_most(t->net));
    t->ahead = rt_alloc(sizeof *t->ahead * (size_t)net_steps_most(t->net));
    t->hyper = rt_alloc(sizeof *t->hyper * (size_t)net_steps_most(t->net));
    t->ticks = traces ? ticks_new(p, o->threads, TRACE_STEPS) : NULL;
    t->checkpoint = o->checkpoint && o->comm->rank == 0 ? checkpoint_open(p, o, t->net) : NULL;
    t->save = o->save ? weights_writer(t->net, o->save) : NULL;
    t->steps = evaluate_batches(p, t->data->n);
    t->test_order = order_stored(t->test->n, p->batch);
    open_orders(t);
    t->loader = loader_new();
    loader_post(t->loader, fill_test, t->test);
    data_fill(t->data, t->pool);
    if (t->checkpoint)
        checkpoint_bind(t->checkpoint, data_hash(t->data),
                        data_hash_samples(t->data, t->pool));
    start_from(t);
    mapped_check();
    data_share(t->data, o->comm->rank, o->comm->size);
    data_share(t->test, o->comm->rank, o->comm->size);
    say_schedule(t);
    say_scale(t);
    say_steps(t);
    if (o->comm->size > 1) {
        loader_wait(t->loader);
        compare_ranks(t);
    }
    log_open(&t->log, o->log, t->at.total > 0);
    if (o->log_ranks)
        log_keep_messages(&t->log);
    log_start(t);
    if (o->comm->rank == 0)
        bar_open(&t->bar);
    t->saved_total = t->at.total;
    t->saved_time = clock_now();
    OrderJob *first = &t->order[t->at.epoch % 2];
    first->epoch = t->at.epoch;
    make_order(first);
}

static void save_checkpoint(Trainer *t)
{
    net_fetch(t->net);
    checkpoint_save(t->checkpoint, &t->at);
    t->saved_total = t->at.total;
    t->saved_time = clock_now();
}

/* Seconds of the epoch so far, what an interrupted run has spent on it included. */
static double epoch_seconds(const Trainer *t)
{
    return t->at.seconds + clock_now() - t->began;
}

/* All ranks stop after the same step: that in whose report one of them said that it was asked to. */
static bool stopping(const Trainer *t)
{
    return t->o->comm->size > 1 ? t->net->all_stop : stop != 0;
}

static int stopped(Trainer *t)
{
    if (t->o->comm->rank > 0)
        return t->o->checkpoint ? EXIT_STOPPED : EXIT_FAILURE;
    const char *name = stop == SIGINT ? "SIGINT" : stop ? "SIGTERM" : "a signal to another rank";
    bar_clear(&t->bar);
    if (!t->checkpoint)
        rt_die("stopped by %s in epoch %lld after %lld steps; nothing was saved: with --checkpoint DIR the run can be "
               "resumed",
               name, (long long)t->at.epoch + 1, (long long)t->at.step);
    save_checkpoint(t);
    checkpoint_close(t->checkpoint);
    rt_note("stopped by %s in epoch %lld after %lld steps; saved in %s: continue with --resume", name,
            (long long)t->at.epoch + 1, (long long)t->at.step, t->o->checkpoint);
    return EXIT_STOPPED;
}

/* A data file broke under the run.  `whole`: no step has used what was missing, so that the state is that of the last finished
 * step, and rank 0 saves it; otherwise the last checkpoint stays as it is. */
static void __attribute__((noreturn)) data_lost(Trainer *t, bool whole)
{
    const Position *a = &t->at;
    const char *why = mapped_why(),
               *where = rt_format("in epoch %lld after %lld steps", (long long)a->epoch + 1,
                                  (long long)a->step);
    bar_clear(&t->bar);
    if (!t->o->checkpoint)
        rt_die("%s; the run ends %s, and nothing was saved: with --checkpoint DIR it can be resumed",
               why, where);
    if (!t->checkpoint || !whole)
        rt_die("%s; the run ends %s: %s, and the last checkpoint in %s stays as it was; then continue with --resume",
               why, where,
               whole ? "rank 0 alone saves" : "the last step may have used wrong samples",
               t->o->checkpoint);
    if (a->total > t->saved_total) {
        if (a->step < t->steps)
            t->at.seconds = epoch_seconds(t);
        save_checkpoint(t);
    }
    rt_die("%s; the run ends %s, saved in %s: no step has used wrong samples; then continue with --resume",
           why, where, t->o->checkpoint);
}

/* Behind a step on the processor nobody knows what it has read; on a device its samples were there before it began. */
static void look_at_files(Trainer *t, bool whole)
{
    if (*t->net->wrong)
        data_wrong_token(t->data);
    if (mapped_broken())
        data_lost(t, whole);
}

/* The update has not happened yet, so the parameters are those that led here. */
static void __attribute__((noreturn)) not_finite(Trainer *t, const Batch *b)
{
    const RtProgram *p = t->p;
    look_at_files(t, true);
    net_leave_word(t->net);
    net_fetch(t->net);
    const RtParam *bad = params_nonfinite(p, t->net->fixed);
    const int layer = net_first_nonfinite(t->net, b);
    char where[400] = "";
    if (layer == 0 && !bad)
        rt_die("the samples hold numbers that are not finite: in epoch %lld, step %lld of %lld; "
               "the "
               "loss is not finite, and nothing was updated by them",
               (long long)t->at.epoch + 1, (long long)t->at.step + 1, (long long)t->steps);
    if (layer >= 0 && layer < p->nlayer)
        snprintf(where, sizeof where, "; the first value that is not finite is %s",
                 p->layer[layer]);
    const size_t n = strlen(where);
    if (bad)
        snprintf(where + n, sizeof where - n, "; the update before it broke the parameter %s",
                 bad->name);
    rt_die("the loss is not finite in epoch %lld, step %lld of %lld%s; try a smaller learning "
           "rate, warm-up or clipping",
           (long long)t->at.epoch + 1, (long long)t->at.step + 1, (long long)t->steps, where);
}

/* A smaller scale would lose what f16 can hold: the gradients are too large, or no numbers. */
static void __attribute__((noreturn)) not_scalable(const Trainer *t)
{
    rt_die("a gradient is not finite in f16 in epoch %lld, step %lld of %lld, though the loss is, "
           "and the loss scale has come down to 1; try a smaller learning rate or warm-up, or "
           "build with --dtype bf16",
           (long long)t->at.epoch + 1, (long long)t->at.step + 1, (long long)t->steps);
}

/* Behind a step that began with this one. */
static void look_at_scale(const Trainer *t, RtScaling before)
{
    if (before.every > 0 && before.scale <= RT_SCALE_LEAST &&
        t->net->scaling.skipped > before.skipped)
        not_scalable(t);
}

static void draw_bar(Trainer *t)
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

static void log_metrics(Trainer *t, const char *prefix, const double mean[RT_METRICS])
{
    char key[64];
    for (int m = 0; m < t->p->nmetric; m++) {
        snprintf(key, sizeof key, "%s_%.50s", prefix, t->p->metric[m]);
        log_real(&t->log, key, mean[m]);
    }
    snprintf(key, sizeof key, "%s_perplexity", prefix);
    if (t->p->perplexity)
        log_real(&t->log, key, evaluate_perplexity(t->p, mean));
}

/* The means over one batch, taken before its update. */
static void log_step(Trainer *t, int samples)
{
    double mean[RT_METRICS];
    for (int m = 0; m < RT_METRICS; m++)
        mean[m] = t->net->metric[m] / samples;
    log_begin(&t->log, RECORD(step));
    log_count(&t->log, FIELD(step, step), t->at.total);
    log_count(&t->log, FIELD(step, samples), samples);
    log_metrics(t, "train", mean);
    log_scale(t);
    log_end(&t->log);
}

/* --trace: the file is written when its steps are done, or at the end of a shorter run. */
static void end_trace(Trainer *t)
{
    if (!t->ticks)
        return;
    trace_write(t->ticks, t->o->trace);
    ticks_free(t->ticks);
    t->ticks = NULL;
}

/* Samples of the step that is so many on from here: the last one of an epoch is filled up. */
static int samples_of(const Trainer *t, int ahead)
{
    const int64_t left = t->data->n - (t->at.step + ahead) * t->p->batch;
    return left < t->p->batch ? (int)left : t->p->batch;
}

static Batch batch_of(Trainer *t, int ahead)
{
    const Position *a = &t->at;
    Batch b = {.seed = t->o->seed, .epoch = a->epoch};
    data_batch(t->data, t->pool, &t->order[a->epoch % 2].order, a->step + ahead, samples_of(t, ahead), &b);
    return b;
}

static Hyper hyper_of(const Trainer *t, int ahead)
{
    const int64_t step = t->at.total + ahead;
    return (Hyper){schedule_lr(&t->p->recipe, step, t->steps), step};
}

/* The step that net->metric is of is done. */
static void count_step(Trainer *t)
{
    Position *a = &t->at;
    const int samples = samples_of(t, 0);
    for (int m = 0; m < RT_METRICS; m++)
        a->sum[m] += t->net->metric[m];
    a->samples += samples;
    a->step++;
    a->total++;
    if (t->o->log_steps && a->total % t->o->log_steps == 0)
        log_step(t, samples);
}

static void one_step(Trainer *t)
{
    t->net->ticks = t->ticks;
    if (t->ticks)
        ticks_step_begin(t->ticks);
    const Batch b = batch_of(t, 0);
    look_at_files(t, true);
    if (t->ticks)
        ticks_batch_ready(t->ticks);
    const RtScaling before = t->net->scaling;
    t->net->stop = stop != 0;
    if (!net_step(t->net, &b, hyper_of(t, 0)))
        not_finite(t, &b);
    look_at_scale(t, before);
    t->net->ticks = NULL; /* a test is no part of it */
    if (t->ticks) {
        ticks_step_end(t->ticks);
        if (t->ticks->steps == TRACE_STEPS)
            end_trace(t);
    }
    count_step(t);
    look_at_files(t, t->p->device);
}

/* So many steps ahead: up to the end of the epoch, or the next checkpoint that counts steps; samples that are made up are there for one step at a time, and a
 * trace has a row a step.  All ranks take as many, though one of them alone traces, saves, and knows when it did. */
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

/* What comes behind the next n steps, if the epoch goes on: of made-up samples one batch is there at a time. */
static void announce(Trainer *t, int n)
{
    const bool more = t->p->device && !t->data->synthetic && t->at.step + n < t->steps;
    const int next = more ? steps_at_once(t, n) : 0;
    for (int i = 0; i < next; i++)
        t->ahead[i] = batch_of(t, n + i);
    net_ahead(t->net, t->ahead, next);
}

static void several_steps(Trainer *t, int n)
{
    for (int i = 0; i < n; i++) {
        t->batch[i] = batch_of(t, i);
        t->hyper[i] = hyper_of(t, i);
    }
    look_at_files(t, true);
    RtScaling before = t->net->scaling;
    t->net->stop = stop != 0;
    const int done = net_steps(t->net, t->batch, t->hyper, n);
    for (int i = 0; i < done; i++) {
        net_step_metrics(t->net, i);
        look_at_scale(t, before);
        count_step(t);
        before = t->net->scaling;
    }
    if (done < n)
        not_finite(t, &t->batch[done]);
    look_at_files(t, true);
}

static bool checkpoint_due(const Trainer *t)
{
    const Options *o = t->o;
    return (o->every_steps && t->at.total - t->saved_total >= o->every_steps) ||
           (o->every_seconds > 0 && clock_now() - t->saved_time >= o->every_seconds);
}

/* The steps that are left of the current epoch; false when a signal came. */
static bool train_epoch(Trainer *t)
{
    post_order(t, t->at.epoch + 1);
    t->began = clock_now();
    t->rate_from = (double)t->at.samples;
    const double waited = t->o->comm->waited, busy = t->o->comm->busy;
    while (t->at.step < t->steps && !stopping(t)) {
        const int n = steps_at_once(t, 0);
        announce(t, n);
        if (n > 1)
            several_steps(t, n);
        else
            one_step(t);
        draw_bar(t);
        if (t->checkpoint && checkpoint_due(t) && t->at.step < t->steps) {
            const double spent = t->at.seconds;
            t->at.seconds = epoch_seconds(t);
            save_checkpoint(t);
            t->at.seconds = spent;
        }
    }
    net_settle(t->net);
    t->at.seconds = epoch_seconds(t);
    t->waited = t->o->comm->waited - waited;
    t->busy = t->o->comm->busy - busy;
    return !stopping(t);
}

/* ", waiting for ranks 4 % of the time: 18 % of the communication"; of sums between GPUs nobody here knows */
static const char *hidden_text(const Trainer *t, char text[128])
{
    *text = '\0';
    if (t->o->comm->size > 1 && t->busy > 0 && !t->p->link)
        snprintf(text, 128, ", waiting for ranks %.0f %% of the time: %.0f %% of the communication",
                 100 * t->waited / t->at.seconds, 100 * fmin(1, t->waited / t->busy));
    return text;
}

/* ", loss scale 32768", and how many steps it has cost so far */
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

static void report_epoch(Trainer *t)
{
    const Result *r = &t->result;
    const Position *a = &t->at;
    char hash[17], train[256], test[256], hidden[128], scale[128];
    const double rate = (double)a->samples / a->seconds;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)params_hash(t->p, t->net->fixed));
    bar_clear(&t->bar);
    rt_print("epoch %2lld/%lld  %6.2f s  %7.0f samples/s  %s, %s%s%s\n", (long long)a->epoch + 1,
             (long long)t->o->epochs, a->seconds, rate, evaluate_text(t->p, r->train, "", train),
             evaluate_text(t->p, r->test, "test ", test), scale_text(t, scale),
             hidden_text(t, hidden));
    log_begin(&t->log, RECORD(epoch));
    log_count(&t->log, FIELD(epoch, epoch), a->epoch + 1);
    log_count(&t->log, FIELD(epoch, samples), a->samples);
    log_real(&t->log, FIELD(epoch, seconds), a->seconds);
    log_real(&t->log, FIELD(epoch, samples_per_s), rate);
    if (t->o->comm->size > 1) {
        log_real(&t->log, FIELD(epoch, comm_seconds), t->busy);
        log_real(&t->log, FIELD(epoch, comm_wait_seconds), t->waited);
    }
    log_real(&t->log, FIELD(epoch, lr), schedule_lr(&t->p->recipe, a->total - 1, t->steps));
    log_metrics(t, "train", r->train);
    log_metrics(t, "test", r->test);
    log_scale(t);
    log_count(&t->log, FIELD(epoch, peak_bytes), memory_peak());
    log_text(&t->log, FIELD(epoch, weights_hash), hash);
    log_end(&t->log);
}

static void test(Trainer *t)
{
    evaluate_split(t->net, t->test, &t->test_order, t->result.test);
    if (*t->net->wrong)
        data_wrong_token(t->test);
    look_at_files(t, true);
}

static void finish_epoch(Trainer *t)
{
    Position *a = &t->at;
    loader_wait(t->loader); /* the test set, and the next order */
    for (int m = 0; m < RT_METRICS; m++)
        t->result.train[m] = a->sum[m] / (double)a->samples;
    test(t);
    t->result.known = true;
    net_fetch(t->net);
    comm_same(t->o->comm, params_hash(t->p, t->net->fixed), "other weights");
    report_epoch(t);
    *a = (Position){.epoch = a->epoch + 1, .total = a->total};
    if (t->checkpoint)
        save_checkpoint(t);
}

static void finish(Trainer *t)
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
    log_text(&t->log, FIELD(end, weights_hash), hash);
    log_end(&t->log);
}

int train_run(const RtProgram *p, const Options *o)
{
    static Trainer trainer; /* a log line and paths make it large */
    Trainer *t = &trainer;
    *t = (Trainer){.p = p, .o = o};
    watch_signals();
    open_all(t);
    while (t->at.epoch < o->epochs) {
        if (stopping(t) || !train_epoch(t))
            return stopped(t);
        finish_epoch(t);
        if (expect_reached(p, o, &t->result))
            break;
    }
    loader_wait(t->loader);
    end_trace(t);
    if (!t->result.known) /* nothing was left to train */
        test(t);
    finish(t);
    return expect_report(p, o, &t->result, t->at.epoch, clock_now() - clock_start());
}
