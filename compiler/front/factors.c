/* factors.c -- factors of learning rate and decay for single parameters; frozen parameters.
 *
 *     factors = [decay("*.bias", 1), lr("head.*", 10)]
 *     freeze  = ["stem.*"]
 *
 * Patterns select names of parameters; the last pattern that fits a name counts.  A pattern that
 * fits no name is an error, which is reported when the names of the model are known.
 */
#include "base/text.h"
#include "front/train.h"
#include <stddef.h>
#include <string.h>

void factors_read(Unit *u, Recipe *r, Expr *e)
{
    const int n = e->kind == EX_LIST ? e->list.n : 1;
    for (int i = 0; i < n; i++) {
        Expr *one = e->kind == EX_LIST ? e->list.v[i] : e;
        Factor f = {.span = one->span};
        const Form *form = form_read(u, one, "factor", factor_forms, &f);
        if (!form || !f.pattern)
            continue;
        f.kind = (FactorKind)form->tag;
        ARENA_PUSH(u->arena, r->factor, r->nfactor, f);
    }
}

void factors_read_freeze(Unit *u, Recipe *r, Expr *e)
{
    const int n = e->kind == EX_LIST ? e->list.n : 1;
    for (int i = 0; i < n; i++) {
        const Expr *one = e->kind == EX_LIST ? e->list.v[i] : e;
        if (one->kind == EX_STRING) {
            const Factor f = {FACTOR_FREEZE, one->s, 0, one->span};
            ARENA_PUSH(u->arena, r->factor, r->nfactor, f);
        } else if (!one->bad) {
            diag_error(u->diag, one->span, "'freeze' lists patterns of parameter names");
            diag_help(u->diag, "write them as strings: freeze = [\"stem.*\"]");
        }
    }
}

static void apply_factor(Param *p, const Factor *f)
{
    if (f->kind == FACTOR_FREEZE)
        p->frozen = true;
    else
        *(f->kind == FACTOR_LR ? &p->lr : &p->decay) = f->factor;
}

void factors_report(const Graph *g, const char *pattern, Span span, bool averages, Diag *d)
{
    const char **near = NULL;
    int n = 0;
    for (int i = 0; i < g->nparam; i++) {
        const char *name = g->param[i]->name, *last = strrchr(name, '.'),
                   *first = strchr(name, '.');
        if (g->param[i]->average && !averages)
            continue;
        ARENA_PUSH(g->arena, near, n, name);
        if (!last)
            continue;
        ARENA_PUSH(g->arena, near, n, arena_printf(g->arena, "%.*s.*", (int)(first - name), name));
        ARENA_PUSH(g->arena, near, n, arena_printf(g->arena, "*%s", last));
    }
    diag_error(d, span, "no parameter of '%s' is called %s", g->name, pattern);
    if (text_nearest(pattern, near, n))
        diag_suggest(d, pattern, near, n);
    else if (n)
        diag_help(d, "the first is called %s; * stands for any characters", near[0]);
}

void factors_apply(Graph *g, Diag *d)
{
    const Recipe *r = &g->recipe;
    int trained = 0, frozen = 0;
    for (int k = 0; k < r->nfactor; k++) {
        bool fits = false;
        for (int i = 0; i < g->nparam; i++)
            if (!g->param[i]->average && text_glob(r->factor[k].pattern, g->param[i]->name))
                apply_factor(g->param[i], &r->factor[k]), fits = true;
        if (!fits && g->training)
            factors_report(g, r->factor[k].pattern, r->factor[k].span, false, d);
    }
    for (int i = 0; i < g->nparam; i++)
        if (!g->param[i]->average)
            *(g->param[i]->frozen ? &frozen : &trained) += 1;
    if (frozen && !trained && g->training)
        diag_error(d, r->factor[r->nfactor - 1].span,
                   "every parameter is frozen: nothing is left to train");
}
