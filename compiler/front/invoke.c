/* invoke.c -- evaluates calls: matches arguments to parameters.  The result is a number, a node,
 * the value of a block, or a layer. */
#include "front/lower.h"
#include <string.h>

/* ---- binding */

typedef struct FrontCall {
    Callee callee;
    const char *name;
    Expr *e;
    const Value *v; /* values of the arguments, in order */
    Slot *slot;
    bool poison;  /* an argument is poison, so the result is poison, without another message */
    bool partial; /* the call has no tensors: its result is a layer value */
} FrontCall;

static bool refuse_call(FrontCall *c)
{
    c->e->bad = true;
    return false;
}

/* Whether the call has no tensor, and so makes a layer value.  Its first argument then belongs to
 * the first parameter that is no tensor.  A call with more values than the layer has arguments is
 * an ordinary call with a mistake. */
static bool without_tensors(const FrontCall *c)
{
    int tensors = 0, positional = 0;
    for (int i = 0; i < callee_count(&c->callee); i++)
        tensors += callee_tensor(&c->callee, i);
    if (tensors && callee_gathers(&c->callee, 0))
        return c->e->args.n == 0 || c->e->args.v[0].name;
    for (int i = 0; i < c->e->args.n; i++)
        positional += !c->e->args.v[i].name;
    if (tensors == 0 || positional > callee_count(&c->callee) - tensors)
        return false;
    for (int i = 0; i < c->e->args.n; i++) {
        const Arg *a = &c->e->args.v[i];
        if (!a->name && (c->v[i].kind == V_TENSOR || (i == 0 && c->v[i].kind == V_POISON)))
            return false;
        for (int k = 0; a->name && k < callee_count(&c->callee); k++)
            if (callee_tensor(&c->callee, k) && strcmp(a->name, callee_arg(&c->callee, k)) == 0)
                return false;
    }
    return true;
}

/* Adds a value to an argument that takes any number of values; a list adds all its items. */
static bool gather_value(Lower *l, FrontCall *c, Slot *s, Value v, Span at)
{
    Value *item = s->given ? (Value *)s->v.item : NULL;
    int n = s->given ? s->v.n : 0;
    if (v.kind != V_LIST && v.kind != V_TENSOR && v.kind != V_POISON) {
        diag_error(l->diag, at, "%s joins tensors, or lists of them, this is %s", c->name,
                   value_kind(v));
        diag_help(l->diag, "its other arguments are named");
        return refuse_call(c);
    }
    if (v.kind == V_LIST && v.n > GATHER_MOST - n) {
        diag_error(l->diag, at, "%s takes at most %d values, these are more", c->name, GATHER_MOST);
        return refuse_call(c);
    }
    if (v.kind != V_LIST)
        ARENA_PUSH(l->arena, item, n, v);
    for (int i = 0; v.kind == V_LIST && i < v.n; i++)
        ARENA_PUSH(l->arena, item, n, v.item[i]);
    *s = (Slot){{.kind = V_LIST, .item = item, .n = n}, s->given ? s->span : at, true};
    return true;
}

static int find_arg(const Callee *c, const char *name)
{
    for (int i = 0; i < callee_count(c); i++)
        if (strcmp(callee_arg(c, i), name) == 0)
            return i;
    return -1;
}

/* The index of the next parameter for a positional argument; a partial call skips tensors.  Returns
 * count if there is none. */
static int next_slot(const FrontCall *c, int from)
{
    const int count = callee_count(&c->callee);
    while (from < count && c->partial && callee_tensor(&c->callee, from))
        from++;
    return from;
}

static bool too_many(Lower *l, FrontCall *c, const Arg *a)
{
    int room = 0;
    for (int i = 0; i < callee_count(&c->callee); i++)
        room += !(c->partial && callee_tensor(&c->callee, i));
    if (room)
        diag_error(l->diag, a->value->span, "%s takes %d argument%s, this is one more", c->name,
                   room, room == 1 ? "" : "s");
    else
        diag_error(l->diag, a->value->span, "%s takes no arguments", c->name);
    return refuse_call(c);
}

