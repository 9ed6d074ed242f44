/* init.h -- the parameters before the first step. */
#ifndef INIT_H
#define INIT_H
#include "base/threads.h"
#include "rt.h"

/* Fills every parameter of `fixed`, keyed by (seed, the parameter's name, element): independent
 * of all else. */
void init_params(const RtProgram *p, char *fixed, uint64_t seed, Pool *pool);

#endif
