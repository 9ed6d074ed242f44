/* call.c -- kernel calls as data. */
#include "ops/call.h"
#include "ops/op.h"
#include "ops/scan.h"
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

/* Nothing is left to compute: a slice that lies in its input, a concat or a sequence whose parts lie in it. */
static bool lies_there(const Node *n)
{
    bool all = node_is(n, "concat");
    for (int i = 0; all && i < n->nin; i++)
        all = n->in[i]->within == n;
    return all || (node_is(n, "slice") && n->within == n->in[0]) || scan_in_place(n) ||
           (node_is(n, "scan_stack") && n->in[0]->within == n);
}

bool kernel_needed(const Node *n)
{
    return !lies_there(n) && !(n->op->flags & OP_VIEW) && !node_is(n, "const") &&
           !node_is(n, "param") && !node_is(n, "side") && !(n->op->flags & OP_UPDATE) &&
           !node_attr(n, "inline");
}
