/* ast.c -- makes the tree, and bounds its depth, so that all later code can recurse. */
#include "front/ast.h"
#include "base/text.h"
#include "front/parse.h"
#include <string.h>

const char *operator_text(Operator op)
{
    static const char *const text[] = {
        [DO_ADD] = "+",   [DO_SUB] = "-",  [DO_MUL] = "*", [DO_DIV] = "/",   [DO_FLOOR] = "//",
        [DO_MOD] = "%",   [DO_POW] = "**", [DO_EQ] = "==", [DO_NE] = "!=",   [DO_LT] = "<",
        [DO_LE] = "<=",   [DO_GT] = ">",   [DO_GE] = ">=", [DO_AND] = "and", [DO_OR] = "or",
        [DO_NOT] = "not", [DO_NEG] = "-",
    };
    return text[op];
}

const char *decl_word(DeclKind kind)
{
    static const char *const word[] = {"model", "block", "op", "train block", "import"};
    return word[kind];
}

Expr *expr_new(Parser *p, ExprKind kind, Span at)
{
    Expr *e = arena_alloc(p->arena, sizeof *e);
    e->kind = kind;
    e->span = at;
    e->depth = 1;
    e->bad = kind == EX_BAD;
    return e;
}

/* Sets the depth of e from the depth of its operand.  If the tree gets too deep, e becomes a bad
 * leaf; only the first such error of a file is reported. */
static void set_depth(Parser *p, Expr *e, const Expr *operand)
{
    if (!operand || e->kind == EX_BAD)
        return;
    if (operand->depth >= e->depth)
        e->depth = operand->depth + 1;
    if (e->depth <= DEPTH_EXPR)
        return;
    if (!p->fatal) {
        diag_error(p->diag, e->span, "this expression is nested more than %d deep", DEPTH_EXPR);
        diag_help(p->diag, "bind its parts to names");
    }
    p->fatal = true;
    *e = (Expr){.kind = EX_BAD, .bad = true, .depth = 1, .span = e->span};
}

Expr *expr_binary(Parser *p, Operator op, Expr *a, Expr *b, Span at)
{
    Expr *e = expr_new(p, EX_BINARY, at);
    e->a = a;
    e->b = b;
    e->op = op;
    set_depth(p, e, a);
    set_depth(p, e, b);
    return e;
}

Expr *expr_unary(Parser *p, Operator op, Expr *a, Span at)
{
    Expr *e = expr_new(p, EX_UNARY, at);
    e->a = a;
    e->op = op;
    set_depth(p, e, a);
    return e;
}

Expr *expr_index(Parser *p, Expr *a, Expr *b, Span at)
{
    Expr *e = expr_new(p, EX_INDEX, at);
    e->a = a;
    e->b = b;
    set_depth(p, e, a);
    set_depth(p, e, b);
    return e;
}

Expr *expr_field(Parser *p, Expr *a, const char *field, Span at)
{
    Expr *e = expr_new(p, EX_FIELD, at);
    e->a = a;
    e->field = field;
    set_depth(p, e, a);
    return e;
}

Expr *expr_typed(Parser *p, const char *name, Span name_at, const char *type, Span type_at,
                 const Exprs *dims, Span at)
{
    Expr *e = expr_new(p, EX_TYPED, at);
    e->typed = arena_alloc(p->arena, sizeof *e->typed);
    *e->typed = (Typed){.name = name,
                        .type = type,
                        .name_span = name_at,
                        .type_span = type_at,
                        .sized = dims != NULL};
    if (dims)
        e->typed->dims = *dims;
    return e;
}

Expr *expr_list(Parser *p, Exprs items, Span at)
{
    Expr *e = expr_new(p, EX_LIST, at);
    e->list = items;
    for (int i = 0; i < items.n; i++)
        set_depth(p, e, items.v[i]);
    return e;
}

Expr *expr_targets(Parser *p, Exprs items, Span at)
{
    Expr *e = expr_list(p, items, at);
    e->kind = EX_TARGETS;
    return e;
}

Expr *expr_if(Parser *p, Arms arms, Span at)
{
    Expr *e = expr_new(p, EX_IF, at);
    e->arms = arms;
    for (int i = 0; i < arms.n; i++) {
        set_depth(p, e, arms.v[i].cond);
        set_depth(p, e, arms.v[i].value);
    }
    return e;
}

Expr *expr_call(Parser *p, Expr *callee, Args args, Span at)
{
    Expr *e = expr_new(p, EX_CALL, at);
    e->a = callee;
    e->args = args;
    set_depth(p, e, callee);
    for (int i = 0; i < args.n; i++)
        set_depth(p, e, args.v[i].value);
    return e;
}

Expr *expr_pipe(Parser *p, Expr *x, Expr *into)
{
    Args args = {0};
    ARENA_PUSH(p->arena, args.v, args.n, ((Arg){.value = x}));
    if (into->kind != EX_CALL)
        return expr_call(p, into, args, into->span);
    for (int i = 0; i < into->args.n; i++)
        ARENA_PUSH(p->arena, args.v, args.n, into->args.v[i]);
    return expr_call(p, into->a, args, into->span);
}

static Stmt *stmt_new(Parser *p, StmtKind kind, Span at)
{
    Stmt *s = arena_alloc(p->arena, sizeof *s);
    s->kind = kind;
    s->span = at;
    return s;
}

