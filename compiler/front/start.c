/* start.c -- the key `start`: the weights with which a run begins.
 *
 *     start = weights("base.safetensors", except = ["head.*"])
 *
 * Programs read the file.  The compiler checks the patterns when the names of the model are known.
 */
#include "base/text.h"
#include "front/lower.h"
#include "front/train.h"
#include <string.h>

/* The places of the patterns in the argument with this name, or at this position.  NULL: it is not
 * given. */
static const Span *places(const Unit *u, const Expr *e, const char *name, int position)
{
    const Expr *value = NULL;
    int unnamed = 0;
    for (int i = 0; e->kind == EX_CALL && i < e->args.n; i++) {
        const Arg *a = &e->args.v[i];
        const bool fits = a->name ? strcmp(a->name, name) == 0 : unnamed++ == position;
        if (fits && (!value || a->override)) /* as form_fields chooses */
            value = a->value;
    }
    if (!value)
        return NULL;
    const int n = value->kind == EX_LIST ? value->list.n : 1;
    Span *at = arena_alloc(u->arena, sizeof *at * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        at[i] = value->kind == EX_LIST ? value->list.v[i]->span : value->span;
    return at;
}

void start_read(Unit *u, Recipe *r, Expr *e, const Form *forms)
{
    r->start.span = e->span;
    if (e->kind != EX_STRING || !*e->s || e->bad) {
        form_read(u, e, "start", forms, &r->start);
        r->start.only_at = places(u, e, "only", 1);
        r->start.except_at = places(u, e, "except", 2);
        return;
    }
    diag_error(u->diag, e->span, "'start' is a call, this is a string");
    diag_help(u->diag, "write weights(\"%s\")", e->s);
}

static bool fits_parameter(const Graph *g, const char *pattern)
{
    bool fits = false;
    for (int i = 0; i < g->nparam; i++)
        fits |= text_glob(pattern, g->param[i]->name);
    return fits;
}

/* Whether the pattern fits what such a file holds beside parameters: runtime/files/safetensors.h.
 */
static bool fits_words(const Graph *g, const char *pattern)
{
    const DataSpec *d = &g->recipe.data;
    return (d->unit && text_glob(pattern, "vocabulary")) ||
           (d->columns && text_glob(pattern, "columns"));
}

/* False: an error of this pattern is reported. */
static bool given(const char *pattern)
{
    return pattern && *pattern;
}

void start_check(const Graph *g, Diag *d)
{
    const StartSpec *s = &g->recipe.start;
    for (int i = 0; i < s->only.n; i++)
        if (given(s->only.v[i]) && !fits_parameter(g, s->only.v[i]))
            factors_report(g, s->only.v[i], s->only_at[i], true, d);
    for (int i = 0; i < s->except.n; i++)
        if (given(s->except.v[i]) && !fits_parameter(g, s->except.v[i]) &&
            !fits_words(g, s->except.v[i]))
            factors_report(g, s->except.v[i], s->except_at[i], true, d);
}
