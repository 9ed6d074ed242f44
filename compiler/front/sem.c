/* sem.c -- names: declared once, known where they are used, and no block that calls itself. */
#include "front/sem.h"
#include "front/parse.h"
#include "base/text.h"
#include <string.h>

/* ---- what can be called */

Function function_find(const char *name)
{
    static const char *const word[] = {"", "len", "int", "float", "min", "max", "abs", "sqrt", "exp", "log"};
    for (size_t i = 1; i < sizeof word / sizeof *word; i++)
        if (strcmp(word[i], name) == 0)
            return (Function)i;
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
    return c->decl ? c->decl->params.v[i].type == TYPE_TENSOR : c->op->arg[i].type == ARG_TENSOR;
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

/* ---- names inside one declaration */

typedef struct Bound { const char *name; Span at; int uses; bool in_loop; Stmt *stmt; } Bound;

typedef struct Sem {
    Unit  *u;
    Decl  *decl;                                      /* NULL for a lone expression */
    Map    names;                                     /* in scope here: Bound * */
    Map    gone;                                      /* were in scope inside a body that has ended */
    Map    binds;                                     /* every name that a statement binds: Bound *, counting */
    Bound **live;                                     /* stack of names in scope */
    int    nlive;
    int    loops;
    bool   broken;                                    /* a statement was lost: its name may be the missing one */
    bool   returns;
} Sem;

static void declare(Sem *s, const char *name, Span at)
{
    if (map_get(&s->names, name))
        return;
    Bound *b = arena_alloc(s->u->arena, sizeof *b);
    *b = (Bound){.name = name, .at = at};
    map_set(&s->names, name, b);
    ARENA_PUSH(s->u->arena, s->live, s->nlive, b);
}

static void leave(Sem *s, int mark)
{
    while (s->nlive > mark) {
        Bound *b = s->live[--s->nlive];
        map_set(&s->names, b->name, NULL);
        map_set(&s->gone, b->name, b);
    }
}

/* With so many errors nobody reads them all: searching for likely names would only cost time. */
static bool too_many(const Unit *u)
{
    return diag_errors(u->diag) > ERRORS_MAX;
}

/* Every name that could be called or used here. */
static void suggest_name(Sem *s, const char *word, bool call)
{
    int n = 0, more = 0;
    Unit *u = s->u;
    if (too_many(u))
        return;
    const char **name = map_keys(&s->names, &n);
    const char **declared = call ? map_keys(&u->functions, &more) : NULL;
    for (int i = 0; i < more; i++)
        ARENA_PUSH(u->arena, name, n, declared[i]);
    for (int i = 0; call && i < op_count(); i++)
        if (!(op_at(i)->flags & OP_HIDDEN))
            ARENA_PUSH(u->arena, name, n, op_at(i)->name);
    if (call)
        ARENA_PUSH(u->arena, name, n, "len");
    diag_suggest(u->diag, word, name, n);
}

static void unknown(Sem *s, Expr *e, bool call)
{
    Diag *d = s->u->diag;
    Callee c;
    e->bad = true;
    if (s->broken || s->u->decls.broken)
        return;
    const Bound *gone = map_get(&s->gone, e->s);
    if (!call && callee_find(s->u, e->s, &c)) {
        diag_error(d, e->span, "'%s' is a function, not a value", e->s);
        diag_help(d, "call it: %s(...)", e->s);
        return;
    }
    diag_error(d, e->span, call ? "there is no op, block or layer '%s'" : "unknown name '%s'", e->s);
    if (gone && gone->at.source) {
        diag_note(d, "'%s' of line %d is local to the braces around it", e->s, gone->at.line);
        diag_help(d, "bind it before them, or write %s = if ... { } else { }", e->s);
    } else {
        suggest_name(s, e->s, call);
    }
}

/* Named arguments exist and are given once. */
static void check_args(Sem *s, Expr *call, const Callee *c, const char *name)
{
    Diag *d = s->u->diag;
    const int count = callee_count(c);
    const char **word = NULL;
    int nword = 0;
    for (int i = 0; i < count; i++)
        ARENA_PUSH(s->u->arena, word, nword, callee_arg(c, i));
    for (int i = 0; i < call->args.n; i++) {
        const Arg *a = &call->args.v[i];
        int at = 0;
        while (a->name && at < count && strcmp(word[at], a->name) != 0)
            at++;
        if (a->name && at == count) {
            call->bad = true;
            diag_error(d, a->name_span, "%s has no argument '%s'", name, a->name);
            suggest(d, a->name, word, nword, "its arguments");
        }
        for (int j = 0; a->name && j < i; j++)
            if (call->args.v[j].name && strcmp(call->args.v[j].name, a->name) == 0) {
                call->bad = true;
                diag_error(d, a->name_span, "argument '%s' is given twice", a->name);
                break;
            }
    }
}

/* A formula is made of elementwise parts only, because its gradient is derived from theirs. */
static void check_formula_call(Sem *s, Expr *call, const Callee *c)
{
    const bool fits = c->decl ? c->decl->kind == DECL_OP : !c->op || (c->op->flags & OP_ELEMENTWISE);
    if (fits)
        return;
    call->bad = true;
    diag_error(s->u->diag, call->span, "'%s' is not elementwise", call->a->s);
    diag_help(s->u->diag, "an op is a formula over elementwise ops; write a block for anything else");
}

static void check_call_name(Sem *s, Expr *call)
{
    Callee c;
    const char *name = call->a->s;
    const bool variable = map_get(&s->names, name) != NULL;
    if (!callee_find(s->u, name, &c)) {
        if (!variable)
            unknown(s, call->a, true);
        return;
    }
    if (c.decl && c.decl->kind == DECL_MODEL && !variable) {
        call->bad = true;
        diag_error(s->u->diag, call->a->span, "'%s' is a model and cannot be called", name);
        diag_help(s->u->diag, "write its shared part as a block");
        return;
    }
    if (variable)
        return;
    if (c.decl || c.op)
        check_args(s, call, &c, name);
    if (c.decl && s->decl)
        ARENA_PUSH(s->u->arena, s->decl->calls, s->decl->ncalls, call);
    if (s->decl && s->decl->kind == DECL_OP)
        check_formula_call(s, call, &c);
}

static void check(Sem *s, Expr *e)
{
    if (!e)
        return;
    switch (e->kind) {
    case EX_NAME:
        if (!map_get(&s->names, e->s))
            unknown(s, e, false);
        break;
    case EX_LIST:
        for (int i = 0; i < e->list.n; i++)
            check(s, e->list.v[i]);
        break;
    case EX_UNARY: case EX_FIELD:
        check(s, e->a);
        break;
    case EX_BINARY: case EX_INDEX:
        check(s, e->a);
        check(s, e->b);
        break;
    case EX_IF:
        for (int i = 0; i < e->arms.n; i++) {
            check(s, e->arms.v[i].cond);
            check(s, e->arms.v[i].value);
        }
        break;
    case EX_CALL:
        if (e->args.n > ARGS_MAX) {
            diag_error(s->u->diag, e->span, "this call has %d arguments, more than %d", e->args.n, ARGS_MAX);
            e->args.n = 0;
            e->bad = true;
        }
        if (e->a->kind == EX_NAME)
            check_call_name(s, e);
        else
            check(s, e->a);
        for (int i = 0; i < e->args.n; i++)
            check(s, e->args.v[i].value);
        break;
    default:
        break;
    }
}

/* How many calls in e make a layer or a block instance. */
static int layers(const Sem *s, const Expr *e)
{
    int n = 0;
    Callee c;
    if (!e)
        return 0;
    switch (e->kind) {
    case EX_LIST:
        for (int i = 0; i < e->list.n; i++)
            n += layers(s, e->list.v[i]);
        return n;
    case EX_UNARY: case EX_FIELD:
        return layers(s, e->a);
    case EX_BINARY: case EX_INDEX:
        return layers(s, e->a) + layers(s, e->b);
    case EX_IF:
        for (int i = 0; i < e->arms.n; i++)
            n += layers(s, e->arms.v[i].cond) + layers(s, e->arms.v[i].value);
        return n;
    case EX_CALL:
        if (e->a->kind == EX_NAME)
            n = callee_find(s->u, e->a->s, &c) && callee_layers(&c);
        else
            n = layers(s, e->a);
        for (int i = 0; i < e->args.n; i++)
            n += layers(s, e->args.v[i].value);
        return n;
    default:
        return 0;
    }
}

static void bind(Sem *s, Stmt *t)
{
    Bound *b = map_get(&s->binds, t->name);
    if (!b) {
        b = arena_alloc(s->u->arena, sizeof *b);
        *b = (Bound){.name = t->name, .stmt = t};
        map_set(&s->binds, t->name, b);
    }
    b->uses++;
    b->in_loop |= s->loops > 0;
    declare(s, t->name, t->name_span);
}

static void check_body(Sem *s, const Body *body);

static void check_stmt(Sem *s, Stmt *t)
{
    const int mark = s->nlive;
    switch (t->kind) {
    case ST_BIND:
        check(s, t->value);
        bind(s, t);
        break;
    case ST_RETURN:
        check(s, t->value);
        s->returns = true;
        break;
    case ST_FOR:
        check(s, t->value);
        check(s, t->to);
        s->loops++;
        if (map_get(&s->names, t->name)) {
            diag_error(s->u->diag, t->name_span, "the loop's '%s' would hide another '%s'", t->name, t->name);
            diag_help(s->u->diag, "give the loop a name of its own");
        }
        declare(s, t->name, t->name_span);
        check_body(s, &t->body);
        leave(s, mark);
        s->loops--;
        break;
    case ST_IF:
        for (int i = 0; i < t->branches.n; i++) {
            check(s, t->branches.v[i].cond);
            check_body(s, &t->branches.v[i].body);
        }
        break;
    }
}

static void check_body(Sem *s, const Body *body)
{
    const int mark = s->nlive;
    s->broken |= body->broken;
    for (int i = 0; i < body->n; i++)
        check_stmt(s, body->v[i]);
    leave(s, mark);
}

/* ---- declarations */

static void check_params(Sem *s, Decl *decl)
{
    Diag *d = s->u->diag;
    int inputs = 0;
    for (int i = 0; i < decl->params.n; i++) {
        ParamDecl *p = &decl->params.v[i];
        if (map_get(&s->names, p->name)) {
            diag_error(d, p->span, "parameter '%s' is declared twice", p->name);
            decl->bad = true;
        }
        inputs += p->type == TYPE_INPUT || p->type == TYPE_BAD;
        if (p->fallback && p->type == TYPE_TENSOR) {
            diag_error(d, p->span, "the tensor '%s' cannot have a default", p->name);
            diag_help(d, "a number is declared with its type: %s: int = 1", p->name);
            p->type = TYPE_BAD;
        } else if (p->type == TYPE_TENSOR && decl->kind == DECL_MODEL) {
            diag_error(d, p->span, "the parameter '%s' of a model needs a type", p->name);
            diag_help(d, "write %s: f32[1, 28, 28] for the input, %s: int for a number", p->name, p->name);
            p->type = TYPE_BAD;
            inputs++;
        } else if (p->type == TYPE_INPUT && decl->kind != DECL_MODEL) {
            diag_error(d, p->type_span, "only the input of a model has fixed dimensions");
            diag_help(d, "write the tensor '%s' without a type", p->name);
            p->type = TYPE_TENSOR;
        } else if (p->type == TYPE_INPUT && inputs > 1) {
            diag_error(d, p->span, "a model has one input, '%s' is another", p->name);
        }
        check(s, p->fallback);
        if (p->type != TYPE_INPUT)
            declare(s, p->name, p->span);
    }
    if (decl->kind == DECL_MODEL && inputs == 0) {
        diag_error(d, decl->name_span, "model '%s' has no input", decl->name);
        diag_help(d, "write its first parameter as image: f32[1, 28, 28]");
        decl->bad = true;
    }
    for (int i = 0; i < decl->params.n; i++)          /* dimensions may use any number of the head */
        for (int k = 0; k < decl->params.v[i].dims.n; k++)
            check(s, decl->params.v[i].dims.v[k]);
    for (int i = 0; i < decl->params.n; i++)
        declare(s, decl->params.v[i].name, decl->params.v[i].span);
}

static void check_function(Unit *u, Decl *decl)
{
    Sem s = {.u = u, .decl = decl, .names = map_new(u->arena), .gone = map_new(u->arena),
             .binds = map_new(u->arena)};
    decl->leaves = map_new(u->arena);
    check_params(&s, decl);
    check(&s, decl->formula);
    check_body(&s, &decl->body);
    if (decl->kind != DECL_OP && !s.returns && !decl->body.broken) {
        diag_error(u->diag, decl->name_span, "%s '%s' returns nothing", decl_word(decl->kind), decl->name);
        diag_help(u->diag, "end it with: return VALUE");
        decl->bad = true;
    }
    int n;
    const char **name = map_keys(&s.binds, &n);
    for (int i = 0; i < n; i++) {
        Bound *b = map_get(&s.binds, name[i]);
        if (b->uses != 1 || b->in_loop || layers(&s, b->stmt->value) != 1)
            continue;
        b->stmt->names_layer = true;
        map_set(&decl->leaves, b->name, b->stmt);
    }
}

static void place(const Unit *u, Span at)             /* "on line 3", and of which file when it is another */
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
            place(u, first->name_span);
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
        place(u, first->name_span);
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
    for (int i = 0; i < u->decls.n && !too_many(u); i++)
        if (u->decls.v[i]->kind == DECL_MODEL)
            ARENA_PUSH(u->arena, name, n, u->decls.v[i]->name);
    diag_error(u->diag, decl->name_span, "there is no model '%s' to train", decl->name);
    suggest(u->diag, decl->name, name, n, n == 1 ? "the model" : "the models");
}

/* ---- cycles */

typedef struct Chain { const struct Chain *up; Decl *decl; int depth; } Chain;

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
            diag_error(u->diag, decl->calls[i]->span, "blocks are nested more than %d deep here", DEPTH_CALLS);
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
    Sem s = {.u = u, .names = map_new(u->arena), .gone = map_new(u->arena), .binds = map_new(u->arena)};
    for (int i = 0; i < n; i++)
        declare(&s, names[i], (Span){0});
    check(&s, e);
}
