/* owner.h -- the process that owns a temporary file or a lease, as text, and whether it still runs.
 *
 * The text is HOST-PID-START. HOST is a hash of this boot of the host and of its PID namespace,
 * because containers have namespaces of their own. START is the clock tick at which the process
 * began, because PIDs are reused. Nothing here allocates memory.
 */
#ifndef OWNER_H
#define OWNER_H
#include <stdbool.h>

enum { OWNER_TEXT = 64 }; /* bytes of such a text, with its final 0 */

void owner_text(char text[OWNER_TEXT]); /* of this process */
int owner_length(const char *text);     /* length of the owner with which text begins, or 0 */
bool owner_is_here(const char *text);   /* on this host; it is not known whether others still run */
bool owner_is_gone(const char *text);   /* on this host, and has ended */

#endif
