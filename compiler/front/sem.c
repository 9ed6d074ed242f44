/* sem.c -- checks that each declaration is unique and well formed, and that no block calls
 * itself. */
#include "front/names.h"
#include <string.h>

static void declare_param(Sem *s, Decl *decl, const ParamDecl *p)
{
    if (map_get(&s->names, p->name)) {
        diag_error(s->u->diag, p->span, "parameter '%s' is declared twice", p->name);
        decl->bad = true;
    }
    names_declare(s, p->name, p->span);
}

static void check_params(Sem *s, Decl *decl)
{
    Diag *d = s->u->diag;
    int inputs = 0;
    for (int i = 0; i < decl->params.n; i++) {
        ParamDecl *p = &decl->params.v[i];
        inputs += p->type == TYPE_INPUT || p->type == TYPE_BAD;
        if (p->fallback && p->type == TYPE_TENSOR) {
            diag_error(d, p->span, "the tensor '%s' cannot have a default", p->name);
            diag_help(d, "a number is declared with its type: %s: int = 1", p->name);
            p->type = TYPE_BAD;
        } else if (p->type == TYPE_TENSOR && decl->kind == DECL_MODEL) {
            diag_error(d, p->span, "the parameter '%s' of a model needs a type", p->name);
            diag_help(d, "write %s: f32[1, 28, 28] for the input, %s: int for a number", p->name,
                      p->name);
            p->type = TYPE_BAD;
            inputs++;
        } else if (p->type == TYPE_INPUT && decl->kind != DECL_MODEL) {
            diag_error(d, p->type_span, "only the input of a model has fixed dimensions");
            diag_help(d, "write the tensor '%s' without a type", p->name);
            p->type = TYPE_TENSOR;
        } else if (p->type == TYPE_INPUT && inputs == RT_INPUTS + 1) {
            diag_error(d, p->span, "a model has at most %d inputs, '%s' is one more", RT_INPUTS,
                       p->name);
            diag_help(d, "put vectors of numbers into one input, and take parts of it with slice");
        }
        names_check(s, p->fallback);
        if (p->type != TYPE_INPUT)
            declare_param(s, decl, p);
    }
    if (decl->kind == DECL_MODEL && inputs == 0) {
        diag_error(d, decl->name_span, "model '%s' has no input", decl->name);
        diag_help(d, "write its first parameter as image: f32[1, 28, 28]");
        decl->bad = true;
    }
    for (int i = 0; i < decl->params.n; i++) /* dimensions can use any number of the head */
        for (int k = 0; k < decl->params.v[i].dims.n; k++)
            names_check(s, decl->params.v[i].dims.v[k]);
    for (int i = 0; i < decl->params.n; i++)
        if (decl->params.v[i].type == TYPE_INPUT)
            declare_param(s, decl, &decl->params.v[i]);
}

static void check_function(Unit *u, Decl *decl)
{
    Sem s = {.u = u,
             .decl = decl,
             .names = map_new(u->arena),
             .gone = map_new(u->arena),
             .binds = map_new(u->arena)};
    decl->leaves = map_new(u->arena);
    check_params(&s, decl);
    names_check(&s, decl->formula);
    names_body(&s, &decl->body);
    if (decl->kind != DECL_OP && !s.returns && !decl->body.broken) {
        diag_error(u->diag, decl->name_span, "%s '%s' returns nothing", decl_word(decl->kind),
                   decl->name);
        diag_help(u->diag, "end it with: return VALUE");
        decl->bad = true;
    }
    int n;
    const char **name = map_keys(&s.binds, &n);
    for (int i = 0; i < n; i++) {
        Bound *b = map_get(&s.binds, name[i]);
        if (b->uses != 1 || b->in_loop || names_layers(&s, b->stmt->value) != 1)
            continue;
        b->stmt->names_layer = true;
        map_set(&decl->leaves, b->name, b->stmt);
    }
}

static const Stmt *first_return(const Body *body)
{
    const Stmt *found = NULL;
    for (int i = 0; i < body->n && !found; i++) {
        const Stmt *t = body->v[i];
        found = t->kind == ST_RETURN ? t : t->kind == ST_FOR ? first_return(&t->body) : NULL;
        for (int k = 0; t->kind == ST_IF && k < t->branches.n && !found; k++)
            found = first_return(&t->branches.v[k].body);
    }
    return found;
}

Body sem_outputs(const Decl *model)
{
    const Stmt *t = model ? first_return(&model->body) : NULL;
    return t ? t->body : (Body){0};
}

static void sem_place(const Unit *u, Span at) /* "on line 3", with the file if it is another one */
{
    if (at.source == u->source)
        diag_note(u->diag, "the first one is on line %d", at.line);
    else
        diag_note(u->diag, "the first one is %s:%d", at.source->name, at.line);
}

