/* evaluate.c -- see evaluate.h. */
#include "train/evaluate.h"
#include "train/scores.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t evaluate_batches(const RtProgram *p, int64_t samples)
{
    return (samples + p->batch - 1) / p->batch;
}

/* The number of labels of a sample that count, on average over the split; 0: all.  The program
 * divides a loss of pixels by this number, so that the terms of its loss have one divisor, the
 * number of samples.  All labels of a text count, except those that fill the last window;
 * evaluate_split divides by their number. */
static double counted(const RtProgram *p, const Data *d)
{
    const bool divided = p->label_rank > 0 || p->ignored > 0 || p->class_weight;
    return divided ? (double)d->scored / (double)d->n : 0;
}

static Batch batch_at(const Net *n, const Data *d, const Order *order, int64_t step)
{
    const int batch = n->p->batch;
    const int64_t left = d->n - step * batch;
    Batch b = {.seed = 0,
               .scored = counted(n->p, d),
               .weighted = n->p->class_weight ? d->weighted / (double)d->n : 0};
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

/* The target of a metric such as "r2" or, with several targets, "r2_price"; -1: the name is that of
 * another metric. */
static int target_of(const RtProgram *p, const char *metric, const char *kind)
{
    const size_t n = strlen(kind);
    if (strncmp(metric, kind, n) != 0)
        return -1;
    if (p->ntarget == 0)
        return metric[n] == '\0' ? 0 : -1;
    for (int k = 0; k < p->ntarget; k++)
        if (metric[n] == '_' && strcmp(metric + n + 1, p->targets[k].name) == 0)
            return k;
    return -1;
}

/* A mean over a split from *sum, the sum over its n samples.  variance: that of the target. */
typedef double Finish(const double *sum, double n, double variance);

static double finish_rmse(const double *sum, double n, double variance)
{
    (void)variance;
    return sqrt(*sum / n);
}

double evaluate_r2(double error, double variance)
{
    if (variance > 0 || isnan(error))
        return 1 - error / variance;
    return error > 0 ? 0 : 1;
}

static double finish_r2(const double *sum, double n, double variance)
{
    return evaluate_r2(*sum / n, variance);
}

/* iou = overlap / union, and dice = 2 overlap / (overlap + union).  The metric dice, whose sum is
 * the union, follows iou.  Both sums are whole numbers, so they are exact.  If no mask has a pixel
 * and none is predicted, both are 1. */
static double finish_iou(const double *sum, double n, double variance)
{
    const double overlap = sum[0], either = sum[1];
    (void)n, (void)variance;
    return either > 0 ? overlap / either : 1;
}

static double finish_dice(const double *sum, double n, double variance)
{
    const double overlap = sum[-1], either = sum[0];
    (void)n, (void)variance;
    return either > 0 ? 2 * overlap / (overlap + either) : 1;
}

/* The metrics that are more than the mean over the samples. */
static const struct {
    const char *kind;
    Finish *finish;
} finished[] = {{"rmse", finish_rmse},
                {"r2", finish_r2},
                {"iou", finish_iou},
                {"dice", finish_dice}};

static double finish_metric(const RtProgram *p, const Data *d, int m, const double *sum, double n)
{
    for (size_t i = 0; i < sizeof finished / sizeof *finished; i++) {
        const int target = target_of(p, p->metric[m], finished[i].kind);
        if (target >= 0)
            return finished[i].finish(sum, n, d->variance[target]);
    }
    return *sum / n;
}

void evaluate_means(const RtProgram *p, const Data *d, const double sum[RT_METRICS], double n,
                    double mean[RT_METRICS])
{
    for (int m = 0; m < RT_METRICS; m++) {
        mean[m] = m < p->nmetric ? finish_metric(p, d, m, sum + m, n) : 0;
        if (isnan(mean[m]))
            mean[m] = NAN; /* without a sign, which a processor can set */
    }
}

void evaluate_split(Net *n, const Data *d, const Order *order, double mean[RT_METRICS],
                    Scores *scores, OutputReader *readers)
{
    double sum[RT_METRICS] = {0};
    char *output = readers ? readers->output : scores ? scores->output : NULL;
    if (scores)
        scores_begin(scores);
    for (int64_t step = 0; step < evaluate_batches(n->p, d->n); step++) {
        const Batch b = evaluate_batch(n, d, order, step);
        net_evaluate(n, &b, output);
        if (scores)
            scores_add(scores, n->p, &b, output);
        for (OutputReader *r = readers; r; r = r->next)
            r->add(r, &b, output);
        for (int m = 0; m < RT_METRICS; m++)
            sum[m] += n->metric[m];
    }
    const double all = (double)d->n, scored = d->scored && counted(n->p, d) == 0
                                                  ? (double)d->scored / (double)d->labels
                                                  : all;
    evaluate_means(n->p, d, sum, scored, mean);
    for (int m = 0; m < n->p->nmetric && data_unscored(d); m++)
        mean[m] = NAN;
    if (scores)
        scores_end(scores);
}

const char *evaluate_auc_text(double auc, const char *prefix, char text[64])
{
    *text = 0;
    if (!isnan(auc))
        snprintf(text, 64, ", %sauc %.4f", prefix, auc);
    return text;
}

int evaluate_trained(const RtProgram *p)
{
    return p->nmetric - p->nmeasure;
}

/* The number of metrics in a line with this prefix. */
static int shown(const RtProgram *p, const char *prefix)
{
    return *prefix ? p->nmetric : evaluate_trained(p);
}

const char *evaluate_text(const RtProgram *p, const double mean[RT_METRICS], const char *prefix,
                          char text[EVALUATE_TEXT])
{
    int n = 0;
    for (int m = 0; m < shown(p, prefix) && n < EVALUATE_TEXT - 64; m++)
        n += snprintf(text + n, (size_t)(EVALUATE_TEXT - n), "%s%s%.48s %.4f", m ? ", " : "",
                      prefix, p->metric[m], mean[m]);
    if (p->perplexity)
        snprintf(text + n, (size_t)(EVALUATE_TEXT - n), ", %sperplexity %.4g", prefix,
                 evaluate_perplexity(p, mean));
    return text;
}

/* Whether evaluate_brief leaves metric m out: a term of the loss, the mean absolute error, an rmse
 * before an r2, because r2 follows from rmse, or dice, because dice follows from iou. */
static bool left_out(const RtProgram *p, int m)
{
    return strncmp(p->metric[m], "loss_", 5) == 0 || strncmp(p->metric[m], "mae_", 4) == 0 ||
           strncmp(p->metric[m], "dice_", 5) == 0 ||
           (m + 1 < p->nmetric && strncmp(p->metric[m + 1], "r2_", 3) == 0);
}

const char *evaluate_brief(const RtProgram *p, const double mean[RT_METRICS], const char *prefix,
                           char text[EVALUATE_TEXT])
{
    int n = 0;
    if (p->ntarget == 0)
        return evaluate_text(p, mean, prefix, text);
    for (int m = 0; m < shown(p, prefix) && n < EVALUATE_TEXT - 64; m++)
        if (!left_out(p, m))
            n += snprintf(text + n, (size_t)(EVALUATE_TEXT - n), "%s%.48s %.4f", m ? ", " : prefix,
                          p->metric[m], mean[m]);
    return text;
}

double evaluate_perplexity(const RtProgram *p, const double mean[RT_METRICS])
{
    return exp(mean[net_metric_index(p, "loss")]);
}
