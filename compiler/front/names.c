/* names.c -- checks that every name in a body is defined, and that every named argument exists. */
#include "front/names.h"
#include <string.h>

bool names_too_many(const Unit *u)
{
    return diag_errors(u->diag) > ERRORS_MAX;
}

void names_declare(Sem *s, const char *name, Span at)
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

/* Suggests the nearest of all names that are allowed here. */
static void suggest_name(Sem *s, const char *word, bool call)
{
    int n = 0, more = 0;
    Unit *u = s->u;
    if (names_too_many(u))
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
    if (!s->decl && !call && n > 0) /* the loss of a recipe */
        suggest(u->diag, word, name, n, "the names in a loss");
    else
        diag_suggest(u->diag, word, name, n);
}

/* Adds the help "call it: relu(...)"; in the loss of a recipe "call it: mse(output, price)". */
static void suggest_call(const Sem *s, const char *function, const Callee *c)
{
    const char *answer = NULL; /* the last target, whose name is the last one of a loss */
    for (int i = 0; i < s->nlive && map_get(&s->names, "output"); i++)
        answer = strcmp(s->live[i]->name, "output") != 0 ? s->live[i]->name : answer;
    const bool loss = !s->decl && answer && c->op && !(c->op->flags & OP_ELEMENTWISE) &&
                      callee_count(c) > 1 && callee_tensor(c, 0) && callee_tensor(c, 1);
    if (loss)
        diag_help(s->u->diag, "call it: %s(output, %s)", function, answer);
    else
        diag_help(s->u->diag, "call it: %s(...)", function);
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
        suggest_call(s, e->s, &c);
        return;
    }
    diag_error(d, e->span, call ? "there is no op, block or layer '%s'" : "unknown name '%s'",
               e->s);
    if (gone && gone->at.source) {
        diag_note(d, "'%s' of line %d is local to the braces around it", e->s, gone->at.line);
        diag_help(d, "bind it before them, or write %s = if ... { } else { }", e->s);
    } else if (call && strcmp(e->s, "range") == 0) {
        diag_help(d, "write a loop over numbers as: for i in 0..3 { ... }");
    } else if (!call || !suggest_loss(s->u, e->s)) {
        suggest_name(s, e->s, call);
    }
}

/* Checks that named arguments exist and are given once. */
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

/* Reports a call in a formula if the called op is not elementwise: the gradient of the formula
 * follows from the gradients of its ops. */
static void check_formula_call(Sem *s, Expr *call, const Callee *c)
{
    const bool fits =
        c->decl ? c->decl->kind == DECL_OP : !c->op || (c->op->flags & OP_ELEMENTWISE);
    if (fits)
        return;
    call->bad = true;
    diag_error(s->u->diag, call->span, "'%s' is not elementwise", call->a->s);
    diag_help(s->u->diag,
              "an op is a formula over elementwise ops; write a block for anything else");
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

/* Reports terms(...) in an expression: it is a loss, and never a part of one.  False: e is another
 * call. */
static bool check_inner_terms(Sem *s, Expr *e)
{
    Callee c;
    if (s->decl || e->a->kind != EX_NAME || strcmp(e->a->s, "terms") != 0 ||
        map_get(&s->names, "terms") || callee_find(s->u, "terms", &c))
        return false;
    e->bad = e->a->bad = true;
    e->args.n = 0;
    diag_error(s->u->diag, e->a->span, "terms(...) is the whole loss, and this is a part of it");
    diag_help(s->u->diag, "write numbers and sums inside of a term, as in "
                          "loss = terms(size = 0.001 * l2(output) + ...)");
    return true;
}

void names_check(Sem *s, Expr *e)
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
            names_check(s, e->list.v[i]);
        break;
    case EX_UNARY:
    case EX_FIELD:
        names_check(s, e->a);
        break;
    case EX_BINARY:
    case EX_INDEX:
        names_check(s, e->a);
        names_check(s, e->b);
        break;
    case EX_IF:
        for (int i = 0; i < e->arms.n; i++) {
            names_check(s, e->arms.v[i].cond);
            names_check(s, e->arms.v[i].value);
        }
        break;
    case EX_CALL:
        if (check_inner_terms(s, e))
            break;
        if (e->args.n > ARGS_MAX) {
            diag_error(s->u->diag, e->span, "this call has %d arguments, more than %d", e->args.n,
                       ARGS_MAX);
            e->args.n = 0;
            e->bad = true;
        }
        if (e->a->kind == EX_NAME)
            check_call_name(s, e);
        else
            names_check(s, e->a);
        for (int i = 0; i < e->args.n; i++)
            names_check(s, e->args.v[i].value);
        break;
    default:
        break;
    }
}