static void declare_functions(Unit *u)
{
    for (int i = 0; i < u->decls.n; i++) {
        Decl *decl = u->decls.v[i];
        if (decl->kind == DECL_TRAIN || decl->kind == DECL_IMPORT)
            continue;
        const Decl *first = map_get(&u->functions, decl->name);
        if (first) {
            diag_error(u->diag, decl->name_span, "'%s' is defined twice", decl->name);
            sem_place(u, first->name_span);
            if (first->name_span.source != decl->name_span.source)
                diag_help(u->diag, "rename this %s, or remove it and call the imported one",
                          decl_word(decl->kind));
        } else if (op_find(decl->name) || function_find(decl->name)) {
            diag_error(u->diag, decl->name_span, "'%s' is a function of Tenon", decl->name);
            diag_help(u->diag, "choose another name for the %s", decl_word(decl->kind));
        } else {
            map_set(&u->functions, decl->name, decl);
        }
    }
}

static void check_train(Unit *u, Decl *decl)
{
    const Decl *model = map_get(&u->functions, decl->name);
    const Decl *first = map_get(&u->trains, decl->name);
    if (first) {
        diag_error(u->diag, decl->name_span, "model '%s' has two train blocks", decl->name);
        sem_place(u, first->name_span);
    }
    map_set(&u->trains, decl->name, decl);
    if (model && model->kind == DECL_MODEL)
        return;
    decl->bad = true;
    if (u->decls.broken)
        return;
    if (model) {
        diag_error(u->diag, decl->name_span, "'%s' is %s %s, not a model", decl->name,
                   model->kind == DECL_OP ? "an" : "a", decl_word(model->kind));
        return;
    }
    const char **name = NULL;
    int n = 0;
    for (int i = 0; i < u->decls.n && !names_too_many(u); i++)
        if (u->decls.v[i]->kind == DECL_MODEL)
            ARENA_PUSH(u->arena, name, n, u->decls.v[i]->name);
    diag_error(u->diag, decl->name_span, "there is no model '%s' to train", decl->name);
    suggest(u->diag, decl->name, name, n, n == 1 ? "the model" : "the models");
}

/* ---- cycles */

typedef struct Chain {
    const struct Chain *up;
    Decl *decl;
    int depth;
} Chain;

static void report_cycle(Unit *u, const Chain *chain, Decl *to, const Expr *call)
{
    const char *text = to->name;
    int length = 1;
    for (const Chain *c = chain; c; c = c->up, length++) {
        text = arena_printf(u->arena, "%s -> %s", c->decl->name, text);
        c->decl->bad = true;
        if (c->decl == to)
            break;
    }
    diag_error(u->diag, call->span, "%s '%s' calls itself", decl_word(to->kind), to->name);
    if (length > 1)
        diag_note(u->diag, "the chain is %s", text);
    diag_help(u->diag, "everything is expanded at compile time, so this would never end");
}

static void visit(Unit *u, Decl *decl, const Chain *up)
{
    const Chain here = {up, decl, up ? up->depth + 1 : 1};
    decl->mark = 1;
    for (int i = 0; i < decl->ncalls; i++) {
        Decl *to = map_get(&u->functions, decl->calls[i]->a->s);
        if (to->mark == 1) {
            report_cycle(u, &here, to, decl->calls[i]);
        } else if (to->mark == 0 && here.depth == DEPTH_CALLS) {
            diag_error(u->diag, decl->calls[i]->span, "blocks are nested more than %d deep here",
                       DEPTH_CALLS);
            decl->bad = true;
        } else if (to->mark == 0) {
            visit(u, to, &here);
        }
    }
    decl->mark = 2;
}

void sem_check(Unit *u)
{
    u->trains = map_new(u->arena);
    u->functions = map_new(u->arena);
    declare_functions(u);
    for (int i = 0; i < u->decls.n; i++) {
        Decl *decl = u->decls.v[i];
        if (decl->kind == DECL_TRAIN)
            check_train(u, decl);
        else if (decl->kind != DECL_IMPORT)
            check_function(u, decl);
    }
    for (int i = 0; i < u->decls.n; i++)
        if (u->decls.v[i]->mark == 0 && u->decls.v[i]->kind != DECL_TRAIN)
            visit(u, u->decls.v[i], NULL);
}

void sem_expr(Unit *u, Expr *e, const char *const *names, int n)
{
    Sem s = {.u = u,
             .names = map_new(u->arena),
             .gone = map_new(u->arena),
             .binds = map_new(u->arena)};
    for (int i = 0; i < n; i++)
        names_declare(&s, names[i], (Span){0});
    names_check(&s, e);
}
