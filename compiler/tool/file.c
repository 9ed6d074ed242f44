/* file.c -- files and directories: reads whole files; writes a file completely or not at all. */
#define _GNU_SOURCE /* mkostemp */
#include "tool/file.h"
#include "base/environment.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *dir_temporary(Arena *a, const char *name, bool *made)
{
    const char *tmp = environment(ENV_TMPDIR);
    char *dir = arena_printf(a, "%s/%s-XXXXXX", tmp ? tmp : "/tmp", name);
    *made = mkdtemp(dir) != NULL;
    return dir;
}

bool file_exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

bool dir_exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

const char *path_join(Arena *a, const char *dir, const char *name)
{
    const size_t n = strlen(dir);
    return arena_printf(a, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

const char *path_stem(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path,
               *dot = strrchr(base, '.');
    return arena_strndup(a, base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
}

char *file_read_head(Arena *a, const char *path, size_t most, size_t *len)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat s;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        close(fd);
        errno = EINVAL;
        return NULL;
    }
    const size_t want = (size_t)s.st_size < most ? (size_t)s.st_size : most;
    char *bytes = arena_alloc(a, want + 1);
    size_t have = 0;
    while (have < want) {
        const ssize_t n = read(fd, bytes + have, want - have);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        have += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    *len = have;
    return bytes;
}

char *file_read(Arena *a, const char *path, size_t *len)
{
    return file_read_head(a, path, SIZE_MAX, len);
}

/* ---- a file that is removed if a signal ends the compiler */

static const char *volatile doomed;

static void remove_on_signal(int sig)
{
    if (doomed)
        unlink(doomed);
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Sets the file that is removed if a signal ends the compiler; NULL: none.  Keeps the pointer. */
static void file_volatile(const char *path)
{
    static bool armed;
    doomed = path;
    if (armed || !path)
        return;
    armed = true;
    /* SIGXFSZ: the file would be larger than ulimit -f allows */
    const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXFSZ};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        /* an ignored signal stays ignored, as under nohup */
        if (signal(caught[i], remove_on_signal) == SIG_IGN)
            signal(caught[i], SIG_IGN);
}

/* ---- writing */

bool file_failed(Diag *d, const char *what, const char *path, int error)
{
    diag_error(d, (Span){0}, "cannot write %s %s: %s", what, path, strerror(error));
    return false;
}

int file_put(int fd, const void *from, size_t len)
{
    const char *bytes = from;
    while (len) {
        const ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            bytes += n, len -= (size_t)n;
    }
    return 0;
}

/* The file that `path` names, after following links; the file need not exist.  NULL, with errno, if
 * links form a cycle. */
static const char *resolve_links(Arena *a, const char *path)
{
    enum { LINKS = 40 }; /* as many links as the kernel follows */
    char target[PATH_MAX];
    struct stat s;
    for (int i = 0; lstat(path, &s) == 0 && S_ISLNK(s.st_mode); i++) {
        const ssize_t n = i < LINKS ? readlink(path, target, sizeof target - 1) : -1;
        const char *slash = strrchr(path, '/');
        if (n < 0) {
            errno = ELOOP;
            return NULL;
        }
        target[n] = 0;
        path = *target == '/' || !slash
                   ? arena_strdup(a, target)
                   : arena_printf(a, "%.*s%s", (int)(slash + 1 - path), path, target);
    }
    return path;
}

/* Writes to a device or a pipe: a rename would replace it by a file.  If a pipe has no reader, this
 * is an error, and the call does not wait. */
static int write_into(const char *path, const void *bytes, size_t len)
{
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = fcntl(fd, F_SETFL, 0) < 0 ? errno : file_put(fd, bytes, len);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

/* Whether the file is standard output, under any name. */
static bool is_stdout(const struct stat *there)
{
    struct stat s;
    return fstat(STDOUT_FILENO, &s) == 0 && s.st_dev == there->st_dev &&
           s.st_ino == there->st_ino && s.st_rdev == there->st_rdev;
}

/* "dir/NAME.tmp-XXXXXX".  A long name is cut to 64 bytes, because some file systems allow only 143
 * bytes. */
static char *temporary_beside(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strnlen(base, 64);
    while (n > 0 && base[n] && (base[n] & 0xC0) == 0x80)
        n--; /* never cuts a UTF-8 character */
    return arena_printf(a, "%.*s%.*s.tmp-XXXXXX", (int)(base - path), path, (int)n, base);
}

/* Writes next to `path`, then renames.  The new file has exactly this mode, and the owner of the
 * file `old`, if that is not NULL and this process may set it. */
static int write_beside(Arena *a, const char *path, const void *bytes, size_t len, mode_t mode,
                        const struct stat *old)
{
    path = resolve_links(a, path);
    if (!path)
        return errno;
    char *temporary = temporary_beside(a, path);
    const int fd = mkostemp(temporary, O_CLOEXEC); /* O_EXCL: a new file, no link */
    if (fd < 0)
        return errno;
    file_volatile(temporary);
    int error = file_put(fd, bytes, len);
    if (!error && old && fchown(fd, old->st_uid, old->st_gid) != 0 && errno != EPERM)
        error = errno;
    if (!error && fchmod(fd, mode) != 0)
        error = errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && rename(temporary, path) != 0)
        error = errno;
    if (error)
        unlink(temporary);
    file_volatile(NULL);
    return error;
}

int file_write(Arena *a, const char *path, const void *bytes, size_t len, mode_t mode)
{
    struct stat there;
    if (stat(path, &there) == 0 && is_stdout(&there))
        return fflush(stdout) != 0 ? errno : file_put(STDOUT_FILENO, bytes, len);
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return S_ISDIR(there.st_mode) ? EISDIR : write_into(path, bytes, len);
    const mode_t mask = umask(0);
    umask(mask);
    return write_beside(a, path, bytes, len, mode & ~mask, NULL);
}

int file_create(Arena *a, const char *path, const void *bytes, size_t len)
{
    const char *keep = arena_strdup(a, path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    file_volatile(keep);
    int error = file_put(fd, bytes, len);
    if (close(fd) != 0 && !error)
        error = errno;
    if (error)
        unlink(path);
    file_volatile(NULL);
    return error;
}

int file_replace(Arena *a, const char *path, const void *bytes, size_t len)
{
    struct stat old;
    if (stat(path, &old) != 0 || access(path, W_OK) != 0)
        return errno;
    return S_ISREG(old.st_mode) ? write_beside(a, path, bytes, len, old.st_mode & 07777, &old)
                                : EINVAL;
}

int file_append(const char *path, const void *bytes, size_t len)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    struct stat s = {0};
    if (fd < 0)
        return errno;
    int error = fstat(fd, &s) != 0 ? errno : file_put(fd, bytes, len);
    if (error && S_ISREG(s.st_mode) && ftruncate(fd, s.st_size) != 0)
        error = errno;
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

int dir_make(Arena *a, const char *path)
{
    char *p = arena_strdup(a, path);
    for (char *s = p + 1; *p; s++) {
        if (*s && *s != '/')
            continue;
        const char end = *s;
        *s = 0;
        if (mkdir(p, 0777) != 0 && errno != EEXIST)
            return errno;
        *s = end;
        if (!end)
            break;
    }
    return dir_exists(path) ? 0 : ENOTDIR;
}
