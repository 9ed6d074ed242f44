/* words.c -- texts about declarations, operations and recipes, from the tables of the compiler. */
#include "lsp/words.h"
#include "base/quote.h"
#include "base/text.h"
#include <string.h>

/* The text of an expression, if it is on one line. */
static const char *source_text(Arena *a, Span at)
{
    const char *line = source_line(a, at.source, at.line);
    const int n = (int)strlen(line), from = at.col - 1;
    if (at.end_line != at.line || from > n || at.end_col - 1 > n)
        return "...";
    return arena_strndup(a, &line[from], (size_t)(at.end_col - at.col));
}

const char *words_param(Arena *a, const ParamDecl *p)
{
    Text t = text_new(a);
    text_add(&t, p->name);
    if (p->type_name)
        text_printf(&t, ": %s", p->type_name);
    for (int i = 0; i < p->dims.n; i++)
        text_printf(&t, "%s%s", i ? ", " : "[", source_text(a, p->dims.v[i]->span));
    if (p->dims.n)
        text_add(&t, "]");
    if (p->fallback)
        text_printf(&t, " = %s", source_text(a, p->fallback->span));
    return t.s;
}

const char *words_declaration(Arena *a, const Decl *d)
{
    Text t = text_new(a);
    text_printf(&t, "%s %s(", decl_word(d->kind), d->name);
    for (int i = 0; i < d->params.n; i++)
        text_printf(&t, "%s%s", i ? ", " : "", words_param(a, &d->params.v[i]));
    text_add(&t, ")");
    return t.s;
}

const char *words_comment(Arena *a, const Decl *d)
{
    const Source *s = d->name_span.source;
    int first = d->name_span.line;
    while (first > 1 && *source_line(a, s, first - 1) == '#')
        first--;
    Text t = text_new(a);
    for (int i = first; i < d->name_span.line; i++) {
        const char *line = source_line(a, s, i);
        text_printf(&t, "%s\n", quote_line(a, line + 1 + (line[1] == ' ')));
    }
    return t.s;
}

const char *words_field(Arena *a, const Field *f)
{
    const char *v = form_fallback(a, f);
    return v ? arena_printf(a, "%s = %s", f->name, v)
             : arena_printf(a, form_required(f) ? "%s" : "[%s]", f->name);
}

const char *words_argument(Arena *a, const OpArg *g)
{
    if (!g->fallback)
        return g->name;
    if (strcmp(g->fallback, "none") == 0)
        return arena_printf(a, "[%s]", g->name);
    return arena_printf(a, g->type == ARG_STRING ? "%s = \"%s\"" : "%s = %s", g->name, g->fallback);
}

const char *words_plain(Arena *a, const char *text)
{
    Text t = text_new(a);
    while (*text) {
        const char *open = strchr(text, '['), *middle = open ? strstr(open, "](") : NULL;
        const char *end = middle ? strchr(middle, ')') : NULL;
        if (!end)
            break;
        text_addn(&t, text, (size_t)(open - text));
        text_addn(&t, open + 1, (size_t)(middle - open - 1));
        text = end + 1;
    }
    text_add(&t, text);
    return t.s;
}
