/* words.h -- the options and commands of `tenon sweep` and `tenon results` as tables, for reading, for --help and for the manual. */
#ifndef SWEEP_WORDS_H
#define SWEEP_WORDS_H
#include "sweep/setting.h"
#include <stddef.h>

typedef enum { SWEEP_TEXT, SWEEP_NUMBER, SWEEP_TRUE, SWEEP_PYTHON, SWEEP_HELP } SweepOptionKind;

typedef struct SweepOption {
    const char *name, *value; /* "store", "FILE" */
    SweepOptionKind kind;
    size_t field; /* offset in Sweep */
    int least;    /* of numbers */
    const char *fallback; /* the default, in words; NULL: none */
    const char *help;
} SweepOption;

typedef enum { RESULTS_LIST, RESULTS_SHOW, RESULTS_TABLE, RESULTS_BEST, RESULTS_EXPORT, RESULTS_COMPARE, RESULTS_MERGE, RESULTS_PLOT, RESULTS_REPORT } ResultsCommandKind;

typedef struct ResultsCommand {
    const char *name, *words; /* "compare", "A B" */
    ResultsCommandKind kind;
    int least, most; /* words */
    const char *help;
} ResultsCommand;

typedef enum { RESULTS_OPTION_TEXT, RESULTS_OPTION_PERCENT, RESULTS_OPTION_TRUE } ResultsOptionKind;

typedef struct ResultsOption {
    const char *name, *value; /* "--store", "FILE" */
    ResultsOptionKind kind;
    size_t field; /* offset in Results */
    const char *fallback;
    const char *help;
} ResultsOption;

/* A row without a name ends each table. */
extern const Setting setting_table[];
extern const SweepOption sweep_option_table[];
extern const ResultsCommand results_command_table[];
extern const ResultsOption results_option_table[];

/* Prints a line for each option and each command of `results`: COMMAND, word, value, help, with tabs between them. */
void words_print(void);
const char *setting_option_name(char room[64], const Setting *s); /* "--limit-samples" */

#endif
