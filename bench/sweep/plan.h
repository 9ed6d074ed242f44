/* plan.h -- the plan of a sweep: matrices of settings, and the configurations that they span.
 *
 * A matrix is a product: every file x framework x batch x threads x ranks x GPUs x build options
 * x values of `set`, each measured `repeat` times.  One table has the settings of sweep files and of the command line
 * (limit_samples = 1000, --limit-samples 1000).
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
    const Span *at; /* their place in a sweep file; NULL: on the command line */
} Words;

typedef struct Matrix {
    Words file;      /* paths of model files, relative to the current directory */
    Words framework; /* "tenon" */
    Words build;     /* options of `tenon build`, one text each; "" = none */
    Words set;       /* KEY=VALUE,VALUE: values of the model and the recipe (axis.c) */
    Counts batch;    /* 0 = the recipe's */
    Counts threads;  /* 0 = all processors */
    Counts ranks, gpus;
    const char *data;     /* NULL = the recipe's */
    int64_t epochs;       /* of training; 0 with `steps` */
    int64_t steps;        /* > 0: `bench` with that many steps instead of training */
    int64_t repeat, seed; /* seed 0 = the recipe's */
    int64_t limit_samples, warm_steps, timeout;
    bool layers; /* also each layer's time */
} Matrix;

/* One point of a matrix.  Two runs of equal configurations measure the same thing. */
typedef struct Config {
    const Matrix *matrix;
    const char *file, *framework, *build;
    int64_t batch, threads, ranks, gpus;
    int program; /* index of its program in the plan */
    int share;   /* index of its program among all that the matrices need, on any machine: see plan_part */
} Config;

/* A program to build: configurations that differ only in threads or ranks share it. */
typedef struct Program {
    const Config *config; /* the first configuration that needs it */
    bool mpi;
} Program;

typedef struct Plan {
    Matrix *matrix;
    int nmatrix;
    Config *config;
    int nconfig;
    Program *program;
    int nprogram;
    const char **skipped; /* a line for each configuration that this machine cannot run */
    int nskipped;
    int nshare;
} Plan;

typedef struct Setting Setting;

void matrix_default(Matrix *m);
/* The setting with that name in a sweep file ('_' and '-' are the same), or NULL. */
const Setting *setting_find(const char *name);
int setting_names(Arena *a, const char ***name);
void setting_help(void); /* to stdout: as options of the command line */
/* Reads a value, which must be the whole text of `source`, as after --NAME. */
bool setting_option(Arena *a, Matrix *m, const Setting *s, const char *value, bool again, Diag *d);
void setting_copy(Matrix *to, const Matrix *from, const Setting *s);

/* The matrices of a sweep file.  Errors go to d, with their places. */
bool sweep_file_read(Arena *a, const char *path, Plan *p, Diag *d);

/* Expands the matrices for a machine with that many processors, with or without mpirun. */
bool plan_expand(Arena *a, Plan *p, int64_t processors, bool mpirun, Diag *d);

/* Keeps one part, 1 .. parts, of an expanded plan.  Configurations that share a program are in one part.  A part is the same on
 * any machine: a configuration that the part's machine cannot run is not measured elsewhere. */
void plan_part(Arena *a, Plan *p, int64_t part, int64_t parts);

/* 0 .. n - 1 in an order that only the seed determines. */
int *plan_order(Arena *a, int n, uint64_t seed);

#endif