static bool place_argument(Lower *l, FrontCall *c)
{
    int next = 0;
    bool named = false, ok = true;
    for (int i = 0; i < c->e->args.n; i++) {
        const Arg *a = &c->e->args.v[i];
        c->poison |= c->v[i].kind == V_POISON;
        if (named && !a->name) {
            diag_error(l->diag, a->value->span, "a positional argument cannot follow a named one");
            diag_help(l->diag, "name it too, or move it to the front");
            return refuse_call(c);
        }
        named |= a->name != NULL;
        const int at = a->name ? find_arg(&c->callee, a->name) : next_slot(c, next);
        if (at < 0)
            return refuse_call(c); /* reported by sem.c */
        if (at == callee_count(&c->callee))
            return too_many(l, c, a);
        if (callee_gathers(&c->callee, at) && !a->name) {
            ok &= gather_value(l, c, &c->slot[at], c->v[i], a->value->span);
            next = at;
            continue;
        }
        if (c->slot[at].given) {
            diag_error(l->diag, a->name ? a->name_span : a->value->span,
                       "argument '%s' of %s is given twice", callee_arg(&c->callee, at), c->name);
            ok = refuse_call(c);
        }
        c->slot[at] = (Slot){c->v[i], a->value->span, true};
        next = a->name ? next : at + 1;
    }
    return ok;
}

static const char *wanted_values(const Callee *c, int i)
{
    static const char *const op_arg[] = {"a tensor",
                                         "an int",
                                         "a float",
                                         "a bool",
                                         "a string",
                                         "an int or a pair [h, w]",
                                         "an int, a pair [h, w], \"same\" or \"valid\"",
                                         "an int, \"same\" or \"valid\"",
                                         "a list of at most 16 ints",
                                         "a list of at most 64 numbers",
                                         "a list of at most 16 ints, or a tensor",
                                         "tensors, or lists of them"};
    return c->decl ? type_kind(c->decl->params.v[i].type) : op_arg[c->op->arg[i].type];
}

static bool ints(Value v, int least, int most)
{
    bool fits = v.kind == V_LIST && v.n >= least && v.n <= most;
    for (int i = 0; fits && i < v.n; i++)
        fits = v.item[i].kind == V_INT;
    return fits;
}

static bool numbers(Value v)
{
    bool fit = v.kind == V_LIST && v.n > 0 && v.n <= RT_CLASS_WEIGHTS;
    for (int i = 0; fit && i < v.n; i++)
        fit = value_number(v.item[i]);
    return fit;
}

static bool is_tensors(Value v)
{
    bool fit = v.kind == V_LIST && v.n > 0;
    for (int i = 0; fit && i < v.n; i++)
        fit = v.item[i].kind == V_TENSOR || v.item[i].kind == V_POISON; /* already reported */
    return fit;
}

static bool fits_op(ArgType t, Value *v, bool elementwise)
{
    switch (t) {
    case ARG_TENSOR:
        return v->kind == V_TENSOR || (elementwise && value_number(*v));
    case ARG_INT:
        return v->kind == V_INT;
    case ARG_FLOAT:
        return value_as(*v, TYPE_FLOAT, v);
    case ARG_BOOL:
        return v->kind == V_BOOL;
    case ARG_STRING:
        return v->kind == V_STRING;
    case ARG_PAIR:
        return v->kind == V_INT || ints(*v, 2, 2);
    case ARG_PAD:
        return v->kind == V_INT || v->kind == V_STRING || ints(*v, 2, 2);
    case ARG_PAD_STEPS:
        return v->kind == V_INT || v->kind == V_STRING;
    case ARG_INTS:
        return ints(*v, 0, INTS_MAX);
    case ARG_REALS:
        return numbers(*v);
    case ARG_PLACES:
        return v->kind == V_TENSOR || ints(*v, 0, INTS_MAX);
    case ARG_TENSORS:
        return is_tensors(*v);
    }
    return false;
}

