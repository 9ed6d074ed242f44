/* lower.c -- runs the statements and expressions of a model at compile time. */
#include "front/lower.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

Value lower_fail(Lower *l, Expr *e, Span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    diag_error(l->diag, at, "%s", arena_vprintf(l->arena, fmt, ap));
    va_end(ap);
    if (e)
        e->bad = true;
    return value_poison();
}

bool lower_step(Lower *l, Span at, int64_t steps)
{
    l->steps += steps;
    if (l->stop)
        return false;
    const bool nodes = l->g && l->g->nnode > NODES_MAX;
    if (!nodes && l->steps <= STEPS_MAX)
        return true;
    l->stop = true;
    const Span place = l->loop ? l->loop->span : l->model ? l->model->name_span : at;
    const char *what = l->loop ? "this loop" : l->model ? "this model" : "this";
    if (nodes)
        diag_error(l->diag, place, "%s expands to more than %s operations", what, text_commas(l->arena, NODES_MAX));
    else
        diag_error(l->diag, place, "%s takes more than %s steps to expand", what, text_commas(l->arena, STEPS_MAX));
    diag_help(l->diag, "everything is expanded at compile time; is a bound wrong?");
    return false;
}

/* ---- variables */

static Var *find(const Lower *l, const char *name)
{
    return l->scope ? map_get(&l->scope->vars, name) : NULL;
}

static void declare(Lower *l, const char *name, Value v)
{
    Var *var = arena_alloc(l->arena, sizeof *var);
    *var = (Var){name, v, find(l, name)};
    map_set(&l->scope->vars, name, var);
    ARENA_PUSH(l->arena, l->scope->live, l->scope->nlive, var);
}

static void assign(Lower *l, const char *name, Value v)
{
    Var *var = find(l, name);
    if (var)
        var->v = v;
    else
        declare(l, name, v);
}

static void leave(Scope *s, int mark)
{
    while (s->nlive > mark) {
        const Var *var = s->live[--s->nlive];
        map_set(&s->vars, var->name, var->outer);
    }
}

static Scope *scope_new(Lower *l, const Decl *decl, const char *path)
{
    Scope *s = arena_alloc(l->arena, sizeof *s);
    *s = (Scope){.vars = map_new(l->arena), .taken = map_new(l->arena), .ordinal = map_new(l->arena),
                 .decl = decl, .path = path};
    return s;
}

const char *lower_path(Lower *l, const char *kind)
{
    Scope *s = l->scope;
    const char *leaf = s->leaf;
    s->leaf = NULL;
    int *count = map_get(&s->ordinal, kind);
    if (!leaf && !count) {
        count = arena_alloc(l->arena, sizeof *count);
        map_set(&s->ordinal, kind, count);
    }
    while (!leaf) {                                   /* never a name that a binding gives, or has taken */
        leaf = arena_printf(l->arena, "%s%d", kind, ++*count);
        if (map_get(&s->taken, leaf) || (s->decl && map_get(&s->decl->leaves, leaf)))
            leaf = NULL;
    }
    map_set(&s->taken, leaf, s);
    return s->path[0] ? arena_printf(l->arena, "%s.%s", s->path, leaf) : leaf;
}

/* ---- statements */

static void run(Lower *l, const Body *body);

/* After a condition that is poison nobody knows what its bodies would have bound: all of it is poison. */
static void poison_body(Lower *l, const Body *body)
{
    for (int i = 0; i < body->n; i++) {
        const Stmt *t = body->v[i];
        Var *var = t->kind == ST_BIND ? find(l, t->name) : NULL;
        if (var)
            var->v = value_poison();
        if (t->kind == ST_FOR)
            poison_body(l, &t->body);
        for (int k = 0; t->kind == ST_IF && k < t->branches.n; k++)
            poison_body(l, &t->branches.v[k].body);
        if (t->kind == ST_RETURN) {
            l->scope->returned = true;
            l->scope->result = value_poison();
        }
    }
}

