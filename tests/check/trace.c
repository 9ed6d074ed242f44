/* trace.c -- records what a test reads: a library that ./check loads into each process of a test by
 * LD_PRELOAD.
 *
 * Each process writes a file in the directory $CHECK_TRACE.d (small files, because a test can limit
 * their size).  A line is a letter and a path:
 *
 *   F   a file of the repository or of the build was read or executed
 *   A   a file was looked for and was absent
 *   D   a directory of the repository was listed
 *   I   the compiler read a file of the repository
 *   C   the compiler was called: this directory in $CHECK_TRACE.calls describes the call
 *   O   the compiler did something that cannot be repeated
 *   W   (only with CHECK_WRITES=1) a file was opened for writing
 *
 * The directory of a call has `argv` and `env` (words that end in NUL), `cwd`, the model files from
 * outside the repository that it read (`in`: lines "NUMBER PATH", and the files NUMBER), and
 * `exit`, its exit code.  kept.c repeats such calls.
 *
 * The compiler's child processes (cc, the linker) are not recorded: the call determines what they
 * read.  A process sees no other change than this library in the environment of its children.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { SEEN = 1 << 12, MODEL_BYTES = 4 << 20 };

static const char *trace, *root, *tenon, *quiet, *writes;  /* from the environment, copied at the start */
static bool compiler, silent;                              /* this process is the compiler; is one of its children */
static char call[PATH_MAX];                                /* COMPILER: the directory of this call */
static int inputs;
static uint64_t seen[SEEN];

/* ---- the trace file; by system calls, because these functions run inside of recorded functions */

/* If a limit of file sizes is reached, the record is lost: without SIGXFSZ, which would end the process. */
static void write_quietly(int fd, const char *bytes, size_t n)
{
    sigset_t limit, before;
    const struct timespec now = {0, 0};
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &limit, &before);
    for (ssize_t done; n > 0; bytes += done, n -= (size_t)done)
        if ((done = write(fd, bytes, n)) <= 0) {
            if (errno == EFBIG)
                sigtimedwait(&limit, NULL, &now);
            break;
        }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static int raw_open(const char *path, int flags, int mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

static void append(const char *path, const char *bytes, size_t n)
{
    const int fd = raw_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        return;
    write_quietly(fd, bytes, n);
    close(fd);
}

static bool first_time(char letter, const char *path)
{
    uint64_t h = 1469598103934665603u ^ (unsigned char)letter;
    for (const char *s = path; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    if (seen[h % SEEN] == h)
        return false;
    seen[h % SEEN] = h;
    return true;
}

static void note(char letter, const char *path)
{
    char line[PATH_MAX + 4];
    const int n = snprintf(line, sizeof line, "%c %s\n", letter, path);
    char file[PATH_MAX + 16];
    snprintf(file, sizeof file, "%s.d/%d", trace, (int)getpid());
    if (n < (int)sizeof line && !strchr(path, '\n') && first_time(letter, path))
        append(file, line, (size_t)n);
}

static bool below(const char *path, const char *dir)
{
    const size_t n = strlen(dir);
    return n && strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == 0);
}

/* Whether a path is in the repository or its build, but not in a directory of CHECK_QUIET ("A:B:C"): scratch, cache, logs, .git. */
static bool ours(const char *path)
{
    char dir[PATH_MAX];
    if (!below(path, root))
        return false;
    for (const char *s = quiet; *s;) {
        const size_t n = strcspn(s, ":");
        snprintf(dir, sizeof dir, "%.*s", (int)n, s);
        if (below(path, dir))
            return false;
        s += n + (s[n] == ':');
    }
    return true;
}

/* ---- calls of the compiler */

static void write_words(const char *name, char *const *word)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/%s", call, name);
    for (append(path, "", 0); *word; word++)
        if (strcmp(name, "env") != 0 || (strncmp(*word, "LD_PRELOAD=", 11) != 0 && strncmp(*word, "CHECK_", 6) != 0))
            append(path, *word, strlen(*word) + 1);
}

static void write_text(const char *name, const char *text)
{
    char path[PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/%s", call, name);
    append(path, text, strlen(text));
}

static void on_end(int status, void *unused)
{
    char text[16];
    (void)unused;
    snprintf(text, sizeof text, "%d\n", status);
    write_text("exit", text);
}

static void begin_call(char **argv)
{
    char cwd[PATH_MAX] = "";
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(call, sizeof call, "%s.calls/%d.%lld", trace, (int)getpid(), (long long)t.tv_sec * 1000000000 + t.tv_nsec);
    if (mkdir(call, 0777) != 0 || !getcwd(cwd, sizeof cwd)) {
        note('O', "a call that could not be described");
        return;
    }
    write_words("argv", argv);
    write_words("env", environ);
    write_text("cwd", cwd);
    note('C', call);
    on_exit(on_end, NULL);
}

/* Keeps a copy of a file from outside the repository that the compiler reads: a test may change it before the call is repeated. */
static void keep_input(int fd, const char *path)
{
    static char bytes[1 << 16];
    char copy[PATH_MAX + 16], line[PATH_MAX + 16];
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || !first_time('i', path))
        return;
    if (s.st_size > MODEL_BYTES || strchr(path, '\n')) {
        note('O', path);
        return;
    }
    snprintf(copy, sizeof copy, "%s/%d", call, inputs);
    snprintf(line, sizeof line, "%d %s\n", inputs++, path);
    off_t at = 0;
    append(copy, "", 0);
    for (ssize_t n; (n = pread(fd, bytes, sizeof bytes, at)) > 0; at += n)
        append(copy, bytes, (size_t)n);
    write_text("in", line);
}

