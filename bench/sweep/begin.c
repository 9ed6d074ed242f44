/* begin.c -- the start of a sweep: its working directory, programs, the compiler's version. */
#define _GNU_SOURCE
#include "sweep/framework.h"
#include "sweep/store_error.h"
#include "sweep/sweep.h"
#include "base/environment.h"
#include "tool/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const Span nowhere;

bool sweep_open_work(Sweep *s)
{
    s->work = arena_printf(s->arena, "%s.work", s->store_path);
    const int error = dir_make(s->arena, s->work);
    const char *path = path_join(s->arena, s->work, "lock");
    s->lock = error ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock < 0) {
        diag_error(s->diag, nowhere, "cannot write into %s: %s", s->work,
                   strerror(error ? error : errno));
        return false;
    }
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK) {
        diag_error(s->diag, nowhere, "cannot lock %s: %s", path, strerror(errno));
        diag_help(s->diag, "two sweeps at a time would not see each other; put the store where files "
                           "can be locked: --store FILE");
        return false;
    }
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0) {
        diag_error(s->diag, nowhere, "another sweep is at work on %s", s->store_path);
        diag_help(s->diag, "two at a time would disturb each other; wait for it");
        return false;
    }
    return true;
}

/* Programs, scripts with their directories, and logs; the lock goes last. */
void sweep_remove_work(Sweep *s)
{
    for (int i = 0; i < s->plan.nprogram; i++) {
        const char *path = s->built[i].path;
        if (!path)
            continue;
        unlink(path);
        if (framework_find(s->plan.program[i].config->framework)->to)
            rmdir(s->built[i].message ? path : store_directory(s->arena, path));
    }
    unlink(path_join(s->arena, s->work, "output"));
    unlink(path_join(s->arena, s->work, "lock"));
    rmdir(s->work);
}

bool sweep_has_program(Arena *a, const char *name)
{
    const char *path = environment(ENV_PATH);
    while (path && *path) {
        const size_t n = strcspn(path, ":");
        if (n && access(path_join(a, arena_strndup(a, path, n), name), X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

/* A program in the directory of this program. */
const char *sweep_beside_us(Arena *a, const char *name)
{
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    char *slash = strrchr(path, '/');
    return slash ? arena_printf(a, "%.*s/%s", (int)(slash - path), path, name) : name;
}

/* The commit, which the build has written beside the compiler (installed: beside this program); it is the default label. */
void sweep_commit(Sweep *s)
{
    const char *slash = strrchr(s->tenon, '/');
    size_t n;
    const char *text = !slash ? NULL
                              : file_read(s->arena,
                                          arena_printf(s->arena, "%.*s/tenon.commit",
                                                       (int)(slash - s->tenon), s->tenon),
                                          &n);
    if (!text)
        text = file_read(s->arena, sweep_beside_us(s->arena, "tenon.commit"), &n);
    s->commit =
        text && *text && *text != '\n' ? arena_strndup(s->arena, text, strcspn(text, "\n")) : NULL;
    s->label = s->label ? s->label : s->commit;
}

/* "tenon 0.1.0", from the compiler's --version. */
void sweep_compiler(Sweep *s)
{
    Child c = {.output = path_join(s->arena, s->work, "output"), .timeout = 60};
    size_t n;
    child_word(s->arena, &c, s->tenon);
    child_word(s->arena, &c, "--version");
    s->compiler = child_run(s->arena, &c) ? file_read(s->arena, c.output, &n) : NULL;
    s->compiler =
        s->compiler ? arena_strndup(s->arena, s->compiler, strcspn(s->compiler, "\n")) : "tenon";
    s->label = s->label ? s->label : s->compiler;
}
