/* gnuplot.c -- `tenon results plot -o FILE.png|FILE.svg`: samples/s over the batch with its spread, by gnuplot; a panel for each model. */
#define _GNU_SOURCE
#include "base/quote.h"
#include "sweep/child.h"
#include "sweep/results.h"
#include "tool/file.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;

static bool same_line(const Run *a, const Run *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->label, b->label) == 0 &&
           strcmp(a->framework, b->framework) == 0 && strcmp(a->machine, b->machine) == 0 &&
           a->threads == b->threads && a->ranks == b->ranks && strcmp(a->build, b->build) == 0 &&
           a->steps == b->steps && a->epochs == b->epochs;
}

/* The version, if there are several. */
static const char *line_name(const Results *r, const Run *run)
{
    Text t = text_new(r->arena);
    bool several = false;
    for (int i = 0; i < r->nrun; i++)
        several = several || strcmp(r->run[i].label, r->run[0].label) != 0;
    if (several)
        text_printf(&t, "%s, ", run->label);
    text_printf(&t, "%s, ", run->framework);
    if (run->ranks > 1)
        text_printf(&t, "%" PRId64 " x ", run->ranks);
    text_printf(&t, "%" PRId64 " thread%s%s%s", run->threads, run->threads == 1 ? "" : "s",
                *run->build ? ", " : "", run->build);
    return t.s;
}

/* 1, 2, ... by name, so that a line has the same style in every panel. */
static int line_type(const Results *r, const char *name)
{
    const char **seen = NULL;
    int n = 0;
    for (int i = 0; i < r->ngroup; i++) {
        const char *other = line_name(r, r->group[i].first);
        int k = 0;
        while (k < n && strcmp(seen[k], other) != 0)
            k++;
        if (strcmp(other, name) == 0)
            return k + 1;
        if (k == n)
            ARENA_PUSH(r->arena, seen, n, other);
    }
    return n + 1;
}

/* Adds a text in gnuplot's single quotes. */
static void quote(Text *t, const char *s)
{
    text_add(t, "'");
    for (; *s; s++)
        text_printf(t, *s == '\'' ? "''" : "%c", *s);
    text_add(t, "'");
}

/* Groups that differ only in the batch are one line, whose data are the block $d<number of its first group>. */
static void panel(Results *r, Text *t, const char *model)
{
    Text plot = text_new(r->arena);
    for (int i = 0; i < r->ngroup; i++) {
        const Run *first = r->group[i].first;
        bool begun = false;
        for (int k = 0; k < i; k++)
            begun = begun || same_line(r->group[k].first, first);
        if (strcmp(first->model, model) != 0 || begun)
            continue;
        text_printf(t, "$d%d << EOD\n", i);
        for (int k = i; k < r->ngroup; k++)
            if (same_line(r->group[k].first, first) && r->group[k].n)
                text_printf(t, "%" PRId64 " %.9g %.9g %.9g\n", r->group[k].first->batch,
                            r->group[k].median, r->group[k].least, r->group[k].most);
        text_add(t, "EOD\n");
        const char *name = line_name(r, first);
        text_printf(&plot, "%s$d%d with yerrorlines linetype %d linewidth 2 title ",
                    plot.len ? ", " : "plot ", i, line_type(r, name));
        quote(&plot, quote_line(plot.arena, name));
    }
    text_add(t, "set title ");
    quote(t, quote_line(t->arena, model));
    text_printf(t, "\n%s\n", plot.s);
}

static const char *script(Results *r, const char *picture, bool svg)
{
    Text t = text_new(r->arena);
    const char **model = NULL;
    int n = 0;
    for (int i = 0; i < r->ngroup; i++)
        if (!n || strcmp(model[n - 1], r->group[i].first->model) != 0)
            ARENA_PUSH(r->arena, model, n, r->group[i].first->model);
    const int columns = n > 1 ? 2 : 1, rows = (n + columns - 1) / columns;
    text_printf(&t, "set terminal %s size 900,%d noenhanced background '#ffffff'\nset output ",
                svg ? "svg" : "pngcairo", 380 * rows);
    quote(&t, picture);
    text_printf(&t,
                "\nset multiplot layout %d,%d\nset logscale x 2\nset xlabel 'batch'\nset ylabel "
                "'samples/s'\n"
                "set yrange [0:*]\nset grid\nset key below\nset offsets graph 0.04, graph 0.04\n",
                rows, columns);
    for (int i = 0; i < n; i++)
        panel(r, &t, model[i]);
    text_add(&t, "unset multiplot\n");
    return t.s;
}

static bool ends(const char *s, const char *with)
{
    const size_t n = strlen(s), m = strlen(with);
    return n > m && strcmp(s + n - m, with) == 0;
}

int results_picture(Results *r)
{
    Arena *a = r->arena;
    const bool svg = ends(r->output, ".svg");
    bool made;
    if (!svg && !ends(r->output, ".png")) {
        diag_error(r->diag, nowhere, "a plot is a .png or a .svg, not %s", r->output);
        diag_help(r->diag, "without -o it is drawn in the terminal");
        return 1;
    }
    const char *dir = dir_temporary(a, "tenon-plot", &made);
    const char *file = path_join(a, dir, "plot.gp"), *picture = path_join(a, dir, "plot"),
               *text = made ? script(r, picture, svg) : "";
    Child c = {.output = path_join(a, dir, "output"), .timeout = 120};
    size_t n = 0;
    child_word(a, &c, "gnuplot");
    child_word(a, &c, file);
    const bool drawn =
        made && file_write(a, file, text, strlen(text), 0666) == 0 && child_run(a, &c);
    const char *bytes = drawn ? file_read(a, picture, &n) : NULL,
               *why = file_read(a, c.output, &(size_t){0});
    if (bytes && n) {
        Text out = text_new(a);
        text_addn(&out, bytes, n);
        made = results_write(r, &out) == 0;
    } else {
        diag_error(r->diag, nowhere, "gnuplot has drawn nothing: %.*s",
                   why ? (int)strcspn(why, "\n") : 10, why ? why : "no message");
        diag_help(r->diag, "Debian: apt-get install gnuplot-nox; or leave -o out");
        made = false;
    }
    unlink(file);
    unlink(picture);
    unlink(c.output);
    rmdir(dir);
    return !made;
}
