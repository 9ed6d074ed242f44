/* curves.h -- the log of a training as curves, read while the training writes it. */
#ifndef SWEEP_CURVES_H
#define SWEEP_CURVES_H
#include "base/diag.h"
#include "base/text.h"
#include <stdint.h>
#include <sys/types.h>

typedef struct CurvePoint {
    double x;     /* epochs that are done */
    int64_t step; /* of a record `step`: steps that are done; of `epoch`: epochs */
    double y;     /* NAN: the record has null */
    double time;  /* seconds of training before the record */
} CurvePoint;

typedef enum { SPLIT_TRAIN, SPLIT_TEST, SPLIT_VALIDATION, SPLITS } CurveSplit;

/* One number of the records of one kind. */
typedef struct Curve {
    const char *name; /* "loss", "accuracy", "lr" */
    CurveSplit split; /* train: also of numbers of no split */
    bool steps;       /* of records `step`, else of records `epoch` and `metrics` */
    CurvePoint *point;
    int n;
    int kept; /* points that the last record `start` has left */
} Curve;

typedef struct RunLog {
    Arena *arena;
    const char *path, *name; /* name: the file without directory and ending */
    const char *model;       /* NULL: no record `start` yet */
    int64_t epochs, samples, batch;
    double epoch;     /* done */
    double seconds;   /* of training so far */
    double per_epoch; /* seconds of the last epoch; 0: unknown */
    double rate;      /* samples/s of the last epoch */
    int64_t best;     /* the best epoch so far; 0: the log has none */
    bool ended;
    int starts; /* records `start`: more than one after --resume */
    Curve *curve;
    int n;

    int files; /* how often the file was read from its beginning, after the first time */
    off_t at;  /* bytes that have been read */
    dev_t device;
    ino_t inode;
    int line;
    Text rest; /* a line that is not complete yet */
} RunLog;

RunLog runlog_new(Arena *a, const char *path);
/* Reads what has been written since the last call.  *changed: there was a record.  A file that was
 * replaced or cut is read again from its beginning.  false after an error: the file cannot be read,
 * or it is no log. */
bool runlog_read(RunLog *l, bool *changed, Diag *d);
/* The curve of that name; NULL: the log has none. */
const Curve *runlog_find(const RunLog *l, const char *name, CurveSplit split, bool steps);
/* Whether the log has a curve of a split. */
bool runlog_has(const RunLog *l, CurveSplit split);

#endif
