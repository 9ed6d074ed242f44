/* manual.h -- `tenon ops`: the operations, from the same table that the compiler uses. */
#ifndef MANUAL_H
#define MANUAL_H
#include "ops/op.h"
#include "tool/command.h"

/* Prints all operations, one per line; or one operation with its arguments, formulas and example;
 * or only its example. */
bool manual_print(const Command *c, Diag *d);

/* "max_pool(x, kernel, [stride], pad = 0)".  An argument in brackets is optional; its default
 * cannot be written in the language.  Lines end before `width` columns. */
const char *manual_signature(Arena *a, const Op *op, int width);
/* The lines of the gradients; NULL: none. */
const char *manual_derivative(Arena *a, const Op *op);
const char *manual_type(ArgType type); /* "int or [int, int]" */

#endif
