/* move.c -- numbers put elsewhere: concat, slice, pad, transpose, as loops with literal bounds.
 *
 * The loops run over what moves, in the memory order of whichever side is whole: a row of channels
 * that stays together becomes vectors.  On a GPU a thread takes a number; where one input fills a part of y only,
 * it takes a number of y and asks whether it lies in that part.
 */
#include "ops/move.h"
#include "emit/cuda_lower.h"
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

/* ------------------------------------------------------------------------------- on a GPU */

/* "64 + i * 800 + k" of terms that begin with " + "; "0" of none. */
static const char *sum_of_terms(Writer *w, const char *start, const char *offset)
{
    const char *all = arena_printf(w->arena, "%s%s", start, offset);
    return *all ? all + 3 : "0";
}

/* y gets x where x lies in it, m's number elsewhere. */
static int64_t spread_filled(Writer *w, Text *b, const Node *n, const Move *m)
{
    const Node *x = n->in[0];
    Nest t = {.nleaf = 1};
    int order[SHAPE_MAX];

    nest_open(w, n, &t);
    follow(n, n, NULL, t.out);
    follow(n, x, NULL, t.leaf[0].stride);
    nest_order(n, order);
    text_printf(b, "    FOR_EACH(at, %lld) {\n", (long long)nest_trips(&t, false));
    nest_indices(b, &t, false, "at");
    text_add(b, "        const bool inside = true");
    int64_t begin = 0;
    for (int i = 0; i < n->shape.rank; i++) {
        const int d = order[i];
        const char c = nest_letter(i + 1);
        begin += m->start[d] * t.leaf[0].stride[i + 1];
        if (m->start[d] > 0)
            text_printf(b, " && %c >= %lld", c, (long long)m->start[d]);
        if (m->start[d] + x->shape.dim[d] < n->shape.dim[d])
            text_printf(b, " && %c < %lld", c, (long long)(m->start[d] + x->shape.dim[d]));
    }
    text_printf(b, ";\n        y[%s] = inside ? %sx[%s - %lld] : (real)%.17g;\n    }\n",
                sum_of_terms(w, "", nest_offset(w, &t, t.out, t.n)), x->half ? "(real)" : "",
                sum_of_terms(w, "", nest_offset(w, &t, t.leaf[0].stride, t.n)), (long long)begin, m->fill);
    return nest_trips(&t, false);
}

/* The part of y that is, or lies in, input i; returns how many numbers.  *y_whole, *x_whole: these are y, or x, in order. */
static int64_t spread_input(Writer *w, Text *b, const Node *n, int i, bool *y_whole, bool *x_whole)
{
    const Node *x = n->in[i];
    const char *name = n->nin == 1 ? "x" : arena_printf(w->arena, "x%d", i);
    Move m = {0};
    Nest t = {.nleaf = 1};

    n->op->move(n, i, &m);
    *y_whole = *x_whole = false;
    if (m.scatter && m.filled)
        return spread_filled(w, b, n, &m);
    nest_open(w, m.scatter ? x : n, &t);
    follow(m.scatter ? x : n, n, NULL, t.out);
    follow(m.scatter ? x : n, x, m.scatter ? NULL : m.axis, t.leaf[0].stride);
    nest_collapse(&t);
    *y_whole = !m.scatter && nest_in_order(&t, t.out, NULL);
    *x_whole = m.scatter && nest_in_order(&t, t.leaf[0].stride, NULL);
    text_printf(b, "    FOR_EACH(at, %lld) {\n", (long long)nest_trips(&t, false));
    nest_indices(b, &t, false, "at");
    text_printf(b, "        y[%s] = %s[%s];\n    }\n",
                sum_of_terms(w, m.scatter ? start_of(w, n, m.start) : "", nest_offset(w, &t, t.out, t.n)),
                name,
                sum_of_terms(w, m.scatter ? "" : start_of(w, x, m.start),
                      nest_offset(w, &t, t.leaf[0].stride, t.n)));
    return nest_trips(&t, false);
}

/* Inputs that lie in y already are written where they belong. */
static const char *input_name(Writer *w, const Node *n, int i)
{
    return n->nin == 1 ? "x" : arena_printf(w->arena, "x%d", i);
}

/* Calls that walk all of their operands in one loop have an order. */
void move_lower(Writer *w, const Node *n)
{
    CudaCall *c = cuda_add(w, n->op->name, n);
    Text body = text_new(w->arena);
    int64_t most = 0, least = INT64_MAX;

    cuda_value(w, c, "y", n, true);
    for (int i = 0; i < n->nin; i++) {
        bool y_whole = false, x_whole = false;
        if (n->in[i]->within == n)
            continue;
        cuda_value(w, c, input_name(w, n, i), n->in[i], false);
        const int64_t count = spread_input(w, &body, n, i, &y_whole, &x_whole);
        most = count > most ? count : most, least = count < least ? count : least;
        c->operand[0].walked |= y_whole;
        c->operand[c->noperand - 1].walked = x_whole;
    }
    c->code = body.s;
    cuda_blocks(w, c, "each", most);
    if (most == least)
        c->natural = cuda_order(w->arena, (Order){.walk = WALK_EACH, .count = most});
    cuda_give_order(w, c, c->natural);
}

/* ------------------------------------------------------------------------------- the statement */

const char *move_statement(Writer *w, const Node *n)
{
    Text body = text_new(w->arena), params = text_new(w->arena), args = text_new(w->arena);

    text_printf(&params, "%s *y", pointer_type(n));
    text_add(&args, pointer_to(w, n));
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i]->within == n)
            continue;
        text_printf(&params, ", const %s *%s", pointer_type(n->in[i]), input_name(w, n, i));
        text_printf(&args, ", %s", pointer_to(w, n->in[i]));
        write_input(w, &body, n, i);
    }
    return arena_printf(w->arena, "%s(%s);", kernel_define(w, n->op->name, params.s, body.s),
                        args.s);
}
