/* move.c -- numbers put elsewhere: concat, slice, pad, transpose, as loops with literal bounds.
 *
 * The loops run over what moves, in the memory order of whichever side is whole: a row of channels
 * that stays together becomes vectors.
 */
#include "ops/move.h"
#include "emit/nest.h"

/* " + 64": where the walk begins. */
static const char *start_of(Writer *w, const Node *v, const int64_t *start)
{
    int64_t stride[SHAPE_MAX], at = 0;

    nest_strides(v, stride);
    for (int i = 0; i < v->shape.rank; i++)
        at += start[i] * stride[i];
    return at ? arena_printf(w->arena, " + %lld", (long long)at) : "";
}

/* The walk of `v` in the loops over `over`: dimension d of `over` is dimension axis[d] of v. */
static void follow(const Node *over, const Node *v, const int *axis, int64_t *stride)
{
    int order[SHAPE_MAX];
    int64_t own[SHAPE_MAX];

    nest_order(over, order);
    nest_strides(v, own);
    stride[0] = nest_sample(v);
    for (int i = 0; i < over->shape.rank; i++)
        stride[i + 1] = own[axis ? axis[order[i]] : order[i]];
}

static void write_loops(Writer *w, Text *b, Nest *t, const char *to, const char *from)
{
    nest_collapse(t);
    const bool vector = !w->in->options->plain && nest_vectorizable(t);
    const int loops = vector ? t->n - 1 : t->n;
    const char *out = nest_offset(w, t, t->out, loops),
               *in = nest_offset(w, t, t->leaf[0].stride, loops);

    nest_open_loops(b, t, loops);
    if (vector)
        text_printf(b, "    RT_MAP(%lld, STORE(%s%s, LOAD(%s%s)));\n",
                    (long long)t->count[t->n - 1], to, out, from, in);
    else
        text_printf(b, "        *(%s%s) = *(%s%s);\n", to, out, from, in);
}

/* All of y gets m's number. */
static void write_fill(Writer *w, Text *b, const Node *n, const Move *m)
{
    const int64_t all = shape_count(&n->shape) * w->g->step->chunk;

    if (m->filled && m->fill == 0)
        text_printf(b, "    memset(y, 0, sizeof(real) * %lld);\n", (long long)all);
    else if (m->filled)
        text_printf(b, "    for (int i = 0; i < %lld; i++)\n        y[i] = (real)%.17g;\n",
                    (long long)all, m->fill);
}

static void write_input(Writer *w, Text *b, const Node *n, int i)
{
    const Node *x = n->in[i];
    const char *name = n->nin == 1 ? "x" : arena_printf(w->arena, "x%d", i);
    Move m = {0};
    Nest t = {.nleaf = 1};

    n->op->move(n, i, &m);
    const Node *over = m.scatter ? x : n;
    nest_open(w, over, &t);
    follow(over, n, NULL, t.out);
    follow(over, x, m.scatter ? NULL : m.axis, t.leaf[0].stride);
    write_fill(w, b, n, &m);
    write_loops(w, b, &t, m.scatter ? arena_printf(w->arena, "y%s", start_of(w, n, m.start)) : "y",
                m.scatter ? name : arena_printf(w->arena, "%s%s", name, start_of(w, x, m.start)));
}

const char *move_statement(Writer *w, const Node *n)
{
    Text body = text_new(w->arena), params = text_new(w->arena), args = text_new(w->arena);

    text_add(&params, "real *y");
    text_add(&args, pointer_to(w, n));
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i]->within == n) /* written where it belongs */
            continue;
        text_printf(&params, n->nin == 1 ? ", const real *x" : ", const real *x%d", i);
        text_printf(&args, ", %s", pointer_to(w, n->in[i]));
        write_input(w, &body, n, i);
    }
    return arena_printf(w->arena, "%s(%s);", kernel_define(w, n->op->name, params.s, body.s),
                        args.s);
}
