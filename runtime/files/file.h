/* file.h -- a file that appears whole or not at all: written beside its place, synced, renamed.
 * Allocates nothing, but for file_check.
 *
 * It is written as NAME.tmp-OWNER-N (owner.h) in the directory of its place. The name is nobody
 * else's: it is made with O_EXCL, so that of several runs that write the same file each writes its
 * own, and the last one to end has the place. rt_die and the signals that end a program take it
 * away. What a run that was killed has left is taken away by the next file_check of the same place.
 */
#ifndef FILE_H
#define FILE_H
#include <stdbool.h>
#include <stdint.h>

enum { FILE_PIECE = 1 << 16 };
typedef struct File {
    char    path[4096], temporary[4096];
    int     fd, have;
    int64_t bytes;
    char    piece[FILE_PIECE];
} File;

/* All of them die, naming file and reason (a full disk, say), and leave what stood at the path
 * before untouched. */
void file_check(const char *path);                    /* dies now rather than after hours */
/* A link is followed; what is no file is not replaced. */
void file_create(File *f, const char *path);
void file_write(File *f, const void *data, int64_t bytes);
void file_patch(File *f, int64_t at, const void *data, int64_t bytes); /* in what is written */
void file_read(File *f, int64_t at, void *to, int64_t bytes);          /* of what is written */
void file_sync(File *f);
void file_commit(File *f);                            /* fsync, rename, fsync of the directory */

/* For files that a program can do without: false, errno set, instead of an end. */
bool file_try(File *f, const char *path);
bool file_try_commit(File *f);                        /* false: abandoned, too */
void file_abandon(File *f);

/* Takes away what killed runs have left of this file; true: a run that still lives writes it, or one
 * on another host has written it within a day. */
bool file_others(const char *path);

#endif
