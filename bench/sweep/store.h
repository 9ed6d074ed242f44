/* store.h -- one SQLite file with everything that was ever measured: a row a run.
 *
 *   run     what was run, where, and what came of it     (columns: run_field in store_fields.c)
 *   epoch   each epoch of a training run                 (run, epoch, ...)
 *   layer   each call of a step, when asked              (run, position, ...)
 *   text    long texts by their hash: model files, machines, what a program says of itself
 *
 * A run is one transaction in WAL mode, flushed to the disk: it is there as a whole or not at all,
 * and what is there is never changed.  PRAGMA user_version is the schema's version.
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
    double bytes; /* read and written a step, counted */
} Layer;

/* Texts may be NULL, reals NAN, counts 0: not known. */
typedef struct Run {
    int64_t id;
    const char *key; /* what would be measured again: see run_key in sweep.c */
    const char *label, *infrastructure, *started, *status, *message, *disturbed;
    const char *framework, *model, *file, *source, *network, *build, *binary, *info;
    const char *target, *cpu, *comm, *data, *compiler, *compiler_commit, *machine;
    const char *weights_hash;
    int64_t batch, threads, ranks, gpus, shards, epochs, steps, limit_samples, seed, repeat,
        attempt;
    int64_t samples, parameters, planned_bytes, peak_bytes;
    double seconds;       /* all of the run: warm-up, training, tests */
    double samples_per_s; /* training: median of the epochs after the first */
    double epoch_s, accuracy, loss, train_accuracy, train_loss; /* the last epoch's */
    double compile_s, first_step_ms, step_ms, flops_per_sample;
    double peak_before, peak_after; /* FMA, GFLOP/s of all threads, around the run */
    double bandwidth;               /* GB/s of memory, all threads, before the run */
    double others;                  /* processors that others kept busy meanwhile */
    double stolen;                  /* processors that the hypervisor kept */
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

/* Opens for writing; made when it is not there.  NULL after an error. */
Store *store_open(Arena *a, const char *path, Diag *d);
/* Opens what is there, for reading only. */
Store *store_read(Arena *a, const char *path, Diag *d);
void store_close(Store *s);

/* Keeps a text and returns its hash. */
const char *store_text(Store *s, const char *text);
const char *store_text_of(Store *s, const char *hash); /* or NULL */

/* All or nothing; r->id is set.  false after an error. */
bool store_add(Store *s, Run *r);

/* All runs that fit, in the order they were made.  `where` is SQL with values of our own making
 * only; NULL = all. */
int store_runs(Store *s, const char *where, Run **run);
bool store_details(Store *s, Run *r); /* its epochs and layers */

bool store_failed(const Store *s); /* an error was reported */

#endif
