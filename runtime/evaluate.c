/* evaluate.c -- loss and accuracy over a test set, and the command `test`. */
#include "base/clock.h"
#include "base/error.h"
#include "base/mapped.h"
#include "data/vocab.h"
#include "files/params.h"
#include "train.h"
#include "weights.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int64_t steps_for(const RtProgram *p, int64_t samples)
{
    return (samples + p->batch - 1) / p->batch;
}

static Batch batch_of(const Net *n, const Data *d, const Order *order, int64_t step)
{
    const int batch = n->p->batch;
    const int64_t left = d->n - step * batch;
    Batch b = {.seed = 0};
    data_batch(d, n->pool, order, step, left < batch ? (int)left : batch, &b);
    return b;
}

Batch evaluate_batch(Net *n, const Data *d, const Order *order, int64_t step)
{
    static Batch next;
    const bool more = !d->synthetic && step + 1 < steps_for(n->p, d->n);
    if (more)
        next = batch_of(n, d, order, step + 1);
    net_ahead(n, &next, more);
    return batch_of(n, d, order, step);
}

void evaluate(Net *n, const Data *d, const Order *order, double mean[RT_METRICS])
{
    double sum[RT_METRICS] = {0};
    for (int64_t step = 0; step < steps_for(n->p, d->n); step++) {
        const Batch b = evaluate_batch(n, d, order, step);
        net_evaluate(n, &b, NULL);
        for (int m = 0; m < RT_METRICS; m++)
            sum[m] += n->metric[m];
    }
    const double all = (double)d->n,
                 scored = d->scored ? (double)d->scored / (double)d->labels : all;
    for (int m = 0; m < RT_METRICS; m++)
        mean[m] = sum[m] / scored;
}

const char *metrics_text(const RtProgram *p, const double mean[RT_METRICS], const char *prefix,
                         char text[256])
{
    int n = 0;
    for (int m = 0; m < p->nmetric && n < 200; m++)
        n += snprintf(text + n, (size_t)(256 - n), "%s%s%.40s %.4f", m ? ", " : "", prefix,
                      p->metric[m], mean[m]);
    if (p->perplexity)
        snprintf(text + n, (size_t)(256 - n), ", %sperplexity %.4g", prefix, perplexity(p, mean));
    return text;
}

double perplexity(const RtProgram *p, const double mean[RT_METRICS])
{
    return exp(mean[net_metric_index(p, "loss")]);
}

int test_run(const RtProgram *p, const Options *o)
{
    char text[256];
    Log log;
    Pool *pool = pool_new(o->threads);
    vocab_of_weights(p, o->weights);
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
    const double began = clock_now();
    evaluate(n, d, &order, mean);
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
        log_real(&log, FIELD(test, test_perplexity), perplexity(p, mean));
    log_end(&log);
    printf("%lld samples in %.2f s\n%s\n", (long long)d->n, seconds,
           metrics_text(p, mean, "test ", text));
    return log.lost ? EXIT_FAILURE : 0; /* the record was asked for */
}
