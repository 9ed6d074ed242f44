/* option.h -- the tables of the command line: a row for each option, a row for each command. */
#ifndef OPTION_H
#define OPTION_H
#include "tool/command.h"

typedef enum {
    OPTION_TRUE,
    OPTION_FALSE,   /* bool field; no value */
    OPTION_TEXT,    /* const char *field */
    OPTION_WORD,    /* const char *field, one of the words in `value`, split at | */
    OPTION_COUNT,   /* int64_t field, 1 .. 2^31 - 1 */
    OPTION_SIZE,    /* int64_t field: bytes, "500M" or "2G" */
    OPTION_SETTING, /* key=value, collected in front.set */
    OPTION_HELP
} OptionKind;

typedef struct OptionRow {
    const char *name;  /* "--batch" */
    const char *value; /* "N" or "f32|f64", NULL = none */
    OptionKind kind;
    size_t field;         /* offset in Command */
    unsigned commands;    /* bit set of 1 << CommandKind */
    bool shapes;          /* it changes the program, so `info` prints it */
    const char *fallback; /* the default, as words; NULL = nothing */
    const char *help;
} OptionRow;

typedef struct CommandRow {
    const char *name;
    CommandKind kind;
    const char *usage, *brief;
    const char *about;   /* sentences for the manual: input, output, answer */
    const char *example; /* one or more command lines, each ended by a line break */
} CommandRow;

extern const OptionRow option_table[]; /* both tables end with a row without a name */
extern const CommandRow command_table[];

const CommandRow *command_row(CommandKind kind);
int64_t option_most(const OptionRow *o); /* the largest value of an option with a whole number */

enum { HELP_WIDTH = 110 }; /* columns of --help and of `tenon ops` */

/* Prints a name, and its text from `column` on.  If the name is too long, the text begins on the
 * next line. */
void help_row(const char *name, int column, const char *text);
void help_text(const char *text, int column); /* prints wrapped text, each line from `column` on */

#endif