/* ---- what is recorded of a path */

static bool system_file(const char *path)
{
    return below(path, "/proc") || below(path, "/dev") || below(path, "/sys") || below(path, "/usr") || below(path, "/etc") ||
           below(path, "/lib") || below(path, "/lib64") || below(path, "/opt");
}

static void opened(int fd, int flags)
{
    char link[40], path[PATH_MAX];
    const int error = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n > 0 && path[0] == '/') {
        path[n] = 0;
        if ((flags & O_ACCMODE) != O_RDONLY) {
            if (*writes)
                note('W', path);
        } else if (ours(path)) {
            struct stat s;
            const bool dir = fstat(fd, &s) == 0 && S_ISDIR(s.st_mode);
            note(dir ? 'D' : compiler ? 'I' : 'F', path);
        } else if (compiler && *call && !system_file(path) && !strstr(path, "/cache") && !strstr(path, "/tenon-"))
            keep_input(fd, path);                     /* not its cache, and not the directories in which it compiles */
    }
    errno = error;
}

/* The absolute name of a path that does not exist; false if its directory does not exist either. */
static bool absolute(int dir, const char *path, char *out)
{
    char at[PATH_MAX], parent[PATH_MAX], real[PATH_MAX], link[40];
    if (path[0] == '/')
        snprintf(at, sizeof at, "%s", path);
    else if (dir == AT_FDCWD) {
        if (!getcwd(parent, sizeof parent) || snprintf(at, sizeof at, "%s/%s", parent, path) >= (int)sizeof at)
            return false;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        const ssize_t n = readlink(link, parent, sizeof parent - 1);
        if (n <= 0)
            return false;
        parent[n] = 0;
        if (snprintf(at, sizeof at, "%s/%s", parent, path) >= (int)sizeof at)
            return false;
    }
    char *slash = strrchr(at, '/');
    if (slash == at)
        return snprintf(out, PATH_MAX, "%s", at) > 0;
    *slash = 0;
    return realpath(at, real) && snprintf(out, PATH_MAX, "%s/%s", real, slash + 1) < PATH_MAX;
}

static void absent(int dir, const char *path)
{
    char full[PATH_MAX];
    const int error = errno;
    if ((error == ENOENT || error == ENOTDIR) && path && *path && absolute(dir, path, full) && ours(full))
        note('A', full);
    errno = error;
}

static void executed(const char *path)
{
    char real[PATH_MAX];
    const int error = errno;
    if (path && strchr(path, '/') && realpath(path, real) && ours(real) && strcmp(real, tenon) != 0)
        note('F', real);
    errno = error;
}

static bool off(void)
{
    return !trace || silent;
}

/* ---- functions of the C library */

#define NEXT(type, name, args) \
    static type (*next) args; \
    if (!next) \
        *(void **)&next = dlsym(RTLD_NEXT, #name)

static int open_mode(int flags, va_list list)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, int) : 0;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        NEXT(int, name, (const char *, int, ...)); \
        va_list list; \
        va_start(list, flags); \
        const int fd = next(path, flags, open_mode(flags, list)); \
        va_end(list); \
        if (!off()) \
            fd < 0 ? absent(AT_FDCWD, path) : opened(fd, flags); \
        return fd; \
    }
#define OPENAT(name) \
    int name(int dir, const char *path, int flags, ...) \
    { \
        NEXT(int, name, (int, const char *, int, ...)); \
        va_list list; \
        va_start(list, flags); \
        const int fd = next(dir, path, flags, open_mode(flags, list)); \
        va_end(list); \
        if (!off()) \
            fd < 0 ? absent(dir, path) : opened(fd, flags); \
        return fd; \
    }