int names_layers(const Sem *s, const Expr *e)
{
    int n = 0;
    Callee c;
    if (!e)
        return 0;
    switch (e->kind) {
    case EX_LIST:
        for (int i = 0; i < e->list.n; i++)
            n += names_layers(s, e->list.v[i]);
        return n;
    case EX_UNARY:
    case EX_FIELD:
        return names_layers(s, e->a);
    case EX_BINARY:
    case EX_INDEX:
        return names_layers(s, e->a) + names_layers(s, e->b);
    case EX_IF:
        for (int i = 0; i < e->arms.n; i++)
            n += names_layers(s, e->arms.v[i].cond) + names_layers(s, e->arms.v[i].value);
        return n;
    case EX_CALL:
        if (e->a->kind == EX_NAME)
            n = callee_find(s->u, e->a->s, &c) && callee_layers(&c);
        else
            n = names_layers(s, e->a);
        for (int i = 0; i < e->args.n; i++)
            n += names_layers(s, e->args.v[i].value);
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
    names_declare(s, t->name, t->name_span);
}

/* Reports the variable of a loop if its name is in use: it must hide no other name. */
static void loop_name(Sem *s, const char *name, Span at, const char *what)
{
    if (map_get(&s->names, name)) {
        diag_error(s->u->diag, at, "the %s's '%s' would hide another '%s'", what, name, name);
        diag_help(s->u->diag, "give the %s a name of its own", what);
    }
    names_declare(s, name, at);
}

/* Declares the names of yields after their scan.  They are sequences. */
static void declare_yields(Sem *s, const Body *body)
{
    for (int i = 0; i < body->n; i++) {
        Stmt *t = body->v[i];
        if (t->kind == ST_YIELD)
            bind(s, t);
        if (t->kind == ST_FOR)
            declare_yields(s, &t->body);
        for (int k = 0; t->kind == ST_IF && k < t->branches.n; k++)
            declare_yields(s, &t->branches.v[k].body);
    }
}

static void check_scan(Sem *s, Stmt *t)
{
    const int mark = s->nlive;
    for (int i = 0; i < t->items.n; i++)
        names_check(s, t->items.v[i].value);
    names_check(s, t->marks.every);
    for (int i = 0; i < t->items.n; i++)
        loop_name(s, t->items.v[i].name, t->items.v[i].span, "scan");
    if (s->scans++) {
        diag_error(s->u->diag, t->span, "a scan cannot be inside another scan");
        diag_help(s->u->diag, "use two scans: collect values with 'yield' in the first, and scan "
                              "them in the second");
    }
    names_body(s, &t->body);
    s->scans--;
    leave(s, mark);
    declare_yields(s, &t->body);
}

/* Reports output i of a return if it has no name, or that of an earlier one. */
static void check_output_name(Sem *s, const Stmt *t, int i)
{
    Diag *d = s->u->diag;
    const Stmt *one = t->body.v[i];
    if (!*one->name) {
        s->decl->bad = true;
        diag_error(d, one->span, "one of several outputs needs a name");
        diag_help(d, "write it in front: return logits = ..., size = ...");
        return;
    }
    for (int k = 0; k < i; k++)
        if (strcmp(t->body.v[k]->name, one->name) == 0)
            diag_error(d, one->name_span, "two outputs are called '%s'", one->name);
}

static bool same_outputs(const Body *a, const Body *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = strcmp(a->v[i]->name, b->v[i]->name) == 0;
    return same;
}

/* Checks the outputs of a return, each of which binds its name. */
static void check_outputs(Sem *s, Stmt *t)
{
    Diag *d = s->u->diag;
    const Stmt *first = s->first_return ? s->first_return : t;
    if (t->body.n > 0 && s->decl->kind != DECL_MODEL) {
        diag_error(d, t->span, "only a model returns outputs by name, and '%s' is a %s",
                   s->decl->name, decl_word(s->decl->kind));
        diag_help(d, "return one tensor; two blocks can share what they need");
    } else if (t->body.n > RT_OUTPUTS) {
        diag_error(d, t->body.v[RT_OUTPUTS]->span,
                   "a model has at most %d outputs, '%s' is one more", RT_OUTPUTS,
                   t->body.v[RT_OUTPUTS]->name);
        diag_help(d, "join vectors of numbers with concat, and take parts of them with slice");
    }
    for (int i = 0; i < t->body.n; i++) {
        Stmt *one = t->body.v[i];
        check_output_name(s, t, i);
        names_check(s, one->value);
        if (one->value->kind != EX_NAME || strcmp(one->value->s, one->name) != 0)
            bind(s, one);
    }
    if (!same_outputs(&first->body, &t->body)) {
        diag_error(d, t->span, "the returns of '%s' have different outputs", s->decl->name);
        diag_note(d, "the first one is on line %d", first->span.line);
        diag_help(d, "return the same names in the same order");
    }
    s->first_return = first;
}

static void check_stmt(Sem *s, Stmt *t)
{
    const int mark = s->nlive;
    switch (t->kind) {
    case ST_BIND:
        names_check(s, t->value);
        bind(s, t);
        break;
    case ST_RETURN:
        names_check(s, t->value);
        check_outputs(s, t);
        s->returns = true;
        if (s->scans) {
            diag_error(s->u->diag, t->span, "'return' is not allowed in a scan");
            diag_help(s->u->diag, "use 'yield NAME = VALUE' for a value of every step");
        }
        break;
    case ST_FOR:
        names_check(s, t->value);
        names_check(s, t->to);
        s->loops++;
        loop_name(s, t->name, t->name_span, "loop");
        names_body(s, &t->body);
        leave(s, mark);
        s->loops--;
        break;
    case ST_SCAN:
        check_scan(s, t);
        break;
    case ST_YIELD:
        names_check(s, t->value);
        if (!s->scans) {
            diag_error(s->u->diag, t->span, "'yield' is allowed only in a scan");
            diag_help(s->u->diag, "it collects a value of every step");
        }
        break;
    case ST_IF:
        for (int i = 0; i < t->branches.n; i++) {
            names_check(s, t->branches.v[i].cond);
            names_body(s, &t->branches.v[i].body);
        }
        break;
    }
}

void names_body(Sem *s, const Body *body)
{
    const int mark = s->nlive;
    s->broken |= body->broken;
    for (int i = 0; i < body->n; i++)
        check_stmt(s, body->v[i]);
    leave(s, mark);
}