const char *lower_layer_help(Lower *l, const Layer *layer)
{
    const Callee *c = &layer->callee;
    const char *tensors = "";
    for (int i = 0; i < callee_count(c); i++)
        if (callee_tensor(c, i))
            tensors =
                arena_printf(l->arena, "%s%s%s", tensors, *tensors ? ", " : "", callee_arg(c, i));
    return arena_printf(l->arena, "without its tensors, %s(...) is a layer: write %s(%s, ...)",
                        layer->name, layer->name, tensors);
}

static bool check_types(Lower *l, FrontCall *c)
{
    bool ok = true;
    for (int i = 0; i < callee_count(&c->callee); i++) {
        Slot *s = &c->slot[i];
        if (!s->given || s->v.kind == V_POISON)
            continue;
        const Value v = s->v;
        const bool fits = c->callee.decl ? value_as(v, c->callee.decl->params.v[i].type, &s->v) ||
                                               (c->callee.decl->kind == DECL_OP &&
                                                callee_tensor(&c->callee, i) && value_number(v))
                                         : fits_op(c->callee.op->arg[i].type, &s->v,
                                                   c->callee.op->flags & OP_ELEMENTWISE);
        if (fits)
            continue;
        diag_error(l->diag, s->span, "argument '%s' of %s expects %s, got %s",
                   callee_arg(&c->callee, i), c->name, wanted_values(&c->callee, i), value_kind(v));
        if (v.kind == V_LAYER && callee_tensor(&c->callee, i))
            diag_help(l->diag,
                      "a layer becomes a tensor when it is called: fc = dense(10), then fc(x)");
        else if (v.kind == V_LAYER)
            diag_help(l->diag, "%s", lower_layer_help(l, v.layer));
        else if (v.kind == V_FLOAT && c->callee.op && c->callee.op->arg[i].about)
            diag_note(l->diag, "'%s': %s", callee_arg(&c->callee, i), c->callee.op->arg[i].about);
        ok = refuse_call(c);
        if (v.kind == V_LAYER) /* arguments after it may stand one place too far */
            break;
    }
    return ok;
}

static bool has_default(const Callee *c, int i)
{
    return c->decl ? c->decl->params.v[i].fallback || c->decl->params.v[i].type == TYPE_BAD
                   : c->op->arg[i].fallback != NULL;
}

/* Checks that every argument without a default is given, except the tensors of a layer value. */
static bool check_complete(Lower *l, FrontCall *c, Span at)
{
    bool ok = true;
    for (int i = 0; i < callee_count(&c->callee); i++) {
        if (c->slot[i].given || has_default(&c->callee, i) ||
            (c->partial && callee_tensor(&c->callee, i)))
            continue;
        diag_error(l->diag, at, "%s is missing its argument '%s'", c->name,
                   callee_arg(&c->callee, i));
        if (c->callee.op && c->callee.op->arg[i].about)
            diag_note(l->diag, "'%s' is %s: %s", callee_arg(&c->callee, i),
                      wanted_values(&c->callee, i), c->callee.op->arg[i].about);
        ok = refuse_call(c);
    }
    return ok;
}

/* ---- calls */

static const char *callee_kind(const Callee *c, const char *name)
{
    return c->op ? c->op->layer : name;
}

static Value finish_call(Lower *l, const Callee *c, const Slot *slot, const char *path, Expr *e)
{
    return c->decl ? lower_instance(l, c->decl, slot, path, e) : node_make(l, c->op, slot, path, e);
}

static Value call_named(Lower *l, FrontCall *c)
{
    const int count = callee_count(&c->callee);
    if (c->callee.decl && c->callee.decl->bad)
        return value_poison();
    c->slot = arena_alloc(l->arena, (size_t)(count ? count : 1) * sizeof *c->slot);
    c->partial = without_tensors(c);
    bool ok = place_argument(l, c);
    ok = ok && check_types(l, c);
    ok = ok && check_complete(l, c, c->e->a->span);
    const char *path = l->scope && callee_layers(&c->callee) /* the value of a key has no scope */
                           ? lower_path(l, callee_kind(&c->callee, c->name))
                           : NULL;
    if (!ok || c->poison)
        return value_poison();
    if (!c->partial)
        return finish_call(l, &c->callee, c->slot,
                           path       ? path
                           : l->scope ? l->scope->path
                                      : "",
                           c->e);
    Layer *layer = arena_alloc(l->arena, sizeof *layer);
    *layer = (Layer){c->callee, c->name, c->slot, path ? path : ""};
    return (Value){.kind = V_LAYER, .layer = layer};
}