#define FOPEN(name) \
    FILE *name(const char *path, const char *mode) \
    { \
        NEXT(FILE *, name, (const char *, const char *)); \
        FILE *f = next(path, mode); \
        if (!off()) \
            f ? opened(fileno(f), strchr(mode, 'r') && !strchr(mode, '+') ? O_RDONLY : O_RDWR) : absent(AT_FDCWD, path); \
        return f; \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FOPEN(fopen)
FOPEN(fopen64)

DIR *opendir(const char *path)
{
    NEXT(DIR *, opendir, (const char *));
    DIR *d = next(path);
    if (!off())
        d ? opened(dirfd(d), O_RDONLY) : absent(AT_FDCWD, path);
    return d;
}

#define LOOK(name, params, args, dir, path) \
    int name params \
    { \
        NEXT(int, name, params); \
        const int result = next args; \
        if (result != 0 && !off()) \
            absent(dir, path); \
        return result; \
    }
struct stat64;
struct statx;
LOOK(access, (const char *path, int mode), (path, mode), AT_FDCWD, path)
LOOK(faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags), dir, path)
LOOK(stat, (const char *path, struct stat *s), (path, s), AT_FDCWD, path)
LOOK(lstat, (const char *path, struct stat *s), (path, s), AT_FDCWD, path)
LOOK(fstatat, (int dir, const char *path, struct stat *s, int flags), (dir, path, s, flags), dir, path)
LOOK(stat64, (const char *path, struct stat64 *s), (path, s), AT_FDCWD, path)
LOOK(lstat64, (const char *path, struct stat64 *s), (path, s), AT_FDCWD, path)
LOOK(fstatat64, (int dir, const char *path, struct stat64 *s, int flags), (dir, path, s, flags), dir, path)
LOOK(statx, (int dir, const char *path, int flags, unsigned mask, struct statx *s), (dir, path, flags, mask, s), dir, path)

/* ---- starting programs: this library stays in the environment even if a test clears it */

static const char *const names[] = {"LD_PRELOAD", "CHECK_TRACE", "CHECK_TRACE_ROOT", "CHECK_TRACE_TENON", "CHECK_QUIET", "CHECK_WRITES", "CHECK_INSIDE"};
enum { NAMES = sizeof names / sizeof *names };
static char *kept[NAMES];                             /* "NAME=VALUE", or NULL */

static const char *value_in(char *const *env, const char *name)
{
    const size_t n = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* `env` with the variables of this library added.  Never freed: a process starts few programs, and most replace it. */
static char **with_ours(char *const *env)
{
    size_t n = 0;
    while (env && env[n])
        n++;
    char **all = malloc((n + NAMES + 1) * sizeof *all);
    if (!all)
        return (char **)env;
    for (size_t i = 0; i < n; i++)
        all[i] = env[i];
    for (int i = 0; i < NAMES; i++) {
        const char *have = value_in(env, names[i]), *want = kept[i];
        if (!want || (have && (i > 0 || strstr(have, want + strlen(names[0]) + 1))))
            continue;
        char *both = NULL;
        if (i == 0 && have && *have && asprintf(&both, "%s:%s", want, have) > 0)   /* the test preloads another library */
            for (size_t j = 0; j < n; j++)
                if (strncmp(all[j], "LD_PRELOAD=", 11) == 0)
                    all[j] = both;
        if (!both)
            all[n++] = (char *)want;
    }
    all[n] = NULL;
    return all;
}

#define START(name, params, args, file) \
    int name params \
    { \
        NEXT(int, name, params); \
        if (!trace) \
            return next args; \
        if (!silent) \
            executed(file); \
        char *const *mine = with_ours(env); \
        env = mine; \
        return next args; \
    }
START(execve, (const char *file, char *const *argv, char *const *env), (file, argv, env), file)
START(execvpe, (const char *file, char *const *argv, char *const *env), (file, argv, env), file)
START(fexecve, (int fd, char *const *argv, char *const *env), (fd, argv, env), NULL)
START(posix_spawn, (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                    char *const *argv, char *const *env), (pid, file, actions, attributes, argv, env), file)
START(posix_spawnp, (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                     char *const *argv, char *const *env), (pid, file, actions, attributes, argv, env), file)

int execv(const char *file, char *const *argv)
{
    return execve(file, argv, environ);
}

int execvp(const char *file, char *const *argv)
{
    return execvpe(file, argv, environ);
}

/* ---- the start of a process */

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    static char exe[PATH_MAX];
    (void)argc;
    const char *t = getenv("CHECK_TRACE"), *r = getenv("CHECK_TRACE_ROOT"), *c = getenv("CHECK_TRACE_TENON"), *q = getenv("CHECK_QUIET"),
               *w = getenv("CHECK_WRITES");
    if (!t || !r || !c || !q || readlink("/proc/self/exe", exe, sizeof exe - 1) <= 0)
        return;
    root = strdup(r), tenon = strdup(c), quiet = strdup(q), writes = strdup(w && *w ? w : "");
    compiler = strcmp(exe, tenon) == 0;
    if (compiler)
        setenv("CHECK_INSIDE", "1", 1);
    else if (getenv("CHECK_INSIDE") && !system_file(exe))
        unsetenv("CHECK_INSIDE");
    silent = !compiler && getenv("CHECK_INSIDE");
    for (int i = 0; i < NAMES; i++) {
        const char *v = getenv(names[i]);
        if (v && asprintf(&kept[i], "%s=%s", names[i], v) < 0)
            kept[i] = NULL;
    }
    trace = strdup(t);
    if (compiler && !*writes)
        begin_call(argv);
}
