/* move.c -- calls for operations that only move numbers, on a GPU: concat, slice, pad, transpose.
 *
 * A thread moves one number.  If the input fills only a part of y and the rest is a constant, a
 * thread computes one number of y, and tests whether it lies in this part.
 */
#include "cuda/lower.h"
#include "emit/nest.h"

/* Writes the statements of a loop over all of y.  In the part of x, y gets the numbers of x;
 * elsewhere, y gets m->fill. */
static int64_t spread_filled(Writer *w, Text *b, const Node *n, const Move *m)
{
    const Node *x = n->in[0];
    Nest t = {.nleaf = 1};
    int order[SHAPE_MAX];
    int64_t begin = 0;

    nest_open(w, n, &t);
    nest_follow(n, n, NULL, t.out);
    nest_follow(n, x, NULL, t.leaf[0].stride);
    nest_order(n, order);
    nest_indices(b, &t, false, "at");
    text_add(b, "        const bool inside = true");
    for (int i = 0; i < n->shape.rank; i++) {
        const int d = order[i];
        const int64_t from = m->start[d], to = from + x->shape.dim[d];
        begin += from * t.leaf[0].stride[i + 1];
        if (from > 0)
            text_printf(b, " && %c >= %lld", nest_letter(i + 1), (long long)from);
        if (to < n->shape.dim[d])
            text_printf(b, " && %c < %lld", nest_letter(i + 1), (long long)to);
    }
    text_printf(b, ";\n        y[%s] = inside ? %sx[%s - %lld] : (real)%.17g;\n",
                nest_index(w, "", &t, t.out), x->half ? "(real)" : "",
                nest_index(w, "", &t, t.leaf[0].stride), (long long)begin, m->fill);
    return nest_trips(&t, false);
}

/* Writes the statements for the part of y that comes from input i; returns how many numbers move.
 * *y_whole, *x_whole: these numbers are all of y, or of x, in order. */
static int64_t spread_input(Writer *w, Text *b, const Node *n, int i, bool *y_whole, bool *x_whole)
{
    Move m;
    Nest t;

    nest_open_move(w, n, i, &m, &t);
    if (m.scatter && m.filled)
        return spread_filled(w, b, n, &m);
    nest_collapse(&t);
    *y_whole = !m.scatter && nest_in_order(&t, t.out, NULL);
    *x_whole = m.scatter && nest_in_order(&t, t.leaf[0].stride, NULL);
    nest_indices(b, &t, false, "at");
    text_printf(b, "        y[%s] = %s[%s];\n",
                nest_index(w, m.scatter ? nest_start(w, n, m.start) : "", &t, t.out),
                nest_input(w, n, i),
                nest_index(w, m.scatter ? "" : nest_start(w, n->in[i], m.start), &t,
                           t.leaf[0].stride));
    return nest_trips(&t, false);
}

/* A call whose inputs have equally many numbers has an order.  Such a call is one loop, which other
 * calls can share. */
void move_lower(Writer *w, const Node *n)
{
    CudaCall *c = cuda_call(w, n->op->name, n, OUT("y", n));
    const bool several = n->nin > 1;
    Text loops = text_new(w->arena), one = text_new(w->arena);
    int64_t most = 0, least = INT64_MAX;

    for (int i = 0; i < n->nin; i++) {
        bool y_whole = false, x_whole = false;
        if (n->in[i]->within == n)
            continue;
        cuda_give(w, c, IN(nest_input(w, n, i), n->in[i]));
        Text loop = text_new(w->arena);
        const int64_t count = spread_input(w, &loop, n, i, &y_whole, &x_whole);
        text_printf(&loops, "    FOR_EACH(at, %lld) {\n%s    }\n", (long long)count, loop.s);
        text_add(&one, several ? "        {\n" : "");
        text_shifted(&one, loop.s, several ? 4 : 0);
        text_add(&one, several ? "        }\n" : "");
        most = count > most ? count : most, least = count < least ? count : least;
        c->operand[0].walked |= y_whole;
        c->operand[c->noperand - 1].walked = x_whole;
    }
    c->code = loops.s;
    cuda_give(w, c, EACH(most));
    if (most == least) {
        c->code = one.s, c->index = "at";
        cuda_give_natural(w, c, (Order){.walk = WALK_EACH, .count = most});
    }
}
