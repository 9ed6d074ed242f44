/* expect.h -- the result of a run, and the comparison with the recipe's expectation. */
#ifndef EXPECT_H
#define EXPECT_H
#include "options/options.h"

typedef struct Result {
    bool known;     /* at least one epoch has been trained */
    bool validated; /* the data have a validation split */
    /* mean metrics of the last epoch */
    double train[RT_METRICS], validation[RT_METRICS], test[RT_METRICS];
    double validation_auc, test_auc; /* areas under the ROC curve; NaN: they are not reported */
    bool unscored;                   /* no label of the test split counts */
    bool reached;                    /* --stop-at has ended the run */
} Result;

/* --stop-at: the accuracy of the validation split, or of the test split if there is none. */
bool expect_reached(const RtProgram *p, const Options *o, const Result *r);
/* Prints that --stop-at ends the run after this epoch, and which split it watches. */
void expect_say_reached(const RtProgram *p, const Options *o, const Result *r, int64_t epoch);

/* The value of a result such as "validation_mae"; NaN: the program does not report it. */
double expect_value(const RtProgram *p, const Result *r, const char *result);

/* Dies if the result is one of a validation split, which the data do not have.  who: "the recipe
 * expects"; way: what else can be done, such as "expect test_loss". */
void expect_split(const char *who, const char *result, const char *data, const char *way);

/* Dies if the recipe expects a result of a validation split, and the data have none. */
void expect_check(const RtProgram *p, const char *data, bool validated);

/* Prints the last lines of a run: the expectation of the recipe (only after a full run, which
 * `patience` may have ended early), then "test accuracy 0.9912, 12 epochs, 61.0 s". Returns the
 * exit code. */
int expect_report(const RtProgram *p, const Options *o, const Result *r, int64_t epochs,
                  bool patience, double seconds);

#endif
