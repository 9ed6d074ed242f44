/* compared.h -- what a program compares its outputs with: for each target that has metrics, where
 * its labels or numbers lie in a row of the data, and where its numbers lie in a row of outputs.
 */
#ifndef COMPARED_H
#define COMPARED_H
#include "data/data.h"

typedef enum {
    COMPARED_CLASS,  /* a class for each sample, position or pixel */
    COMPARED_TRUTHS, /* numbers from 0 to 1: a mask, or several labels of a sample */
    COMPARED_NUMBERS /* other numbers */
} ComparedKind;

typedef struct Compared {
    int target;         /* its index */
    const char *name;   /* of the target */
    const char *suffix; /* in names of metrics: "_digit"; "" with one target */
    ComparedKind kind;
    int64_t classes; /* CLASS; else 0 */
    int64_t count;   /* of a sample: labels, or numbers of the target */
    int64_t from;    /* its first number in a row of outputs */
    int64_t row;     /* numbers in a row of outputs */
    bool binary;     /* CLASS: one number for each label, the logit of class 1 */
    bool softmax;    /* CLASS: the numbers are logits of classes; else they are scores */
    int64_t pixels;  /* CLASS: numbers from a class to the next one; 0: classes are adjacent */
    int64_t ignored; /* CLASS: the class ignored - 1 is not scored; 0: all are */
    bool mask;       /* TRUTHS: of an image, not a list of labels */
    bool several;    /* the row of labels holds several targets, this one from `at` on, in bytes */
    int64_t at;
    int real_bytes;
} Compared;

/* The targets of p that have metrics.  Next tokens of a text and the input itself are left out. */
int compared_targets(const RtProgram *p, Compared c[RT_TARGETS]);

/* Label k of sample i of a batch; -1: it is not scored. */
int32_t compared_label(const Compared *c, const Batch *b, int i, int64_t k);
/* Number k of the target of sample i of a batch. */
double compared_number(const Compared *c, const Batch *b, int i, int64_t k);
/* Number k of the output for sample i, of a list of numbers or truths. */
double compared_output(const Compared *c, const char *output, int i, int64_t k);
/* The number of class j for label k of sample i; binary: 0, and the logit. */
double compared_score(const Compared *c, const char *output, int i, int64_t k, int64_t j);
/* The class with the largest number, the first of equal ones; -1: one of the numbers is NaN. */
int64_t compared_best(const Compared *c, const char *output, int i, int64_t k);

#endif
