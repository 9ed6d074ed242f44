/* file.c -- atomic replacement by rename(2); see file.h. */
#define _GNU_SOURCE
#include "files/file.h"
#include "base/error.h"
#include "base/whole.h"
#include "files/names.h"
#include "files/owner.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void __attribute__((noreturn)) file_fail(const File *f)
{
    rt_die("%s cannot be written: %s", f->path, strerror(errno));
}

/* ---- the place */

enum { LINKS = 40 }; /* links that are followed: the limit of the kernel */

/* Replaces `path`, which is a link, by the path of its target. */
static bool follow(char path[PATH_MAX])
{
    char target[PATH_MAX];
    const ssize_t n = readlink(path, target, sizeof target - 1);
    const char *slash = strrchr(path, '/');
    const size_t keep = n > 0 && target[0] != '/' && slash ? (size_t)(slash + 1 - path) : 0;
    if (n < 0)
        return false;
    if (keep + (size_t)n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path + keep, target, (size_t)n);
    path[keep + (size_t)n] = '\0';
    return true;
}

/* Follows the links of a path, because a rename would replace a link by a plain file. The target of
 * a link need not exist yet. */
static bool resolve(char path[PATH_MAX])
{
    struct stat s;
    for (int i = 0; lstat(path, &s) == 0 && S_ISLNK(s.st_mode); i++) {
        if (i == LINKS) {
            errno = ELOOP;
            return false;
        }
        if (!follow(path))
            return false;
    }
    return true;
}

/* Whether standard output or error is redirected into this file, for example /dev/stdout. */
static bool is_own_output(const struct stat *there)
{
    struct stat s;
    for (int fd = 1; fd <= 2; fd++)
        if (fstat(fd, &s) == 0 && s.st_dev == there->st_dev && s.st_ino == there->st_ino)
            return true;
    return false;
}

/* The kind of the file at this path, in words, if a new file must not replace it; else NULL. */
static const char *other_than_file(const char *path)
{
    struct stat there;
    if (stat(path, &there) != 0)
        return NULL;
    if (!S_ISREG(there.st_mode))
        return S_ISDIR(there.st_mode) ? "a directory, not a file"
                                      : "a device or a pipe, not a file";
    return is_own_output(&there) ? "what this program's output goes to" : NULL;
}

static bool find_directory(File *f, const char *path)
{
    if (snprintf(f->path, sizeof f->path, "%s", path) < (int)sizeof f->path)
        return resolve(f->path);
    errno = ENAMETOOLONG;
    return false;
}

static void must_find_place(File *f, const char *path)
{
    const char *other = other_than_file(path);
    if (strlen(path) >= sizeof f->path)
        rt_die("the path %.60s... is too long", path);
    if (other)
        rt_die("%s is %s: name another place", path, other);
    if (!find_directory(f, path))
        file_fail(f);
}

