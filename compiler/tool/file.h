/* file.h -- files and directories: reads whole files; writes a file completely or not at all. */
#ifndef FILE_H
#define FILE_H
#include "base/diag.h"
#include "base/text.h"
#include <sys/types.h>

/* The bytes of a file, NUL-terminated, in the arena.  NULL, errno set, if it cannot be read. */
char *file_read(Arena *a, const char *path, size_t *len);
/* The same for the first `most` bytes of a file that can be larger than the memory. */
char *file_read_head(Arena *a, const char *path, size_t most, size_t *len);

/* Writes next to `path`, then renames: the file is complete or untouched; of two compilers, the
 * last one wins.  If `path` is a link, writes its target.  Writes directly to a device, a pipe or
 * standard output.  Does not call fsync: all files can be made again, and the cache detects damaged
 * entries.  Returns 0 or an errno. */
int file_write(Arena *a, const char *path, const void *bytes, size_t len, mode_t mode);
/* Writes a file that does not exist yet; EEXIST if there is one, or a link. */
int file_create(Arena *a, const char *path, const void *bytes, size_t len);
/* Replaces an existing, writable file by a complete new file with the same mode.  Returns 0 or an
 * errno. */
int file_replace(Arena *a, const char *path, const void *bytes, size_t len);
/* Adds bytes to the end of an existing file: all of them, or none after an error.  Returns 0 or an
 * errno. */
int file_append(const char *path, const void *bytes, size_t len);
/* Writes all bytes to a descriptor.  Returns 0 or an errno. */
int file_put(int fd, const void *bytes, size_t len);
/* Reports that WHAT cannot be written to path, for that errno; returns false. */
bool file_failed(Diag *d, const char *what, const char *path, int error);

int dir_make(Arena *a, const char *path); /* also its parents; 0, or an errno */
/* A new directory NAME-xxxxxx under $TMPDIR or /tmp.  If it cannot be made, *made is false, errno
 * is set, and the result is the path that was tried. */
const char *dir_temporary(Arena *a, const char *name, bool *made);
bool file_exists(const char *path);
bool dir_exists(const char *path);

const char *path_join(Arena *a, const char *dir, const char *name);
const char *path_stem(Arena *a, const char *path); /* "models/lenet.tn" -> "lenet" */

#endif
