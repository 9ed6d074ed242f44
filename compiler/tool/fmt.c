/* fmt.c -- `tenon fmt`: replaces model files by the same models in the one style. */
#include "tool/fmt.h"
#include "front/format.h"
#include "tool/file.h"
#include "tool/option.h"
#include <errno.h>
#include <string.h>

static const Span nowhere;

static bool names_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

/* Writes the formatted text of a file to its place. */
static bool store(Arena *a, const char *name, const char *text, Diag *d)
{
    if (names_stdin(name)) {
        fputs(text, stdout);
        return true;
    }
    const int error = file_replace(a, name, text, strlen(text));
    if (error == EINVAL) {
        diag_error(d, nowhere, "%s is not a file that can be replaced", name);
        diag_help(d, "tenon fmt - reads standard input and writes to stdout");
    } else if (error) {
        diag_error(d, nowhere, "cannot write %s: %s", name, strerror(error));
    }
    return !error;
}

/* Formats one file; *changes gets whether its text was in another style. */
static bool format(const Command *c, const char *name, int order, bool *changes, Diag *d)
{
    Arena *a = diag_arena(d);
    const char *why;
    const Source *read =
        names_stdin(name) ? source_read_stdin(a, "<stdin>", &why) : source_read(a, name, &why);
    if (!read) {
        diag_error(d, nowhere, "cannot read %s: %s", names_stdin(name) ? "<stdin>" : name, why);
        return false;
    }
    Source *s = arena_alloc(a, sizeof *s);
    *s = *read;
    s->order = order; /* the order of messages */
    const char *text = format_source(a, d, s);
    if (!text)
        return false;
    *changes = strlen(text) != s->len || memcmp(text, s->text, s->len) != 0;
    if (*changes && (c->check || !names_stdin(name)))
        puts(s->name);
    return c->check || (!*changes && !names_stdin(name)) || store(a, name, text, d);
}

bool fmt_files(const Command *c, Diag *d)
{
    bool fine = true;
    int nchanged = 0;
    for (int i = 0; i < c->nfiles; i++)
        if (names_stdin(c->files[i]) && c->nfiles > 1) {
            diag_error(d, nowhere, "- is standard input, and other files are given, too");
            diag_help(d, "format it with a command of its own: tenon fmt -");
            return false;
        }
    if (c->nfiles == 0) {
        diag_error(d, nowhere, "tenon fmt needs a model file, or - for standard input");
        diag_help(d, "%s", command_row(COMMAND_FMT)->usage);
        return false;
    }
    for (int i = 0; i < c->nfiles; i++) {
        bool changes = false;
        fine &= format(c, c->files[i], i, &changes, d);
        nchanged += changes;
    }
    if (c->check && nchanged) {
        diag_error(d, nowhere, "%d of %d file%s would change", nchanged, c->nfiles,
                   c->nfiles == 1 ? "" : "s");
        diag_help(d, "run tenon fmt without --check");
        return false;
    }
    return fine;
}
