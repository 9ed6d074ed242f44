/* schedule.h -- the learning rate of a step. */
#ifndef SCHEDULE_H
#define SCHEDULE_H
#include "rt.h"

/* The rate of the step after `step` finished steps, with `steps` steps in an epoch.  rate: lr of
 * the recipe, or that of a plateau. */
double schedule_lr(const RtRecipe *r, double rate, int64_t step, int64_t steps);

#endif
