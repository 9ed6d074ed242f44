/* init.h -- the parameters before the first step. */
#ifndef INIT_H
#define INIT_H
#include "base/threads.h"
#include "rt.h"

/* Fills every parameter of `fixed`. Its numbers depend only on the seed, the name of the parameter,
 * and the index of the element. */
void init_params(const RtProgram *p, char *fixed, uint64_t seed, Pool *pool);

#endif
