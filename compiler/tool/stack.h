/* stack.h -- a stack for the compiler that does not depend on a limit of the shell. */
#ifndef STACK_H
#define STACK_H

/* Calls run(arg) on a thread with STACK_BYTES of stack; on this thread if none can be started.
 * Signals go to that thread. */
int stack_run(int (*run)(void *), void *arg);

#endif
