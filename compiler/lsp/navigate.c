/* navigate.c -- definition, references, rename, and the outline of a file. */
#include "front/lower.h"
#include "lsp/server.h"
#include <string.h>

/* ---- places */

/* Lines of a file of the unit.  Those of the analysed file are there already; those of another file
 * are kept while one request is answered. */
static Lines lines_of(Server *s, const Analysis *a, const Source *source)
{
    if (source == a->source)
        return a->lines;
    if (source != s->other) {
        s->other = source;
        s->other_lines = lines_new(s->arena, source->text, source->len, s->bytes);
    }
    return s->other_lines;
}

/* The address of a file; an open document keeps its own spelling. */
static const char *address(Server *s, const char *path)
{
    for (int i = 0; i < s->ndocument; i++)
        if (s->document[i]->open && strcmp(s->document[i]->path, path) == 0)
            return s->document[i]->uri;
    return uri_of(s->arena, path);
}

static cJSON *location(Server *s, const Analysis *a, Span at)
{
    cJSON *l = cJSON_CreateObject();
    const Lines lines = lines_of(s, a, at.source);
    json_add_text(s->arena, l, "uri", address(s, at.source->path));
    cJSON_AddItemToObject(l, "range", range_json(&lines, at));
    return l;
}

/* The symbol at the place of a request; NULL if no name is there, or if the request is wrong.  *d:
 * the document; NULL if the request is wrong. */
static const Symbol *symbol_of(Server *s, const cJSON *params, Document **d, Analysis **a)
{
    int line, col;
    *d = document_place(s, params, a, &line, &col);
    return *d ? symbol_at(*a, line, col) : NULL;
}

/* ---- definition */

/* For a use of a variable: the nearest binding above the use.  For a binding: the first binding of
 * the variable. */
static const Symbol *binding_of(const Analysis *a, const Symbol *use)
{
    const Symbol *first = NULL, *above = NULL;
    for (int i = 0; i < a->nsymbol; i++) {
        const Symbol *b = &a->symbol[i];
        if (!b->defines || !symbol_same(b, use))
            continue;
        first = first ? first : b;
        const bool before =
            b->at.line < use->at.line || (b->at.line == use->at.line && b->at.col < use->at.col);
        if (b->at.source == use->at.source && before &&
            !(b->e && span_contains(b->e->span, use->at.line, use->at.col)))
            above = b;
    }
    return above && !use->defines ? above : first;
}

cJSON *answer_definition(Server *s, const cJSON *params)
{
    Document *d;
    Analysis *a;
    const Symbol *y = symbol_of(s, params, &d, &a);
    if (!y)
        return NULL;
    if (y->kind == SYMBOL_FUNCTION)
        return location(s, a, y->decl->name_span);
    if (y->kind == SYMBOL_IMPORT && y->file)
        return location(s, a, (Span){y->file, 1, 1, 1, 1});
    if (y->kind != SYMBOL_LOCAL)
        return NULL;
    const Symbol *b = binding_of(a, y);
    return b ? location(s, a, b->at) : NULL;
}

/* ---- references */

typedef struct Use {
    const Analysis *a;
    Span at;
    bool defines;
} Use;

typedef struct Uses {
    Use *v;
    int n;
    Map seen; /* places: two documents can read one file */
} Uses;

static void add_use(Server *s, Uses *u, const Analysis *a, const Symbol *y)
{
    const char *place =
        arena_printf(s->arena, "%d:%d:%s", y->at.line, y->at.col, y->at.source->path);
    if (map_get(&u->seen, place))
        return;
    map_set(&u->seen, place, u);
    ARENA_PUSH(s->arena, u->v, u->n, ((Use){a, y->at, y->defines}));
}

/* All uses of a symbol in the files of the open documents. */
static Uses uses_of(Server *s, const Analysis *a, const Symbol *y)
{
    Uses u = {.seen = map_new(s->arena)};
    for (int i = 0; i < a->nsymbol; i++)
        if (symbol_same(&a->symbol[i], y))
            add_use(s, &u, a, &a->symbol[i]);
    for (int i = 0; i < s->ndocument; i++) {
        if (!s->document[i]->open)
            continue;
        const Analysis *other = document_analysis(s, s->document[i]);
        for (int k = 0; other != a && k < other->nsymbol; k++)
            if (symbol_same(&other->symbol[k], y))
                add_use(s, &u, other, &other->symbol[k]);
    }
    return u;
}

cJSON *answer_references(Server *s, const cJSON *params)
{
    Document *d;
    Analysis *a;
    const Symbol *y = symbol_of(s, params, &d, &a);
    const bool all = json_true_at(json_at(params, "context"), "includeDeclaration");
    if (!y)
        return NULL;
    cJSON *list = cJSON_CreateArray();
    const Uses u = uses_of(s, a, y);
    for (int i = 0; i < u.n; i++)
        if (all || !u.v[i].defines)
            cJSON_AddItemToArray(list, location(s, u.v[i].a, u.v[i].at));
    return list;
}

