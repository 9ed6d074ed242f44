/* callee.c -- finds what a call calls: an op, a block, a declared op, or a function of numbers. */
#include "base/text.h"
#include "front/sem.h"
#include <string.h>

/* In the order of Function, from FN_LEN on. */
static const char *const functions[] = {"len",  "int", "float", "min",   "max", "abs",
                                        "sqrt", "exp", "log",   "zeros", NULL};

const char *const *function_names(void)
{
    return functions;
}

Function function_find(const char *name)
{
    for (int i = 0; functions[i]; i++)
        if (strcmp(functions[i], name) == 0)
            return (Function)(FN_LEN + i);
    return FN_NONE;
}

bool callee_find(const Unit *u, const char *name, Callee *out)
{
    *out = (Callee){.decl = map_get(&u->functions, name), .fn = function_find(name)};
    if (!out->decl)
        out->op = op_find(name);
    if (out->op && (out->op->flags & OP_HIDDEN))
        out->op = NULL;
    return out->decl || out->op || out->fn;
}

bool callee_layers(const Callee *c)
{
    return (c->decl && c->decl->kind == DECL_BLOCK) || (c->op && c->op->layer);
}

int callee_count(const Callee *c)
{
    int n = 0;
    if (c->decl)
        return c->decl->params.n;
    while (c->op && n < OP_ARGS && c->op->arg[n].name)
        n++;
    return n;
}

const char *callee_arg(const Callee *c, int i)
{
    return c->decl ? c->decl->params.v[i].name : c->op->arg[i].name;
}

bool callee_tensor(const Callee *c, int i)
{
    return c->decl ? c->decl->params.v[i].type == TYPE_TENSOR
                   : c->op->arg[i].type == ARG_TENSOR || c->op->arg[i].type == ARG_TENSORS;
}

bool callee_gathers(const Callee *c, int i)
{
    return c->op && c->op->arg[i].type == ARG_TENSORS;
}

bool suggest_loss(Unit *u, const char *word)
{
    const char *ours = foreign_loss(word);
    if (!ours)
        return false;
    if (map_get(&u->functions, ours)) {
        diag_help(u->diag, "did you mean '%s'?", ours);
        diag_replace(u->diag, word, ours);
    } else {
        diag_help(u->diag,
                  "write import \"losses.tn\" at the top of the file: it has the loss '%s'", ours);
    }
    return true;
}

void suggest(Diag *d, const char *word, const char *const *list, int n, const char *all)
{
    if (text_nearest(word, list, n))
        diag_suggest(d, word, list, n);
    else if (n && n <= 16) {
        Text t = text_new(diag_arena(d));
        for (int i = 0; i < n; i++)
            text_printf(&t, "%s%s", i == 0 ? "" : i == n - 1 ? " and " : ", ", list[i]);
        diag_help(d, "%s %s %s", all, n == 1 ? "is" : "are", t.s);
    }
}
