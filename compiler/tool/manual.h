/* manual.h -- `tenon ops`: operations, and words of a train block, from the compiler's tables. */
#ifndef MANUAL_H
#define MANUAL_H
#include "ops/op.h"
#include "tool/command.h"

/* Prints all operations and keys, one per line; or one of them with its arguments and formulas; or
 * only the example of an operation. */
bool manual_print(const Command *c, Diag *d);

/* The names that manual_print knows: of operations, keys, forms and results. */
const char **manual_names(Arena *a, int *n);

/* "max_pool(x, kernel, [stride], pad = 0)".  An argument in brackets is optional; its default
 * cannot be written in the language.  Lines end before `width` columns. */
const char *manual_signature(Arena *a, const Op *op, int width);
/* The lines of the gradients; NULL: none. */
const char *manual_derivative(Arena *a, const Op *op);
const char *manual_type(ArgType type); /* "int or [int, int]" */

#endif
