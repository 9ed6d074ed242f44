/* evaluate.h -- metrics over a whole split of a data set. */
#ifndef EVALUATE_H
#define EVALUATE_H
#include "step/net.h"

enum { EVALUATE_TEXT = 96 * RT_METRICS }; /* bytes of a line with all metrics of a split */

/* Number of batches of `samples` samples; the last batch may be partial. */
int64_t evaluate_batches(const RtProgram *p, int64_t samples);

/* Reads the outputs of each batch of an evaluation: this rank's rows of [batch][outputs]. */
typedef struct OutputReader {
    void (*add)(struct OutputReader *self, const Batch *b, const char *output);
    char *output;              /* of the first reader: memory for the outputs of a batch */
    struct OutputReader *next; /* another one, which reads the same outputs; or NULL */
} OutputReader;

/* Means over the split, each sample once; NaN if no label of it counts (data_unscored).  order: the
 * stored order of d->n samples.  scores: gets the area under the ROC curve; or NULL.  readers: the
 * first of a list, or NULL. */
struct Scores;
void evaluate_split(Net *n, const Data *d, const Order *order, double mean[RT_METRICS],
                    struct Scores *scores, OutputReader *readers);
/* ", test auc 0.9953", or nothing if the area is NaN. */
const char *evaluate_auc_text(double auc, const char *prefix, char text[64]);
/* The means of metrics from their sums over n samples of d, or over n labels: rmse and r2 are
 * functions of a mean. */
void evaluate_means(const RtProgram *p, const Data *d, const double sum[RT_METRICS], double n,
                    double mean[RT_METRICS]);
/* Batch `step` of the split.  A device prefetches the next batch while it evaluates this one. */
Batch evaluate_batch(Net *n, const Data *d, const Order *order, int64_t step);

/* The number of metrics that training steps compute: the first ones of RtProgram.metric. */
int evaluate_trained(const RtProgram *p);

/* "test loss 0.0900, test accuracy 0.9720"; prefix: "" for a training */
const char *evaluate_text(const RtProgram *p, const double mean[RT_METRICS], const char *prefix,
                          char text[EVALUATE_TEXT]);
/* With several targets, for a line of the screen: "test loss 0.0213, accuracy_digit 0.9862,
 * r2_brightness 0.9712"; else evaluate_text. */
const char *evaluate_brief(const RtProgram *p, const double mean[RT_METRICS], const char *prefix,
                           char text[EVALUATE_TEXT]);
/* 1 - error / variance.  If the variance is 0, as in scikit-learn: 1 if the error is 0, else 0.
 * NaN if the error is NaN. */
double evaluate_r2(double error, double variance);
/* exp of the mean loss, of programs that report it. */
double evaluate_perplexity(const RtProgram *p, const double mean[RT_METRICS]);

#endif
