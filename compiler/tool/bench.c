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

bool bench_start(const Command *c, Diag *d)
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
    for (int i = 0; i < c->narguments; i++)
        argv_add(a, &v, c->argument[i]);
    argv_end(a, &v);
    execv(path, v.word);
    diag_error(d, nowhere, "cannot run %s: %s", path, strerror(errno));
    return false;
}
