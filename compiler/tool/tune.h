/* tune.h -- --tune: chooses algorithms by measuring them on this machine, once for each shape. */
#ifndef TUNE_H
#define TUNE_H
#include "tool/command.h"

/* The tuner for pass choose (ir/choice.h); NULL after an error.  The processor of c must be
 * known. */
struct Tuner *tune_new(Arena *a, const Command *c, const char *dtype, Diag *d);

#endif
