/* process.h -- other programs: the C compiler, one or many at a time, and the program just built. */
#ifndef PROCESS_H
#define PROCESS_H
#include "base/text.h"

/* First in main: descriptors 0, 1 and 2 that this process was started without are taken, so that no other file gets them and what
 * is printed does not land in it.  Writing to 1 or 2 fails as before. */
void process_begin(void);

typedef struct Argv {
    char **word; /* ended by NULL, see argv_end */
    int n;
} Argv;

void argv_add(Arena *a, Argv *v, const char *word);
void argv_split(Arena *a, Argv *v, const char *words); /* at white space: "ccache gcc" is two */
void argv_end(Arena *a, Argv *v);
const char *argv_text(Arena *a, const Argv *v); /* as one would type it */

typedef struct Process {
    Argv command;
    Text output; /* what it wrote to stdout and stderr */
    int status;  /* exit status; 128 + signal when killed; -1 with `error` when not started */
    int error;   /* an errno, or 0 */
} Process;

Process process_of(Arena *a, Argv command);
void process_run(Process *p); /* and waits */

/* Runs n of them, in their order, at most `jobs` at a time, and waits.  When one fails, those at work are ended with all their
 * children and no other is started: the number of the one that failed is returned, else -1.  A signal that would end us
 * (SIGINT, SIGTERM, SIGHUP) ends them, too, and is left in process_signal for the caller, who tidies up and passes it on. */
int process_run_all(Process *p, int n, int jobs);
extern volatile int process_signal; /* 0 = none */
void process_pass_on(void);         /* ends us by that signal, if there was one */

int process_cores(void); /* that we may run on */

#endif
