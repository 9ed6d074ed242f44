/* test.c -- the command `test`: metrics of the weights of a file on the test set, and with --report
 * files about the predictions. */
#include "base/clock.h"
#include "base/error.h"
#include "base/mapped.h"
#include "commands/commands.h"
#include "commands/review.h"
#include "data/columns.h"
#include "data/vocab.h"
#include "files/log.h"
#include "files/params.h"
#include "train/evaluate.h"
#include "train/nans.h"
#include "train/scores.h"
#include "train/tally.h"
#include "train/weights.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Tested {
    const RtProgram *p;
    const Options *o;
    Net *net;
    Data *data;
    double mean[RT_METRICS];
    Scores *scores; /* NULL: no auc after each epoch */
    Tally *tally;   /* NULL: no further metrics */
    Nans *nans;     /* NULL: texts */
    Review *review; /* NULL: without --report */
    double seconds;
} Tested;

static void open_split(Tested *t)
{
    const RtProgram *p = t->p;
    const Options *o = t->o;
    Pool *pool = pool_on(&o->place);
    vocab_of_weights(p, o->weights);
    columns_of_weights(p, o->weights);
    shares_test(o->all);
    t->data = data_open(p, o->data ? o->data : p->recipe.data, "test", 0);
    if (o->all && shares_tested() == 0)
        rt_die("--all is for data without a test split: %s has one, and without --all the program "
               "tests all of it",
               t->data->place);
    t->net = net_new(p, pool, o->comm, 1, false);
    net_samples(t->net, o->samples_in, 1);
    weights_load(t->net, o->weights);
    data_fill(t->data, pool);
    data_share(t->data, o->comm->rank, o->comm->size);
    if (o->comm->size > 1) {
        comm_same(o->comm, data_hash_rows(t->data), "other test data");
        comm_same(o->comm, params_hash(p, t->net->fixed), "other weights");
    }
}

static void evaluate(Tested *t)
{
    const Order order = order_stored(t->data->n, t->p->batch);
    OutputReader *readers = t->nans ? &t->nans->reader : NULL;
    const double began = clock_now();
    if (t->tally) {
        tally_begin(t->tally);
        t->tally->reader.next = readers;
        readers = &t->tally->reader;
    }
    if (t->review) {
        t->review->reader.next = readers;
        readers = &t->review->reader;
    }
    evaluate_split(t->net, t->data, &order, t->mean, t->scores, readers);
    if (t->tally)
        tally_end(t->tally);
    if (t->nans)
        nans_end(t->nans);
    if (*t->net->wrong)
        data_wrong_token(t->data);
    mapped_check();
    t->seconds = clock_now() - began;
}

/* The metrics of the record, without those of the tally. */
static int list_metrics(const Tested *t, ReviewMetric metric[RT_METRICS + 2])
{
    const RtProgram *p = t->p;
    int n = 0;
    for (int m = 0; m < p->nmetric; m++)
        metric[n++] = (ReviewMetric){rt_format("test_%s", p->metric[m]), t->mean[m]};
    if (p->perplexity)
        metric[n++] = (ReviewMetric){FIELD(test, test_perplexity), evaluate_perplexity(p, t->mean)};
    if (t->scores && !isnan(t->scores->auc))
        metric[n++] = (ReviewMetric){FIELD(test, test_auc), t->scores->auc};
    return n;
}

static void log_results(const Tested *t, Log *log)
{
    ReviewMetric metric[RT_METRICS + 2];
    const int n = list_metrics(t, metric);
    log_begin(log, RECORD(test));
    log_text(log, FIELD(test, model), t->p->model);
    log_count(log, FIELD(test, samples), t->data->n);
    log_real(log, FIELD(test, seconds), t->seconds);
    if (t->nans && t->nans->all > 0)
        log_count(log, FIELD(test, nan_samples), t->nans->all);
    for (int m = 0; m < n; m++)
        log_real(log, metric[m].name, metric[m].value);
    if (t->tally)
        tally_log(t->tally, log);
    log_end(log);
}

/* Warns of outputs of NaN. */
static void warn(const Tested *t)
{
    const long long found = t->nans ? t->nans->all : 0;
    if (found > 0 && t->o->comm->rank == 0)
        rt_note("warning: the output of %lld of %lld samples has a NaN%s", found,
                (long long)t->data->n,
                t->tally ? ": such an output predicts no class, and counts as wrong" : "");
}

static void print_results(const Tested *t)
{
    char text[EVALUATE_TEXT], area[64];
    printf("%lld samples in %.2f s\n", (long long)t->data->n, t->seconds);
    if (t->o->all)
        printf("these are all samples of %s, also those that a training learns from\n",
               t->data->place);
    else if (shares_tested() > 0)
        printf("these are the test split of %s, a share of %g; --all tests all samples\n",
               t->data->place, shares_tested());
    if (data_unscored(t->data)) {
        printf("no label of the test split counts, so there are no metrics\n");
        return;
    }
    if (t->tally)
        tally_print(t->tally);
    printf("%s%s\n", evaluate_text(t->p, t->mean, "test ", text),
           evaluate_auc_text(t->scores ? t->scores->auc : NAN, "test ", area));
}

static void write_review(const Tested *t, ReviewFolder *folder)
{
    const int more = t->tally ? t->tally->nmetric : 0;
    ReviewMetric *metric = rt_alloc(sizeof *metric * (size_t)(RT_METRICS + 2 + more));
    int n = list_metrics(t, metric);
    for (int m = 0; m < more; m++)
        metric[n++] = (ReviewMetric){rt_format("test_%s", t->tally->metric[m].name),
                                     t->tally->metric[m].value};
    review_write(t->review, folder, metric, n, t->nans ? t->nans->all : 0);
}

int test_run(const RtProgram *p, const Options *o)
{
    static ReviewFolder folder; /* static: it has a buffer of a file */
    Tested t = {.p = p, .o = o};
    Log log;
    if (o->report && o->comm->rank == 0)
        review_folder_check(&folder, o->report);
    open_split(&t);
    log_open(&log, o->log, false);
    if (o->log_ranks)
        log_keep_messages(&log);
    t.scores = scores_new(p, o->comm, t.data->n);
    t.tally = tally_new(p, t.net->pool, o->comm, t.data->n, INT64_MAX);
    t.nans = nans_new(p, t.net->pool, o->comm);
    if (o->report)
        t.review = review_new(p, t.net->pool, o->comm, t.data, t.tally);
    evaluate(&t);
    log_results(&t, &log);
    print_results(&t);
    warn(&t);
    if (o->report)
        write_review(&t, &folder);
    return log.lost ? EXIT_FAILURE : 0; /* the user has asked for the log */
}
