/* flags.c -- checks the options in the `build` settings of a sweep before anything is built.
 *
 * The compiler reads its command line from left to right, with the model last.  So `tenon build OPTIONS` reports a wrong
 * option, or that the model is missing: then the options are right.
 */
#include "sweep/sweep.h"
#include "base/environment.h"
#include "tool/file.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *answer(Sweep *s, const char *options)
{
    const char *tmp = environment(ENV_TMPDIR);
    Child c = {.output = arena_printf(s->arena, "%s/tenon-sweep-%d", tmp ? tmp : "/tmp",
                                      (int)getpid()),
               .timeout = 60};
    size_t n;
    child_word(s->arena, &c, s->tenon);
    child_word(s->arena, &c, "build");
    child_words(s->arena, &c, options);
    child_run(s->arena, &c);
    const char *text = file_read(s->arena, c.output, &n);
    remove(c.output);
    return text ? text : "";
}

/* The word of the option that the message is about, as a part of the text at `at`. */
static Span narrowed(Span at, const char *options, const char *message)
{
    for (const char *word = options; *(word += strspn(word, " ")); word += strcspn(word, " ")) {
        const size_t length = strcspn(word, " ="), all = strcspn(word, " ");
        const char *found = message;
        while (length > 1 && (found = strstr(found, "-")) && strncmp(found, word, length) != 0)
            found++;
        if (length > 1 && found && at.source && at.line == at.end_line) {
            at.col += 1 + (int)(word - options); /* after the quote */
            at.end_col = at.col + (int)all;
            return at;
        }
    }
    return at;
}

static void check(Sweep *s, const char *options, Span at)
{
    static const char missing[] = "tenon build needs a model file",
                      file[] = "tenon build needs the path of the program",
                      files[] = "tenon build takes one file",
                      error[] = "error: ", help[] = "= help: ";
    const char *text = answer(s, options), *first = strstr(text, error);
    if (!*text || (first && strstr(first, missing)))
        return;
    if (!first || strstr(first, file) || strstr(first, files)) {
        diag_error(s->diag, at, "%s: '%s' is not made of options alone",
                   at.source ? "build" : "--build", options);
        diag_help(s->diag, "a sweep gives the model and the place of the program itself");
        return;
    }
    first += strlen(error);
    const char *message = arena_strndup(s->arena, first, strcspn(first, "\n"));
    diag_error(s->diag, narrowed(at, options, message), "%s%s",
               at.source ? "" : "--build: ", message);
    const char *way = strstr(first, help);
    if (way)
        diag_help(s->diag, "%.*s", (int)strcspn(way + strlen(help), "\n"), way + strlen(help));
}

bool sweep_flags(Sweep *s)
{
    const Plan *p = &s->plan;
    for (int i = 0; i < p->nmatrix; i++) {
        const Words *build = &p->matrix[i].build;
        for (int k = 0; k < build->n; k++)
            if (*build->v[k])
                check(s, build->v[k], build->at ? build->at[k] : (Span){0});
    }
    return diag_errors(s->diag) == 0;
}
