/* hints.c -- inlay hints: the shape at the end of each line.
 *
 * A line shows the last value of the outermost expression that ends on the line; in a block, this
 * is the value in the last instance.  The number of other shapes follows.
 */
#include "lsp/server.h"
#include <string.h>

typedef struct Hints {
    const Analysis *a;
    const Expr **line; /* by line from 0: the outermost expression that ends there */
} Hints;

static void visit(Hints *h, const Expr *e)
{
    if (!e || e->span.source != h->a->source)
        return;
    const int line = e->span.end_line - 1;
    if (line < h->a->lines.n && !h->line[line])
        h->line[line] = e;
    for (int i = 0; e->kind == EX_CALL && i < e->args.n; i++)
        visit(h, e->args.v[i].value);
    for (int i = 0; e->kind == EX_LIST && i < e->list.n; i++)
        visit(h, e->list.v[i]);
    for (int i = 0; e->kind == EX_IF && i < e->arms.n; i++)
        visit(h, e->arms.v[i].value);
    if (e->kind == EX_BINARY || e->kind == EX_UNARY)
        visit(h, e->a);
    if (e->kind == EX_BINARY)
        visit(h, e->b);
}

static void visit_body(Hints *h, const Body *body)
{
    for (int i = 0; i < body->n; i++) {
        const Stmt *t = body->v[i];
        if (t->kind != ST_FOR)
            visit(h, t->value);
        visit_body(h, &t->body);
        for (int k = 0; k < t->branches.n; k++)
            visit_body(h, &t->branches.v[k].body);
    }
}

static const Expr **find_hints(Arena *arena, const Analysis *a)
{
    Hints h = {a, arena_alloc(arena, (size_t)a->lines.n * sizeof(Expr *))};
    for (int i = 0; i < a->unit->decls.n; i++) {
        const Decl *d = a->unit->decls.v[i];
        if (d->name_span.source == a->source && (d->kind == DECL_MODEL || d->kind == DECL_BLOCK))
            visit_body(&h, &d->body);
    }
    return h.line;
}

static bool has_shape(const Analysis *a, const Expr *e)
{
    const Traced *t = traced_of(a, e);
    return t && value_tensors(t->v);
}

/* The column where the last token of a line ends, before a comment; 0: the line has no token. */
static int last_column(const Analysis *a, int line)
{
    int low = 0, high = a->ntoken;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (a->token[middle].at.line <= line)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && a->token[low - 1].kind == TOKEN_NEWLINE)
        low--;
    return low > 0 && a->token[low - 1].at.line == line ? a->token[low - 1].at.end_col : 0;
}

cJSON *answer_hints(Server *s, const cJSON *params)
{
    Document *d = document_of(s, params);
    size_t from, to;
    int first, last, col;
    if (!d)
        return NULL;
    const Analysis *a = document_analysis(s, d);
    cJSON *list = cJSON_CreateArray();
    if (!a->unit)
        return list;
    if (!document_range(s, a, params, &from, &to))
        return NULL;
    lines_place(&a->lines, from, &first, &col);
    lines_place(&a->lines, to, &last, &col);
    const Expr **now = find_hints(s->arena, a),
               **old = d->good && d->good != a ? find_hints(s->arena, d->good) : NULL;
    for (int line = first; line <= last; line++) {
        const Analysis *from_a = a;
        const Expr *e = now[line - 1];
        const int good = old && !has_shape(a, e) ? document_good_line(d, line) : 0;
        if (good)
            e = old[good - 1], from_a = d->good;
        if (!has_shape(from_a, e) || !last_column(a, line))
            continue;
        cJSON *hint = cJSON_CreateObject();
        cJSON_AddItemToObject(hint, "position",
                              position_json(&a->lines, line, last_column(a, line)));
        json_add_text(s->arena, hint, "label", shapes_text(s->arena, from_a, e));
        cJSON_AddNumberToObject(hint, "kind", 1); /* a type */
        cJSON_AddTrueToObject(hint, "paddingLeft");
        cJSON_AddItemToArray(list, hint);
    }
    return list;
}
