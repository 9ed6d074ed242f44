/* test.c -- the command `test`: metrics of the weights of a file on the test set. */
#include "base/clock.h"
#include "base/mapped.h"
#include "commands/commands.h"
#include "data/columns.h"
#include "data/vocab.h"
#include "files/log.h"
#include "files/params.h"
#include "train/evaluate.h"
#include "train/scores.h"
#include "train/tally.h"
#include "train/weights.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int test_run(const RtProgram *p, const Options *o)
{
    char text[EVALUATE_TEXT], area[64];
    Log log;
    Pool *pool = pool_on(&o->place);
    vocab_of_weights(p, o->weights);
    columns_of_weights(p, o->weights);
    Data *d = data_open(p, o->data ? o->data : p->recipe.data, "test", 0);
    Net *n = net_new(p, pool, o->comm, 1, false);
    net_samples(n, o->samples_in, 1);
    weights_load(n, o->weights);
    data_fill(d, pool);
    data_share(d, o->comm->rank, o->comm->size);
    if (o->comm->size > 1) {
        comm_same(o->comm, data_hash_rows(d), "other test data");
        comm_same(o->comm, params_hash(p, n->fixed), "other weights");
    }
    log_open(&log, o->log, false);
    if (o->log_ranks)
        log_keep_messages(&log);
    double mean[RT_METRICS];
    const Order order = order_stored(d->n, p->batch);
    Scores *scores = scores_new(p, o->comm, d->n);
    Tally *tally = tally_new(p, o->comm, d->n, INT64_MAX);
    const double began = clock_now();
    if (tally)
        tally_begin(tally);
    evaluate_split(n, d, &order, mean, scores, tally ? &tally->reader : NULL);
    if (tally)
        tally_end(tally);
    if (*n->wrong)
        data_wrong_token(d);
    mapped_check();
    const double seconds = clock_now() - began;
    log_begin(&log, RECORD(test));
    log_text(&log, FIELD(test, model), p->model);
    log_count(&log, FIELD(test, samples), d->n);
    log_real(&log, FIELD(test, seconds), seconds);
    for (int m = 0; m < p->nmetric; m++) {
        snprintf(text, sizeof text, "test_%s", p->metric[m]);
        log_real(&log, text, mean[m]);
    }
    if (p->perplexity)
        log_real(&log, FIELD(test, test_perplexity), evaluate_perplexity(p, mean));
    if (scores && !isnan(scores->auc))
        log_real(&log, FIELD(test, test_auc), scores->auc);
    if (tally)
        tally_log(tally, &log);
    log_end(&log);
    printf("%lld samples in %.2f s\n", (long long)d->n, seconds);
    if (tally)
        tally_print(tally);
    printf("%s%s\n", evaluate_text(p, mean, "test ", text),
           evaluate_auc_text(scores ? scores->auc : NAN, "test ", area));
    return log.lost ? EXIT_FAILURE : 0; /* the user has asked for the log */
}
