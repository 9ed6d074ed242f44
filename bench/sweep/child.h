/* child.h -- child processes: each in a process group of its own, with its output in a file; they are killed when this
 * process ends. */
#ifndef SWEEP_CHILD_H
#define SWEEP_CHILD_H
#include "base/text.h"
#include <sys/resource.h>
#include <sys/types.h>

typedef struct Child {
    const char **word; /* the command, ended by NULL */
    int nword;
    const char *output; /* a file for stdout and stderr */
    int64_t timeout;    /* s; 0 = none */

    pid_t pid;  /* 0: not running */
    int status; /* exit status; 128 + signal; 127 with `error`: not started */
    bool late;  /* it was killed after `timeout` */
    double began, seconds;
    struct rusage used; /* by the process and its children */
} Child;

void child_word(Arena *a, Child *c, const char *word);
void child_words(Arena *a, Child *c, const char *words); /* splits at blanks */

/* From now on, SIGINT, SIGTERM and SIGHUP kill all children and make child_wait return; then child_stopped is not 0. */
void child_watch(void);
int child_stopped(void); /* the signal, or 0 */

bool child_start(Arena *a, Child *c);
/* Waits until one of n children ends; returns its index, or -1 if none runs or a signal came (then all are killed). */
int child_wait(Child *c, int n);
bool child_run(Arena *a, Child *c); /* starts it and waits; whether it exits with 0 */

double child_now(void); /* seconds of a monotonic clock */

#endif
