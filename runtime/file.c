/* file.c -- atomic replacement by rename(2); see file.h. */
#include "file.h"
#include "error.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void __attribute__((noreturn)) fail(const File *f)
{
    rt_die("%s cannot be written: %s", f->path, strerror(errno));
}

/* A rename would put a plain file in the place of whatever stands there; a link stays a link. */
static void find_place(File *f, const char *path)
{
    struct stat there;
    char target[PATH_MAX];
    if (stat(path, &there) == 0) {
        if (!S_ISREG(there.st_mode))
            rt_die("%s is %s, not a file: name another place", path,
                   S_ISDIR(there.st_mode) ? "a directory" : "a device or a pipe");
        if (realpath(path, target))
            path = target;
    }
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        rt_die("the path %.60s... is too long", path);
}

static void directory_of(const File *f, char *directory)
{
    const char *slash = strrchr(f->path, '/');
    const int length = slash == f->path ? 1 : slash ? (int)(slash - f->path) : 0;
    snprintf(directory, sizeof f->path, "%.*s", length ? length : 1, length ? f->path : ".");
}

void file_check(const char *path)
{
    static File f;
    char directory[sizeof f.path];
    find_place(&f, path);
    directory_of(&f, directory);
    if (access(directory, W_OK | X_OK) != 0)
        fail(&f);
}

void file_create(File *f, const char *path)
{
    f->have = 0;
    f->bytes = 0;
    find_place(f, path);
    snprintf(f->temporary, sizeof f->temporary, "%s.tmp", f->path);
    f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->fd < 0)
        fail(f);
    rt_unfinished(f->temporary);
}

static void put(File *f, const char *data, int64_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = write(f->fd, data, (size_t)bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            fail(f);
        data += n;
        bytes -= n;
    }
}

static void flush(File *f)
{
    put(f, f->piece, f->have);
    f->have = 0;
}

void file_write(File *f, const void *data, int64_t bytes)
{
    f->bytes += bytes;
    if (bytes > FILE_PIECE - f->have)
        flush(f);
    if (bytes > FILE_PIECE) {
        put(f, data, bytes);
        return;
    }
    memcpy(f->piece + f->have, data, (size_t)bytes);
    f->have += (int)bytes;
}

void file_patch(File *f, int64_t at, const void *data, int64_t bytes)
{
    flush(f);
    if (pwrite(f->fd, data, (size_t)bytes, at) != bytes)
        fail(f);
}

/* The name is safe on disk when its directory is. */
static void sync_directory(File *f)
{
    char directory[sizeof f->path];
    directory_of(f, directory);
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

void file_commit(File *f)
{
    flush(f);
    if (fsync(f->fd) != 0 && errno != EINVAL)
        fail(f);
    if (close(f->fd) != 0 || rename(f->temporary, f->path) != 0)
        fail(f);
    rt_finished(f->temporary);
    sync_directory(f);
}
