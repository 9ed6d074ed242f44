/* child.h -- programs that we start: each in a group of its own, with its output in a file, ended
 * when we end. */
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
    bool late;  /* it was ended after `timeout` */
    double began, seconds;
    struct rusage used; /* by it and those it waited for */
} Child;

void child_word(Arena *a, Child *c, const char *word);
void child_words(Arena *a, Child *c, const char *words); /* at blanks */

/* SIGINT, SIGTERM and SIGHUP end what runs and make child_wait return; child_stopped says so. */
void child_watch(void);
int child_stopped(void); /* the signal, or 0 */

bool child_start(Arena *a, Child *c);
/* Waits for any of n that run; its number, or -1 when none does or a signal came (all are ended). */
int child_wait(Child *c, int n);
bool child_run(Arena *a, Child *c); /* start, wait: did it exit with 0? */

double child_now(void); /* s, of a clock that never goes back */

#endif
