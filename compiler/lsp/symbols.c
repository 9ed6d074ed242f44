/* symbols.c -- where each name of a unit stands, and what it means.
 *
 * In a declaration, all parameters and variables of one name count as one symbol: the language has
 * no two variables of one name that are in scope together, so a new name for all of them changes
 * nothing.
 */
#include "base/text.h"
#include "lsp/analysis.h"
#include <string.h>

typedef struct Walk {
    Analysis *a;
    const Decl *decl; /* NULL: a train block */
    Map local;        /* names that decl binds */
    Map bound; /* train block: names of outputs and targets, each with the Decl that binds it */
} Walk;

static Symbol *add(Walk *w, SymbolKind kind, Span at, const char *name)
{
    Analysis *a = w->a;
    ARENA_PUSH(a->arena, a->symbol, a->nsymbol,
               ((Symbol){.kind = kind, .at = at, .name = name, .in = w->decl}));
    return &a->symbol[a->nsymbol - 1];
}

static const ParamDecl *param_of(const Decl *d, const char *name)
{
    for (int i = 0; i < d->params.n; i++)
        if (strcmp(d->params.v[i].name, name) == 0)
            return &d->params.v[i];
    return NULL;
}

static void add_local(Walk *w, const Decl *decl, Span at, const char *name, bool defines,
                      const Expr *e)
{
    if (!*name) /* the name was lost to a syntax error */
        return;
    Symbol *s = add(w, SYMBOL_LOCAL, at, name);
    s->decl = decl;
    s->param = param_of(decl, name);
    s->defines = defines;
    s->e = e;
}

/* ---- expressions */

static void walk_expr(Walk *w, const Expr *e);

/* Adds the symbol of a name that is not local: a declaration, an operation or a function of
 * numbers. */
static void add_callee(Walk *w, const Expr *name, const Expr *call)
{
    Callee c;
    Symbol *s = NULL;
    if (!callee_find(w->a->unit, name->s, &c))
        return;
    if (c.decl)
        s = add(w, SYMBOL_FUNCTION, name->span, name->s);
    else if (c.op)
        s = add(w, SYMBOL_OP, name->span, name->s);
    else
        s = add(w, SYMBOL_NUMBER, name->span, name->s);
    s->decl = c.decl;
    s->op = c.op;
    s->e = call;
}

/* Whether a call of this name calls a variable.  If a function has the same name, it is called
 * unless the variable is a layer (invoke.c).  In its own binding, a variable is no layer yet.  A
 * variable without a known value counts as a layer. */
static bool calls_local(const Walk *w, const Expr *name)
{
    Callee c;
    const void *bound = w->decl ? map_get(&w->local, name->s) : NULL;
    if (!bound || !callee_find(w->a->unit, name->s, &c))
        return bound;
    if (bound == w->decl) /* a parameter */
        return false;
    const Expr *value = ((const Stmt *)bound)->value;
    const Traced *t = traced_of(w->a, value);
    return (!t || t->v.kind == V_LAYER) &&
           !(value && span_contains(value->span, name->span.line, name->span.col));
}

static void walk_call(Walk *w, const Expr *e)
{
    Callee c = {0};
    const bool named = e->a->kind == EX_NAME;
    const bool local = named && calls_local(w, e->a);
    if (local) {
        add_local(w, w->decl, e->a->span, e->a->s, false, e);
    } else if (named) {
        add_callee(w, e->a, e);
        callee_find(w->a->unit, e->a->s, &c);
    } else {
        walk_expr(w, e->a);
    }
    for (int i = 0; i < e->args.n; i++) {
        const Arg *g = &e->args.v[i];
        if (g->name && c.decl) {
            add_local(w, c.decl, g->name_span, g->name, false, g->value);
        } else if (g->name && c.op) {
            Symbol *s = add(w, SYMBOL_ARG, g->name_span, g->name);
            s->op = c.op;
            s->e = g->value;
        }
        walk_expr(w, g->value);
    }
}

