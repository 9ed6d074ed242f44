/* review.h -- `test --report DIR`: files about the predictions on the test split.
 *
 *   review.c         collects a row of numbers for each sample, from all ranks
 *   review_folder.c  the directory, and text in its files
 *   review_tables.c  metrics, classes, the confusion matrix, residuals and the worst samples
 *   review_charts.c  the confusion matrix and predictions over targets, as SVG
 *   review_sheet.c   the images of the worst samples, as PNG
 *
 * Rank 0 writes all files.  Each number follows from whole numbers, or from sums in the order of
 * the samples, so the bytes are the same for any number of threads and ranks.
 */
#ifndef REVIEW_H
#define REVIEW_H
#include "files/file.h"
#include "train/tally.h"

enum {
    REVIEW_WORST = 20,        /* samples with the highest loss that are listed */
    REVIEW_TEXT_CLASSES = 20, /* classes of a matrix that is printed, or has numbers in its SVG */
    REVIEW_ERRORS = 10,       /* pairs of classes that are printed, where there are more */
    REVIEW_CLASSES = 1000,    /* classes of a confusion matrix, at most */
    REVIEW_NUMBERS = 16,      /* numbers of a target whose residuals are listed one by one */
    REVIEW_PANELS = 6,        /* numbers of a target that are drawn */
    REVIEW_FILES = 8 * RT_TARGETS + 4
};

#define REVIEW_MARK "{\n\"report\": 1,\n\"files\": [" /* metrics.json begins with it */

/* The directory and its files.  They get their names together, after the last one is on disk: if
 * one cannot be written, an earlier report stays, and none is begun. */
typedef struct ReviewFolder {
    const char *path;
    bool made; /* by this report */
    int n;
    const char *written[REVIEW_FILES]; /* names of finished files */
    File file[REVIEW_FILES];
} ReviewFolder;

/* Dies if the directory holds files that are no report, or cannot be made or written.  Makes
 * nothing. */
void review_folder_check(ReviewFolder *f, const char *path);
void review_folder_open(ReviewFolder *f); /* makes the directory if it does not exist */
/* Removes the files of an earlier report, and gives the finished files their names. */
void review_folder_commit(ReviewFolder *f);
void review_begin(ReviewFolder *f, const char *name);
void review_bytes(ReviewFolder *f, const void *bytes, int64_t n);
void review_print(ReviewFolder *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void review_field(ReviewFolder *f, const char *text);  /* of CSV: in quotes if it needs them */
void review_string(ReviewFolder *f, const char *text); /* of JSON */
void review_number(ReviewFolder *f, double v);         /* of JSON: NaN and infinity are null */
/* Of CSV, after a comma: nan, inf and -inf are numbers, too. */
void review_value(ReviewFolder *f, double v, int digits);
void review_xml(ReviewFolder *f, const char *text); /* of SVG */
void review_finish(ReviewFolder *f);

enum { REVIEW_NO_LABEL = -1, REVIEW_NO_NUMBER = -2 }; /* it is not scored; an output is NaN */

/* Numbers of a sample. */
enum {
    REVIEW_LOSS, /* of the sample */
    REVIEW_ALL,  /* labels, or numbers, that count; 0: the sample is left out */
    /* a class: */
    REVIEW_TRUE,
    REVIEW_FOUND, /* the predicted class; -1: an output is NaN */
    REVIEW_FOUND_SHARE,
    REVIEW_TRUE_SHARE, /* probabilities of both; without softmax: their numbers */
    REVIEW_CLASS_WIDTH,
    /* several classes or truths: */
    REVIEW_RIGHT = REVIEW_TRUE,
    REVIEW_LABELS_WIDTH,
    /* numbers: sum and largest absolute value of prediction - target, then each target and
     * prediction, of up to REVIEW_NUMBERS numbers */
    REVIEW_SUM = REVIEW_TRUE,
    REVIEW_SUM_ABSOLUTE,
    REVIEW_MOST,
    REVIEW_PAIRS
};

typedef struct ReviewTarget {
    Compared is;
    const TallyTarget *tally; /* NULL: the target is numbers */
    const char *prefix;       /* of its files: "digit_"; "" with one target */
    int64_t width;
    double *rows;            /* [ranks][samples of a rank][width] */
    int64_t *confusion;      /* [ranks][classes][classes], a row for each true class; NULL: none */
    int64_t *nans;           /* [ranks][classes]: labels of a class whose outputs have a NaN */
    int64_t nan;             /* their number, of all ranks and classes */
    int32_t *found;          /* of a batch: predicted classes of its labels, or a REVIEW_NO... */
    const char **class_name; /* rank 0: of each class, or of each label of several */
    int64_t worst[REVIEW_WORST];
    int nworst;
} ReviewTarget;

typedef struct Review {
    OutputReader reader; /* for evaluate_split */
    const RtProgram *p;
    const Data *d;
    Pool *pool;
    Comm *comm;
    int64_t each, kept; /* samples of a rank; those that it has read */
    int64_t nans;       /* samples whose outputs have a NaN */
    int ntarget;
    ReviewTarget target[RT_TARGETS];
    ReviewFolder *folder;
} Review;

/* tally: that of the same evaluation, or NULL.  output: memory for the outputs of a batch. */
Review *review_new(const RtProgram *p, Pool *pool, Comm *c, const Data *d, const Tally *tally);
/* A metric of the test split, "test_loss", for metrics.json and metrics.csv. */
typedef struct ReviewMetric {
    const char *name;
    double value;
} ReviewMetric;
/* After the evaluation, on all ranks.  nans: samples whose outputs have a NaN. */
void review_write(Review *r, ReviewFolder *f, const ReviewMetric *metric, int n, int64_t nans);

/* The numbers of sample i of the split. */
const double *review_row(const Review *r, const ReviewTarget *t, int64_t i);
/* Number k of a target and its prediction are at REVIEW_PAIRS + 2 k. */
bool review_has_pairs(const ReviewTarget *t);
/* The name of a class or number, as text that lives on. */
const char *review_class_name(const ReviewTarget *t, int64_t k);
const char *review_number_name(const Review *r, const ReviewTarget *t, int64_t k);
/* The name of a file of this target: "digit_worst.csv". */
const char *review_name(const ReviewTarget *t, const char *name);

/* review_tables.c */
void review_metrics(Review *r, const ReviewMetric *metric, int n);
void review_tables(Review *r, const ReviewTarget *t);
/* review_charts.c */
void review_confusion_chart(Review *r, const ReviewTarget *t);
void review_scatter(Review *r, const ReviewTarget *t);
/* review_sheet.c: writes nothing if the samples are no images of one or three channels, or if no
 * sample counts. */
void review_sheet(Review *r, const ReviewTarget *t);

#endif
