/* sweep.h -- the state of a running sweep: the plan, the store, and measurements so far. */
#ifndef SWEEP_SWEEP_H
#define SWEEP_SWEEP_H
#include "sweep/child.h"
#include "sweep/host.h"
#include "sweep/plan.h"
#include "sweep/store.h"

/* A program of the plan, built or not. */
typedef struct Built {
    const char *path;
    const char *source;  /* the model file's text */
    const char *message; /* NULL: it was built; else the error */
    const char *binary;  /* hash of the program's bytes; of the source if it was not built */
    const char *info;    /* output of its command `info` */
    double compile_s;
} Built;

typedef struct Sweep {
    Arena *arena; /* owns all memory of the sweep */
    Diag *diag;
    const char *tenon;  /* the compiler */
    const char *python; /* runs the scripts of other frameworks, except: */
    struct Python {
        const char *framework, *program;
    } * pythons; /* interpreters of single frameworks; "keras" is also for keras-jax */
    int npython;
    const char *peak_program; /* tenon-peak */
    const char *store_path, *label, *infrastructure, *only, *part;
    const char *compiler, *commit; /* "tenon 0.1.0"; "59cbae6" or NULL */
    int64_t order, retries, jobs;
    int64_t slurm; /* number of tasks of a job array to write; 0 = run the sweep now */
    int argc;      /* the command line, for the job array */
    char **argv;
    bool cold, dry_run, retry_failed;
    Plan plan;
    Host host;
    Store *store;
    const char *work; /* a directory beside the store: programs, logs */
    int lock;         /* of it: one sweep at a time */
    Built *built;
    struct Peaks {
        double *seen;
        int n;
    } * peaks;         /* measured FMA peaks, by threads x ranks */
    double *bandwidth; /* of memory, measured once */
} Sweep;

/* Runs `tenon sweep`; returns the exit code. */
int sweep_main(Arena *a, Diag *d, const char *tenon, int argc, char **argv);
bool sweep_options(Sweep *s, int argc,
                   char **argv); /* false: done (--help), or errors in s->diag */

/* begin.c */
bool sweep_open_work(Sweep *s);                     /* makes and locks the working directory */
void sweep_remove_work(Sweep *s);                   /* removes it, with programs and logs */
bool sweep_has_program(Arena *a, const char *name); /* whether a program is in PATH */
const char *sweep_beside_us(Arena *a,
                            const char *name); /* a file in the directory of this program */
void sweep_commit(Sweep *s);                   /* s->commit, and s->label if that is not given */
void sweep_compiler(Sweep *s);                 /* s->compiler: calls it */

/* Whether the compiler accepts the options in `build` settings; errors go to s->diag. */
bool sweep_flags(Sweep *s);

/* Builds all programs of the plan, a few at a time; a program that fails gets a message.  false: stopped. */
bool sweep_build(Sweep *s);

/* Writes a job array for the sweep; returns the exit code. */
int sweep_slurm(Sweep *s);

/* Makes one run; *r gets the results.  false: stopped by a signal. */
bool sweep_measure(Sweep *s, Arena *a, const Config *c, Run *r);

/* The last line that a program has written to the file `path`; if there is none, its exit status in words. */
const char *sweep_last_words(Arena *a, const char *path, int status);

#endif