Stmt *stmt_bind(Parser *p, const char *name, Span at, Expr *value, Span whole)
{
    Stmt *s = stmt_new(p, ST_BIND, whole);
    s->name = name;
    s->name_span = at;
    s->value = value;
    return s;
}

Stmt *stmt_return(Parser *p, Expr *value, Span whole)
{
    Stmt *s = stmt_new(p, ST_RETURN, whole);
    s->value = value;
    return s;
}

Stmt *stmt_outputs(Parser *p, Body outputs, Span whole)
{
    Stmt *s = stmt_new(p, ST_RETURN, whole);
    s->body = outputs;
    return s;
}

Stmt *stmt_output(Parser *p, Expr *value)
{
    const char *name = value->kind == EX_NAME ? value->s : "";
    return stmt_bind(p, name, value->span, value, value->span);
}

Stmt *stmt_for(Parser *p, const char *name, Span at, Expr *from, Expr *to, Body body, Span head)
{
    Stmt *s = stmt_new(p, ST_FOR, head);
    s->name = name;
    s->name_span = at;
    s->value = from;
    s->to = to;
    s->body = body;
    return s;
}

Stmt *stmt_scan(Parser *p, Items items, Marks marks, Body body, Span head)
{
    Stmt *s = stmt_new(p, ST_SCAN, head);
    s->items = items;
    s->marks = marks;
    s->body = body;
    return s;
}

static void mark_once(Parser *p, bool given, const char *word, Span at)
{
    if (given)
        diag_error(p->diag, at, "'%s' is given twice", word);
}

void mark_reversed(Parser *p, Marks *m, const char *word, Span at)
{
    if (!strcmp(word, "reversed")) {
        mark_once(p, m->reversed, word, at);
        m->reversed = true;
        return;
    }
    diag_error(p->diag, at, "unexpected '%s'", word);
    diag_help(p->diag,
              strcmp(word, "recompute")
                  ? "a scan goes over its sequences from the first step to the last, or reversed"
                  : "write recompute = every 8: the states of every eighth step are kept");
}

void mark_every(Parser *p, Marks *m, const char *key, Span key_at, const char *word, Span at,
                Expr *steps)
{
    const bool known = !strcmp(key, "recompute");
    if (known && !strcmp(word, "every")) {
        mark_once(p, m->every, key, key_at);
        m->every = steps;
        return;
    }
    diag_error(p->diag, known ? at : key_at, "unexpected '%s'", known ? word : key);
    diag_help(p->diag, "write recompute = every 8: the states of every eighth step are kept");
}

void mark_number(Parser *p, const char *key, Span key_at, int64_t steps, Span at)
{
    const bool known = !strcmp(key, "recompute");
    if (known)
        diag_error(p->diag, at, "'every' is missing before %lld", (long long)steps);
    else
        diag_error(p->diag, key_at, "unexpected '%s'", key);
    diag_help(p->diag, "write recompute = every %lld", known && steps > 0 ? (long long)steps : 8LL);
}

Stmt *stmt_yield(Parser *p, const char *name, Span at, Expr *value, Span whole)
{
    Stmt *s = stmt_bind(p, name, at, value, whole);
    s->kind = ST_YIELD;
    return s;
}

Stmt *stmt_if(Parser *p, Branches branches, Span whole)
{
    Stmt *s = stmt_new(p, ST_IF, whole);
    s->branches = branches;
    return s;
}

Decl *decl_add(Parser *p, DeclKind kind, const char *name, Span at)
{
    Decl *d = arena_alloc(p->arena, sizeof *d);
    *d = (Decl){.kind = kind, .name = name, .name_span = at};
    ARENA_PUSH(p->arena, p->decls.v, p->decls.n, d);
    return d;
}

ParamDecl param_make(Parser *p, const char *name, Span at)
{
    (void)p;
    return (ParamDecl){.name = name, .span = at, .type = TYPE_TENSOR, .type_span = at};
}

void param_type(Parser *p, ParamDecl *param, const char *type, Span at, const Exprs *dims)
{
    static const char *const name[] = {"tensor", "int",  "float", "bool",
                                       "string", "list", "f32",   "i32"};
    enum { COUNT = sizeof name / sizeof *name };
    int t = 0;
    while (t < COUNT && strcmp(type, name[t]) != 0)
        t++;
    param->tokens = t < COUNT && strcmp(type, "i32") == 0;
    param->type = param->tokens ? TYPE_INPUT : t < COUNT ? (Type)t : TYPE_BAD;
    param->type_name = type;
    param->type_span = at;
    if (dims)
        param->dims = *dims;
    if (t == COUNT) {
        diag_error(p->diag, at, "there is no type '%s'", type);
        if (text_nearest(type, name, COUNT))
            diag_suggest(p->diag, type, name, COUNT);
        else
            diag_help(p->diag, "the types are tensor, int, float, bool, string, list, and "
                               "f32[...] or i32[...] for the input of a model");
    } else if (dims && param->type != TYPE_INPUT) {
        diag_error(p->diag, at, "type %s has no dimensions", type);
        diag_help(p->diag, "an input is written %s: f32[...]", param->name);
        param->type = TYPE_BAD;
    } else if (!dims && param->type == TYPE_INPUT) {
        diag_error(p->diag, at, "the input '%s' needs its dimensions", param->name);
        diag_help(p->diag, param->tokens
                               ? "write i32[80] for texts of 80 words"
                               : "write f32[1, 28, 28] for one channel of 28 x 28 pixels");
        param->type = TYPE_BAD;
    }
}
