/* run.c -- statements at compile time: bindings, loops, conditions, and instances of blocks. */
#include "front/lower.h"

/* Makes all names poison that a body can bind, because the condition of the body is poison
 * (value.h). */
static void poison_body(Lower *l, const Body *body)
{
    for (int i = 0; i < body->n; i++) {
        const Stmt *t = body->v[i];
        Var *var = t->kind == ST_BIND || t->kind == ST_YIELD ? lower_find(l, t->name) : NULL;
        if (var)
            var->v = value_poison();
        if (t->kind == ST_YIELD)
            lower_yield_poison(l, t);
        if (t->kind == ST_FOR || t->kind == ST_SCAN)
            poison_body(l, &t->body);
        for (int k = 0; t->kind == ST_IF && k < t->branches.n; k++)
            poison_body(l, &t->branches.v[k].body);
        if (t->kind == ST_RETURN) {
            l->scope->returned = true;
            l->scope->result = value_poison();
        }
    }
}

static void run_statements(Lower *l, const Body *body)
{
    const int mark = l->scope->nlive;
    lower_run(l, body);
    lower_leave(l->scope, mark);
}

static void run_if(Lower *l, const Stmt *t)
{
    for (int i = 0; i < t->branches.n; i++) {
        const Branch *b = &t->branches.v[i];
        const int yes = b->cond ? lower_condition(l, b->cond) : 1;
        if (yes == 1) {
            run_statements(l, &b->body);
            return;
        }
        if (yes < 0) {
            for (int k = i; k < t->branches.n; k++)
                poison_body(l, &t->branches.v[k].body);
            return;
        }
    }
}

static bool bound(Lower *l, Expr *e, int64_t *out)
{
    const Value v = lower_eval(l, e);
    *out = v.kind == V_INT ? v.i : 0;
    if (v.kind != V_INT && v.kind != V_POISON) {
        lower_fail(l, e, e->span, "the bounds of a loop are ints, this is %s", value_kind(v));
        if (v.kind == V_LIST)
            diag_help(l->diag, "to go over a list, write: for x in LIST { ... }");
    }
    return v.kind == V_INT;
}

static void iterate(Lower *l, const Stmt *t, Value item)
{
    const int mark = l->scope->nlive;
    lower_declare(l, t->name, item);
    lower_run(l, &t->body);
    lower_leave(l->scope, mark);
}

static void run_for(Lower *l, Stmt *t)
{
    int64_t from = 0, to = 0;
    Value list = value_poison();
    bool ok;
    if (t->to) {
        ok = bound(l, t->value, &from);
        ok = bound(l, t->to, &to) && ok;
    } else {
        list = lower_eval(l, t->value);
        ok = list.kind == V_LIST;
        to = ok ? list.n : 0;
        if (!ok && list.kind != V_POISON) {
            lower_fail(l, t->value, t->value->span,
                       "a loop goes over a list or a range, this is %s", value_kind(list));
            if (list.kind == V_INT) {
                diag_help(l->diag, "for %lld iterations, write 0..%lld", (long long)list.i,
                          (long long)list.i);
                diag_replace(l->diag, arena_printf(l->arena, "%lld", (long long)list.i),
                             arena_printf(l->arena, "0..%lld", (long long)list.i));
            }
        }
    }
    if (!ok) { /* the body runs once, to find errors in it */
        iterate(l, t, value_poison());
        poison_body(l, &t->body);
        return;
    }
    const Stmt *outer = l->loop;
    l->loop = outer ? outer : t;
    for (int64_t i = from; i < to && !l->scope->returned && lower_step(l, t->span, 1); i++)
        iterate(l, t, t->to ? value_int(i) : list.item[i]);
    l->loop = outer;
}

static void run_bind(Lower *l, const Stmt *t)
{
    l->scope->leaf = t->names_layer ? t->name : NULL;
    const Value v = lower_eval(l, t->value);
    l->scope->leaf = NULL;
    if (v.kind == V_TENSOR && !v.node->name)
        v.node->name = t->name;
    lower_assign(l, t->name, v);
}

/* Runs a return. Several outputs are bindings, whose variables lower_model reads. */
static void run_return(Lower *l, const Stmt *t)
{
    Scope *s = l->scope;
    for (int i = 0; i < t->body.n; i++)
        run_bind(l, t->body.v[i]);
    s->result = t->value ? lower_eval(l, t->value) : value_poison();
    s->outputs = t->value ? NULL : &t->body;
    s->returned = true;
}

void lower_run(Lower *l, const Body *body)
{
    if (body->n == 0 || !lower_enter(l, body->v[0]->span))
        return;
    for (int i = 0; i < body->n && !l->scope->returned && !l->stop; i++) {
        Stmt *t = body->v[i];
        switch (t->kind) {
        case ST_BIND:
            run_bind(l, t);
            break;
        case ST_RETURN:
            run_return(l, t);
            break;
        case ST_FOR:
            run_for(l, t);
            break;
        case ST_IF:
            run_if(l, t);
            break;
        case ST_SCAN:
            lower_scan(l, t);
            break;
        case ST_YIELD:
            lower_yield(l, t);
            break;
        }
    }
    l->depth--;
}

/* ---- instances */

/* The value of a parameter: the argument, or the default, which can use earlier parameters. */
Value lower_argument(Lower *l, const Decl *decl, int i, const Slot *slot)
{
    const ParamDecl *p = &decl->params.v[i];
    const bool given = slot && slot->given;
    Value v = given ? slot->v : p->fallback ? lower_eval(l, p->fallback) : value_poison();
    if (given || value_as(v, p->type, &v))
        return v;
    return lower_fail(l, p->fallback, p->fallback->span, "'%s' is %s, its default is %s", p->name,
                      type_kind(p->type), value_kind(v));
}

Value lower_result(Lower *l, Scope *s, Expr *call)
{
    const Decl *decl = s->decl;
    if (s->returned || l->stop || decl->bad || decl->body.broken)
        return s->returned ? s->result : value_poison();
    return lower_fail(l, call, decl->name_span, "no 'return' of %s '%s' is reached",
                      decl_word(decl->kind), decl->name);
}

Value lower_instance(Lower *l, const Decl *decl, const Slot *slot, const char *path, Expr *call)
{
    Scope *outer = l->scope, *s = lower_scope(l, decl, path);
    const BlockCall *around = l->g ? l->g->call : NULL;
    const int before = l->depth, messages = diag_count(l->diag);
    if (l->calls == DEPTH_CALLS)
        return lower_fail(l, call, call->span, "blocks are nested more than %d deep here",
                          DEPTH_CALLS);
    if (!lower_step(l, call->span, 20))
        return value_poison();
    l->scope = s;
    l->calls++;
    if (l->g && *path) {
        BlockCall *made = arena_alloc(l->arena, sizeof *made);
        *made = (BlockCall){decl->name, path, around};
        l->g->call = made;
    }
    for (int i = 0; i < decl->params.n; i++)
        lower_declare(l, decl->params.v[i].name, lower_argument(l, decl, i, &slot[i]));
    if (decl->kind == DECL_OP) {
        s->result = lower_eval(l, decl->formula);
        s->returned = true;
    } else {
        lower_run(l, &decl->body);
    }
    l->calls--;
    if (l->g)
        l->g->call = around;
    l->scope = outer;
    l->depth = before;
    const Value v = lower_result(l, s, call);
    if (call && call->span.source)
        diag_note_call(l->diag, messages, call->span, decl->name);
    return v;
}