static void walk_expr(Walk *w, const Expr *e)
{
    if (!e)
        return;
    switch (e->kind) {
    case EX_NAME:
        if (w->decl && map_get(&w->local, e->s))
            add_local(w, w->decl, e->span, e->s, false, e);
        else if (!w->decl && map_get(&w->bound, e->s))
            add_local(w, map_get(&w->bound, e->s), e->span, e->s, false, e);
        else
            add_callee(w, e, NULL);
        break;
    case EX_LIST:
        for (int i = 0; i < e->list.n; i++)
            walk_expr(w, e->list.v[i]);
        break;
    case EX_UNARY:
    case EX_FIELD:
        walk_expr(w, e->a);
        break;
    case EX_BINARY:
    case EX_INDEX:
        walk_expr(w, e->a);
        walk_expr(w, e->b);
        break;
    case EX_IF:
        for (int i = 0; i < e->arms.n; i++) {
            walk_expr(w, e->arms.v[i].cond);
            walk_expr(w, e->arms.v[i].value);
        }
        break;
    case EX_CALL:
        walk_call(w, e);
        break;
    case EX_BAD:
        w->a->broken = true;
        break;
    default:
        break;
    }
}

/* ---- declarations */

/* The names that a body binds. */
static void bind_names(Walk *w, const Body *body)
{
    w->a->broken |= body->broken;
    for (int i = 0; i < body->n; i++) {
        const Stmt *t = body->v[i];
        if (t->name)
            map_set(&w->local, t->name, (void *)t);
        for (int k = 0; k < t->items.n; k++)
            map_set(&w->local, t->items.v[k].name, (void *)t);
        bind_names(w, &t->body);
        for (int k = 0; k < t->branches.n; k++)
            bind_names(w, &t->branches.v[k].body);
    }
}

static void walk_body(Walk *w, const Body *body)
{
    for (int i = 0; i < body->n; i++) {
        const Stmt *t = body->v[i];
        const bool used = t->value && t->value->kind == EX_NAME && t->name == t->value->s;
        if (t->name && !used) /* an output without NAME = only uses its name */
            add_local(w, w->decl, t->name_span, t->name, true, t->value);
        for (int k = 0; k < t->items.n; k++) {
            add_local(w, w->decl, t->items.v[k].span, t->items.v[k].name, true, NULL);
            walk_expr(w, t->items.v[k].value);
        }
        walk_expr(w, t->value);
        walk_expr(w, t->to);
        walk_expr(w, t->marks.every);
        walk_body(w, &t->body);
        for (int k = 0; k < t->branches.n; k++) {
            walk_expr(w, t->branches.v[k].cond);
            walk_body(w, &t->branches.v[k].body);
        }
    }
}

static void walk_function(Walk *w, const Decl *d)
{
    Symbol *s = add(w, SYMBOL_FUNCTION, d->name_span, d->name);
    s->decl = d;
    s->defines = true;
    w->decl = d;
    w->local = map_new(w->a->arena);
    for (int i = 0; i < d->params.n; i++)
        map_set(&w->local, d->params.v[i].name, (void *)d);
    bind_names(w, &d->body);
    for (int i = 0; i < d->params.n; i++) {
        const ParamDecl *p = &d->params.v[i];
        add_local(w, d, p->span, p->name, true, p->fallback);
        walk_expr(w, p->fallback);
        for (int k = 0; k < p->dims.n; k++)
            walk_expr(w, p->dims.v[k]);
    }
    walk_expr(w, d->formula);
    walk_body(w, &d->body);
}

/* ---- train blocks */

/* Calls `take` with each metric of a value of the key metrics. */
static void each_metric(Walk *w, const Decl *train, const Expr *e,
                        void (*take)(Walk *w, const Decl *train, const Arg *metric))
{
    for (int i = 0; e->kind == EX_LIST && i < e->list.n; i++)
        each_metric(w, train, e->list.v[i], take);
    for (int i = 0; e->kind == EX_CALL && i < e->args.n; i++)
        take(w, train, &e->args.v[i]);
}

