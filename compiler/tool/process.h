/* process.h -- runs other programs: C compilers in parallel, and the program just built. */
#ifndef PROCESS_H
#define PROCESS_H
#include "base/text.h"

/* Called first in main: opens descriptors 0, 1 and 2 if the process was started without them, so
 * that no opened file gets descriptor 1 or 2 and receives output.  Writing to 1 or 2 fails as
 * before. */
void process_begin(void);

typedef struct Argv {
    char **word; /* ended by NULL, see argv_end */
    int n;
} Argv;

void argv_add(Arena *a, Argv *v, const char *word);
/* splits at white space: "ccache gcc" is two */
void argv_split(Arena *a, Argv *v, const char *words);
void argv_end(Arena *a, Argv *v);
const char *argv_text(Arena *a, const Argv *v); /* quoted for a shell */

typedef struct Process {
    Argv command;
    Text output; /* its output to stdout and stderr */
    int status;  /* exit status; 128 + signal when killed; -1 with `error` when not started */
    int error;   /* an errno, or 0 */
} Process;

Process process_of(Arena *a, Argv command);
/* Runs p, and waits for its end.  what: of process_run_all */
void process_run(Process *p, const char *what);

/* Runs n programs, in their order, at most `jobs` at a time, and waits.  If one fails, ends the
 * running ones with all their children, and starts no other one.  Returns the index of the program
 * that failed, else -1.  A signal that would end the compiler (SIGINT, SIGTERM, SIGHUP) ends them,
 * too.  It is stored in process_signal; the caller cleans up and calls process_pass_on.
 * what: "compiling", for a line of progress on a terminal if the programs take longer than a
 * second; NULL: no line. */
int process_run_all(Process *p, int n, int jobs, const char *what);
extern volatile int process_signal; /* 0 = none */
void process_pass_on(void);         /* ends this process by the pending signal, if there is one */

int process_cores(void); /* number of processors that this process may use */

#endif
