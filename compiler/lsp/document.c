/* document.c -- the open documents: their texts, changes, and analyses. */
#include "base/text.h"
#include "lsp/prices.h"
#include <string.h>

/* An open document, or NULL. */
static Document *document_find(const Server *s, const char *uri)
{
    for (int i = 0; i < s->ndocument; i++)
        if (s->document[i]->open && strcmp(s->document[i]->uri, uri) == 0)
            return s->document[i];
    return NULL;
}

Document *document_of(Server *s, const cJSON *params)
{
    const char *uri = json_text_at(json_at(params, "textDocument"), "uri");
    Document *d = uri ? document_find(s, uri) : NULL;
    if (!uri)
        server_reject(s, REJECT_PARAMS, "the parameters have no textDocument.uri");
    else if (!d)
        server_reject(s, REJECT_PARAMS, "the document is not open: %s", uri);
    return d;
}

/* ---- analyses */

static void drop_good(Document *d)
{
    if (d->good != d->now)
        analysis_free(d->good);
    if (d->prices)
        arena_free(d->prices->arena);
    d->good = NULL;
    d->prices = NULL;
}

static void forget_now(Document *d)
{
    if (d->now != d->good)
        analysis_free(d->now);
    d->now = NULL;
}

/* To be called when the text of d, or of a file that d imports, has changed. */
static void make_stale(Server *s, Document *d)
{
    prices_stop(s, d);
    forget_now(d);
    d->unpublished = true;
    s->changed = wire_clock();
}

/* Requests a new analysis of the other documents that read the file `path`, and of documents with
 * an error: their analysis may not know that they read this file. */
static void touch_readers(Server *s, const char *path, const Document *except)
{
    for (int i = 0; i < s->ndocument; i++) {
        Document *d = s->document[i];
        if (d->open && d != except && d->now && (!d->now->ok || analysis_reads(d->now, path)))
            make_stale(s, d);
    }
}

/* Whether line i of one text and line k of another one are equal, counted from 0. */
static bool same_line(const Lines *a, int i, const Lines *b, int k)
{
    const size_t x = a->start[i], y = b->start[k];
    const size_t m = (i + 1 < a->n ? a->start[i + 1] : a->len) - x,
                 n = (k + 1 < b->n ? b->start[k + 1] : b->len) - y;
    return m == n && memcmp(&a->text[x], &b->text[y], n) == 0;
}

/* Counts the lines at both ends of the text that are the same in the last good text. */
static void compare_good(Document *d)
{
    const Lines *now = &d->now->lines, *old = d->good ? &d->good->lines : NULL;
    const int most = !old ? 0 : now->n < old->n ? now->n : old->n;
    d->same_head = d->same_tail = 0;
    while (d->same_head < most && same_line(now, d->same_head, old, d->same_head))
        d->same_head++;
    while (d->same_tail < most &&
           same_line(now, now->n - 1 - d->same_tail, old, old->n - 1 - d->same_tail))
        d->same_tail++;
}

Analysis *document_analysis(Server *s, Document *d)
{
    Unsaved *unsaved = NULL;
    int n = 0;
    if (d->now)
        return d->now;
    /* The first text of a path counts.  A link and its file are two documents with one path. */
    ARENA_PUSH(s->arena, unsaved, n, ((Unsaved){d->path, d->text, d->len}));
    for (int i = 0; i < s->ndocument; i++) {
        const Document *o = s->document[i];
        if (o->open && o != d)
            ARENA_PUSH(s->arena, unsaved, n, ((Unsaved){o->path, o->text, o->len}));
    }
    d->now = analysis_new(d->path, unsaved, n, s->bytes);
    if (d->now->ok) {
        drop_good(d);
        d->good = d->now;
        d->priced = false;
    }
    compare_good(d);
    return d->now;
}

bool document_refresh(Server *s)
{
    for (int i = 0; i < s->ndocument; i++)
        if (s->document[i]->open && s->document[i]->unpublished) {
            document_analysis(s, s->document[i]);
            publish(s, s->document[i]);
            return true;
        }
    return false;
}

Document *document_place(Server *s, const cJSON *params, Analysis **a, int *line, int *col)
{
    size_t offset;
    Document *d = document_of(s, params);
    if (!d)
        return NULL;
    *a = document_analysis(s, d);
    if (!(*a)->unit || !lines_offset(&(*a)->lines, json_at(params, "position"), &offset)) {
        server_reject(s, REJECT_PARAMS, "the parameters have no position in the document");
        return NULL;
    }
    lines_place(&(*a)->lines, offset, line, col);
    return d;
}

bool document_range(Server *s, const Analysis *a, const cJSON *params, size_t *from, size_t *to)
{
    const cJSON *range = json_at(params, "range");
    if (lines_offset(&a->lines, json_at(range, "start"), from) &&
        lines_offset(&a->lines, json_at(range, "end"), to))
        return true;
    server_reject(s, REJECT_PARAMS, "the parameters have no range");
    return false;
}

