/* schedule.h -- what pass schedule takes of cut.c. */
#ifndef SCHEDULE_H
#define SCHEDULE_H
#include "ir/step.h"

void schedule_cut_for_device(const Graph *g, Step *s, const Options *o);
bool schedule_check_statistics(const Graph *g, const Step *s, Diag *d);      /* false: a batch_norm has one number a channel */
bool schedule_check_counts(const Graph *g, const Step *s, Diag *d);          /* false: a chunk's value has more numbers than an int counts */

#endif
