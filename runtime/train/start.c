/* start.c -- the start of a run of `train`: data, network, order of samples, checkpoint or weights,
 * log.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "data/columns.h"
#include "files/file.h"
#include "files/params.h"
#include "step/average.h"
#include "train/evaluate.h"
#include "train/trainer.h"
#include "train/weights.h"

static void make_order(void *arg)
{
    OrderJob *j = arg;
    const Trainer *t = j->t;
    j->order.by = order_by(t->data->n, t->o->seed, j->epoch, t->o->shuffle);
    order_fill(&j->order.by, j->order.sample, t->steps * t->p->batch);
}

static void fill_test(void *arg)
{
    const Trainer *t = arg;
    data_fill(t->test, NULL);
    if (t->validation)
        data_fill(t->validation, NULL);
}

void start_order(Trainer *t, int64_t epoch)
{
    OrderJob *j = &t->order[epoch % 2];
    j->epoch = epoch;
    loader_post(t->loader, make_order, j);
}

static void open_orders(Trainer *t)
{
    for (int i = 0; i < 2; i++)
        t->order[i] = (OrderJob){.t = t,
                                 .order.sample = memory_map(t->steps * t->p->batch * 4, false,
                                                            "the order of samples")};
}

/* Resumes from a checkpoint: rank 0 reads it and sends it to the other ranks.  False: there is
 * none. */
static bool resume(Trainer *t)
{
    struct {
        bool found;
        Position at;
        Mark keep, stop;
        Plateau plateau;
        int64_t averaged; /* Average.epochs */
    } r = {.at = t->at};
    Best *best = &t->best;
    Average *average = t->net->average;
    if (t->checkpoint)
        r.found = checkpoint_resume(t->checkpoint, &r.at);
    r.keep = best->keep, r.stop = best->stop;
    r.plateau = t->plateau;
    r.averaged = average ? average->epochs : 0;
    comm_broadcast(t->o->comm, &r, sizeof r, "the checkpoint's position");
    if (!r.found)
        return false;
    comm_broadcast(t->o->comm, t->net->fixed, t->p->fixed_bytes, "the checkpoint");
    if (average && t->p->average_bytes > 0)
        comm_broadcast(t->o->comm, average->memory, t->p->average_bytes, "the averaged weights");
    if (average)
        average_resumed(average, r.averaged, r.at.total);
    if (best->weights)
        comm_broadcast(t->o->comm, best->weights, t->p->kept_bytes, "the best weights");
    t->at = r.at;
    best->keep = r.keep, best->stop = r.stop;
    t->plateau = r.plateau;
    net_scale_resumed(t->net);
    return true;
}

/* Loads the state of the first step: a checkpoint, weights of a file, or initial weights. */
static void load_start(Trainer *t)
{
    if (t->o->checkpoint && t->o->resume && resume(t)) {
        if (t->o->weights && columns_now())
            rt_note("the weights are those of the checkpoint: only the columns of --weights %s are "
                    "used",
                    t->o->weights);
        else if (t->o->weights)
            rt_note("the weights are those of the checkpoint: --weights %s is only used when a run "
                    "begins",
                    t->o->weights);
        return;
    }
    pick_load(&t->pick, t->net, t->data, t->pool, t->o->seed);
    pick_say(&t->pick, t->p);
}

/* A schedule over all epochs spans the epochs of the recipe: --epochs ends the run, but does not
 * change a rate. */
static void note_schedule(const Trainer *t)
{
    const RtRecipe *r = &t->p->recipe;
    static const char *const name[] = {[RT_SCHED_COSINE] = "cosine",
                                       [RT_SCHED_POLYNOMIAL] = "polynomial",
                                       [RT_SCHED_ONE_CYCLE] = "one_cycle",
                                       [RT_SCHED_PLATEAU] = NULL};
    const char *spans = name[r->schedule];
    if (spans && t->o->epochs != r->epochs && t->at.epoch < t->o->epochs)
        rt_note("the %s schedule spans the recipe's %lld epoch%s, also with --epochs %lld%s; build "
                "with --set epochs=%lld to have it end there",
                spans, (long long)r->epochs, r->epochs == 1 ? "" : "s", (long long)t->o->epochs,
                t->o->epochs > r->epochs ? ": the rate stays at its end from there on" : "",
                (long long)t->o->epochs);
}

static void note_scale(const Trainer *t)
{
    const RtScaling *s = &t->net->scaling;
    if (t->p->scaling && s->every > 0)
        rt_note("loss scale %.10g: halved, and the step left out, when a gradient is not finite in "
                "f16; doubled after %.0f steps in a row with finite gradients",
                s->scale, s->every);
    else if (t->p->scaling)
        rt_note("loss scale %.10g, fixed: a step is left out when a gradient is not finite in f16",
                s->scale);
}

static void note_steps(const Trainer *t)
{
    if (t->p->steps)
        rt_note("up to %d steps are one launch, by %s", t->p->steps_most, t->p->steps_how);
}

