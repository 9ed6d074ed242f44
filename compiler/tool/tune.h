/* tune.h -- --tune: algorithms settled by measuring them here, once for each shape. */
#ifndef TUNE_H
#define TUNE_H
#include "tool/command.h"

/* The tuner for pass choose (ir/choice.h); NULL after an error.  The processor of c is known by now. */
struct Tuner *tune_new(Arena *a, const Command *c, const char *dtype, Diag *d);

#endif
