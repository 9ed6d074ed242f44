/* schedule.h -- the learning rate of a step. */
#ifndef SCHEDULE_H
#define SCHEDULE_H
#include "rt.h"

/* The rate of the step after `step` finished steps, with `steps` steps in an epoch. */
double schedule_lr(const RtRecipe *r, int64_t step, int64_t steps);

#endif
