/* expect.h -- the result of a run, and the comparison with the recipe's expectation. */
#ifndef EXPECT_H
#define EXPECT_H
#include "options/options.h"

typedef struct Result {
    bool known;                                 /* at least one epoch has been trained */
    double train[RT_METRICS], test[RT_METRICS]; /* mean metrics of the last epoch */
} Result;

bool expect_reached(const RtProgram *p, const Options *o, const Result *r); /* --stop-at */

/* Prints the last lines of a run: the expectation of the recipe (only after a full run), then "test
 * accuracy 0.9912, 12 epochs, 61.0 s". Returns the exit code. */
int expect_report(const RtProgram *p, const Options *o, const Result *r, int64_t epochs,
                  double seconds);

#endif
