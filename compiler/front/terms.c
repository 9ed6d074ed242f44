/* terms.c -- see terms.h. */
#include "front/terms.h"
#include "runtime/constants.h"
#include <string.h>

enum { TERM_NAME = 32 }; /* letters of a name, which becomes a part of names in the log */

const Args *terms_of(Unit *u, const Expr *loss)
{
    Callee c;
    const bool call = loss->kind == EX_CALL && loss->a->kind == EX_NAME;
    if (!call || strcmp(loss->a->s, "terms") != 0 || callee_find(u, "terms", &c))
        return NULL;
    return &loss->args;
}

static bool check_name(Unit *u, const Args *terms, int i)
{
    const Arg *term = &terms->v[i];
    if (!term->name) {
        diag_error(u->diag, term->value->span, "this term of the loss has no name");
        diag_help(u->diag, "write it in front, as in terms(fit = mse, small = 0.001 * l2(output))");
        return false;
    }
    if (strlen(term->name) > TERM_NAME) {
        diag_error(u->diag, term->name_span, "the name of a term has at most %d letters, not %zu",
                   TERM_NAME, strlen(term->name));
        return false;
    }
    for (int k = 0; k < i; k++)
        if (terms->v[k].name && strcmp(terms->v[k].name, term->name) == 0) {
            diag_error(u->diag, term->name_span, "the loss has two terms '%s'", term->name);
            return false;
        }
    return true;
}

bool terms_check(Unit *u, const Expr *loss, const Args *terms)
{
    bool ok = true;
    if (terms->n == 0 || terms->n > RT_TERMS) {
        diag_error(u->diag, loss->span, "a loss has 1 to %d terms, not %d", RT_TERMS, terms->n);
        diag_help(u->diag, terms->n == 0 ? "write terms(fit = mse, small = 0.001 * l2(output))"
                                         : "add some of them: small = 0.1 * l2(a) + 0.2 * l2(b)");
        return false;
    }
    for (int i = 0; i < terms->n; i++)
        ok = check_name(u, terms, i) && ok;
    return ok;
}
