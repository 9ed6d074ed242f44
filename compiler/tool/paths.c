/* paths.c -- finds the files of the compiler from the path of its executable. */
#include "tool/paths.h"
#include "tool/file.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;

const char *paths_self(Arena *a)
{
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? arena_strndup(a, path, (size_t)n) : NULL;
}

/* The directory of the running executable, without links in the path. */
static const char *home(Arena *a)
{
    const char *self = paths_self(a);
    const char *slash = self ? strrchr(self, '/') : NULL;
    return !self ? NULL : slash == self ? "/" : arena_strndup(a, self, (size_t)(slash - self));
}

const char *paths_program(Arena *a, const char *name)
{
    const char *dir = home(a);
    if (!dir)
        return NULL;
    const char *beside = path_join(a, dir, name),
               *installed = path_join(a, path_join(a, dir, "../lib/tenon"), name);
    return file_exists(beside) ? beside : file_exists(installed) ? installed : NULL;
}

/* The value of a line "key=value" of tenon.paths, or "". */
static const char *value_of(Arena *a, const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
        if (strncmp(s, key, n) == 0 && s[n] == '=')
            return arena_strndup(a, s + n + 1, strcspn(s + n + 1, "\n"));
    return "";
}

/* The directory of the sources in a build tree, whose file tenon.paths has the given text. */
static const char *source_of(Arena *a, const char *dir, const char *text)
{
    const char *source = value_of(a, text, "source");
    return *source == '/' ? source : path_join(a, dir, *source ? source : ".");
}

static void build_tree(Arena *a, const char *dir, const char *text, Paths *p)
{
    const char *source = source_of(a, dir, text);
    p->runtime = path_join(a, source, "runtime");
    p->data = path_join(a, source, "models/data");
    p->library = path_join(a, dir, "lib/libtenonrt.a");
    p->cudnn = path_join(a, dir, "lib/libtenoncudnn.a");
    p->cflags = value_of(a, text, "cflags");
}

static void installed_tree(Arena *a, const char *dir, Paths *p)
{
    p->runtime = path_join(a, dir, "../share/tenon/runtime");
    p->data = path_join(a, dir, "../share/tenon/models/data");
    p->library = path_join(a, dir, "../lib/tenon/libtenonrt.a");
    p->cudnn = path_join(a, dir, "../lib/tenon/libtenoncudnn.a");
    p->cflags = "";
}

/* "/a/build/../models" -> "/a/models", if it exists. */
static const char *tidy(Arena *a, const char *path)
{
    char real[PATH_MAX];
    return realpath(path, real) ? arena_strdup(a, real) : path;
}

/* A program of Tenon is installed in bin, the language server in lib/tenon. */
const char *paths_models(Arena *a)
{
    static const char *const installed[] = {"../share/tenon/models/library",
                                            "../../share/tenon/models/library"};
    size_t len;
    const char *dir = home(a);
    const char *text = dir ? file_read(a, path_join(a, dir, "tenon.paths"), &len) : NULL;
    if (text)
        return tidy(a, path_join(a, source_of(a, dir, text), "models/library"));
    for (size_t i = 0; dir && i < sizeof installed / sizeof *installed; i++) {
        const char *path = path_join(a, dir, installed[i]);
        if (dir_exists(path))
            return tidy(a, path);
    }
    return NULL;
}

bool paths_find(Arena *a, Paths *p, Diag *d)
{
    const char *dir = home(a);
    if (!dir) {
        diag_error(d, nowhere, "cannot find tenon's own directory: /proc/self/exe: %s",
                   strerror(errno));
        return false;
    }
    size_t len;
    const char *text = file_read(a, path_join(a, dir, "tenon.paths"), &len);
    if (text)
        build_tree(a, dir, text, p);
    else
        installed_tree(a, dir, p);
    const char *header = path_join(a, p->runtime, "rt.h");
    if (file_exists(header) && file_exists(p->library)) {
        p->runtime = tidy(a, p->runtime);
        p->data = tidy(a, p->data);
        p->library = tidy(a, p->library);
        return true;
    }
    diag_error(d, nowhere, "tenon cannot find its runtime");
    diag_note(d, "looked for %s%s", header, file_exists(header) ? " (found)" : "");
    diag_note(d, "looked for %s%s", p->library, file_exists(p->library) ? " (found)" : "");
    diag_help(d, "keep %s together when you move it, or build it again",
              text ? "the build tree with its sources" : "the installed tree (bin, lib, share)");
    return false;
}
