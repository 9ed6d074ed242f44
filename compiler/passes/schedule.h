/* schedule.h -- functions of cut.c for pass schedule. */
#ifndef SCHEDULE_H
#define SCHEDULE_H
#include "ir/options.h"
#include "ir/step.h"

/* Replaces the shards, slices and chunks of schedule_cut by those of a GPU. */
void schedule_cut_for_device(const Graph *g, Step *s, const Options *o);
/* Reports a batch_norm with only one number in each channel; false after an error. */
bool schedule_check_statistics(const Graph *g, const Step *s, Diag *d);
/* Reports a value of a chunk with more numbers than an int can count; false after an error. */
bool schedule_check_counts(const Graph *g, const Step *s, Diag *d);

#endif