cJSON *answer_highlight(Server *s, const cJSON *params)
{
    Document *d;
    Analysis *a;
    const Symbol *y = symbol_of(s, params, &d, &a);
    if (!y)
        return NULL;
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < a->nsymbol; i++) {
        const Symbol *b = &a->symbol[i];
        if (b->at.source != a->source || !symbol_same(b, y))
            continue;
        cJSON *h = cJSON_CreateObject();
        cJSON_AddItemToObject(h, "range", range_json(&a->lines, b->at));
        cJSON_AddNumberToObject(h, "kind", b->defines ? 3 : 2); /* write, read */
        cJSON_AddItemToArray(list, h);
    }
    return list;
}

/* ---- rename */

/* An open document that reads the file of the name, and has lost a part of its text. */
static const Document *broken_reader(Server *s, const Symbol *y)
{
    for (int i = 0; i < s->ndocument; i++) {
        Document *d = s->document[i];
        if (!d->open)
            continue;
        const Analysis *a = document_analysis(s, d);
        if (a->broken && analysis_reads(a, y->decl->name_span.source->path))
            return d;
    }
    return NULL;
}

static bool can_rename(Server *s, const Symbol *y)
{
    const bool known = y && (y->kind == SYMBOL_LOCAL || y->kind == SYMBOL_FUNCTION);
    const Document *broken = known ? broken_reader(s, y) : NULL;
    const bool vocab = known && y->param && lower_takes_vocab(y->decl, y->param),
               shipped = known && y->decl->name_span.source->shipped;
    if (!known)
        server_reject(s, REJECT_FAILED, "%s",
                      !y ? "there is no name here" : "this name belongs to the language");
    else if (shipped)
        server_reject(s, REJECT_FAILED, "this name belongs to %s of Tenon's library",
                      source_base(y->decl->name_span.source));
    else if (broken)
        server_reject(s, REJECT_FAILED,
                      "a part of %s has a syntax error, and this part may use the name",
                      broken->path);
    else if (vocab)
        server_reject(s, REJECT_FAILED,
                      "the data set gives the parameter '%s' its value by its name", y->name);
    return known && !shipped && !broken && !vocab;
}

cJSON *answer_prepare(Server *s, const cJSON *params)
{
    Document *d;
    Analysis *a;
    const Symbol *y = symbol_of(s, params, &d, &a);
    if (!d || !can_rename(s, y))
        return NULL;
    cJSON *r = cJSON_CreateObject();
    cJSON_AddItemToObject(r, "range", range_json(&a->lines, y->at));
    json_add_text(s->arena, r, "placeholder", y->name);
    return r;
}

static bool is_name(Server *s, const char *word)
{
    const Source source = {.name = word, .path = word, .text = word, .len = strlen(word)};
    int n;
    const Token *t = tokens_read(s->arena, &source, &n);
    return n == 1 && t->kind == TOKEN_NAME && t->at.end_col == (int)source.len + 1;
}

/* Whether the new name is free in the files of one analysis, where the old name is used.  If the
 * new name has another meaning there, rejects the request. */
static bool is_free_in(Server *s, const Analysis *a, const Symbol *y, const char *name)
{
    Callee c;
    if (y->kind == SYMBOL_FUNCTION && callee_find(a->unit, name, &c)) {
        server_reject(s, REJECT_FAILED, "'%s' is already a function", name);
        return false;
    }
    for (int i = 0; i < a->nsymbol; i++) {
        const Symbol *b = &a->symbol[i];
        const bool bound = b->kind == SYMBOL_LOCAL &&
                           (y->kind == SYMBOL_FUNCTION || b->decl == y->decl),
                   called = b->kind != SYMBOL_LOCAL && b->kind != SYMBOL_ARG &&
                            y->kind == SYMBOL_LOCAL && b->in == y->decl;
        if (strcmp(b->name, name) != 0 || !(bound || called))
            continue;
        server_reject(s, REJECT_FAILED, "'%s' has another meaning on line %d of %s", name,
                      b->at.line, b->at.source->name);
        return false;
    }
    return true;
}

/* Whether the new name is free in this analysis and, for a declared function, in the other open
 * documents that read its file. */
static bool is_free(Server *s, const Analysis *a, const Symbol *y, const char *name)
{
    if (!is_free_in(s, a, y, name))
        return false;
    for (int i = 0; y->kind == SYMBOL_FUNCTION && i < s->ndocument; i++) {
        if (!s->document[i]->open)
            continue;
        const Analysis *other = document_analysis(s, s->document[i]);
        if (other != a && analysis_reads(other, y->decl->name_span.source->path) &&
            !is_free_in(s, other, y, name))
            return false;
    }
    return true;
}