static void run_body(Lower *l, const Body *body)
{
    const int mark = l->scope->nlive;
    run(l, body);
    leave(l->scope, mark);
}

/* A condition: 1, 0, or -1 for poison. */
static int condition(Lower *l, Expr *e)
{
    const Value v = lower_eval(l, e);
    if (v.kind == V_BOOL)
        return v.i != 0;
    if (v.kind == V_TENSOR) {
        lower_fail(l, e, e->span, "a condition cannot depend on a tensor");
        diag_help(l->diag, "conditions are decided at compile time; use relu, max or a mask for choices by value");
    } else if (v.kind != V_POISON) {
        lower_fail(l, e, e->span, "a condition is true or false, this is %s", value_kind(v));
    }
    return -1;
}

static void run_if(Lower *l, const Stmt *t)
{
    for (int i = 0; i < t->branches.n; i++) {
        const Branch *b = &t->branches.v[i];
        const int yes = b->cond ? condition(l, b->cond) : 1;
        if (yes == 1) {
            run_body(l, &b->body);
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
    declare(l, t->name, item);
    run(l, &t->body);
    leave(l->scope, mark);
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
            lower_fail(l, t->value, t->value->span, "a loop goes over a list or a range, this is %s", value_kind(list));
            if (list.kind == V_INT)
                diag_help(l->diag, "for %lld rounds, write 0..%lld", (long long)list.i, (long long)list.i);
        }
    }
    if (!ok) {                                        /* one round finds the errors inside */
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
    assign(l, t->name, v);
}

static void run(Lower *l, const Body *body)
{
    if (++l->depth > DEPTH_EVAL) {
        lower_step(l, (Span){0}, STEPS_MAX + 1);      /* out of depth is out of budget */
        l->depth--;
        return;
    }
    for (int i = 0; i < body->n && !l->scope->returned && !l->stop; i++) {
        Stmt *t = body->v[i];
        switch (t->kind) {
        case ST_BIND:
            run_bind(l, t);
            break;
        case ST_RETURN:
            l->scope->result = lower_eval(l, t->value);
            l->scope->returned = true;
            break;
        case ST_FOR:
            run_for(l, t);
            break;
        case ST_IF:
            run_if(l, t);
            break;
        }
    }
    l->depth--;
}

/* ---- expressions */

static Value logic(Lower *l, Expr *e)
{
    const int a = condition(l, e->a);
    if (a < 0 || a == (e->op == DO_OR))
        return a < 0 ? value_poison() : value_bool(a);
    const int b = condition(l, e->b);
    return b < 0 ? value_poison() : value_bool(b);
}

static Value binary(Lower *l, Expr *e)
{
    static const char *const tensor_op[] = {[DO_ADD] = "add", [DO_SUB] = "sub", [DO_MUL] = "mul",
                                            [DO_DIV] = "div", [DO_POW] = "pow"};
    const char *why = NULL, *help = NULL;
    const Value a = lower_eval(l, e->a), b = lower_eval(l, e->b);
    const bool tensor = a.kind == V_TENSOR || b.kind == V_TENSOR;
    const bool other = (a.kind == V_TENSOR || value_number(a)) && (b.kind == V_TENSOR || value_number(b));
    if (tensor && other && e->op <= DO_POW && e->op != DO_FLOOR && e->op != DO_MOD)
        return lower_elementwise(l, tensor_op[e->op], a, b, e);
    const Value v = value_binary(l->arena, e->op, a, b, &why, &help);
    if (v.kind == V_LIST && !lower_step(l, e->span, v.n))
        return value_poison();
    if (why) {
        lower_fail(l, e, strcmp(why, "division by zero") == 0 ? e->b->span : e->span, "%s", why);
        if (help)
            diag_help(l->diag, "%s", help);
    }
    return v;
}

static Value unary(Lower *l, Expr *e)
{
    const char *why = NULL;
    const Value a = lower_eval(l, e->a);
    if (a.kind == V_TENSOR && e->op == DO_NEG)
        return lower_elementwise(l, "neg", a, value_poison(), e);
    const Value v = value_unary(l->arena, e->op, a, &why);
    if (why)
        lower_fail(l, e, e->span, "%s", why);
    return v;
}

static Value list(Lower *l, Expr *e)
{
    if (e->list.n > LIST_MAX)
        return lower_fail(l, e, e->span, "the list has %d items, more than %d", e->list.n, LIST_MAX);
    Value *item = arena_alloc(l->arena, (size_t)e->list.n * sizeof *item);
    bool poison = false;
    for (int i = 0; i < e->list.n; i++) {
        item[i] = lower_eval(l, e->list.v[i]);
        poison |= item[i].kind == V_POISON;
    }
    return poison ? value_poison() : (Value){.kind = V_LIST, .item = item, .n = e->list.n};
}

static Value subscript(Lower *l, Expr *e)
{
    const Value a = lower_eval(l, e->a), i = lower_eval(l, e->b);
    if (a.kind == V_POISON || i.kind == V_POISON)
        return value_poison();
    if (a.kind != V_LIST)
        return lower_fail(l, e, e->a->span, "only lists have items, this is %s", value_kind(a));
    if (i.kind != V_INT)
        return lower_fail(l, e, e->b->span, "an index is an int, this is %s", value_kind(i));
    if (i.i < 0 || i.i >= a.n) {
        lower_fail(l, e, e->b->span, "index %lld is outside a list of %d", (long long)i.i, a.n);
        if (a.n)
            diag_help(l->diag, "the items are 0 to %d", a.n - 1);
        return value_poison();
    }
    return a.item[i.i];
}

/* x.channels: from the letters of the dimensions, or their order when they have none. */
static Value field(Lower *l, Expr *e)
{
    static const struct { const char *name; char axis; int rank, at; } query[] = {
        {"channels", 'C', 3, 0}, {"height", 'H', 3, 1}, {"width", 'W', 3, 2},
        {"time", 'T', 2, 0}, {"features", 'F', 1, 0},
    };
    static const char *const all[] = {"channels", "height", "width", "time", "features", "rank", "count", "shape"};
    enum { QUERIES = sizeof query / sizeof *query, ALL = sizeof all / sizeof *all };
    const Value a = lower_eval(l, e->a);
    Span at = e->span;
    at.line = at.end_line;
    at.col = at.end_col - (int)strlen(e->field);
    if (a.kind == V_POISON)
        return a;
    if (a.kind != V_TENSOR)
        return lower_fail(l, e, at, "only tensors have '.%s', this is %s", e->field, value_kind(a));
    const Shape *s = &a.node->shape;
    if (strcmp(e->field, "rank") == 0)
        return value_int(s->rank);
    if (strcmp(e->field, "count") == 0)
        return value_int(shape_count(s));
    if (strcmp(e->field, "shape") == 0) {
        Value *item = arena_alloc(l->arena, (size_t)s->rank * sizeof *item);
        for (int i = 0; i < s->rank; i++)
            item[i] = value_int(s->dim[i]);
        return (Value){.kind = V_LIST, .item = item, .n = s->rank};
    }
    for (int i = 0; i < QUERIES; i++) {
        if (strcmp(query[i].name, e->field) != 0)
            continue;
        const int64_t n = shape_axis(s, query[i].axis);
        if (n || s->rank == query[i].rank || (query[i].axis == 'F' && s->rank == 2))
            return value_int(n ? n : s->dim[s->rank == query[i].rank ? query[i].at : s->rank - 1]);
        lower_fail(l, e, at, "a tensor %s has no %s", shape_text(l->arena, s), e->field);
        diag_help(l->diag, "its dimensions are the list .shape");
        return value_poison();
    }
    lower_fail(l, e, at, "a tensor has no '%s'", e->field);
    suggest(l->diag, e->field, all, ALL, "the queries");
    return value_poison();
}

static Value choose(Lower *l, Expr *e)
{
    for (int i = 0; i < e->arms.n; i++) {
        const Arm *arm = &e->arms.v[i];
        const int yes = arm->cond ? condition(l, arm->cond) : 1;
        if (yes)
            return yes < 0 ? value_poison() : lower_eval(l, arm->value);
    }
    return value_poison();                            /* not reached: the grammar wants an else */
}

static Value name(Lower *l, Expr *e)
{
    const Var *var = find(l, e->s);
    if (var)
        return var->v;
    return e->bad ? value_poison() : lower_fail(l, e, e->span, "unknown name '%s'", e->s);
}

/* The children of a part with an error may hold errors of their own. */
static Value bad(Lower *l, Expr *e)
{
    if (e->kind == EX_CALL) {
        for (int i = 0; i < e->args.n; i++)
            lower_eval(l, e->args.v[i].value);
    } else if (e->kind == EX_BINARY) {
        lower_eval(l, e->a);
        lower_eval(l, e->b);
    }
    return value_poison();
}

static Value eval(Lower *l, Expr *e)
{
    if (e->bad)
        return bad(l, e);
    switch (e->kind) {
    case EX_BAD:    break;
    case EX_INT:    return value_int(e->i);
    case EX_FLOAT:  return value_float(e->f);
    case EX_BOOL:   return value_bool(e->i);
    case EX_STRING: return (Value){.kind = V_STRING, .s = e->s};
    case EX_NAME:   return name(l, e);
    case EX_LIST:   return list(l, e);
    case EX_UNARY:  return unary(l, e);
    case EX_BINARY: return e->op == DO_AND || e->op == DO_OR ? logic(l, e) : binary(l, e);
    case EX_INDEX:  return subscript(l, e);
    case EX_FIELD:  return field(l, e);
    case EX_CALL:   return lower_call(l, e);
    case EX_IF:     return choose(l, e);
    }
    return value_poison();
}

Value lower_eval(Lower *l, Expr *e)
{
    if (!lower_step(l, e->span, l->depth < DEPTH_EVAL ? 1 : STEPS_MAX))
        return value_poison();
    l->depth++;
    const Value v = eval(l, e);
    l->depth--;
    return v;
}

/* ---- models and blocks */

/* The value of one parameter: given, or its default, which may use the ones before it. */
static Value argument(Lower *l, const Decl *decl, int i, const Slot *slot)
{
    const ParamDecl *p = &decl->params.v[i];
    const bool given = slot && slot->given;
    Value v = given ? slot->v : p->fallback ? lower_eval(l, p->fallback) : value_poison();
    if (given || value_as(v, p->type, &v))
        return v;
    return lower_fail(l, p->fallback, p->fallback->span, "'%s' is %s, its default is %s", p->name,
                      type_kind(p->type), value_kind(v));
}

static Value result(Lower *l, Scope *s, Expr *call)
{
    const Decl *decl = s->decl;
    if (s->returned || l->stop || decl->bad || decl->body.broken)
        return s->returned ? s->result : value_poison();
    return lower_fail(l, call, decl->name_span, "no 'return' of %s '%s' is reached", decl_word(decl->kind), decl->name);
}

Value lower_instance(Lower *l, const Decl *decl, const Slot *slot, const char *path, Expr *call)
{
    Scope *outer = l->scope, *s = scope_new(l, decl, path);
    const int before = l->depth;
    if (l->calls == DEPTH_CALLS)
        return lower_fail(l, call, call->span, "blocks are nested more than %d deep here", DEPTH_CALLS);
    if (!lower_step(l, call->span, 20))
        return value_poison();
    l->scope = s;
    l->calls++;
    for (int i = 0; i < decl->params.n; i++)
        declare(l, decl->params.v[i].name, argument(l, decl, i, &slot[i]));
    if (decl->kind == DECL_OP) {
        s->result = lower_eval(l, decl->formula);
        s->returned = true;
    } else {
        run(l, &decl->body);
    }
    l->calls--;
    l->scope = outer;
    l->depth = before;
    return result(l, s, call);
}

/* The input node: its dimensions are numbers of the head. */
static Node *input(Lower *l, const ParamDecl *p)
{
    static const char *const letters[SHAPE_MAX + 1] = {"", "F", "TF", "CHW", "....", ".....", "......"};
    const int before = diag_errors(l->diag);
    int64_t dim[SHAPE_MAX], count = 1;
    if (p->dims.n > SHAPE_MAX) {
        diag_error(l->diag, p->type_span, "the input has %d dimensions, more than %d", p->dims.n, SHAPE_MAX);
        return NULL;
    }
    bool poison = false;
    for (int i = 0; i < p->dims.n; i++) {
        Expr *e = p->dims.v[i];
        const Value v = lower_eval(l, e);
        dim[i] = v.kind == V_INT ? v.i : 1;
        poison |= v.kind == V_POISON;
        if (v.kind != V_INT && v.kind != V_POISON)
            lower_fail(l, e, e->span, "a dimension is an int, this is %s", value_kind(v));
        else if (dim[i] < 1 || dim[i] > INT32_MAX)
            lower_fail(l, e, e->span, "the dimension %lld is outside 1 to 2147483647", (long long)dim[i]);
    }
    if (poison || diag_errors(l->diag) != before)
        return NULL;
    for (int i = 0; i < p->dims.n; i++)
        if (__builtin_mul_overflow(count, dim[i], &count) || count > (INT64_C(1) << 40) / 4) {
            const Span at = span_join(p->dims.v[0]->span, p->dims.v[p->dims.n - 1]->span);
            diag_error(l->diag, at, "one sample of '%s' is larger than 2^40 bytes", p->name);
            return NULL;
        }
    return graph_input(l->g, p->name, shape_make(true, letters[p->dims.n], dim, p->dims.n), DT_REAL, p->span);
}

/* Numbers of the head first, then the input, whose dimensions may use them. */
static void model_params(Lower *l, const Decl *model, Override *set, int nset)
{
    for (int i = 0; i < model->params.n; i++) {
        const ParamDecl *p = &model->params.v[i];
        Slot slot = {0};
        for (int k = 0; k < nset; k++) {
            if (strcmp(set[k].name, p->name) != 0 || p->type == TYPE_INPUT)
                continue;
            set[k].used = true;
            slot = (Slot){lower_const(l->u, set[k].value), set[k].value->span, true};
            const Value v = slot.v;
            if (!value_as(v, p->type, &slot.v))
                slot.v = lower_fail(l, set[k].value, slot.span, "'%s' is %s, this is %s", p->name,
                                    type_kind(p->type), value_kind(v));
        }
        if (!slot.given && !p->fallback && p->type >= TYPE_INT && p->type <= TYPE_LIST) {
            diag_error(l->diag, p->span, "the parameter '%s' of model '%s' has no value", p->name, model->name);
            diag_help(l->diag, "give it a default, or say --set model.%s=...", p->name);
        }
        if (p->type != TYPE_INPUT)
            declare(l, p->name, argument(l, model, i, &slot));
    }
    for (int i = 0; i < model->params.n; i++)
        if (model->params.v[i].type == TYPE_INPUT)
            declare(l, model->params.v[i].name, value_node(input(l, &model->params.v[i])));
}

static Expr *last_return(const Body *body)
{
    for (int i = body->n - 1; i >= 0; i--)
        if (body->v[i]->kind == ST_RETURN)
            return body->v[i]->value;
    return NULL;
}

Graph *lower_model(Unit *u, const Decl *model, const Recipe *recipe, Override *set, int nset, bool training)
{
    const int before = diag_errors(u->diag);
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag, .model = model,
               .g = graph_new(u->arena, model->name, training)};
    l.g->source = model->name_span.source;
    l.g->recipe = *recipe;
    l.scope = scope_new(&l, model, "");
    model_params(&l, model, set, nset);
    run(&l, &model->body);
    const Value v = result(&l, l.scope, NULL);
    const Expr *returned = last_return(&model->body);
    if (v.kind != V_TENSOR && v.kind != V_POISON)
        diag_error(u->diag, returned ? returned->span : model->name_span, "model '%s' returns %s, not a tensor",
                   model->name, value_kind(v));
    else if (v.kind == V_TENSOR && !v.node->shape.batched)
        diag_error(u->diag, returned ? returned->span : model->name_span,
                   "the output of model '%s' does not depend on its input", model->name);
    l.g->output = v.kind == V_TENSOR ? v.node : NULL;
    return diag_errors(u->diag) == before && l.g->output ? l.g : NULL;
}

