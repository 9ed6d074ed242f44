/* store_error.h -- messages about a store that cannot be opened, read or written. */
#ifndef SWEEP_STORE_ERROR_H
#define SWEEP_STORE_ERROR_H
#include "base/diag.h"
#include "base/text.h"

/* Reports what SQLite's result code means for the store at `path`; doing: "write", "read" ... */
void store_say(Arena *a, Diag *d, const char *path, int code, const char *message,
               const char *doing);

const char *store_directory(Arena *a, const char *path); /* the directory of the store */
bool store_is_directory(const char *path, Diag *d);      /* also reports it */

#endif
