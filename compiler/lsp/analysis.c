/* analysis.c -- what the compiler knows about one text. */
#include "lsp/analysis.h"
#include "base/text.h"
#include "passes/pass.h"
#include "tool/paths.h"
#include <string.h>

Analysis *analysis_new(const char *path, const Unsaved *unsaved, int n, bool bytes)
{
    Arena *arena = arena_new();
    Analysis *a = arena_alloc(arena, sizeof *a);
    const FrontOptions o = {.unsaved = unsaved,
                            .nunsaved = n,
                            .shipped = paths_models(arena),
                            .trace = &a->trace};
    a->arena = arena;
    a->diag = diag_new(arena, DIAG_NEVER);
    a->ok = front_load(arena, path, &o, a->diag, &a->front) &&
            (!a->front.train || pass_check(a->front.train, a->diag));
    a->source = a->front.source;
    a->unit = a->front.unit;
    a->message = diag_list(a->diag, &a->nmessage);
    if (a->unit) {
        a->lines = lines_new(arena, a->source->text, a->source->len, bytes);
        a->token = tokens_read(arena, a->source, &a->ntoken);
        symbols_find(a);
    }
    return a;
}

void analysis_free(Analysis *a)
{
    if (a)
        arena_free(a->arena);
}

bool analysis_reads(const Analysis *a, const char *path)
{
    for (int i = 0; a->unit && i < a->unit->nfile; i++)
        if (strcmp(a->unit->file[i]->path, path) == 0)
            return true;
    return false;
}

/* ---- values */

bool value_tensors(Value v)
{
    return v.kind == V_TENSOR || (v.kind == V_LIST && v.n && v.item[0].kind == V_TENSOR);
}

const Traced *traced_of(const Analysis *a, const Expr *e)
{
    return e && e->traced ? &a->trace.v[e->traced - 1] : NULL;
}

const Traced *traced_before(const Analysis *a, const Traced *t)
{
    return t->before ? &a->trace.v[t->before - 1] : NULL;
}

static const char *list_text(Arena *arena, Value v)
{
    enum { SHOWN = 4 };
    Text t = text_new(arena);
    text_add(&t, "[");
    for (int i = 0; i < v.n && i < SHOWN; i++) {
        const char *item = value_text(arena, v.item[i]);
        text_printf(&t, "%s%s", i ? ", " : "", item ? item : "?");
    }
    text_add(&t, v.n > SHOWN ? ", ...]" : "]");
    return t.s;
}

const char *value_text(Arena *arena, Value v)
{
    switch (v.kind) {
    case V_TENSOR:
        return shape_text(arena, &v.node->shape);
    case V_INT:
        return arena_printf(arena, "%lld", (long long)v.i);
    case V_FLOAT:
        return arena_printf(arena, "%.10g", v.f);
    case V_BOOL:
        return v.i ? "true" : "false";
    case V_STRING:
        return arena_printf(arena, "\"%s\"", v.s);
    case V_LIST:
        return list_text(arena, v);
    default:
        return NULL;
    }
}

const char *shapes_text(Arena *arena, const Analysis *a, const Expr *e)
{
    enum { COUNTED = 100 };
    const char *seen[COUNTED];
    int n = 0;
    for (const Traced *t = traced_of(a, e); t && n < COUNTED; t = traced_before(a, t)) {
        const char *text = value_text(arena, t->v);
        int i = 0;
        while (i < n && text && strcmp(seen[i], text) != 0)
            i++;
        if (text && i == n)
            seen[n++] = text;
    }
    return n < 2 ? seen[0]
                 : arena_printf(arena, "%s, %d other shape%s", seen[0], n - 1, n == 2 ? "" : "s");
}
