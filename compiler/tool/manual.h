/* manual.h -- `tenon ops`: the operations, from the same table that the compiler uses. */
#ifndef MANUAL_H
#define MANUAL_H
#include "tool/command.h"

/* All operations, one line each; or one with its arguments and example; or the example alone. */
bool manual_print(const Command *c, Diag *d);

#endif
