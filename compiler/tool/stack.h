/* stack.h -- a stack for the compiler that does not depend on a limit of the shell. */
#ifndef STACK_H
#define STACK_H

/* Calls run(arg) on a new thread with STACK_BYTES of stack, or on the calling thread if no thread
 * can be started.  Signals go to the thread that runs it. */
int stack_run(int (*run)(void *), void *arg);

#endif
