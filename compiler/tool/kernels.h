/* kernels.h -- --target cuda without --kernels: which form of Tenon's own kernels. */
#ifndef KERNELS_H
#define KERNELS_H
#include "tool/command.h"

/* The prediction for both forms, for `show`: "13 launches a step, ..."; "" if there is none. */
const char *kernels_said(const Command *c, Diag *d);
/* Sets c->options.persistent if the predicted time of many steps in one launch is much shorter. */
void kernels_choose(Command *c, Diag *d);

#endif