static void bind_metric(Walk *w, const Decl *train, const Arg *metric)
{
    if (!metric->name)
        return;
    map_set(&w->bound, metric->name, (void *)train);
    add_local(w, train, metric->name_span, metric->name, true, metric->value);
}

static void walk_metric(Walk *w, const Decl *train, const Arg *metric)
{
    (void)train;
    walk_expr(w, metric->value);
}

static void walk_value(Walk *w, const TrainKey *key, const Expr *e)
{
    Span at;
    const char *name = form_name(e, &at);
    const Form *form = e->kind == EX_CALL ? form_called(key->forms, name)
                       : name             ? form_find(key->forms, name)
                                          : NULL;
    if (e->kind == EX_LIST)
        for (int i = 0; i < e->list.n; i++)
            walk_value(w, key, e->list.v[i]);
    if (key->losses || !form) {
        if (key->losses)
            walk_expr(w, e);
        return;
    }
    Symbol *s;
    if (name && strcmp(name, form->name) == 0) {
        s = add(w, SYMBOL_FORM, at, name);
        s->key = key;
        s->form = form;
    }
    for (int i = 0; e->kind == EX_CALL && i < e->args.n; i++) {
        const Arg *g = &e->args.v[i];
        for (const Field *f = form->field; g->name && f < form->field + FORM_FIELDS && f->name; f++)
            if (strcmp(f->name, g->name) == 0) {
                s = add(w, SYMBOL_FIELD, g->name_span, g->name);
                s->form = form;
                s->field = f;
            }
    }
}

/* Walks the value of the key target: price: f32[1] binds a name of the recipe; image uses the
 * input. */
static void walk_target(Walk *w, const Decl *train, const Decl *model, const Expr *e)
{
    if (e->kind == EX_TYPED) {
        map_set(&w->bound, e->typed->name, (void *)train);
        add_local(w, train, e->typed->name_span, e->typed->name, true, NULL);
    } else if (e->kind == EX_NAME && model && param_of(model, e->s)) {
        map_set(&w->bound, e->s, (void *)model);
        add_local(w, model, e->span, e->s, false, e);
    }
    for (int i = 0; e->kind == EX_TARGETS && i < e->list.n; i++)
        walk_target(w, train, model, e->list.v[i]);
}

/* Binds the names that a loss can use: the model's outputs, and the targets. */
static void bind_compared(Walk *w, const Decl *train, const Decl *model)
{
    const Body outputs = sem_outputs(model);
    w->bound = map_new(w->a->arena);
    for (int i = 0; i < outputs.n; i++)
        map_set(&w->bound, outputs.v[i]->name, (void *)model);
    for (int i = 0; i < train->entries.n; i++)
        if (strcmp(train->entries.v[i].key, "target") == 0)
            walk_target(w, train, model, train->entries.v[i].value);
    for (int i = 0; i < train->entries.n; i++)
        if (strcmp(train->entries.v[i].key, "metrics") == 0)
            each_metric(w, train, train->entries.v[i].value, bind_metric);
}

/* The name at the end of a result of a metric, "digit" of "test_accuracy_digit", "near" of
 * "test_near"; NULL: it has none.
 * terms: the loss is a call of `terms`, whose terms have the names of loss_NAME. */
static const char *name_in_result(Arena *a, const char *result, bool terms)
{
    static const char *const split[] = {"test", "validation", "train"};
    static const char *const metric[] = {"accuracy", "dice", "iou", "mae", "r2", "rmse", "loss"};
    const int metrics = (int)(sizeof metric / sizeof *metric) - terms;
    for (size_t i = 0; i < sizeof split / sizeof *split; i++)
        for (int k = 0; k < metrics; k++) {
            const char *before = arena_printf(a, "%s_%s_", split[i], metric[k]);
            if (text_glob(arena_printf(a, "%s*", before), result))
                return result + strlen(before);
        }
    for (size_t i = 0; i < sizeof split / sizeof *split; i++) /* a metric of the recipe */
        if (text_glob(arena_printf(a, "%s_*", split[i]), result))
            return result + strlen(split[i]) + 1;
    return NULL;
}