static void directory_of(const char *path, char directory[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const int length = slash == path ? 1 : slash ? (int)(slash - path) : 0;
    snprintf(directory, PATH_MAX, "%.*s", length ? length : 1, length ? path : ".");
}

/* ---- temporary names */

enum { OLD = 24 * 3600 };        /* seconds without a write */
enum { STEM = 64, TRIES = 100 }; /* STEM: kept bytes of the name; some file systems allow 143 */

static const char *file_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Bytes of the name before ".tmp-": whole characters of UTF-8. */
static int stem_of(const char *base)
{
    int n = (int)strnlen(base, STEM);
    while (n > 0 && base[n] && (base[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* The owner in a temporary name of the file `base`; NULL: `name` is not a temporary name of it. */
static const char *owner_in(const char *name, const char *base)
{
    const int stem = stem_of(base);
    const char *owner = name + stem + 5;
    if (strncmp(name, base, (size_t)stem) != 0 ||
        strncmp(name + stem, FILE_TEMPORARY, sizeof FILE_TEMPORARY - 1) != 0)
        return NULL;
    const int length = owner_length(owner);
    return length && owner[length] == '-' ? owner : NULL;
}

/* Whether nobody has written a temporary file for a day. A process on another host, in another
 * container, or from before the last boot of this host cannot be checked. So a file without a write
 * for one day counts as one without a writer. */
static bool is_old(int directory, const char *name)
{
    struct stat s;
    return fstatat(directory, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - s.st_mtime > OLD;
}

bool file_others(const char *path)
{
    static File f;
    char directory[PATH_MAX];
    bool others = false;
    if (!find_directory(&f, path))
        return false;
    directory_of(f.path, directory);
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *owner = owner_in(e->d_name, file_base(f.path));
        if (owner && owner_is_gone(owner))
            unlinkat(dirfd(d), e->d_name, 0);
        else if (owner && (owner_is_here(owner) || !is_old(dirfd(d), e->d_name)))
            others = true;
    }
    if (d)
        closedir(d);
    return others;
}

/* Makes the temporary file with O_EXCL, which does not follow a link, and fails if the name
 * exists. */
static bool make_temporary(File *f)
{
    static atomic_int made;
    char owner[OWNER_TEXT];
    const char *base = file_base(f->path);
    owner_text(owner);
    f->fd = -1;
    errno = EEXIST;
    for (int i = 0; i < TRIES && f->fd < 0 && errno == EEXIST; i++) {
        const int n = snprintf(f->temporary, sizeof f->temporary, "%.*s%.*s" FILE_TEMPORARY "%s-%d",
                               (int)(base - f->path), f->path, stem_of(base), base, owner,
                               atomic_fetch_add(&made, 1));
        if (n >= (int)sizeof f->temporary) {
            errno = ENAMETOOLONG;
            return false;
        }
        f->fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    return f->fd >= 0;
}

/* ---- the file */

void file_check(const char *path)
{
    static File f;
    char directory[PATH_MAX];
    must_find_place(&f, path);
    directory_of(f.path, directory);
    if (access(directory, W_OK | X_OK) != 0)
        file_fail(&f);
    file_others(path);
}

static bool begin_temporary(File *f)
{
    f->have = 0;
    f->bytes = 0;
    if (!make_temporary(f))
        return false;
    rt_unfinished(f->temporary);
    return true;
}

bool file_try(File *f, const char *path)
{
    f->fd = -1;
    if (other_than_file(path)) {
        errno = EEXIST;
        return false;
    }
    return find_directory(f, path) && begin_temporary(f);
}

void file_create(File *f, const char *path)
{
    must_find_place(f, path);
    if (!begin_temporary(f))
        file_fail(f);
}

static void file_put(File *f, const char *data, int64_t bytes)
{
    if (!whole_write(f->fd, data, bytes, -1))
        file_fail(f);
}

static void flush(File *f)
{
    file_put(f, f->piece, f->have);
    f->have = 0;
}

void file_write(File *f, const void *data, int64_t bytes)
{
    f->bytes += bytes;
    if (bytes > FILE_PIECE - f->have)
        flush(f);
    if (bytes > FILE_PIECE) {
        file_put(f, data, bytes);
        return;
    }
    memcpy(f->piece + f->have, data, (size_t)bytes);
    f->have += (int)bytes;
}

void file_patch(File *f, int64_t at, const void *data, int64_t bytes)
{
    flush(f);
    if (!whole_write(f->fd, data, bytes, at))
        file_fail(f);
}

void file_read(File *f, int64_t at, void *to, int64_t bytes)
{
    flush(f);
    const int64_t n = whole_read(f->fd, to, bytes, at);
    if (n != bytes)
        rt_die("%s cannot be read back: %s", f->path, n < 0 ? strerror(errno) : "it is cut short");
}

void file_sync(File *f)
{
    flush(f);
    if (fsync(f->fd) != 0 && errno != EINVAL)
        file_fail(f);
}

/* A rename is on disk only when the directory has been synced. */
static void sync_directory(const File *f)
{
    char directory[PATH_MAX];
    directory_of(f->path, directory);
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

void file_abandon(File *f)
{
    const int error = errno;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    unlink(f->temporary);
    rt_finished(f->temporary);
    errno = error;
}

/* False: errno is set, and the file has been abandoned. */
static bool finish(File *f)
{
    flush(f);
    bool ok = fsync(f->fd) == 0 || errno == EINVAL;
    if (ok) {
        ok = close(f->fd) == 0;
        f->fd = -1;
    }
    if (!ok || rename(f->temporary, f->path) != 0) {
        file_abandon(f);
        return false;
    }
    rt_finished(f->temporary);
    sync_directory(f);
    return true;
}

void file_commit(File *f)
{
    if (!finish(f))
        file_fail(f);
}
