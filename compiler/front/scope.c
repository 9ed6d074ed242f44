/* scope.c -- the state while a model runs at compile time: budget, variables, names of layers. */
#include "base/text.h"
#include "front/lower.h"
#include "front/trace.h"

Value lower_fail(Lower *l, Expr *e, Span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_error(l->diag, at, "%s", arena_vprintf(l->arena, fmt, ap));
    va_end(ap);
    if (e)
        e->bad = true;
    return value_poison();
}

bool lower_step(Lower *l, Span at, int64_t steps)
{
    l->steps += steps;
    if (l->stop)
        return false;
    const bool nodes = l->g && l->g->nnode > NODES_MAX;
    if (!nodes && l->steps <= STEPS_MAX)
        return true;
    l->stop = true;
    const Span place = l->loop ? l->loop->span : l->model ? l->model->name_span : at;
    const char *what = l->loop ? "this loop" : l->model ? "this model" : "this";
    if (nodes)
        diag_error(l->diag, place, "%s expands to more than %s operations", what,
                   text_commas(l->arena, NODES_MAX));
    else
        diag_error(l->diag, place, "%s takes more than %s steps to expand", what,
                   text_commas(l->arena, STEPS_MAX));
    diag_help(l->diag, "everything is expanded at compile time; is a bound wrong?");
    return false;
}

bool lower_enter(Lower *l, Span at)
{
    if (l->depth < DEPTH_EVAL) {
        l->depth++;
        return true;
    }
    l->stop = true;
    diag_error(l->diag, at, "expressions and blocks are nested more than %s deep here",
               text_commas(l->arena, DEPTH_EVAL));
    diag_help(l->diag, "give parts of long expressions a name: h = ...");
    return false;
}

void lower_trace(Lower *l, Expr *e, Value v, int first)
{
    Trace *t = l->u->trace;
    if (!t || !l->g || !l->g->training || v.kind == V_POISON || t->n == TRACE_MOST)
        return;
    ARENA_PUSH(l->arena, t->v, t->n, ((Traced){v, e->traced, l->g, first, l->g->next_id}));
    e->traced = t->n;
}

/* ---- variables */

Var *lower_find(const Lower *l, const char *name)
{
    return l->scope ? map_get(&l->scope->vars, name) : NULL;
}

void lower_declare(Lower *l, const char *name, Value v)
{
    Var *var = arena_alloc(l->arena, sizeof *var);
    *var = (Var){name, v, lower_find(l, name)};
    map_set(&l->scope->vars, name, var);
    ARENA_PUSH(l->arena, l->scope->live, l->scope->nlive, var);
}

void lower_assign(Lower *l, const char *name, Value v)
{
    Var *var = lower_find(l, name);
    if (var)
        var->v = v;
    else
        lower_declare(l, name, v);
}

void lower_leave(Scope *s, int mark)
{
    while (s->nlive > mark) {
        const Var *var = s->live[--s->nlive];
        map_set(&s->vars, var->name, var->outer);
    }
}

Scope *lower_scope(Lower *l, const Decl *decl, const char *path)
{
    Scope *s = arena_alloc(l->arena, sizeof *s);
    *s = (Scope){.vars = map_new(l->arena),
                 .taken = map_new(l->arena),
                 .ordinal = map_new(l->arena),
                 .decl = decl,
                 .path = path};
    return s;
}

const char *lower_path(Lower *l, const char *kind)
{
    Scope *s = l->scope;
    const char *leaf = s->leaf;
    s->leaf = NULL;
    int *count = map_get(&s->ordinal, kind);
    if (!leaf && !count) {
        count = arena_alloc(l->arena, sizeof *count);
        map_set(&s->ordinal, kind, count);
    }
    /* adds a number; the name must differ from the names of all bindings, also of later ones */
    while (!leaf) {
        leaf = arena_printf(l->arena, "%s%d", kind, ++*count);
        if (map_get(&s->taken, leaf) || (s->decl && map_get(&s->decl->leaves, leaf)))
            leaf = NULL;
    }
    map_set(&s->taken, leaf, s);
    return s->path[0] ? arena_printf(l->arena, "%s.%s", s->path, leaf) : leaf;
}
