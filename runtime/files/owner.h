/* owner.h -- the process that a temporary file or a lease belongs to, as text, and whether it still
 * runs.
 *
 * The text is HOST-PID-START: a hash of this boot of this host and of its space of process numbers
 * (containers have their own), the number, and the clock tick at which the process began, because
 * numbers are used again. Nothing here allocates.
 */
#ifndef OWNER_H
#define OWNER_H
#include <stdbool.h>

enum { OWNER_TEXT = 64 };                             /* bytes of such a text, with its end mark */

void owner_text(char text[OWNER_TEXT]);               /* of this process */
int  owner_length(const char *text);                  /* of the one that text begins with, or 0 */
bool owner_is_here(const char *text);                 /* of this host: others may run or not */
bool owner_is_gone(const char *text);                 /* of this host, and it runs no more */

#endif
