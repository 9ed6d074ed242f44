/* tally.h -- further metrics of a split, which follow from counts over all of its labels: top5,
 * precision, recall, f1, auc, and the IoU and Dice coefficient of classes of pixels.
 *
 *   of a class:  precision = right / found      right: labels of the class that are predicted
 *                recall = right / there         found: labels for which the class is predicted
 *                f1 = dice = 2 right / (found + there)        there: labels of the class
 *                iou = right / (found + there - right)
 *
 * A quotient whose divisor is 0 is 0.  Of two classes, a metric is that of class 1.  Of more
 * classes, it is the mean over those that occur or are predicted; of several labels of a sample,
 * over all of them (as in scikit-learn).  An output of NaN predicts no class.  Without a label that
 * counts, there are no metrics.  Counts are whole numbers, so no bit depends on threads or ranks.
 *
 * The metrics of each step (RtProgram.metric) are not here, because those are means over samples.
 */
#ifndef TALLY_H
#define TALLY_H
#include "comm/comm.h"
#include "files/log.h"
#include "train/compared.h"
#include "train/evaluate.h"

enum {
    TALLY_TOP = 5,          /* top5: the label's class is one of so many with the largest numbers */
    TALLY_TOP_CLASSES = 10, /* reported from so many classes on */
    TALLY_CLASSES = 32,     /* iou of each class, of so many classes at most */
    TALLY_SCORES = 1 << 26, /* auc of several labels: labels x samples, at most (1 GB) */
    TALLY_NAME = 96,
    TALLY_TRAINING = 16 << 20 /* bytes in a training, at most: `test` reports what needs more */
};

typedef struct TallyCount {
    int64_t right, found, there;
} TallyCount;

/* The counts of one target. */
typedef struct TallyTarget {
    Compared is;
    int64_t n;            /* classes; truths: labels of a sample, 1 of a mask */
    TallyCount *count;    /* [n] */
    int32_t *found;       /* of a batch: predicted classes of its labels; -1: NaN */
    int64_t top, all;     /* labels in the top 5; labels that count */
    struct Score **score; /* [areas]: as in Scores.all */
    int areas;            /* areas under the ROC curve: 0, 1 of two classes, n of labels */
    double *area;         /* [areas]; NaN: no samples of one class */
    int nmetric;          /* its part of Tally.metric */
} TallyTarget;

typedef struct TallyMetric {
    char name[TALLY_NAME]; /* "precision_digit" */
    double value;
} TallyMetric;

typedef struct Tally {
    OutputReader reader; /* for evaluate_split */
    const RtProgram *p;
    Pool *pool;
    Comm *comm;
    int ntarget;
    TallyTarget target[RT_TARGETS];
    int64_t *counts; /* [ranks][each], which the counts of the targets are part of */
    int64_t each;
    int64_t kept; /* scores of this rank */
    int nmetric;  /* after tally_end */
    TallyMetric *metric;
} Tally;

/* For splits of up to `samples` samples; NULL: p has no further metrics, or they need more than
 * `most` bytes. */
Tally *tally_new(const RtProgram *p, Pool *pool, Comm *c, int64_t samples, int64_t most);

void tally_begin(Tally *t); /* before the first batch */
void tally_end(Tally *t);   /* after the last batch: adds the counts of all ranks */

/* Writes the metrics as fields "test_NAME" of a record. */
void tally_log(const Tally *t, Log *l);
/* Prints a line "test precision 0.9731, recall 0.9722" for each target. */
void tally_print(const Tally *t);

/* Metrics of one class or label; 0 if the divisor is 0. */
double tally_precision(const TallyCount *c);
double tally_recall(const TallyCount *c);
double tally_f1(const TallyCount *c);
double tally_iou(const TallyCount *c);

#endif
