/* file.h -- files and directories: whole reads, writes that are either complete or not there. */
#ifndef FILE_H
#define FILE_H
#include "base/diag.h"
#include "base/text.h"
#include <sys/types.h>

/* The bytes of a file, NUL-terminated, in the arena.  NULL, errno set, when it cannot be read. */
char *file_read(Arena *a, const char *path, size_t *len);

/* Writes next to `path`, then renames: the file is whole or untouched, and of two compilers that write it the last one has it.
 * A link stays, and its target is written; a device, a pipe or standard output is written into.  Nothing is synced: all that is
 * written here can be made again, and entries of the cache know when they are damaged.  0, or an errno. */
int file_write(Arena *a, const char *path, const void *bytes, size_t len, mode_t mode);
/* Reports that WHAT cannot be written to path, for that errno; returns false. */
bool file_failed(Diag *d, const char *what, const char *path, int error);
int file_copy(Arena *a, const char *from, const char *to, mode_t mode);

int dir_make(Arena *a, const char *path); /* with its parents; 0, or an errno */
/* A new directory NAME-xxxxxx under $TMPDIR or /tmp; *made false, errno set, when it could not be made: then the path that was tried. */
const char *dir_temporary(Arena *a, const char *name, bool *made);
bool file_exists(const char *path);
bool dir_exists(const char *path);

const char *path_join(Arena *a, const char *dir, const char *name);
const char *path_stem(Arena *a, const char *path); /* "models/lenet.tn" -> "lenet" */

/* A file that goes away when a signal ends the compiler; NULL = none.  The string must stay. */
void file_volatile(const char *path);

#endif
