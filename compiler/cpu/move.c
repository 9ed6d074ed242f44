/* move.c -- operations that only move numbers: concat, slice, pad, transpose, as loops with literal
 * bounds.
 *
 * The loops run over the numbers that move, in the memory order of the side that moves completely.
 * A row of channels that stays contiguous is moved in vectors.
 */
#include "cpu/parts.h"
#include "emit/nest.h"

static void write_loops(Writer *w, Text *b, Nest *t, const char *to, const char *from, bool parts)
{
    nest_collapse(t);
    const bool vector = !w->in->options->plain && nest_vectorizable(t);
    const int loops = vector ? t->n - 1 : t->n;
    const char *out = nest_offset(w, t, t->out, loops),
               *in = nest_offset(w, t, t->leaf[0].stride, loops);

    nest_open_loops(b, t, loops, parts);
    if (vector)
        text_printf(b, "    %s(%lld, STORE(%s%s, LOAD(%s%s)));\n",
                    parts && loops == 0 ? "TEAM_MAP" : "RT_MAP", (long long)t->count[t->n - 1], to,
                    out, from, in);
    else
        text_printf(b, "        *(%s%s) = *(%s%s);\n", to, out, from, in);
}

/* Fills y with the number of m. */
static void write_fill(Writer *w, Text *b, const Node *n, const Move *m)
{
    const int64_t all = shape_count(&n->shape) * w->g->step->chunk;

    if (m->filled && m->fill == 0)
        text_printf(b, "    memset(y, 0, sizeof(real) * %lld);\n", (long long)all);
    else if (m->filled)
        text_printf(b, "    for (int i = 0; i < %lld; i++)\n        y[i] = (real)%.17g;\n",
                    (long long)all, m->fill);
}

static void write_input(Writer *w, Text *b, const Node *n, int i, bool parts)
{
    const Node *x = n->in[i];
    const char *name = nest_input(w, n, i);
    Move m;
    Nest t;

    nest_open_move(w, n, i, &m, &t);
    write_fill(w, b, n, &m);
    write_loops(w, b, &t,
                m.scatter ? arena_printf(w->arena, "y%s", nest_start(w, n, m.start)) : "y",
                m.scatter ? name : arena_printf(w->arena, "%s%s", name, nest_start(w, x, m.start)),
                parts);
}

/* Whether y is filled before an input moves; then one thread does both. */
static bool fills(const Node *n)
{
    bool any = false;
    for (int i = 0; i < n->nin; i++) {
        Move m = {0};
        n->op->move(n, i, &m);
        any |= m.filled;
    }
    return any;
}

Statement move_statement(Writer *w, const Node *n)
{
    Text body = text_new(w->arena);
    Arguments s = {0};

    arguments_pointer(w, &s, "y", n, true);
    const bool parts = !w->in->options->plain && !fills(n);
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i]->within == n)
            continue;
        arguments_pointer(w, &s, nest_input(w, n, i), n->in[i], false);
        write_input(w, &body, n, i, parts);
    }
    const Signature sign = kernel_signature(w->arena, s.arg, s.n, false);
    return (Statement){kernel_define(w, n->op->name, sign.params.s, body.s), sign.values.s, parts,
                       NULL, 0};
}
