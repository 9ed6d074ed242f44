/* reference.h -- the pages of docs/reference and the manual pages, each a function that writes one from tables.
 *
 * commands.c, operations.c and recipe.c read the compiler's tables, program.c those of the runtime.  main.c lists the pages.
 */
#ifndef REFERENCE_H
#define REFERENCE_H
#include "page.h"
#include <stdbool.h>

/* The compiler's half. */
void reference_commands(Page *p);                     /* commands.md */
bool reference_manuals(const char *dir);              /* tenon.1, tenon-build.1 ...; false when a file cannot be written */

/* Opens DIR/name, or says why not and returns NULL. */
FILE *reference_open(const char *dir, const char *name);

#endif
