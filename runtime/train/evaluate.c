/* evaluate.c -- see evaluate.h. */
#include "train/evaluate.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t evaluate_batches(const RtProgram *p, int64_t samples)
{
    return (samples + p->batch - 1) / p->batch;
}

static Batch batch_at(const Net *n, const Data *d, const Order *order, int64_t step)
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
    const bool more = !d->synthetic && step + 1 < evaluate_batches(n->p, d->n);
    if (more)
        next = batch_at(n, d, order, step + 1);
    net_ahead(n, &next, more);
    return batch_at(n, d, order, step);
}

/* 1 - error / variance.  Without variance, as scikit-learn: 1 without error, else 0. */
static double explained(double error, double variance)
{
    return variance > 0 ? 1 - error / variance : error > 0 ? 0 : 1;
}

void evaluate_means(const RtProgram *p, const Data *d, const double sum[RT_METRICS], double n,
                    double mean[RT_METRICS])
{
    for (int m = 0; m < RT_METRICS; m++)
        mean[m] = sum[m] / n;
    for (int m = 0; m < p->nmetric && p->target_kind != RT_TARGET_CLASS; m++)
        if (strcmp(p->metric[m], "rmse") == 0)
            mean[m] = sqrt(mean[m]);
        else if (strcmp(p->metric[m], "r2") == 0)
            mean[m] = explained(mean[m], d->variance);
}

void evaluate_split(Net *n, const Data *d, const Order *order, double mean[RT_METRICS])
{
    double sum[RT_METRICS] = {0};
    for (int64_t step = 0; step < evaluate_batches(n->p, d->n); step++) {
        const Batch b = evaluate_batch(n, d, order, step);
        net_evaluate(n, &b, NULL);
        for (int m = 0; m < RT_METRICS; m++)
            sum[m] += n->metric[m];
    }
    const double all = (double)d->n,
                 scored = d->scored ? (double)d->scored / (double)d->labels : all;
    evaluate_means(n->p, d, sum, scored, mean);
}

const char *evaluate_text(const RtProgram *p, const double mean[RT_METRICS], const char *prefix,
                          char text[EVALUATE_TEXT])
{
    int n = 0;
    for (int m = 0; m < p->nmetric && n < EVALUATE_TEXT - 64; m++)
        n += snprintf(text + n, (size_t)(EVALUATE_TEXT - n), "%s%s%.40s %.4f", m ? ", " : "",
                      prefix, p->metric[m], mean[m]);
    if (p->perplexity)
        snprintf(text + n, (size_t)(EVALUATE_TEXT - n), ", %sperplexity %.4g", prefix,
                 evaluate_perplexity(p, mean));
    return text;
}

double evaluate_perplexity(const RtProgram *p, const double mean[RT_METRICS])
{
    return exp(mean[net_metric_index(p, "loss")]);
}
