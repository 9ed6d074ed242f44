/* schedule.h -- the learning rate of a step. */
#ifndef SCHEDULE_H
#define SCHEDULE_H
#include "rt.h"

/* For the step that comes after `step` finished ones, with `steps` steps an epoch. */
double schedule_lr(const RtRecipe *r, int64_t step, int64_t steps);

#endif
