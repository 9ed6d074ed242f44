/* bench.c -- replaces this process by tenon-bench, so that the compiler needs no SQLite and no
 * cJSON. */
#include "tool/bench.h"
#include "tool/option.h"
#include "tool/paths.h"
#include "tool/process.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;

static bool start(const Command *c, char **word, int n, Diag *d)
{
    Arena *a = diag_arena(d);
    const char *name = command_row(c->kind)->name, *self = paths_self(a),
               *path = paths_program(a, "tenon-bench");
    Argv v = {0};
    if (!path) {
        diag_error(d, nowhere,
                   "tenon %s was left out when this tenon was built: SQLite or cJSON was missing",
                   name);
        diag_help(d, "install them (Debian: apt-get install libsqlite3-dev libcjson-dev), then "
                     "build tenon again");
        return false;
    }
    argv_add(a, &v, "tenon-bench");
    argv_add(a, &v, self);
    argv_add(a, &v, name);
    for (int i = 0; i < n; i++)
        argv_add(a, &v, word[i]);
    argv_end(a, &v);
    execv(path, v.word);
    diag_error(d, nowhere, "cannot run %s: %s", path, strerror(errno));
    return false;
}

bool bench_start(const Command *c, Diag *d)
{
    return start(c, c->argument, c->narguments, d);
}

bool bench_watch(const Command *c, Diag *d)
{
    static const char *const color[] =
        {[DIAG_AUTO] = "auto", [DIAG_ALWAYS] = "always", [DIAG_NEVER] = "never"};
    Arena *a = diag_arena(d);
    Argv v = {0};
    if (c->nfiles == 0) {
        diag_error(d, nowhere, "tenon watch needs a log: a file that a program writes with --log");
        diag_help(d, "%s", command_row(c->kind)->usage);
        return false;
    }
    for (int i = 0; i < c->nfiles; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(c->files[i], c->files[k]) == 0) {
                diag_error(d, nowhere, "%s is given twice", c->files[i]);
                return false;
            }
    argv_add(a, &v, "--color");
    argv_add(a, &v, color[c->color]);
    if (c->once)
        argv_add(a, &v, "--once");
    if (c->tensorboard) {
        argv_add(a, &v, "--tensorboard");
        argv_add(a, &v, c->tensorboard);
    }
    argv_add(a, &v, "--");
    for (int i = 0; i < c->nfiles; i++)
        argv_add(a, &v, c->files[i]);
    return start(c, v.word, v.n, d);
}