static void note_average(const Trainer *t)
{
    const RtRecipe *r = &t->p->recipe;
    if (r->average == RT_AVERAGE_EMA)
        rt_note("evaluations and saved weights are moving averages of the weights, with a decay of "
                "%.10g in each step",
                r->average_decay);
    if (r->average == RT_AVERAGE_SWA)
        rt_note("from epoch %lld on, evaluations and saved weights are means of the weights after "
                "these epochs",
                (long long)r->average_from);
}

/* Dies if ranks have different data or weights. */
static void compare_ranks(Trainer *t)
{
    Comm *c = t->o->comm;
    comm_same(c, data_hash_rows(t->data), "other training data");
    comm_same(c, data_hash_rows(t->test), "other test data");
    if (t->validation)
        comm_same(c, data_hash_rows(t->validation), "other validation data");
    comm_same(c, params_hash(t->p, t->net->fixed), "other weights");
}

/* Opens the network, and everything that reads its memory or writes to it. */
static void open_net(Trainer *t)
{
    const RtProgram *p = t->p;
    const Options *o = t->o;
    const bool root = o->comm->rank == 0;
    t->net = net_new(p, t->pool, o->comm, o->groups, false);
    net_scale(t->net, o->loss_scale, o->loss_scale_steps);
    net_samples(t->net, o->samples_in, o->launch_steps);
    const size_t steps = (size_t)net_steps_most(t->net);
    t->batch = rt_alloc(sizeof *t->batch * steps);
    t->ahead = rt_alloc(sizeof *t->ahead * steps);
    t->hyper = rt_alloc(sizeof *t->hyper * steps);
    t->ticks = o->trace && root ? ticks_new(p, pool_threads(t->pool), TRACE_STEPS) : NULL;
    net_average_open(t->net);
    best_open(&t->best, p);
    t->plateau = plateau_new(&p->recipe);
    t->checkpoint =
        o->checkpoint && root ? checkpoint_open(p, o, t->net, &t->best, &t->plateau) : NULL;
    t->save = o->save ? weights_writer(t->net, o->save) : NULL;
}

/* Reads the training set; the loader thread reads the other splits at the same time. */
static void read_data(Trainer *t)
{
    t->steps = evaluate_batches(t->p, t->data->n);
    t->test_order = order_stored(t->test->n, t->p->batch);
    if (t->validation)
        t->validation_order = order_stored(t->validation->n, t->p->batch);
    open_orders(t);
    t->loader = loader_new();
    loader_post(t->loader, fill_test, t);
    data_fill(t->data, t->pool);
    if (t->checkpoint)
        checkpoint_bind(t->checkpoint, data_hash(t->data), data_hash_samples(t->data, t->pool));
}

static void start_log(Trainer *t)
{
    log_open(&t->log, t->o->log, t->at.total > 0);
    if (t->o->log_ranks)
        log_keep_messages(&t->log);
    progress_start(t);
    progress_start_weights(t);
    if (t->o->comm->rank == 0)
        bar_open(&t->bar);
}

void start_training(Trainer *t)
{
    const Options *o = t->o;
    const char *name = o->data ? o->data : t->p->recipe.data;
    if (o->save)
        file_check(o->save);
    if (o->trace && o->comm->rank == 0)
        file_check(o->trace);
    t->pool = pool_on(&o->place);
    t->pick = pick_start(t->p, o);
    pick_words(t->p, &t->pick);
    t->data = data_open(t->p, name, "train", o->limit);
    t->test = data_open(t->p, name, "test", 0);
    t->result.validated = data_has_validation(t->p, name);
    expect_check(t->p, name, t->result.validated);
    best_check(t->p, name, t->result.validated);
    plateau_check(t->p, name, t->result.validated);
    if (t->result.validated)
        t->validation = data_open(t->p, name, "validation", 0);
    open_net(t);
    read_data(t);
    load_start(t);
    mapped_check();
    const int64_t validated = t->validation ? t->validation->n : 0;
    t->scores = scores_new(t->p, o->comm, t->test->n > validated ? t->test->n : validated);
    t->tally = tally_new(t->p, t->pool, o->comm, t->test->n, TALLY_TRAINING);
    data_share(t->data, t->p->mixes ? 0 : o->comm->rank, t->p->mixes ? 1 : o->comm->size);
    data_share(t->test, o->comm->rank, o->comm->size);
    if (t->validation)
        data_share(t->validation, o->comm->rank, o->comm->size);
    note_schedule(t);
    note_scale(t);
    note_steps(t);
    note_average(t);
    if (o->comm->size > 1) {
        loader_wait(t->loader);
        compare_ranks(t);
    }
    start_log(t);
    t->saved_total = t->at.total;
    t->saved_time = clock_now();
    OrderJob *first = &t->order[t->at.epoch % 2];
    first->epoch = t->at.epoch;
    make_order(first);
}
