/* file.h -- files that appear only when they are complete: written beside their place, synced,
 * renamed. Only file_check allocates memory.
 *
 * A file is written as NAME.tmp-OWNER-N (owner.h) in the directory of its place. O_EXCL makes the
 * name unique. So if several runs write the same file, each run writes its own, and the last rename
 * wins. rt_die and the signals that end a program remove the temporary file. The next file_check of
 * the same place removes the files of killed runs.
 */
#ifndef FILE_H
#define FILE_H
#include <stdbool.h>
#include <stdint.h>

enum { FILE_PIECE = 1 << 16 };
typedef struct File {
    char path[4096], temporary[4096];
    int fd, have;
    int64_t bytes;
    char piece[FILE_PIECE];
} File;

/* On an error, each of these functions dies and leaves the old file unchanged. The message has the
 * file and the reason, such as a full disk. */
void file_check(const char *path); /* before long work: dies if the file cannot be written */
/* Follows a link. Dies if the place is a directory, a device, a pipe, or this program's own
 * output. */
void file_create(File *f, const char *path);
void file_write(File *f, const void *data, int64_t bytes);
void file_patch(File *f, int64_t at, const void *data, int64_t bytes); /* overwrites */
void file_read(File *f, int64_t at, void *to, int64_t bytes);          /* reads written bytes */
void file_sync(File *f);
void file_commit(File *f); /* fsync, rename, fsync of the directory */

/* file_create for an optional file: returns false and sets errno, instead of ending the program. */
bool file_try(File *f, const char *path);
void file_abandon(File *f);

/* Removes the temporary files that killed runs have left of this file. Returns true if a run that
 * still lives writes the file, or if a run on another host has written it within a day. */
bool file_others(const char *path);

#endif
