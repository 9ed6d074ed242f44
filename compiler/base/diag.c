/* diag.c -- messages: collected while compiling, printed once, in source order. */
#include "base/diag.h"
#include "base/environment.h"
#include "base/quote.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SHOWN = 100,  /* errors printed */
    KEPT = 20000, /* messages stored; further errors are only counted */
    WIDTH = 120   /* columns of a source line that are printed */
};

struct Diag {
    Arena *arena;
    DiagColor color;
    DiagMessage **message;
    DiagMessage *last; /* gets notes and helps; NULL: the last message was not stored */
    int n, errors, dropped;
};

Diag *diag_new(Arena *a, DiagColor color)
{
    Diag *d = arena_alloc(a, sizeof *d);
    d->arena = a;
    d->color = color;
    return d;
}

Arena *diag_arena(Diag *d)
{
    return d->arena;
}

int diag_errors(const Diag *d)
{
    return d->errors;
}

static void add(Diag *d, bool error, Span at, const char *fmt, va_list ap)
{
    d->errors += error;
    d->last = NULL;
    if (d->n >= KEPT) {
        d->dropped += error;
        return;
    }
    DiagMessage *m = arena_alloc(d->arena, sizeof *m);
    *m = (DiagMessage){.error = error, .at = at, .serial = d->n};
    m->text = arena_vprintf(d->arena, fmt, ap);
    ARENA_PUSH(d->arena, d->message, d->n, m);
    d->last = m;
}

void diag_error(Diag *d, Span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, true, at, fmt, ap);
    va_end(ap);
}

void diag_warn(Diag *d, Span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, false, at, fmt, ap);
    va_end(ap);
}

static void attach(Diag *d, const char *kind, const char *fmt, va_list ap)
{
    DiagMessage *const m = d->last;
    if (!m)
        return;
    const DiagExtra e = {kind, arena_vprintf(d->arena, fmt, ap)};
    ARENA_PUSH(d->arena, m->extra, m->nextra, e);
}

void diag_note(Diag *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    attach(d, "note", fmt, ap);
    va_end(ap);
}

int diag_count(const Diag *d)
{
    return d->n;
}

/* Adds the note before the help, which comes last. */
static void add_before_help(Diag *d, DiagMessage *m, DiagExtra note)
{
    ARENA_PUSH(d->arena, m->extra, m->nextra, note);
    for (int i = m->nextra - 1; i > 0 && strcmp(m->extra[i - 1].kind, "help") == 0; i--) {
        m->extra[i] = m->extra[i - 1];
        m->extra[i - 1] = note;
    }
}

void diag_note_call(Diag *d, int since, Span call, const char *name)
{
    for (int i = since; i < d->n; i++) {
        DiagMessage *const m = d->message[i];
        if (!m->at.source || m->at.source == call.source)
            continue;
        const char *file = call.source->name,
                   *text = file[0] == '-' && file[1] == '-'
                               ? arena_printf(d->arena, "'%s' is called in %s", name, file)
                               : arena_printf(d->arena, "'%s' is called on line %d of %s", name,
                                              call.line, file);
        add_before_help(d, m, (DiagExtra){"note", text});
    }
}

void diag_help(Diag *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    attach(d, "help", fmt, ap);
    va_end(ap);
}

void diag_suggest(Diag *d, const char *word, const char *const *candidate, int n)
{
    const char *near = text_nearest(word, candidate, n);
    if (!near)
        return;
    diag_help(d, "did you mean '%s'?", near);
    diag_replace(d, word, near);
}

void diag_replace(Diag *d, const char *was, const char *now)
{
    DiagMessage *const m = d->last;
    if (m)
        ARENA_PUSH(d->arena, m->repair, m->nrepair, ((DiagRepair){was, now, m->at}));
}

void diag_replace_int(Diag *d, int64_t was, int64_t now)
{
    diag_replace(d, arena_printf(d->arena, "%lld", (long long)was),
                 arena_printf(d->arena, "%lld", (long long)now));
}

void diag_append(Diag *d, Span after, const char *now)
{
    DiagMessage *const m = d->last;
    if (m)
        ARENA_PUSH(d->arena, m->repair, m->nrepair, ((DiagRepair){NULL, now, after}));
}

/* ---- printing */

