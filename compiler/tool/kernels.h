/* kernels.h -- --target cuda without --kernels: which of our own. */
#ifndef KERNELS_H
#define KERNELS_H
#include "tool/command.h"

/* What is expected of either form of a program of our own, for show: "13 launches a step, ..."; "": it has none. */
const char *kernels_said(const Command *c, Diag *d);
/* Many steps in one launch where that is expected to take much less time than launches of several kernels: sets c->options.persistent. */
void kernels_choose(Command *c, Diag *d);

#endif
