/* stack.h -- the compiler's own stack, whose size no limit of the shell decides. */
#ifndef STACK_H
#define STACK_H

/* run(arg) on a thread with STACK_BYTES of stack; on this one where none can be started.  Signals go to that thread. */
int stack_run(int (*run)(void *), void *arg);

#endif
