/* store.h -- one SQLite file with all measurements: one row for each run.
 *
 *   run     program, machine and results of a run        (columns: run_field in store_fields.c)
 *   epoch   each epoch of a training run                 (run, epoch, ...)
 *   layer   each call of a step, if layers are measured  (run, position, ...)
 *   text    long texts by their hash: model files, machines, the `info` of programs
 *
 * A run is stored in one transaction in WAL mode, flushed to the disk: completely or not at all.  A
 * stored run is never changed.  PRAGMA user_version is the version of the schema.
 */
#ifndef SWEEP_STORE_H
#define SWEEP_STORE_H
#include "base/diag.h"
#include "base/text.h"

enum { STORE_VERSION = 1 };

typedef struct Epoch {
    int64_t epoch, samples;
    double seconds, samples_per_s, train_loss, train_accuracy, test_loss, test_accuracy;
    const char *weights_hash;
} Epoch;

typedef struct Layer {
    const char *layer, *kernel, *place, *algorithm; /* kernel "": waiting, not a call */
    double ms, predicted_ms, gflops;
    double bytes; /* read and written in a step, according to the compiler */
} Layer;

/* The order of two texts of runs, and whether they are equal; NULL is "". */
int by_text(const char *a, const char *b);
bool same_text(const char *a, const char *b);

/* Unknown values: text NULL, real NAN, count 0. */
typedef struct Run {
    int64_t id;
    const char *key; /* equal for repeats of the same measurement: see run_key in sweep.c */
    const char *label, *infrastructure, *started, *status, *message, *disturbed;
    const char *framework, *model, *file, *source, *network, *build, *binary, *info;
    const char *target, *cpu, *comm, *data, *compiler, *compiler_commit, *machine;
    const char *weights_hash;
    int64_t batch, threads, ranks, gpus, shards, epochs, steps, limit_samples, seed, repeat,
        attempt;
    int64_t samples, parameters, planned_bytes, peak_bytes;
    double seconds;       /* of the whole run: warm-up, training, tests */
    double samples_per_s; /* training: median of the epochs after the first */
    double epoch_s, accuracy, loss, train_accuracy, train_loss; /* the last epoch's */
    double compile_s, first_step_ms, step_ms, flops_per_sample;
    double peak_before, peak_after; /* FMA, GFLOP/s of all threads, around the run */
    double bandwidth;               /* GB/s of memory, all threads, before the run */
    double others;                  /* processors that other processes used meanwhile */
    double stolen;                  /* processors that the hypervisor took */
    double user_s, system_s, mhz, joules;

    Epoch *epoch; /* see store_details */
    int nepoch;
    Layer *layer;
    int nlayer;
} Run;

typedef enum { FIELD_TEXT, FIELD_COUNT, FIELD_REAL } FieldKind;

typedef struct Field {
    const char *name;
    FieldKind kind;
    size_t at; /* offset in the struct */
} Field;

extern const Field run_field[], epoch_field[], layer_field[]; /* each ends without a name */

typedef struct Store Store;

/* Opens a store for writing, and makes it if it is missing.  NULL after an error. */
Store *store_open(Arena *a, const char *path, Diag *d);
/* Opens an existing store, for reading only. */
Store *store_read(Arena *a, const char *path, Diag *d);
void store_close(Store *s);

/* Stores a text and returns its hash. */
const char *store_text(Store *s, const char *text);
const char *store_text_of(Store *s, const char *hash); /* or NULL */

/* Stores the run completely or not at all, and sets r->id.  false after an error. */
bool store_add(Store *s, Run *r);

/* All runs that match, in the order of measurement.  `where` is SQL that contains only values made by
 * tenon-bench; NULL = all runs. */
int store_runs(Store *s, const char *where, Run **run);
bool store_details(Store *s, Run *r); /* loads the epochs and layers of a run */

bool store_failed(const Store *s); /* whether an error was reported */

#endif