/* Adds the names of targets in the results of `expect`, `keep`, `stop` and `schedule`. */
static void walk_results(Walk *w, const Decl *train, const Decl *model, const Expr *e, bool terms)
{
    if (!e)
        return;
    if (e->kind == EX_BINARY) {
        walk_results(w, train, model, e->a, terms);
        walk_results(w, train, model, e->b, terms);
    }
    for (int i = 0; e->kind == EX_CALL && i < e->args.n; i++)
        walk_results(w, train, model, e->args.v[i].value, terms);
    const char *name = e->kind == EX_NAME ? name_in_result(w->a->arena, e->s, terms) : NULL;
    const Decl *decl = name ? map_get(&w->bound, name) : NULL;
    if (!decl || (decl != train && !param_of(decl, name))) /* an output has no metrics of its own */
        return;
    Span at = e->span;
    at.col += (int)(name - e->s);
    add_local(w, decl, at, name, false, e);
}

/* Whether the loss of a train block is a call of `terms`. */
static bool has_terms(const Decl *d)
{
    bool found = false;
    for (int i = 0; i < d->entries.n; i++) {
        const Expr *e = d->entries.v[i].value;
        found |= strcmp(d->entries.v[i].key, "loss") == 0 && e->kind == EX_CALL &&
                 e->a->kind == EX_NAME && strcmp(e->a->s, "terms") == 0;
    }
    return found;
}

static void walk_train(Walk *w, const Decl *d)
{
    const Decl *model = map_get(&w->a->unit->functions, d->name);
    w->decl = NULL;
    w->a->broken |= d->entries.broken;
    if (model) {
        Symbol *s = add(w, SYMBOL_FUNCTION, d->name_span, d->name);
        s->decl = model;
    }
    bind_compared(w, d, model);
    for (int i = 0; i < d->entries.n; i++) {
        const Entry *n = &d->entries.v[i];
        const TrainKey *key = train_key_find(n->key);
        if (!key)
            continue;
        add(w, SYMBOL_KEY, n->key_span, n->key)->key = key;
        walk_value(w, key, n->value);
        if (strcmp(n->key, "metrics") == 0)
            each_metric(w, d, n->value, walk_metric);
        if (strcmp(n->key, "expect") == 0 || strcmp(n->key, "keep") == 0 ||
            strcmp(n->key, "stop") == 0 || strcmp(n->key, "schedule") == 0)
            walk_results(w, d, model, n->value, has_terms(d));
    }
}

void symbols_find(Analysis *a)
{
    Walk w = {.a = a};
    const Unit *u = a->unit;
    a->broken = u->decls.broken;
    for (int i = 0; i < u->nimport; i++) {
        Symbol *s = add(&w, SYMBOL_IMPORT, u->import[i].decl->name_span, u->import[i].decl->name);
        s->file = u->import[i].to;
    }
    for (int i = 0; i < u->decls.n; i++)
        if (u->decls.v[i]->kind == DECL_TRAIN)
            walk_train(&w, u->decls.v[i]);
        else
            walk_function(&w, u->decls.v[i]);
}

const Symbol *symbol_at(const Analysis *a, int line, int col)
{
    for (int i = 0; i < a->nsymbol; i++)
        if (a->symbol[i].at.source == a->source && span_contains(a->symbol[i].at, line, col))
            return &a->symbol[i];
    return NULL;
}

bool symbol_same(const Symbol *a, const Symbol *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case SYMBOL_FUNCTION:
        return span_same(a->decl->name_span, b->decl->name_span);
    case SYMBOL_LOCAL:
        return span_same(a->decl->name_span, b->decl->name_span) && strcmp(a->name, b->name) == 0;
    case SYMBOL_ARG:
        return a->op == b->op && strcmp(a->name, b->name) == 0;
    case SYMBOL_FORM:
        return a->form == b->form;
    case SYMBOL_FIELD:
        return a->field == b->field;
    case SYMBOL_IMPORT:
        return a->file && b->file && strcmp(a->file->path, b->file->path) == 0;
    default:
        return strcmp(a->name, b->name) == 0;
    }
}
