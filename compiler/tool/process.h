/* process.h -- other programs: the C compiler, and the program just built. */
#ifndef PROCESS_H
#define PROCESS_H
#include "base/text.h"

typedef struct Argv {
    char **word;                                      /* ended by NULL, see argv_end */
    int    n;
} Argv;

void argv_add(Arena *a, Argv *v, const char *word);
void argv_split(Arena *a, Argv *v, const char *words);                   /* at white space: "ccache gcc" is two */
void argv_end(Arena *a, Argv *v);
const char *argv_text(Arena *a, const Argv *v);       /* as one would type it */

/* Runs v and waits; what it writes to stdout and stderr is added to *output.
 * Exit status; 128 + signal when killed; -1 with errno set when it could not be started. */
int process_run(const Argv *v, Text *output);

#endif
