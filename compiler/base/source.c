/* source.c -- model files as bytes, and places in them. */
#include "base/source.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *source_canonical(Arena *a, const char *name)
{
    char path[PATH_MAX];
    return arena_strdup(a, realpath(name, path) ? path : name);
}

/* Reads f to its end into s; false when it is larger than SOURCE_MAX.  The buffer grows, because
 * the size of a pipe is unknown in advance. */
static bool read_all(Arena *a, FILE *f, Source *s, size_t expected)
{
    size_t cap = expected + 1 < 4096 ? 4096 : expected + 1;
    char *text = arena_alloc(a, cap);
    for (;;) {
        s->len += fread(text + s->len, 1, cap - 1 - s->len, f);
        if (s->len > SOURCE_MAX)
            return false;
        if (s->len < cap - 1)
            break;
        text = arena_grow(a, text, cap, 2 * cap);
        cap *= 2;
    }
    text[s->len] = 0;
    s->text = text;
    return true;
}

/* Opens a file without waiting for the writer of a named pipe; later reads block as usual. */
static FILE *open_now(const char *name)
{
    const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    if (f)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    else if (fd >= 0)
        close(fd);
    return f;
}

/* Whether the name stands for an open descriptor: /dev/stdin, or <(command), which the shell
 * passes as /dev/fd/63 or a path in /proc.  A pipe with such a name has a writer. */
static bool names_descriptor(const char *name)
{
    return !strncmp(name, "/dev/", 5) || !strncmp(name, "/proc/", 6);
}

const Source *source_read(Arena *a, const char *name, const char **why)
{
    struct stat st;
    FILE *f = open_now(name);
    if (!f || fstat(fileno(f), &st) != 0) {
        *why = arena_strdup(a, strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        *why = "it is a directory";
    } else if (!S_ISREG(st.st_mode) && !names_descriptor(name)) {
        *why = S_ISFIFO(st.st_mode)
                   ? "it is a named pipe, not a file; use /dev/stdin for the output of a command"
                   : "it is a device, not a file";
    } else if (S_ISREG(st.st_mode) && st.st_size > SOURCE_MAX) {
        *why = arena_printf(a, "it has %lld bytes, a model file has at most %d",
                            (long long)st.st_size, SOURCE_MAX);
    } else {
        Source *s = arena_alloc(a, sizeof *s);
        s->name = arena_strdup(a, name);
        s->path = source_canonical(a, name);
        *why = NULL;
        if (!read_all(a, f, s, S_ISREG(st.st_mode) ? (size_t)st.st_size : 0))
            *why = arena_printf(a, "it has more than %d bytes", SOURCE_MAX);
        else if (ferror(f))
            *why = arena_strdup(a, strerror(errno));
        fclose(f);
        return *why ? NULL : s;
    }
    if (f)
        fclose(f);
    return NULL;
}

const Source *source_read_stdin(Arena *a, const char *name, const char **why)
{
    Source *s = arena_alloc(a, sizeof *s);
    s->name = s->path = name;
    *why = NULL;
    if (!read_all(a, stdin, s, 0))
        *why = arena_printf(a, "it has more than %d bytes", SOURCE_MAX);
    else if (ferror(stdin))
        *why = arena_strdup(a, strerror(errno));
    return *why ? NULL : s;
}

bool source_exists(const char *name)
{
    return access(name, F_OK) == 0;
}

static bool is_model(const char *name)
{
    const size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".tn") == 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **source_list(Arena *a, const char *directory, int *n)
{
    const char **name = NULL;
    *n = 0;
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_model(e->d_name))
            ARENA_PUSH(a, name, *n, arena_strdup(a, e->d_name));
    if (d)
        closedir(d);
    if (*n)
        qsort(name, (size_t)*n, sizeof *name, by_bytes);
    return name;
}

const Source *source_open(Arena *a, const char *name, const Unsaved *unsaved, int n,
                          const char **why)
{
    const char *path = source_canonical(a, name);
    for (int i = 0; i < n; i++) {
        if (strcmp(unsaved[i].path, path) != 0)
            continue;
        if (unsaved[i].len > SOURCE_MAX) {
            *why = arena_printf(a, "it has more than %d bytes", SOURCE_MAX);
            return NULL;
        }
        Source *s = arena_alloc(a, sizeof *s);
        s->name = arena_strdup(a, name);
        s->path = path;
        s->text = arena_strndup(a, unsaved[i].text, unsaved[i].len);
        s->len = unsaved[i].len;
        return s;
    }
    return source_read(a, name, why);
}

const char *source_base(const Source *s)
{
    const char *slash = strrchr(s->name, '/');
    return slash ? slash + 1 : s->name;
}

Span span_join(Span a, Span b)
{
    if (!a.source || a.source != b.source)
        return a.source ? a : b;
    a.end_line = b.end_line;
    a.end_col = b.end_col;
    return a;
}

const char *source_line(Arena *a, const Source *s, int line)
{
    const char *p = s->text, *end = s->text + s->len;
    for (int i = 1; i < line && p < end; i++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        p = nl ? nl + 1 : end;
    }
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    size_t n = (size_t)((nl ? nl : end) - p);
    if (n && p[n - 1] == '\r')
        n--;
    char *out = arena_strndup(a, p, n);
    for (size_t i = 0; i < n; i++) /* control characters must not reach the terminal */
        if (((unsigned char)out[i] < ' ' && out[i] != '\t') || out[i] == 127)
            out[i] = '?';
    return out;
}
