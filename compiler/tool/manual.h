/* manual.h -- `tenon ops`: the operations, from the same table that the compiler uses. */
#ifndef MANUAL_H
#define MANUAL_H
#include "ops/op.h"
#include "tool/command.h"

/* Prints all operations, a line each; or one with its arguments, formulas and example; or the
 * example alone. */
bool manual_print(const Command *c, Diag *d);

/* "max_pool(x, kernel, [stride], pad = 0)".  An argument in brackets is optional and has no default
 * that can be written.  Lines end before `width` columns. */
const char *manual_signature(Arena *a, const Op *op, int width);
const char *manual_type(ArgType type); /* "int or [int, int]" */

#endif
