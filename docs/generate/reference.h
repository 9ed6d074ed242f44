/* reference.h -- functions that write the pages of docs/reference and the manual pages from tables.
 *
 * commands.c, operations.c and recipe.c read the compiler's tables, program.c those of the runtime.  main.c lists the pages.
 */
#ifndef REFERENCE_H
#define REFERENCE_H
#include "page.h"
#include <stdbool.h>

/* Pages about the compiler. */
void reference_commands(Page *p);                     /* commands.md */
void reference_operations(Page *p);                   /* operations.md */
void reference_recipe(Page *p);                       /* recipe.md */
void reference_tenon_environment(Page *p);            /* tenon's chapter of environment.md, without its heading */
void reference_tenon_limits(Page *p);                 /* and of limits.md */
bool reference_manuals(const char *dir);              /* tenon.1, tenon-build.1 ...; false when a file cannot be written */

/* Pages about programs. */
void reference_program(Page *p);                      /* program.md */
void reference_program_log(Page *p);                  /* log.md */
void reference_program_files(Page *p);                /* files.md */
void reference_program_exits(Page *p);                /* exit-codes.md, of tenon as well */
void reference_program_environment(Page *p);          /* the programs' chapter of environment.md, without its heading */
void reference_program_limits(Page *p);               /* and of limits.md */
bool reference_program_manual(const char *dir);       /* tenon-program.1 */

/* Opens DIR/name; reports an error and returns NULL if that fails. */
FILE *reference_open(const char *dir, const char *name);

#endif
