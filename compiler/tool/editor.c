/* editor.c -- replaces this process by tenon-lsp, so that the compiler needs no cJSON. */
#include "tool/editor.h"
#include "tool/option.h"
#include "tool/paths.h"
#include "tool/process.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;

bool editor_start(const Command *c, Diag *d)
{
    Arena *a = diag_arena(d);
    const char *name = command_row(c->kind)->name, *path = paths_program(a, "tenon-lsp");
    Argv v = {0};
    if (!path) {
        diag_error(d, nowhere, "tenon %s was left out when this tenon was built: cJSON was missing",
                   name);
        diag_help(d, "install it (Debian: apt-get install libcjson-dev), then build tenon again");
        return false;
    }
    argv_add(a, &v, "tenon-lsp");
    argv_end(a, &v);
    execv(path, v.word);
    diag_error(d, nowhere, "cannot run %s: %s", path, strerror(errno));
    return false;
}
