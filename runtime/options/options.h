/* options.h -- the command line of a program: PROG [COMMAND] [options]. */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "base/threads.h"
#include "comm/comm.h"
#include "rt.h"

typedef enum Command {
    TRAIN,
    TEST,
    PREDICT,
    GENERATE,
    BENCH,
    INFO,
    GRADCHECK,
    GRADS,
    COMMANDS
} Command;

typedef struct Options {
    Command command;
    const char *data; /* NULL: that of the recipe */
    const char *id;   /* predict: the column that names the samples; "file" for images; or NULL */
    int64_t epochs;   /* default: that of the recipe */
    bool epochs_given;
    uint64_t seed; /* default: that of the recipe */
    int threads;   /* default: by place_threads */
    bool threads_given;
    const char *pin; /* "none", "cores"; NULL: not given */
    const char *isa; /* "amx", "avx512", "avx512_bf16"; NULL: not given */
    int groups;
    double timeout;       /* seconds that a rank waits for other ranks, at most */
    double timeout_start; /* the same until the first step is done */
    const char *wire;     /* number format of sums over ranks: "f32", "bf16" */
    const char *reduce;   /* sums over GPUs: "tree", "nccl" */
    double loss_scale;    /* initial loss scale of programs in f16; 0: not given */
    /* number of finite steps after which the loss scale doubles; 0: never; -1: not given */
    int64_t loss_scale_steps;
    const char *log, *checkpoint, *weights, *save, *input, *output, *trace;
    const char *only, *except; /* patterns of the parameters of --weights; NULL: not given */
    bool log_ranks;            /* not an option; rt_main sets it: each rank has a log */
    int64_t limit;             /* number of training samples, at most; 0: all */
    int64_t every_steps;       /* steps between checkpoints; 0: after epochs only */
    double every_seconds;      /* seconds between checkpoints; 0: after epochs only */
    int64_t launch_steps;      /* steps of one launch on a device, at most; 0: as in the program */
    const char *samples_in;    /* memory for samples: "gpu", "host"; NULL: the GPU's if they fit */
    int64_t log_steps;         /* steps between records; 0: after epochs only */
    bool resume, shuffle, strict, layers, link; /* link: bench --comm */
    double scale;              /* bench --scale: own step of a rank in milliseconds; 0: not given */
    double stop_at;            /* accuracy or iou at which training ends; 0: none */
    int64_t steps;             /* bench: measured steps; 0: until the median is known */
    double seconds;            /* bench without --steps: longest time of the measured steps */
    int64_t simulate;          /* bench: number of simulated threads; 0: real ones */
    const char *machine;       /* bench --simulate: its name; NULL: by the number of threads */
    const char *report;        /* test: directory of the report; NULL: none */
    bool all;                  /* test: all samples, where the test split is a share of them */
    const char *text, *prompt; /* predict, generate */
    int64_t length, top_k;     /* generate: number of tokens; number of candidates, 0: all */
    double temperature;
    bool anew;       /* generate: compute the whole window for each token */
    int64_t samples; /* gradcheck: elements of each parameter */
    Comm *comm;      /* not an option; rt_main sets it: the ranks of this run */
    Cores cores;     /* not an option: the cores of this process */
    Placement place; /* not an option; place_threads sets it: where threads run */
    const char *limited_by;
} Options;

/* Exits with 0 after --help or --version, and with 1 after an error; the message names the nearest
 * option. */
void options_parse(Options *o, const RtProgram *p, int argc, char **argv);

#endif
