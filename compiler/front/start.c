/* start.c -- the key `start`: the weights with which a run begins.
 *
 *     start = weights("base.safetensors", except = ["head.*"])
 *
 * Programs read the file.  The compiler checks the patterns when the names of the model are known.
 */
#include "base/text.h"
#include "front/lower.h"
#include "front/train.h"

void start_read(Unit *u, Recipe *r, Expr *e, const Form *forms)
{
    r->start.span = e->span;
    if (e->kind != EX_STRING || !*e->s || e->bad) {
        form_read(u, e, "start", forms, &r->start);
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
            factors_report(g, s->only.v[i], s->span, true, d);
    for (int i = 0; i < s->except.n; i++)
        if (given(s->except.v[i]) && !fits_parameter(g, s->except.v[i]) &&
            !fits_words(g, s->except.v[i]))
            factors_report(g, s->except.v[i], s->span, true, d);
}
