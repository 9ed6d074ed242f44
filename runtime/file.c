/* file.c -- atomic replacement by rename(2); see file.h. */
#include "file.h"
#include "error.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void __attribute__((noreturn)) fail(const File *f)
{
    rt_die("%s cannot be written: %s", f->path, strerror(errno));
}

/* A rename would put a plain file in the place of whatever stands there. */
static void refuse_others(const char *path)
{
    struct stat s;

    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        rt_die("%s is %s, not a file: name another place", path,
               S_ISDIR(s.st_mode) ? "a directory" : "a device or a pipe");
}

void file_create(File *f, const char *path)
{
    refuse_others(path);
    f->have = 0;
    f->bytes = 0;
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        rt_die("the path %.60s... is too long", path);
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
    char directory[4096];
    snprintf(directory, sizeof directory, "%s", f->path);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = 0;
    const int fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    rt_unfinished(NULL);
    sync_directory(f);
}
