/* store_error.h -- why a store cannot be opened, read or written, said to a person. */
#ifndef SWEEP_STORE_ERROR_H
#define SWEEP_STORE_ERROR_H
#include "base/diag.h"
#include "base/text.h"

/* Says what SQLite's result code means for the store at `path`; doing: "write", "read" ... */
void store_say(Arena *a, Diag *d, const char *path, int code, const char *message,
               const char *doing);

const char *store_directory(Arena *a, const char *path); /* that the store lies in */
bool store_is_directory(const char *path, Diag *d);      /* and says so */

#endif
