/* options.h -- the command line of a program: PROG [COMMAND] [options]. */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "comm/comm.h"
#include "rt.h"

typedef enum Command { TRAIN, TEST, PREDICT, GENERATE, BENCH, INFO, GRADCHECK, GRADS, COMMANDS } Command;

typedef struct Options {
    Command     command;
    const char *data;                                 /* NULL: the recipe's */
    int64_t     epochs;                               /* the recipe's unless given */
    bool        epochs_given;
    uint64_t    seed;                                 /* the recipe's unless given */
    int         threads;                              /* processors of the affinity mask unless given */
    bool        threads_given;
    int         groups;
    double      timeout, timeout_start;               /* seconds that a rank may wait for others; until the first step is done */
    const char *wire;                                 /* of sums over ranks: "f32", "bf16" */
    const char *reduce;                               /* of sums over GPUs: "tree", "nccl" */
    double      loss_scale;                           /* of programs in f16, at first; 0: not given */
    int64_t     loss_scale_steps;                     /* after which it doubles; 0: never; -1: not given */
    const char *log, *checkpoint, *weights, *save, *input, *output, *trace;
    bool        log_ranks;                            /* no option: there is a log of each rank, by rt_main */
    int64_t     limit;                                /* training samples; 0: all */
    int64_t     every_steps;                          /* checkpoint every so many steps, */
    double      every_seconds;                        /* or seconds; 0: after epochs only */
    int64_t     launch_steps;                         /* of one launch on a device, at most; 0: as the program says */
    const char *samples_in;                           /* of a device: "gpu", "host"; NULL: there where they fit */
    int64_t     log_steps;                            /* a record every so many steps; 0: after epochs only */
    bool        resume, shuffle, strict, layers, link; /* link: bench --comm */
    double      scale;                                /* bench --scale: milliseconds of a rank's own step; 0: not asked for */
    double      stop_at;                              /* test accuracy; 0: none */
    int64_t     steps;                                /* bench */
    const char *text, *prompt;                        /* predict, generate */
    int64_t     length, top_k;                        /* generate: tokens to make; how many to choose from, 0: all */
    double      temperature;
    bool        anew;                                 /* generate: the whole window for each token */
    int64_t     samples;                              /* gradcheck: elements of each parameter */
    Comm       *comm;                                 /* no option: the ranks of this run, by rt_main */
} Options;

/* Exits 0 after --help or --version, 1 (with the nearest option named) on a mistake. */
void options_parse(Options *o, const RtProgram *p, int argc, char **argv);

#endif
