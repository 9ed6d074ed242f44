/* record.h -- reads the log of a program, one JSON object on each line, into a run. */
#ifndef SWEEP_RECORD_H
#define SWEEP_RECORD_H
#include "sweep/store.h"

/* Adds the values of the log to *r; skips unknown records and fields.  Text that is not JSON (an incomplete last line) ends the
 * log.  true if there was a record of what `r` measures: epochs, or with r->steps a bench. */
bool record_read(Arena *a, Run *r, const char *log);

/* Computes the results from the epochs: medians of the epochs after the first, losses of the last one. */
void record_summary(Run *r);

#endif