/* Evaluates layer(x, ...): the arguments are the tensors that the layer value lacks, in order. */
static Value call_layer(Lower *l, const Layer *layer, Expr *e, const Value *v)
{
    const int count = callee_count(&layer->callee);
    FrontCall c = {.callee = layer->callee, .name = layer->name, .e = e, .v = v};
    c.slot = arena_alloc(l->arena, (size_t)count * sizeof *c.slot);
    memcpy(c.slot, layer->slot, (size_t)count * sizeof *c.slot);
    for (int i = 0, at = 0; i < e->args.n; i++, at++) {
        while (at < count && !callee_tensor(&c.callee, at))
            at++;
        const Arg *a = &e->args.v[i];
        c.poison |= v[i].kind == V_POISON;
        if (a->name)
            return lower_fail(l, e, a->name_span,
                              "a layer is called with tensors only; '%s' was set when the layer "
                              "was made",
                              a->name);
        if (at == count)
            return lower_fail(l, e, a->value->span, "the layer %s takes only its tensors",
                              layer->name);
        if (!callee_gathers(&c.callee, at))
            c.slot[at] = (Slot){v[i], a->value->span, true};
        else if (!gather_value(l, &c, &c.slot[at--], v[i], a->value->span))
            return value_poison();
    }
    if (!check_types(l, &c) || !check_complete(l, &c, e->a->span) || c.poison)
        return value_poison();
    return finish_call(l, &c.callee, c.slot, layer->path, e);
}

static Value not_callable(Lower *l, Expr *e, Value f)
{
    if (f.kind == V_POISON)
        return f;
    return lower_fail(l, e, e->a->span, "%s cannot be called", value_kind(f));
}

/* Evaluates a call.  If a variable and an op have the same name, the call means the variable if it
 * holds a layer, and the op otherwise. */
static Value call_of(Lower *l, Expr *e, const Value *v)
{
    FrontCall c = {.e = e, .v = v};
    const Var *var = l->scope && e->a->kind == EX_NAME ? map_get(&l->scope->vars, e->a->s) : NULL;
    const bool known = e->a->kind == EX_NAME && callee_find(l->u, e->a->s, &c.callee);
    if (e->a->kind != EX_NAME || (var && (var->v.kind == V_LAYER || !known))) {
        const Value f = e->a->kind == EX_NAME ? var->v : lower_eval(l, e->a);
        return f.kind == V_LAYER ? call_layer(l, f.layer, e, v) : not_callable(l, e, f);
    }
    if (!known)
        return e->a->bad
                   ? value_poison()
                   : lower_fail(l, e, e->a->span, "there is no op, block or layer '%s'", e->a->s);
    c.name = e->a->s;
    if (number_computes(&c.callee, e, v)) {
        for (int i = 0; i < e->args.n; i++)
            if (v[i].kind == V_POISON)
                return value_poison();
        return number_compute(l, e, c.callee.fn, v);
    }
    if (c.callee.decl && c.callee.decl->kind == DECL_MODEL)
        return lower_fail(l, e, e->a->span, "'%s' is a model and cannot be called", e->a->s);
    if (c.callee.decl && c.callee.decl->kind == DECL_OP && l->g == NULL)
        return lower_fail(l, e, e->span, "'%s' works on tensors, and there are only numbers here",
                          e->a->s);
    return call_named(l, &c);
}

Value lower_call(Lower *l, Expr *e)
{
    Value *v = arena_alloc(l->arena, (size_t)(e->args.n ? e->args.n : 1) * sizeof *v);
    for (int i = 0; i < e->args.n; i++)
        v[i] = lower_eval(l, e->args.v[i].value);
    if (l->stop)
        return value_poison();
    const int first = l->g ? l->g->next_id : 0;
    const Value result = call_of(l, e, v);
    lower_trace(l, e, result, first);
    return result;
}
