/* plan.h -- what a sweep is to measure: matrices of settings, and the configurations they span.
 *
 * A matrix is a product: every file x framework x batch x threads x ranks x GPUs x build options,
 * each measured `repeat` times.  The same table of settings answers to a sweep file's keys and to
 * the command line (limit_samples = 1000, --limit-samples 1000).
 */
#ifndef SWEEP_PLAN_H
#define SWEEP_PLAN_H
#include "base/diag.h"
#include <stdint.h>

typedef struct Counts {
    const int64_t *v;
    int n;
} Counts;

typedef struct Words {
    const char *const *v;
    int n;
    const Span *at; /* where they stand in a sweep file; NULL: on the command line */
} Words;

typedef struct Matrix {
    Words file;      /* model files, as found from here */
    Words framework; /* "tenon" */
    Words build;     /* options of `tenon build`, one text each; "" = none */
    Counts batch;    /* 0 = the recipe's */
    Counts threads;  /* 0 = all processors */
    Counts ranks, gpus;
    const char *data;     /* NULL = the recipe's */
    int64_t epochs;       /* of training; 0 with `steps` */
    int64_t steps;        /* > 0: `bench` with so many steps instead of training */
    int64_t repeat, seed; /* seed 0 = the recipe's */
    int64_t limit_samples, warm_steps, timeout;
    bool layers; /* also each layer's time */
} Matrix;

/* One point of a matrix.  Two runs of equal configurations measure the same thing. */
typedef struct Config {
    const Matrix *matrix;
    const char *file, *framework, *build;
    int64_t batch, threads, ranks, gpus;
    int program; /* which of the plan's programs */
    int share;   /* counted over what is built, whatever the machine can do: see plan_part */
} Config;

/* Something to build: configurations that differ in threads or ranks share one. */
typedef struct Program {
    const Config *config; /* the first that needs it */
    bool mpi;
} Program;

typedef struct Plan {
    Matrix *matrix;
    int nmatrix;
    Config *config;
    int nconfig;
    Program *program;
    int nprogram;
    const char **skipped; /* what this machine cannot do, a line each */
    int nskipped;
    int nshare;
} Plan;

typedef struct Setting Setting;

void matrix_default(Matrix *m);
/* The setting with that name in a sweep file ('_' and '-' are the same), or NULL. */
const Setting *setting_find(const char *name);
int setting_names(Arena *a, const char ***name);
void setting_help(void); /* to stdout: as options of the command line */
/* Reads a value from the text of `source` and no more, as after --NAME. */
bool setting_option(Arena *a, Matrix *m, const Setting *s, const char *value, bool again, Diag *d);
void setting_copy(Matrix *to, const Matrix *from, const Setting *s);

/* The matrices of a sweep file.  Errors go to d, with their places. */
bool sweep_file_read(Arena *a, const char *path, Plan *p, Diag *d);

/* Spans the matrices on a machine with so many processors, with or without mpirun. */
bool plan_expand(Arena *a, Plan *p, int64_t processors, bool mpirun, Diag *d);

/* Of an expanded plan keeps what belongs to part 1 .. parts.  Configurations that share a program stay together, and a part is the
 * same on any machine: what one cannot do is nobody else's. */
void plan_part(Arena *a, Plan *p, int64_t part, int64_t parts);

/* 0 .. n - 1 in an order that the seed alone decides. */
int *plan_order(Arena *a, int n, uint64_t seed);

#endif
