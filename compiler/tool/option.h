/* option.h -- the table behind the command line: one row an option, one row a command. */
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
    bool shapes;          /* it changes the program: shown by `info` */
    const char *fallback; /* what holds without it, as words; NULL = nothing */
    const char *help;
} OptionRow;

typedef struct CommandRow {
    const char *name;
    CommandKind kind;
    const char *usage, *brief;
    const char *about;   /* sentences for the manual: what it reads, writes and answers */
    const char *example; /* one or more command lines, each ended by a line break */
} CommandRow;

extern const OptionRow option_table[]; /* both end with a row without a name */
extern const CommandRow command_table[];

const CommandRow *command_row(CommandKind kind);
int64_t
option_most(const OptionRow *o); /* of an option that is a whole number: what is allowed at most */

enum { HELP_WIDTH = 110 }; /* columns of what --help and `tenon ops` print */

/* A name, and what it is from `column` on: on the next line where the name is longer. */
void help_row(const char *name, int column, const char *text);
void help_text(const char *text, int column); /* wrapped, each line from `column` on */

#endif
