/* nest.c -- loops over the numbers of a chunk: trip counts, strides of operands, merging of loops.
 *
 * The loops over an output run over the samples of a chunk, then over the dimensions in memory
 * order.  An operand has a stride in each loop; the stride is 0 where the operand is broadcast.
 * Two neighbouring loops become one if the strides of all operands allow it.
 */
#include "emit/nest.h"

/* Stores the strides in memory of the dimensions of a sample of v, indexed by logical dimension. */
static void strides_of(const Node *v, int64_t *stride)
{
    int64_t start;
    const Shape *s = &node_frame(v, &start)->shape;
    int64_t step = 1;

    if (v->layout == LAYOUT_LAST && s->rank == 3) {
        stride[0] = 1, stride[2] = s->dim[0], stride[1] = s->dim[2] * s->dim[0];
        return;
    }
    for (int i = s->rank - 1; i >= 0; i--)
        stride[i] = step, step *= s->dim[i];
}

/* Reals between the beginnings of two samples of v. */
int64_t nest_sample(const Node *v)
{
    int64_t start;
    return v->shape.batched ? shape_count(&node_frame(v, &start)->shape) : 0;
}

/* Stores the dimensions of a sample of v, in memory order. */
void nest_order(const Node *v, int *order)
{
    for (int i = 0; i < v->shape.rank; i++)
        order[i] = i;
    if (v->layout == LAYOUT_LAST && v->shape.rank == 3)
        order[0] = 1, order[1] = 2, order[2] = 0;
}

/* Fills stride[] (sample first) of operand v inside the loops of `over`; `first_axis`: v is a
 * vector along dimension 0. */
void nest_walk(const Node *over, const Node *v, bool first_axis, int64_t *stride)
{
    int order[SHAPE_MAX];
    int64_t own[SHAPE_MAX];
    const int R = over->shape.rank, r = v->shape.rank;

    nest_order(over, order);
    strides_of(v, own);
    stride[0] = nest_sample(v);
    for (int i = 0; i < R; i++) {
        const int j = first_axis ? (order[i] == 0 ? 0 : -1) : order[i] - (R - r);
        stride[i + 1] = j < 0 || v->shape.dim[j] == 1 ? 0 : own[j];
    }
}

void nest_open(const Writer *w, const Node *over, Nest *nest)
{
    int order[SHAPE_MAX];

    nest_order(over, order);
    nest->n = over->shape.rank + 1;
    nest->count[0] = over->shape.batched ? w->g->step->chunk : 1;
    for (int i = 0; i < over->shape.rank; i++)
        nest->count[i + 1] = over->shape.dim[order[i]];
}

/* whether loops i and i + 1 can be one loop for all operands */
static bool joins(const Nest *t, int i)
{
    if (t->out[i] != t->out[i + 1] * t->count[i + 1])
        return false;
    for (int k = 0; k < t->nleaf; k++)
        if (t->leaf[k].stride[i] != t->leaf[k].stride[i + 1] * t->count[i + 1])
            return false;
    return true;
}

static void drop_loop(Nest *t, int i) /* removes loop i */
{
    t->n--;
    for (int j = i; j < t->n; j++) {
        t->count[j] = t->count[j + 1], t->out[j] = t->out[j + 1];
        for (int k = 0; k < t->nleaf; k++)
            t->leaf[k].stride[j] = t->leaf[k].stride[j + 1];
    }
}

void nest_collapse(Nest *t)
{
    for (int i = t->n - 1; i >= 0; i--)
        if (t->count[i] == 1 && t->n > 1)
            drop_loop(t, i);
    for (int i = t->n - 2; i >= 0; i--)
        if (joins(t, i)) {
            t->count[i + 1] *= t->count[i];
            drop_loop(t, i);
        }
}

bool nest_in_order(const Nest *t, const int64_t *stride, const int64_t *kept)
{
    int64_t each = 1;
    for (int i = t->n - 1; i >= 0; i--) {
        if (kept && !kept[i])
            continue;
        if (stride[i] != each)
            return false;
        each *= t->count[i];
    }
    return true;
}