int document_good_line(const Document *d, int line)
{
    const int now = d->now->lines.n, old = d->good ? d->good->lines.n : 0;
    return line <= d->same_head ? line : line > now - d->same_tail ? line + old - now : 0;
}

bool document_callee(const Document *d, const char *name, Callee *c)
{
    *c = (Callee){0};
    return (d->now->unit && callee_find(d->now->unit, name, c)) ||
           (d->good && callee_find(d->good->unit, name, c));
}

/* ---- notifications */

static void set_text(Document *d, Arena *arena, const char *text, size_t len)
{
    arena_free(d->text_arena);
    d->text_arena = arena;
    d->text = text;
    d->len = len;
}

static Document *new_document(Server *s)
{
    Document *d = NULL;
    for (int i = 0; i < s->ndocument; i++)
        if (!s->document[i]->open)
            d = s->document[i];
    if (!d) {
        d = arena_alloc(s->life, sizeof *d);
        ARENA_PUSH(s->life, s->document, s->ndocument, d);
    }
    *d = (Document){.arena = arena_new(), .open = true};
    return d;
}

static void close_document(Server *s, Document *d)
{
    make_stale(s, d);
    drop_good(d);
    d->open = false;
    arena_free(d->text_arena);
    arena_free(d->arena);
}

void document_open(Server *s, const cJSON *params)
{
    const cJSON *item = json_at(params, "textDocument");
    const char *uri = json_text_at(item, "uri"), *text = json_text_at(item, "text");
    if (!uri || !text)
        return;
    Document *d = document_find(s, uri);
    if (!d) {
        d = new_document(s);
        d->uri = arena_strdup(d->arena, uri);
        d->path = source_canonical(d->arena, uri_path(d->arena, uri));
    }
    json_int_at(item, "version", &d->version);
    Arena *arena = arena_new();
    set_text(d, arena, arena_strdup(arena, text), strlen(text));
    make_stale(s, d);
    touch_readers(s, d->path, d);
}

/* Tells the client that its text and that of the server can differ from now on. */
static void complain(Server *s, const Document *d)
{
    enum { MESSAGE_ERROR = 1 };
    cJSON *params = cJSON_CreateObject();
    cJSON_AddNumberToObject(params, "type", MESSAGE_ERROR);
    json_add_text(s->arena, params, "message",
                  arena_printf(s->arena,
                               "version %d of %s has a change without a text or a range; "
                               "close the file and open it again",
                               d->version, d->path));
    server_notify(s, "window/logMessage", params);
}

/* Applies one change: a new text, or a new text for a range. */
static void change(Server *s, Document *d, const cJSON *item)
{
    const char *text = json_text_at(item, "text");
    const cJSON *range = json_at(item, "range");
    const bool whole = !range || cJSON_IsNull(range);
    Arena *arena = arena_new();
    const Lines lines = lines_new(arena, d->text, d->len, s->bytes);
    size_t from = 0, to = d->len;
    if (!text || (!whole && (!lines_offset(&lines, json_at(range, "start"), &from) ||
                             !lines_offset(&lines, json_at(range, "end"), &to) || from > to))) {
        arena_free(arena);
        complain(s, d);
        return;
    }
    Text t = text_new(arena);
    text_addn(&t, d->text, from);
    text_add(&t, text);
    text_addn(&t, &d->text[to], d->len - to);
    set_text(d, arena, t.s, t.len);
}

void document_change(Server *s, const cJSON *params)
{
    const cJSON *item = json_at(params, "textDocument"), *one;
    const char *uri = json_text_at(item, "uri");
    Document *d = uri ? document_find(s, uri) : NULL;
    if (!d)
        return;
    json_int_at(item, "version", &d->version);
    cJSON_ArrayForEach(one, json_at(params, "contentChanges")) change(s, d, one);
    make_stale(s, d);
    touch_readers(s, d->path, d);
}

void document_close(Server *s, const cJSON *params)
{
    const char *uri = json_text_at(json_at(params, "textDocument"), "uri");
    Document *d = uri ? document_find(s, uri) : NULL;
    if (!d)
        return;
    const char *path = arena_strdup(s->arena, d->path);
    cJSON *none = cJSON_CreateObject();
    json_add_text(s->arena, none, "uri", uri);
    cJSON_AddItemToObject(none, "diagnostics", cJSON_CreateArray());
    server_notify(s, "textDocument/publishDiagnostics", none);
    close_document(s, d);
    touch_readers(s, path, NULL); /* now they read the file on disk */
}

void document_save(Server *s, const cJSON *params)
{
    const char *uri = json_text_at(json_at(params, "textDocument"), "uri");
    const Document *d = uri ? document_find(s, uri) : NULL;
    if (d)
        touch_readers(s, d->path, d);
}

void files_change(Server *s, const cJSON *params)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, json_at(params, "changes"))
    {
        const char *uri = json_text_at(one, "uri");
        if (uri)
            touch_readers(s, source_canonical(s->arena, uri_path(s->arena, uri)), NULL);
    }
}
