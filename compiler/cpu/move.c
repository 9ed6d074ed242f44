/* move.c -- operations that only move numbers: concat, slice, pad, transpose, as loops with literal
 * bounds.
 *
 * The loops run over the numbers that move, in the memory order of the side that moves completely.
 * A row of channels that stays contiguous is moved in vectors.
 */
#include "cpu/parts.h"
#include "emit/nest.h"

static void write_loops(Writer *w, Text *b, const Nest *t, const char *to, const char *from,
                        bool parts)
{
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

/* Fills `count` numbers of y, the result of n, with the number of m; at: the text of an offset, ""
 * or " + i * 800". */
static void write_fill(Text *b, const Node *n, const Move *m, const char *at, int64_t count,
                       const char *indent)
{
    if (m->fill == 0)
        text_printf(b, "%smemset(y%s, 0, sizeof(%s) * %lld);\n", indent, at, pointer_type(n),
                    (long long)count);
    else
        text_printf(b,
                    n->half ? "%sfor (int q = 0; q < %lld; q++)\n"
                              "%s    (y%s)[q] = bf16_narrow((real)%.17g);\n"
                            : "%sfor (int q = 0; q < %lld; q++)\n%s    (y%s)[q] = (real)%.17g;\n",
                    indent, (long long)count, indent, at, m->fill);
}

/* Whether the trips of the outermost loop over x write to consecutive parts of y, of t->out[0]
 * numbers each.  Then each member of a team fills and moves whole parts. */
static bool fills_parts(const Writer *w, const Node *n, const Nest *t)
{
    return !w->in->options->plain && n->nin == 1 && t->n > 1 &&
           t->count[0] * t->out[0] == shape_count(&n->shape) * w->g->step->chunk;
}

/* Returns whether members of a team share the move. */
static bool write_input(Writer *w, Text *b, const Node *n, int i, bool parts)
{
    const Node *x = n->in[i];
    const char *name = nest_input(w, n, i);
    Move m;
    Nest t;

    nest_open_move(w, n, i, &m, &t);
    nest_collapse(&t);
    parts = parts || (m.filled && fills_parts(w, n, &t));
    if (m.filled && parts) {
        text_printf(b, "    TEAM_FOR(i, %lld)\n", (long long)t.count[0]);
        write_fill(b, n, &m, nest_offset(w, &t, t.out, 1), t.out[0], "        ");
    } else if (m.filled) {
        write_fill(b, n, &m, "", shape_count(&n->shape) * w->g->step->chunk, "    ");
    }
    write_loops(w, b, &t,
                m.scatter ? arena_printf(w->arena, "y%s", nest_start(w, n, m.start)) : "y",
                m.scatter ? name : arena_printf(w->arena, "%s%s", name, nest_start(w, x, m.start)),
                parts);
    return parts;
}

/* Whether y is filled before an input moves. */
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
    Accesses all = {0};

    arguments_pointer(w, &s, "y", n, true);
    joint_access(w, &all, (Access){n, .written = true});
    bool parts = !w->in->options->plain && !fills(n);
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i]->within == n)
            continue;
        arguments_pointer(w, &s, nest_input(w, n, i), n->in[i], false);
        joint_access(w, &all, (Access){.node = n->in[i]});
        parts = write_input(w, &body, n, i, parts);
    }
    const Signature sign = kernel_signature(w->arena, s.arg, s.n, false);
    return (Statement){kernel_define(w, n->op->name, sign.params.s, body.s), sign.values.s, parts,
                       all};
}