/* Messages without a source come last: they concern the run, not a line. */
static int by_place(const void *x, const void *y)
{
    const DiagMessage *a = *(DiagMessage *const *)x, *b = *(DiagMessage *const *)y;
    if (!a->at.source != !b->at.source)
        return a->at.source ? -1 : 1;
    if (a->at.source && a->at.source->order != b->at.source->order)
        return a->at.source->order < b->at.source->order ? -1 : 1;
    if (a->at.line != b->at.line)
        return a->at.line < b->at.line ? -1 : 1;
    if (a->at.col != b->at.col)
        return a->at.col < b->at.col ? -1 : 1;
    return a->serial - b->serial;
}

static bool same(const DiagMessage *a, const DiagMessage *b)
{
    return a->at.source == b->at.source && a->at.line == b->at.line && a->at.col == b->at.col &&
           strcmp(a->text, b->text) == 0;
}

static bool continues(char c) /* whether c is a byte of a UTF-8 character, but not its first */
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static void sort(Diag *d)
{
    if (d->n)
        qsort(d->message, (size_t)d->n, sizeof *d->message, by_place);
}

const DiagMessage *const *diag_list(Diag *d, int *n)
{
    const DiagMessage **list = NULL;
    *n = 0;
    sort(d);
    for (int i = 0; i < d->n; i++)
        if (i == 0 || !same(d->message[i], d->message[i - 1]))
            ARENA_PUSH(d->arena, list, *n, (const DiagMessage *)d->message[i]);
    return list;
}

/* Prints the line of the message, with a caret under the place.  If the line is long, prints only
 * the part around the place. */
static void print_line(const DiagMessage *m, FILE *f, bool color, Arena *a)
{
    const char *line = source_line(a, m->at.source, m->at.line);
    const int len = (int)strlen(line);
    const int col = m->at.col - 1 < len ? m->at.col - 1 : len;
    int end = m->at.end_line > m->at.line ? len : m->at.end_col - 1;
    int from = col > WIDTH - 40 ? col - WIDTH / 2 : 0, to = from + WIDTH < len ? from + WIDTH : len;

    while (from > 0 && continues(line[from]))
        from--;
    while (to < len && continues(line[to]))
        to++;
    end = end > to ? to : end;
    fprintf(f, "%5d | %s%.*s%s\n      | %s", m->at.line, from ? "..." : "", to - from, line + from,
            to < len ? "..." : "", from ? "   " : "");
    for (int i = from; i < col; i++)
        if (!continues(line[i]))
            fputc(line[i] == '\t' ? '\t' : ' ', f);
    fputs(color ? "\033[1;32m^" : "^", f);
    for (int i = col + 1; i < end; i++)
        if (!continues(line[i]))
            fputc('~', f);
    fputs(color ? "\033[0m\n" : "\n", f);
}

static void print(const DiagMessage *m, FILE *f, bool color, Arena *a)
{
    const char *kind = m->error ? "error" : "warning";
    const char *tint = !color ? "" : m->error ? "\033[1;31m" : "\033[1;35m";
    const char *bold = color ? "\033[1m" : "", *off = color ? "\033[0m" : "";
    if (m->at.source)
        fprintf(f, "%s%s:%d:%d:%s ", bold, quote_line(a, m->at.source->name), m->at.line, m->at.col,
                off);
    else
        fprintf(f, "%stenon:%s ", bold, off);
    fprintf(f, "%s%s:%s %s%s%s\n", tint, kind, off, bold, quote_line(a, m->text), off);
    if (m->at.source && m->at.line > 0)
        print_line(m, f, color, a);
    for (int i = 0; i < m->nextra; i++)
        fprintf(f, "      = %s%s:%s %s\n", bold, m->extra[i].kind, off,
                quote_line(a, m->extra[i].text));
}

static bool colored(const Diag *d, FILE *f)
{
    const char *term = environment(ENV_TERM), *no = environment(ENV_NO_COLOR);
    if (d->color != DIAG_AUTO)
        return d->color == DIAG_ALWAYS;
    return isatty(fileno(f)) && !no && term && strcmp(term, "dumb") != 0;
}

void diag_print(Diag *d, FILE *f)
{
    const bool color = colored(d, f);
    int shown = 0, more = d->dropped;
    sort(d);
    for (int i = 0; i < d->n; i++) {
        const DiagMessage *m = d->message[i];
        if (i > 0 && same(m, d->message[i - 1]))
            continue;
        if (m->error && shown == SHOWN) {
            more++;
            continue;
        }
        shown += m->error;
        print(m, f, color, d->arena);
    }
    if (more)
        fprintf(f, "... and %d more error%s\n", more, more == 1 ? "" : "s");
    d->message = NULL, d->last = NULL;
    d->n = d->dropped = 0;
}
