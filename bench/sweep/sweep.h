/* sweep.h -- a sweep at work: the plan, the store, and what is known so far. */
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
    const char *message; /* NULL: it was built; else why not */
    const char *binary;  /* a hash of the program's bytes; of the source when it was not built */
    const char *info;    /* what it says of itself */
    double compile_s;
} Built;

typedef struct Sweep {
    Arena *arena; /* of all of it */
    Diag *diag;
    const char *tenon;  /* the compiler */
    const char *python; /* runs the scripts of other frameworks, */
    struct Python {
        const char *framework, *program;
    } * pythons; /* but for these: of "keras" also keras-jax */
    int npython;
    const char *peak_program; /* tenon-peak */
    const char *store_path, *label, *infrastructure, *only, *part;
    const char *compiler, *commit; /* "tenon 0.1.0"; "59cbae6" or NULL */
    int64_t order, retries, jobs;
    int64_t slurm; /* tasks of a job array to write; 0 = run here */
    int argc;      /* the command line, for that job */
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
    } * peaks;         /* by threads x ranks: the FMA peaks measured, */
    double *bandwidth; /* and that of memory, once */
} Sweep;

/* `tenon sweep`: the process's exit code. */
int sweep_main(Arena *a, Diag *d, const char *tenon, int argc, char **argv);
bool sweep_options(Sweep *s, int argc, char **argv); /* false: done or wrong; see diag */

/* begin.c */
bool sweep_open_work(Sweep *s);                     /* its directory, locked */
void sweep_remove_work(Sweep *s);                   /* with programs and logs */
bool sweep_has_program(Arena *a, const char *name); /* on the path */
const char *sweep_beside_us(Arena *a,
                            const char *name); /* a file that lies where this program lies */
void sweep_commit(Sweep *s);                   /* s->commit, and s->label if that is not given */
void sweep_compiler(Sweep *s);                 /* s->compiler: asks it */

/* Are the options in `build` settings some that the compiler takes?  Errors go to s->diag. */
bool sweep_flags(Sweep *s);

/* Builds all programs of the plan, a few at a time; one that fails has a message.  false: stopped. */
bool sweep_build(Sweep *s);

/* Writes a job array that does the sweep; the process's exit code. */
int sweep_slurm(Sweep *s);

/* Makes one run; *r says what came of it.  false: stopped by a signal. */
bool sweep_measure(Sweep *s, Arena *a, const Config *c, Run *r);

/* What would be measured again: equal keys are the same run of the same program. */
const char *sweep_key(const Sweep *s, Arena *a, const Config *c, int64_t repeat);

const char *sweep_name(Arena *a, const Config *c); /* "lenet, batch 128, 2 threads" */

/* What a program said last, in the file `path`; of one that said nothing, its exit status in words. */
const char *sweep_last_words(Arena *a, const char *path, int status);

#endif
