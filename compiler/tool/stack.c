/* stack.c -- runs the compiler on a thread of its own.
 *
 * The compiler walks expressions and graphs by recursion.  front/ bounds the depth.  The stack of
 * the first thread is set by the shell (ulimit -s) and can be 128 KB; the stack of this thread
 * always has the same size.
 */
#define _GNU_SOURCE
#include "tool/stack.h"
#include <pthread.h>
#include <signal.h>

/* A chain of 19,000 operations, about the longest that the checks allow, takes less than 4 MB. */
enum { STACK_BYTES = 64 << 20 };

typedef struct Job {
    int (*run)(void *);
    void *arg;
    sigset_t mask;
    int result;
} Job;

static void *work(void *arg)
{
    Job *j = arg;
    pthread_sigmask(SIG_SETMASK, &j->mask, NULL);
    j->result = j->run(j->arg);
    return NULL;
}

int stack_run(int (*run)(void *), void *arg)
{
    Job j = {.run = run, .arg = arg};
    pthread_attr_t attr;
    pthread_t id;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &j.mask);
    pthread_attr_init(&attr);
    const int error =
        pthread_attr_setstacksize(&attr, STACK_BYTES) || pthread_create(&id, &attr, work, &j);
    pthread_attr_destroy(&attr);
    if (error)
        work(&j);
    else
        pthread_join(id, NULL);
    return j.result;
}
