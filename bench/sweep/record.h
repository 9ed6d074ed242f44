/* record.h -- the log that a program writes, a JSON object a line, read into a run. */
#ifndef SWEEP_RECORD_H
#define SWEEP_RECORD_H
#include "sweep/store.h"

/* Adds what the log says to *r; unknown records and fields are passed over.  Text that is no JSON (a last line cut short) ends
 * it.  true when there was a record of what `r` is about: epochs, or with r->steps a bench. */
bool record_read(Arena *a, Run *r, const char *log);

/* What follows from the epochs: medians of those after the first, the last one's losses. */
void record_summary(Run *r);

#endif
