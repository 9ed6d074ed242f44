/* file.h -- a file that appears whole or not at all: written beside its place, synced, renamed.
 * Allocates nothing. */
#ifndef FILE_H
#define FILE_H
#include <stdint.h>

enum { FILE_PIECE = 1 << 16 };
typedef struct File {
    char    path[4096], temporary[4104];
    int     fd, have;
    int64_t bytes;
    char    piece[FILE_PIECE];
} File;

/* All of them die, naming file and reason (a full disk, say), and leave what stood at the path
 * before untouched. */
void file_check(const char *path);                    /* dies now rather than after hours */
void file_create(File *f, const char *path);          /* `path`.tmp for now; what is no file is not replaced */
void file_write(File *f, const void *data, int64_t bytes);
void file_patch(File *f, int64_t at, const void *data, int64_t bytes); /* in what is written */
void file_commit(File *f);                            /* fsync, rename, fsync of the directory */

#endif
