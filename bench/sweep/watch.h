/* watch.h -- `tenon watch`: curves of training in the terminal, and event files for TensorBoard. */
#ifndef SWEEP_WATCH_H
#define SWEEP_WATCH_H
#include "base/diag.h"

/* The words are those that tenon has checked: --once, --tensorboard DIR, --color WORD, --, files.
 * Returns the exit code. */
int watch_main(Arena *a, Diag *d, int argc, char **argv);

#endif
