/* command.h -- the command line, checked: what the user asked for, as plain data. */
#ifndef COMMAND_H
#define COMMAND_H
#include "front/front.h"
#include "passes/pass.h"

typedef enum {
    COMMAND_HELP,
    COMMAND_VERSION,
    COMMAND_SWEEP,
    COMMAND_RESULTS,
    COMMAND_LSP,
    COMMAND_OPS,
    COMMAND_FMT,
    COMMAND_NEW,
    COMMAND_COMPLETION,
    COMMAND_WATCH,
    COMMAND_CACHE, /* up to here, a command needs no model file */
    COMMAND_CHECK,
    COMMAND_SHOW,
    COMMAND_BUILD,
    COMMAND_EMIT,
    COMMAND_RUN
} CommandKind;

typedef struct Command {
    CommandKind kind;
    CommandKind topic; /* HELP: the command to explain; HELP = all commands */
    const char *file; /* the model file; OPS: the name of an op, or NULL; NEW: a name; COMPLETION: a
                         * shell */
    const char *data, *learn; /* new: the data; the column of a table to learn; or NULL */
    const char **files;       /* FMT, WATCH: all files; "-": standard input */
    int nfiles;
    bool as_written;         /* emit --to dot: the model before the passes */
    bool once;               /* watch: draw once */
    const char *tensorboard; /* watch: directory for event files, or NULL */
    bool check;              /* fmt: write nothing, list the files that would change */
    const char *output;      /* -o; NULL = none */
    const char *to;          /* emit: "c", "dot", "pytorch" or "slurm" */
    const char *keep;        /* directory for the generated C, or NULL */
    FrontOptions front;
    Options options;
    DiagColor color;
    int64_t ranks;       /* show: number of processes; 0 = one */
    int64_t threads;     /* show: 0 = those of this machine */
    bool all;            /* show: a row for every layer, none for blocks */
    const char *written; /* emit: text that is complete before the passes, or NULL */
    const char *memory;  /* show: file for the picture of the plan, or NULL */
    bool cost, example, verbose, no_cache;
    bool key;          /* build, run: print the key of the program, and stop */
    const char *limit; /* cache: a new limit, as written; or NULL */
    bool clear;        /* cache */
    bool stdio;        /* lsp: changes nothing */
    const char *flags; /* the given options that change the program: "--plain --dtype f64" */
    const char *hash;  /* hash of network and recipe, for checkpoints; set before the passes */
    char **argument;   /* words for another program.  run: those after --; sweep, results: all */
    int narguments;
    bool tune;          /* measure the choices that pass choose leaves open */
    const char *driver; /* --driver: the CUDA version of the driver of the target, or NULL */
    const char *target, *comm, *kernels; /* the values of these options */
} Command;

#define TENON_NAME "tenon " TENON_VERSION /* "tenon 0.1.0"; the build defines the number */

/* Takes a type of the recipe that is not the type of the program's reals, as from --dtype, and sets
 * *dtype to the type of the reals.  False after an error. */
bool command_take_recipe(Command *c, const char **dtype, Diag *d);
/* Reads argv into *c.  Reports a wrong word with the nearest right one; false after an error. */
bool command_parse(Arena *a, int argc, char **argv, Command *c, Diag *d);
/* the value of --color, which messages about other options need */
DiagColor command_color(int argc, char **argv);
void command_help(CommandKind topic); /* to stdout */

#endif
