/* diagnose.c -- publishes the messages of `tenon check`, and offers their repairs. */
#include "base/quote.h"
#include "base/text.h"
#include "lsp/server.h"
#include <string.h>

enum { SHOWN = 100 }; /* errors that are published, at most: as in `tenon check` */

/* The message with its notes and helps, one on a line. */
static const char *full_text(Arena *arena, const DiagMessage *m)
{
    Text t = text_new(arena);
    text_add(&t, quote_line(arena, m->text));
    for (int i = 0; i < m->nextra; i++)
        text_printf(&t, "\n%s: %s", m->extra[i].kind, quote_line(arena, m->extra[i].text));
    return t.s;
}

/* The place in the document at which a message about another file stands: its import. */
static Span import_of(const Analysis *a, const Source *other)
{
    const Unit *u = a->unit;
    Span at = {a->source, 1, 1, 1, 1};
    for (int hops = 0; hops <= u->nimport && other; hops++) {
        const Source *from = NULL;
        for (int i = 0; i < u->nimport && !from; i++)
            if (u->import[i].to == other) {
                at = u->import[i].decl->name_span;
                from = at.source;
            }
        if (from == a->source)
            return at;
        other = from;
    }
    return (Span){a->source, 1, 1, 1, 1};
}

static cJSON *diagnostic(Arena *arena, const Lines *l, Span at, bool error, const char *text)
{
    cJSON *d = cJSON_CreateObject();
    cJSON_AddItemToObject(d, "range", range_json(l, at));
    cJSON_AddNumberToObject(d, "severity", error ? 1 : 2);
    cJSON_AddStringToObject(d, "source", "tenon");
    json_add_text(arena, d, "message", text);
    return d;
}

static cJSON *message_json(Arena *arena, const Analysis *a, const Lines *l, const DiagMessage *m)
{
    const Source *s = m->at.source;
    const char *text = full_text(arena, m);
    if (!s || !a->source || s == a->source)
        return diagnostic(arena, l, m->at, m->error, text);
    text = arena_printf(arena, "%s:%d:%d: %s", quote_line(arena, s->name), m->at.line, m->at.col,
                        text);
    return diagnostic(arena, l, import_of(a, s), m->error, text);
}

void publish(Server *s, Document *d)
{
    const Analysis *a = d->now;
    const Lines none = lines_new(s->arena, "", 0, s->bytes), *l = a->unit ? &a->lines : &none;
    cJSON *params = cJSON_CreateObject(), *list = cJSON_CreateArray();
    int errors = 0, more = diag_errors(a->diag);
    for (int i = 0; i < a->nmessage; i++) {
        if (a->message[i]->error && errors++ >= SHOWN)
            continue;
        cJSON_AddItemToArray(list, message_json(s->arena, a, l, a->message[i]));
    }
    more = (more > errors && errors > SHOWN ? more : errors) - SHOWN;
    if (more > 0)
        cJSON_AddItemToArray(list, diagnostic(s->arena, l, (Span){a->source, 1, 1, 1, 1}, true,
                                              arena_printf(s->arena, "... and %d more error%s",
                                                           more, more == 1 ? "" : "s")));
    json_add_text(s->arena, params, "uri", d->uri);
    cJSON_AddNumberToObject(params, "version", d->version);
    cJSON_AddItemToObject(params, "diagnostics", list);
    server_notify(s, "textDocument/publishDiagnostics", params);
    d->unpublished = false;
}

/* ---- repairs */

/* The edit for a replacement; NULL unless the underlined text is `was`, with or without quotes. */
static cJSON *replacement(Arena *arena, const Lines *l, const DiagRepair *r)
{
    const size_t from = lines_at(l, r->at.line, r->at.col),
                 to = lines_at(l, r->at.end_line, r->at.end_col), n = strlen(r->was);
    const char *text = &l->text[from];
    if (to - from == n && memcmp(text, r->was, n) == 0)
        return edit_json(arena, l, r->at, r->now);
    if (to - from == n + 2 && text[0] == '"' && memcmp(text + 1, r->was, n) == 0)
        return edit_json(arena, l, r->at, arena_printf(arena, "\"%s\"", r->now));
    return NULL;
}

/* The edit that adds a line after another one, with its indent; after a text that stands in the
 * middle of a line, the addition follows a semicolon. */
static cJSON *addition(Arena *arena, const Lines *l, const DiagRepair *r)
{
    const size_t end = lines_at(l, r->at.end_line, r->at.end_col),
                 begin = lines_at(l, r->at.line, 1);
    size_t blank = begin, rest = end;
    while (l->text[blank] == ' ' || l->text[blank] == '\t')
        blank++;
    while (l->text[rest] == ' ' || l->text[rest] == '\t' || l->text[rest] == '\r')
        rest++;
    const bool ends = rest >= l->len || l->text[rest] == '\n' || l->text[rest] == '#';
    Span at = {r->at.source, r->at.end_line, r->at.end_col, r->at.end_line, r->at.end_col};
    if (!ends)
        return edit_json(arena, l, at, arena_printf(arena, "; %s", r->now));
    while (rest < l->len && l->text[rest] != '\n')
        rest++;
    if (rest > end && l->text[rest - 1] == '\r')
        rest--;
    at.col = at.end_col = (int)(rest - lines_at(l, at.line, 1)) + 1;
    return edit_json(arena, l, at,
                     arena_printf(arena, "\n%.*s%s", (int)(blank - begin), &l->text[begin],
                                  r->now));
}

static void add_action(Server *s, cJSON *list, const Document *d, const DiagMessage *m,
                       const DiagRepair *r)
{
    const Lines *l = &d->now->lines;
    cJSON *edit = r->was ? replacement(s->arena, l, r) : addition(s->arena, l, r);
    if (!edit)
        return;
    cJSON *action = cJSON_CreateObject(), *whole = cJSON_CreateObject(),
          *changes = cJSON_CreateObject(), *edits = cJSON_CreateArray(),
          *fixed = cJSON_CreateArray();
    json_add_text(s->arena, action, "title",
                  arena_printf(s->arena, r->was ? "Change to %s" : "Add %s", r->now));
    cJSON_AddStringToObject(action, "kind", "quickfix");
    cJSON_AddItemToArray(fixed, message_json(s->arena, d->now, l, m));
    cJSON_AddItemToObject(action, "diagnostics", fixed);
    if (m->nrepair == 1)
        cJSON_AddTrueToObject(action, "isPreferred");
    cJSON_AddItemToArray(edits, edit);
    cJSON_AddItemToObject(changes, d->uri, edits);
    cJSON_AddItemToObject(whole, "changes", changes);
    cJSON_AddItemToObject(action, "edit", whole);
    cJSON_AddItemToArray(list, action);
}

cJSON *answer_actions(Server *s, const cJSON *params)
{
    Document *d = document_of(s, params);
    size_t from, to;
    if (!d)
        return NULL;
    const Analysis *a = document_analysis(s, d);
    cJSON *list = cJSON_CreateArray();
    if (!a->unit)
        return list;
    if (!document_range(s, a, params, &from, &to))
        return NULL;
    for (int i = 0; i < a->nmessage; i++) {
        const DiagMessage *m = a->message[i];
        if (m->at.source != a->source || lines_at(&a->lines, m->at.line, m->at.col) > to ||
            lines_at(&a->lines, m->at.end_line, m->at.end_col) < from)
            continue;
        for (int k = 0; k < m->nrepair; k++)
            if (m->repair[k].at.source == a->source)
                add_action(s, list, d, m, &m->repair[k]);
    }
    return list;
}
