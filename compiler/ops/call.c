/* call.c -- kernel calls as data. */
#include "ops/call.h"
#include <stdio.h>
#include <stdlib.h>

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

void call_product(Call *c, const char *name)
{
    c->fn = arena_printf(c->arena, "%s%s", name, c->blas ? "_blas" : c->plain ? "_plain" : "");
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
        add(c, (CallArg){.kind = CALL_TEXT, .text = "NULL"});
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

void call_place(Call *c, int64_t at)
{
    add(c, (CallArg){CALL_PLACE, NULL, arena_printf(c->arena, "%lld", (long long)at)});
}

void call_text(Call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(c, (CallArg){.kind = CALL_TEXT, .text = arena_vprintf(c->arena, fmt, ap)});
    va_end(ap);
}
