/* tfevents.h -- writes curves as event files, which TensorBoard reads. */
#ifndef SWEEP_TFEVENTS_H
#define SWEEP_TFEVENTS_H
#include "sweep/curves.h"

enum { EVENT_SETS = 4 }; /* train, test, validation, steps */

/* What has been written of one log. */
typedef struct Events {
    Arena *arena;
    const char *run;              /* RUN */
    const char *directory;        /* DIR/RUN */
    const char *file[EVENT_SETS]; /* NULL: not begun */
    int *written;                 /* points of each curve of the log */
    int ncurve;
    int starts;
    int files;    /* RunLog.files of the log */
    double begin; /* seconds since 1970 at the beginning of the training */
} Events;

Events events_new(Arena *a, const char *directory, const char *run);
/* Writes the points that are new.  The first call replaces files of an earlier conversion, and so
 * does a call after the log was replaced.  Other calls append whole records.  false after an
 * error. */
bool events_write(Events *e, const RunLog *l, Diag *d);

#endif
