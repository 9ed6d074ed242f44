/* scores.h -- the area under the ROC curve: the probability that the network gives a sample of
 * class 1 a larger score than a sample of class 0, where equal scores count half.
 *
 * It is exact and needs the scores of all samples of a split, so it is no mean of the steps.
 */
#ifndef SCORES_H
#define SCORES_H
#include "comm/comm.h"
#include "data/data.h"

typedef struct Score {
    double score;
    double positive; /* 1: the sample is of class 1; 0: of class 0; -1: it fills the last batch */
} Score;

typedef struct Scores {
    Comm *comm;
    Score *all;    /* [ranks][count]; until scores_end, this rank's lie first */
    int64_t count; /* of a rank, with those that fill the last batch */
    char *output;  /* of a batch, for net_evaluate */
    double auc;    /* after scores_end; NaN: the split has one class only, or a score is NaN */
} Scores;

/* Whether p reports the area after each epoch: its output is one number, the logit of class 1. */
bool scores_reported(const RtProgram *p);

/* Room for splits of up to `samples` samples; NULL: p does not report the area. */
Scores *scores_new(const RtProgram *p, Comm *c, int64_t samples);

void scores_begin(Scores *s); /* before the first batch of a split */
/* Adds the scores of a batch from its outputs. */
void scores_add(Scores *s, const RtProgram *p, const Batch *b, const char *output);
void scores_end(Scores *s); /* after the last batch: gathers the scores of all ranks; sets s->auc */

/* Gathers `count` scores of each rank; this rank's lie first in `all`.  Returns their area. */
double scores_of_ranks(Comm *c, Score *all, int64_t count);

/* The area of these n scores, which are sorted; NaN if one of them is NaN. */
double scores_area(Score *s, int64_t n);

#endif
