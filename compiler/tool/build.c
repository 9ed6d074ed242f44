/* build.c -- makes a program from generated C: finds it in the cache, or compiles it into the
 * cache. */
#define _GNU_SOURCE /* environ, fexecve */
#include "tool/build.h"
#include "tool/file.h"
#include "tool/objects.h"
#include "tool/process.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const Span nowhere;

/* The program, in the cache or in a temporary directory. */
typedef struct Found {
    const char *bytes;
    size_t len;
    const char *path;      /* in the cache, or in `temporary` */
    const char *temporary; /* a directory for this build, or NULL */
} Found;

static const char *make_temporary(Arena *a, Diag *d)
{
    bool made;
    const char *dir = dir_temporary(a, "tenon", &made);
    if (made)
        return dir;
    file_failed(d, "directory", dir, errno);
    return NULL;
}

static void remove_temporary(const Found *f)
{
    if (f->temporary) {
        unlink(f->path);
        rmdir(f->temporary);
    }
}

/* Compiles and links, and stores the program in the cache.  The program stays in the temporary
 * directory, too, unless it runs from the cache. */
static bool make_program(Arena *a, const BuildInput *in, const Toolchain *t, Cache *cache, Key key,
                         Found *f, Diag *d)
{
    const char *dir = f->temporary = make_temporary(a, d);
    if (!dir)
        return false;
    f->path = objects_program(a, in, t, cache, dir, d);
    if (process_signal) { /* removes the directory, and then ends this process by the signal */
        rmdir(dir);
        process_pass_on();
    }
    if (!f->path)
        return rmdir(dir), false; /* the directory stays if it has the file with the error */
    f->bytes = file_read(a, f->path, &f->len);
    if (!f->bytes)
        return file_failed(d, "the program to", f->path, errno);
    cache_put(a, cache, CACHE_PROGRAM, key, f->bytes, f->len);
    return true;
}

/* Finds the program in the cache, or compiles it. */
static bool obtain(Arena *a, const BuildInput *in, Found *f, Diag *d)
{
    Toolchain t;
    Cache cache;
    *f = (Found){0};
    if (!toolchain_find(a, in, &t, d))
        return false;
    const Key key = program_key(a, in, &t);
    const char *place = cache_open(a, &cache) ? cache_path(a, &cache, CACHE_PROGRAM, key) : NULL;
    bool ok = true;
    f->bytes = in->command->no_cache ? NULL : cache_get(a, &cache, CACHE_PROGRAM, key, &f->len);
    if (f->bytes) {
        f->path = place;
        ok = !in->command->keep || objects_keep(a, in, d);
    } else
        ok = make_program(a, in, &t, &cache, key, f, d);
    cache_close(a, &cache, place);
    return ok;
}

bool build_output_ok(const Command *c, Diag *d)
{
    struct stat out, model;
    const char *path = c->output;
    const size_t n = strlen(path);
    const bool there = stat(path, &out) == 0;
    if (there && S_ISDIR(out.st_mode)) {
        diag_error(d, nowhere, "cannot write the program to %s: it is a directory", path);
        diag_help(d, "name the program: -o %s%sPROG", path, n && path[n - 1] == '/' ? "" : "/");
    } else if (there && !S_ISREG(out.st_mode))
        diag_error(d, nowhere, "cannot write the program to %s: it is not a file", path);
    else if ((n > 3 && strcmp(path + n - 3, ".tn") == 0) ||
             (there && stat(c->file, &model) == 0 && model.st_dev == out.st_dev &&
              model.st_ino == out.st_ino))
        diag_error(d, nowhere, "refusing to write the program over the model file %s", path);
    else if (!n || path[n - 1] == '/')
        diag_error(d, nowhere, "cannot write the program to '%s': that names a directory", path);
    else
        return true;
    return false;
}

bool build_key(Arena *a, const BuildInput *in, Diag *d)
{
    Toolchain t;
    if (!toolchain_find(a, in, &t, d))
        return false;
    const Key k = program_key(a, in, &t);
    return printf("%016" PRIx64 "%016" PRIx64 "\n", k.a, k.b) > 0;
}

bool build_program(Arena *a, const BuildInput *in, Diag *d)
{
    Found f;
    if (!build_output_ok(in->command, d) || !obtain(a, in, &f, d))
        return false;
    const int error = file_write(a, in->command->output, f.bytes, f.len, 0777);
    remove_temporary(&f);
    return error ? file_failed(d, "the program to", in->command->output, error) : true;
}

bool build_and_run(Arena *a, const BuildInput *in, Diag *d)
{
    Found f;
    if (!obtain(a, in, &f, d))
        return false;
    Argv v = {0};
    argv_add(a, &v, in->name);
    for (int i = 0; i < in->command->narguments; i++)
        argv_add(a, &v, in->command->argument[i]);
    argv_end(a, &v);
    const int fd = open(f.path, O_RDONLY | O_CLOEXEC);
    /* the program runs from its open descriptor, also after its file is removed */
    remove_temporary(&f);
    diag_print(d, stderr);
    fflush(NULL);
    if (f.temporary)
        fexecve(fd, v.word, environ);
    else
        execv(f.path, v.word);
    diag_error(d, nowhere, "cannot run %s: %s", f.path, strerror(errno));
    return false;
}