Value lower_const(Unit *u, Expr *e)
{
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag};
    return lower_eval(&l, e);
}

/* ---- the loss */

static bool output_is_classes(const Graph *g)
{
    return g->output->shape.rank == 1 && g->output->shape.dim[0] > 1;
}

/* loss = NAME: the op on output and label; mse compares with the label's one-hot vector. */
static Value named_loss(Lower *l, Expr *e)
{
    Expr call = {.kind = EX_CALL, .span = e->span, .a = e};
    Expr *arg = arena_alloc(l->arena, 2 * sizeof *arg);
    arg[0] = (Expr){.kind = EX_NAME, .span = e->span, .s = "output"};
    arg[1] = (Expr){.kind = EX_NAME, .span = e->span, .s = "label"};
    Expr one_hot = {.kind = EX_CALL, .span = e->span, .a = &(Expr){.kind = EX_NAME, .span = e->span, .s = "one_hot"}};
    Expr classes = {.kind = EX_INT, .span = e->span, .i = l->g->output->shape.rank ? shape_count(&l->g->output->shape) : 1};
    one_hot.args = (Args){(Arg[]){{.value = &arg[1]}, {.name = "classes", .value = &classes}}, 2};
    call.args = (Args){(Arg[]){{.value = &arg[0]}, {.value = strcmp(e->s, "mse") == 0 ? &one_hot : &arg[1]}}, 2};
    return lower_eval(l, &call);
}