bool nest_vectorizable(const Nest *t)
{
    if (t->out[t->n - 1] != 1)
        return false;
    for (int k = 0; k < t->nleaf; k++)
        if (t->leaf[k].stride[t->n - 1] > 1)
            return false;
    return true;
}

char nest_letter(int loop)
{
    return "ijklmpq"[loop];
}

/* " + i * 800 + k" for the first `loops` loops; "" when all strides are 0. */
const char *nest_offset(Writer *w, const Nest *t, const int64_t *stride, int loops)
{
    Text s = text_new(w->arena);

    for (int i = 0; i < loops; i++)
        if (stride[i]) {
            text_printf(&s, " + %c", nest_letter(i));
            if (stride[i] != 1)
                text_printf(&s, " * %lld", (long long)stride[i]);
        }
    (void)t;
    return s.s;
}

const char *nest_index(Writer *w, const char *start, const Nest *t, const int64_t *stride)
{
    const char *at = arena_printf(w->arena, "%s%s", start, nest_offset(w, t, stride, t->n));
    return *at ? at + 3 : "0"; /* without " + " */
}

void nest_open_loops(Text *b, const Nest *t, int loops, bool parts)
{
    if (parts && loops > 0)
        text_printf(b, "    TEAM_FOR(%c, %lld)\n", nest_letter(0), (long long)t->count[0]);
    for (int i = parts; i < loops; i++)
        text_printf(b, "    for (int %c = 0; %c < %lld; %c++)\n", nest_letter(i), nest_letter(i),
                    (long long)t->count[i], nest_letter(i));
}

int64_t nest_trips(const Nest *t, bool summed)
{
    int64_t all = 1;

    for (int i = 0; i < t->n; i++)
        all *= (t->out[i] == 0) == summed ? t->count[i] : 1;
    return all;
}

/* The index of the innermost loop changes fastest. */
void nest_indices(Text *b, const Nest *t, bool summed, const char *flat)
{
    const char *lead = "        const int ";
    int64_t inner = nest_trips(t, summed), outer = 1;

    for (int i = 0; i < t->n; i++) {
        if ((t->out[i] == 0) != summed)
            continue;
        inner /= t->count[i];
        text_printf(b, "%s%c = %s", lead, nest_letter(i), flat);
        if (inner > 1)
            text_printf(b, " / %lld", (long long)inner);
        if (outer > 1)
            text_printf(b, " %% %lld", (long long)t->count[i]);
        outer *= t->count[i];
        lead = ", ";
    }
    text_add(b, *lead == ',' ? ";\n" : "");
}

/* " + 64": offset of the number with the indices start[]. */
const char *nest_start(Writer *w, const Node *v, const int64_t *start)
{
    int64_t stride[SHAPE_MAX], at = 0;

    strides_of(v, stride);
    for (int i = 0; i < v->shape.rank; i++)
        at += start[i] * stride[i];
    return at ? arena_printf(w->arena, " + %lld", (long long)at) : "";
}

/* Stores the strides of v in the loops over `over`: dimension d of `over` is dimension axis[d] of
 * v. */
void nest_follow(const Node *over, const Node *v, const int *axis, int64_t *stride)
{
    int order[SHAPE_MAX];
    int64_t own[SHAPE_MAX];

    nest_order(over, order);
    strides_of(v, own);
    stride[0] = nest_sample(v);
    for (int i = 0; i < over->shape.rank; i++)
        stride[i + 1] = own[axis ? axis[order[i]] : order[i]];
}

const char *nest_input(Writer *w, const Node *n, int i)
{
    return n->nin == 1 ? "x" : arena_printf(w->arena, "x%d", i);
}

void nest_open_move(const Writer *w, const Node *n, int i, Move *m, Nest *t)
{
    const Node *x = n->in[i];

    *m = (Move){0}, *t = (Nest){.nleaf = 1};
    n->op->move(n, i, m);
    const Node *over = m->scatter ? x : n;
    nest_open(w, over, t);
    nest_follow(over, n, NULL, t->out);
    nest_follow(over, x, m->scatter ? NULL : m->axis, t->leaf[0].stride);
}
