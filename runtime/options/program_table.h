/* program_table.h -- commands, options and exit codes of programs, as tables.
 *
 * options.c reads command lines and prints --help by these tables; docs/generate/program.c prints
 * the reference pages. A row exists in the programs that meet all of its `needs`.
 */
#ifndef PROGRAM_TABLE_H
#define PROGRAM_TABLE_H
#include "options/options.h"

/* What a program can be built with or without: one bit for each. */
typedef enum Need {
    NEED_CPU = 1 << 0, /* the step runs on the processor */
    NEED_GPU = 1 << 1,
    NEED_RANKS = 1 << 2, /* several processes can share a run */
    NEED_MPI = 1 << 3,
    NEED_NCCL = 1 << 4,
    NEED_F16 = 1 << 5, /* the loss's gradient is scaled */
    NEED_F64 = 1 << 6,
    NEED_TEXTS = 1 << 7,    /* predict reads texts */
    NEED_NEXT = 1 << 8,     /* the outputs are tokens that follow a text */
    NEED_ACCURACY = 1 << 9, /* accuracy is a metric */
    NEED_TILES = 1 << 10,   /* products in bf16, with tiles of AMX or AVX-512 */
    NEED_REPORT = 1 << 11,  /* a target whose predictions can be listed */
    NEED_RECIPE = 1 << 12,  /* the model has a train block */
    NEED_NAMES = 1 << 13    /* samples have names: columns of tables, files of images */
} Need;
enum { NEEDS = 14 };

typedef struct ProgramNeed {
    Need need;
    const char *which; /* "programs for a GPU" */
    const char *build; /* what to build instead: "build with --target cuda" */
    bool (*met)(const RtProgram *p);
} ProgramNeed;
extern const ProgramNeed program_needs[NEEDS];

/* The first need of `needs` that p does not meet; NULL if p meets all of them. */
const ProgramNeed *program_lacks(const RtProgram *p, int needs);

typedef struct ProgramCommand {
    const char *name, *does;
    int needs;
    const char *why;     /* why a program lacks the command; NULL: no reason */
    const char *example; /* its options in a command line that works; in the reference only */
} ProgramCommand;
extern const ProgramCommand program_commands[COMMANDS];

typedef enum OptionKind {
    OPTION_TEXT,
    OPTION_FLAG,
    OPTION_COUNT,
    OPTION_SEED,
    OPTION_REAL,
    OPTION_ON_OFF,
    OPTION_EVERY,
    OPTION_CHOICE
} OptionKind;

typedef struct ProgramOption {
    const char *name, *arg; /* arg: NULL for a flag; "tree|nccl" for a choice */
    uint8_t kind;           /* OptionKind */
    uint16_t at;            /* offset in Options */
    double low, high;       /* of COUNT, REAL and EVERY */
    uint16_t commands;      /* a bit for each command: 1 << COMMAND */
    uint16_t needs;
    const char *help;
    const char *otherwise; /* the default, in words; NULL: none */
    const char *ranks;     /* more help of a program that several ranks can share; NULL: none */
} ProgramOption;
extern const ProgramOption program_options[];
extern const int program_option_count;

/* Values of --data and --input, and the output of predict, for each kind of samples; the first row
 * whose condition is true counts. In `input`, %s stands for the arrays, if they are
 * possible: ".npy (N, 1, 28, 28) or .csv, one row for each sample". */
typedef struct ProgramSample {
    const char *recipe; /* "data = imagefolder(...)"; in the reference only */
    const char *data, *input, *output;
    bool (*is)(const RtProgram *p);
} ProgramSample;
enum { SAMPLE_KINDS = 9 };
extern const ProgramSample program_samples[SAMPLE_KINDS];

typedef struct ProgramExit {
    int code, commands, needs;
    const char *brief, *when; /* when: in the reference only */
} ProgramExit;
enum { EXITS = 4 };
extern const ProgramExit program_exits[EXITS];

#endif