cJSON *answer_rename(Server *s, const cJSON *params)
{
    Document *d;
    Analysis *a;
    const char *name = json_text_at(params, "newName");
    const Symbol *y = symbol_of(s, params, &d, &a);
    if (!d || !can_rename(s, y))
        return NULL;
    if (!name || !is_name(s, name))
        return server_reject(s, name ? REJECT_FAILED : REJECT_PARAMS, "'%s' is not a name",
                             name ? name : "");
    if (strcmp(name, y->name) != 0 && !is_free(s, a, y, name))
        return NULL;
    cJSON *edit = cJSON_CreateObject(), *changes = cJSON_AddObjectToObject(edit, "changes");
    const Uses u = uses_of(s, a, y);
    for (int i = 0; i < u.n; i++) {
        const char *uri = address(s, u.v[i].at.source->path);
        cJSON *list = cJSON_GetObjectItemCaseSensitive(changes, uri);
        const Lines lines = lines_of(s, u.v[i].a, u.v[i].at.source);
        if (!list)
            list = cJSON_AddArrayToObject(changes, uri);
        cJSON_AddItemToArray(list, edit_json(s->arena, &lines, u.v[i].at, name));
    }
    return edit;
}

/* ---- outline */

enum {
    KIND_CLASS = 5,
    KIND_FUNCTION = 12,
    KIND_VARIABLE = 13,
    KIND_OBJECT = 19,
    KIND_OPERATOR = 25
};

/* The index of the last token of the declaration that begins at token i: its closing brace, or the
 * end of its line.  Another declaration ends it, too, if a brace is missing. */
static int declaration_end(const Analysis *a, int i)
{
    int depth = 0;
    for (int k = i + 1; k < a->ntoken; k++) {
        const Token *t = &a->token[k];
        if (token_nests(t) > 0)
            depth++;
        if (token_nests(t) < 0)
            depth -= depth > 0;
        if ((token_is(t, '}') && !depth) ||
            (t->kind == TOKEN_NEWLINE && !depth && k > i + 2 && !token_is(&a->token[k - 1], ')')))
            return k;
        if (t->kind == TOKEN_RESERVED && t->at.col == 1)
            return k - 1;
    }
    return a->ntoken - 1;
}

static cJSON *outline_item(Server *s, const Analysis *a, const Token *name, int kind,
                           const char *detail, Span whole)
{
    cJSON *o = cJSON_CreateObject();
    json_add_text(s->arena, o, "name", name->text);
    if (detail)
        cJSON_AddStringToObject(o, "detail", detail);
    cJSON_AddNumberToObject(o, "kind", kind);
    cJSON_AddItemToObject(o, "range", range_json(&a->lines, whole));
    cJSON_AddItemToObject(o, "selectionRange", range_json(&a->lines, name->at));
    return o;
}

/* The first binding of each name in the statements of a declaration. */
static cJSON *bindings(Server *s, const Analysis *a, int from, int to)
{
    cJSON *list = cJSON_CreateArray();
    Map seen = map_new(s->arena);
    for (int i = from + 1; i < to; i++) {
        const Token *before = &a->token[i - 1], *t = &a->token[i];
        const bool begins =
            before->kind == TOKEN_NEWLINE || token_is(before, '{') || token_is(before, ';');
        if (!begins || t->kind != TOKEN_NAME || !token_is(t + 1, '=') || map_get(&seen, t->text))
            continue;
        map_set(&seen, t->text, (void *)t);
        cJSON_AddItemToArray(list,
                             outline_item(s, a, t, KIND_VARIABLE, NULL, span_join(t->at, t[1].at)));
    }
    return list;
}

cJSON *answer_symbols(Server *s, const cJSON *params)
{
    static const struct {
        const char *word;
        int kind;
    } row[] = {{"model", KIND_CLASS},
               {"block", KIND_FUNCTION},
               {"op", KIND_OPERATOR},
               {"train", KIND_OBJECT}};
    Document *d = document_of(s, params);
    if (!d)
        return NULL;
    const Analysis *a = document_analysis(s, d);
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i + 1 < a->ntoken; i++)
        for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
            const Token *t = &a->token[i];
            if (t->kind != TOKEN_RESERVED || strcmp(t->text, row[k].word) != 0 ||
                t[1].kind != TOKEN_NAME)
                continue;
            const int end = declaration_end(a, i);
            cJSON *o =
                outline_item(s, a, t + 1, row[k].kind, t->text, span_join(t->at, a->token[end].at));
            if (row[k].kind != KIND_OPERATOR)
                cJSON_AddItemToObject(o, "children", bindings(s, a, i + 1, end));
            cJSON_AddItemToArray(list, o);
            break;
        }
    return list;
}
