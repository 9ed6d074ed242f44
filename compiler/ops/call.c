/* call.c -- kernel calls as data. */
#include "ops/call.h"
#include "base/text.h"
#include "ops/op.h"
#include "ops/scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes */

Sizes *sizes_new(Arena *a, const char *type)
{
    Sizes *s = arena_alloc(a, sizeof *s);
    s->type = type;
    return s;
}

static void push(Sizes *s, SizeField f)
{
    if (s->n == SIZE_FIELDS) {
        fprintf(stderr, "tenon: internal error: a %s has too many fields\n", s->type);
        abort();
    }
    s->field[s->n++] = f;
}

void sizes_int(Sizes *s, const char *field, int64_t v)
{
    push(s, (SizeField){.name = field, .kind = SIZE_INT, .i = v});
}

void sizes_real(Sizes *s, const char *field, double v)
{
    push(s, (SizeField){.name = field, .kind = SIZE_REAL, .f = v});
}

void sizes_bool(Sizes *s, const char *field, bool v)
{
    push(s, (SizeField){.name = field, .kind = SIZE_BOOL, .i = v});
}

void sizes_word(Sizes *s, const char *field, const char *c)
{
    push(s, (SizeField){.name = field, .kind = SIZE_WORD, .word = c});
}

void sizes_shard(Sizes *s, const char *field)
{
    push(s, (SizeField){.name = field, .kind = SIZE_SHARD});
}

bool sizes_use_shard(const Sizes *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->field[i].kind == SIZE_SHARD)
            return true;
    return s->inner && sizes_use_shard(s->inner);
}

int64_t sizes_get(const Sizes *s, const char *field)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->field[i].name, field) == 0)
            return s->field[i].i;
    return 0;
}

static bool same_field(const SizeField *a, const SizeField *b)
{
    return a->kind == b->kind && a->i == b->i && a->f == b->f && !a->name == !b->name &&
           (!a->name || !strcmp(a->name, b->name)) &&
           (a->kind != SIZE_WORD || !strcmp(a->word, b->word));
}

bool sizes_same(const Sizes *a, const Sizes *b)
{
    if (!a || !b)
        return a == b;
    bool same = a->n == b->n && !strcmp(a->type, b->type) && sizes_same(a->inner, b->inner);
    for (int i = 0; same && i < a->n; i++)
        same = same_field(&a->field[i], &b->field[i]);
    return same;
}

static void add_field(Text *t, const SizeField *f)
{
    switch (f->kind) {
    case SIZE_INT:
        text_printf(t, ".%s = %lld", f->name, (long long)f->i);
        break;
    case SIZE_REAL:
        text_printf(t, ".%s = %.17g", f->name, f->f);
        break;
    case SIZE_BOOL:
        text_printf(t, ".%s = %s", f->name, f->i ? "true" : "false");
        break;
    case SIZE_WORD:
        text_printf(t, ".%s = %s", f->name, f->word);
        break;
    case SIZE_SHARD:
        text_printf(t, ".%s = SHARD", f->name);
        break;
    }
}

const char *sizes_text(Arena *a, const Sizes *s, bool cpp)
{
    Text t = text_new(a);
    if (s->inner)
        return arena_printf(a, cpp ? "%s{%s}" : "(%s){%s}", s->type, sizes_text(a, s->inner, cpp));
    if (s->n == 1 && !s->field[0].name)
        return arena_printf(a, cpp ? "%s{%lld}" : "(%s){%lld}", s->type, (long long)s->field[0].i);
    text_printf(&t, cpp ? "%s{ " : "(%s){ ", s->type);
    for (int i = 0; i < s->n; i++) {
        text_add(&t, i ? ", " : "");
        add_field(&t, &s->field[i]);
    }
    text_add(&t, " }");
    return t.s;
}

/* ---- calls */

static void add(Call *c, CallArg arg)
{
    if (c->narg == CALL_ARGS) {
        fprintf(stderr, "tenon: internal error: a call of %s has too many arguments\n", c->fn);
        abort();
    }
    c->arg[c->narg++] = arg;
}

void call_fn(Call *c, const char *name)
{
    c->fn = name;
}

const char *call_version(const Call *c, const char *name)
{
    return arena_printf(c->arena, "%s%s", name, c->target.kernels);
}

void call_kernel(Call *c, const char *name)
{
    call_fn(c, call_version(c, name));
}

void call_product(Call *c, const char *name)
{
    call_fn(c, arena_printf(c->arena, "%s%s", name, c->target.products));
}

void call_out(Call *c, const Node *n)
{
    add(c, (CallArg){.kind = CALL_OUT, .node = n});
}

void call_in(Call *c, const Node *n)
{
    if (n)
        add(c, (CallArg){.kind = CALL_IN, .node = n});
    else
        add(c, (CallArg){.kind = CALL_NULL});
}

void call_in_parts(Call *c, const Node *n)
{
    c->parts = true;
    call_out(c, n);
    for (int i = 0; i < n->nin; i++)
        call_in(c, n->in[i]);
}

void call_side(Call *c, const Node *n)
{
    add(c, (CallArg){.kind = CALL_SIDE, .node = n});
}

void call_sums(Call *c, const Node *n)
{
    add(c, (CallArg){.kind = CALL_SUMS, .node = n});
}

void call_scratch(Call *c)
{
    add(c, (CallArg){.kind = CALL_SCRATCH});
}

void call_offset(Call *c, int64_t at)
{
    add(c, (CallArg){.kind = CALL_OFFSET, .text = arena_printf(c->arena, "%lld", (long long)at)});
}

void call_text(Call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, (CallArg){.kind = CALL_TEXT, .text = arena_vprintf(c->arena, fmt, ap)});
    va_end(ap);
}

void call_sizes(Call *c, const Sizes *s)
{
    add(c, (CallArg){.kind = CALL_SIZES, .sizes = s});
}

void call_given(Call *c, CallArgKind kind)
{
    add(c, (CallArg){.kind = kind});
}

void call_step(Call *c, const char *at)
{
    add(c, (CallArg){.kind = CALL_STEP, .text = at});
}

const char *call_literal(Arena *a, const CallArg *arg, bool cpp)
{
    return arg->kind == CALL_NULL    ? (cpp ? "nullptr" : "NULL")
           : arg->kind == CALL_TEXT  ? arg->text
           : arg->kind == CALL_SIZES ? sizes_text(a, arg->sizes, cpp)
                                     : NULL;
}

/* Whether the value needs no call, because other calls have written its memory: a slice that lies
 * in its input, or a concat or sequence whose parts lie in it. */
static bool lies_in_place(const Node *n)
{
    bool all = node_is(n, "concat");
    for (int i = 0; all && i < n->nin; i++)
        all = n->in[i]->within == n;
    return all || (node_is(n, "slice") && n->within == n->in[0]) || scan_in_place(n) ||
           (n->op->scan == SCAN_STACK && n->in[0]->within == n);
}

bool kernel_needed(const Node *n)
{
    const bool literal = n->op->leaf == LEAF_CONST || n->op->leaf == LEAF_PARAM;
    return !lies_in_place(n) && !literal && !(n->op->flags & (OP_VIEW | OP_SIDE | OP_UPDATE)) &&
           !node_attr(n, "inline");
}
