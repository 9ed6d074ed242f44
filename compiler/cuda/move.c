/* move.c -- calls for operations that only move numbers, on a GPU: concat, slice, pad, transpose.
 *
 * A thread moves one number.  If the input fills only a part of y and the rest is a constant, a
 * thread computes one number of y, and tests whether it lies in this part.
 */
#include "ops/move.h"
#include "cuda/lower.h"
#include "emit/nest.h"

/* "64 + i * 800 + k" of terms that begin with " + "; "0" of none. */
static const char *sum_of_terms(Writer *w, const char *start, const char *offset)
{
    const char *all = arena_printf(w->arena, "%s%s", start, offset);
    return *all ? all + 3 : "0";
}

/* Writes a loop over all of y: y gets x in the part of x, else the number of m. */
static int64_t spread_filled(Writer *w, Text *b, const Node *n, const Move *m)
{
    const Node *x = n->in[0];
    Nest t = {.nleaf = 1};
    int order[SHAPE_MAX];

    nest_open(w, n, &t);
    nest_follow(n, n, NULL, t.out);
    nest_follow(n, x, NULL, t.leaf[0].stride);
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
                sum_of_terms(w, "", nest_offset(w, &t, t.leaf[0].stride, t.n)), (long long)begin,
                m->fill);
    return nest_trips(&t, false);
}

/* Writes the part of y that comes from input i; returns the number of numbers that move.  *y_whole,
 * *x_whole: these numbers are all of y, or of x, in order. */
static int64_t spread_input(Writer *w, Text *b, const Node *n, int i, bool *y_whole, bool *x_whole)
{
    const Node *x = n->in[i];
    const char *name = nest_input(w, n, i);
    Move m = {0};
    Nest t = {.nleaf = 1};

    n->op->move(n, i, &m);
    *y_whole = *x_whole = false;
    if (m.scatter && m.filled)
        return spread_filled(w, b, n, &m);
    nest_open(w, m.scatter ? x : n, &t);
    nest_follow(m.scatter ? x : n, n, NULL, t.out);
    nest_follow(m.scatter ? x : n, x, m.scatter ? NULL : m.axis, t.leaf[0].stride);
    nest_collapse(&t);
    *y_whole = !m.scatter && nest_in_order(&t, t.out, NULL);
    *x_whole = m.scatter && nest_in_order(&t, t.leaf[0].stride, NULL);
    text_printf(b, "    FOR_EACH(at, %lld) {\n", (long long)nest_trips(&t, false));
    nest_indices(b, &t, false, "at");
    text_printf(b, "        y[%s] = %s[%s];\n    }\n",
                sum_of_terms(w, m.scatter ? nest_start(w, n, m.start) : "",
                             nest_offset(w, &t, t.out, t.n)),
                name,
                sum_of_terms(w, m.scatter ? "" : nest_start(w, x, m.start),
                             nest_offset(w, &t, t.leaf[0].stride, t.n)));
    return nest_trips(&t, false);
}

/* A call has an order if one loop covers all of its operands. */
void move_lower(Writer *w, const Node *n)
{
    CudaCall *c = cuda_call(w, n->op->name, n, OUT("y", n));
    Text body = text_new(w->arena);
    int64_t most = 0, least = INT64_MAX;

    for (int i = 0; i < n->nin; i++) {
        bool y_whole = false, x_whole = false;
        if (n->in[i]->within == n)
            continue;
        cuda_give(w, c, IN(nest_input(w, n, i), n->in[i]));
        const int64_t count = spread_input(w, &body, n, i, &y_whole, &x_whole);
        most = count > most ? count : most, least = count < least ? count : least;
        c->operand[0].walked |= y_whole;
        c->operand[c->noperand - 1].walked = x_whole;
    }
    c->code = body.s;
    cuda_give(w, c, EACH(most));
    if (most == least)
        c->natural = cuda_order(w->arena, (Order){.walk = WALK_EACH, .count = most});
    cuda_give_order(w, c, c->natural);
}