bool lower_loss(Unit *u, Graph *g, Expr *loss)
{
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag, .g = g};
    const int before = diag_errors(u->diag);
    Callee c;
    l.scope = scope_new(&l, NULL, "");
    graph_input(g, "label", shape_make(true, "", NULL, 0), DT_I32, loss->span);
    declare(&l, "output", value_node(g->output));
    declare(&l, "label", value_node(g->label));
    const bool named = loss->kind == EX_NAME && !loss->bad && callee_find(u, loss->s, &c);
    const Value v = named ? named_loss(&l, loss) : lower_eval(&l, loss);
    if (v.kind != V_TENSOR) {
        if (v.kind != V_POISON)
            diag_error(u->diag, loss->span, "the loss is a tensor with one number a sample, this is %s", value_kind(v));
        return false;
    }
    if (v.node->shape.rank != 0) {
        diag_error(u->diag, loss->span, "the loss is one number a sample, this is %s", shape_text(u->arena, &v.node->shape));
        diag_help(u->diag, "end it with a loss such as softmax_cross_entropy or mse");
        return false;
    }
    g->loss = v.node;
    g->metric[g->nmetric++] = (Metric){"loss", v.node};
    if (output_is_classes(g)) {
        Node *accuracy = op_make(g, "accuracy", loss->span, 2, g->output, g->label);
        g->metric[g->nmetric++] = (Metric){"accuracy", accuracy};
    }
    return diag_errors(u->diag) == before;
}
