/* loop.c -- elementwise trees and sums over broadcast dimensions, as loops with literal bounds.
 *
 * An output of one chunk has the loops (sample, dims in memory order); an operand has a stride in
 * each, 0 where it is broadcast.  Neighbouring loops that every operand walks as one become one.
 * When the innermost loop is walked with strides 1 and 0 only, it becomes vectors (RT_MAP,
 * runtime/cpu/vec.h); else, and under --plain, plain C.
 */
#include "emit/writer.h"
#include "ops/elementwise.h"
#include <string.h>

enum { LOOPS = SHAPE_MAX + 1 };

static const char letters[] = "abcdefghrsuv"; /* not those of the loops, nor y */

typedef struct Leaf {
    const Node *node;
    char letter;
    int64_t stride[LOOPS];
} Leaf;

typedef struct Nest {
    int n;                            /* loops, outermost first */
    int64_t count[LOOPS], out[LOOPS]; /* trips; stride of the output */
    int nleaf;
    Leaf leaf[LOOP_LEAVES];
} Nest;

/* Strides of v's sample dims in memory, by logical dimension. */
static void strides_of(const Node *v, int64_t *stride)
{
    const Shape *s = &v->shape;
    int64_t step = 1;

    if (v->layout == LAYOUT_LAST && s->rank == 3) {
        stride[0] = 1, stride[2] = s->dim[0], stride[1] = s->dim[2] * s->dim[0];
        return;
    }
    for (int i = s->rank - 1; i >= 0; i--)
        stride[i] = step, step *= s->dim[i];
}

/* Memory order of the sample dims of the loop's own value. */
static void order_of(const Node *v, int *order)
{
    for (int i = 0; i < v->shape.rank; i++)
        order[i] = i;
    if (v->layout == LAYOUT_LAST && v->shape.rank == 3)
        order[0] = 1, order[1] = 2, order[2] = 0;
}

/* Fills stride[] (sample first) of operand v inside the loops of `over`; `first_axis`: v is a
 * vector along dimension 0. */
static void walk(const Node *over, const Node *v, bool first_axis, int64_t *stride)
{
    int order[SHAPE_MAX];
    int64_t own[SHAPE_MAX];
    const int R = over->shape.rank, r = v->shape.rank;

    order_of(over, order);
    strides_of(v, own);
    stride[0] = v->shape.batched ? shape_count(&v->shape) : 0;
    for (int i = 0; i < R; i++) {
        const int j = first_axis ? (order[i] == 0 ? 0 : -1) : order[i] - (R - r);
        stride[i + 1] = j < 0 || v->shape.dim[j] == 1 ? 0 : own[j];
    }
}

static void open_nest(const Writer *w, const Node *over, Nest *nest)
{
    int order[SHAPE_MAX];

    order_of(over, order);
    nest->n = over->shape.rank + 1;
    nest->count[0] = over->shape.batched ? w->g->step->chunk : 1;
    for (int i = 0; i < over->shape.rank; i++)
        nest->count[i + 1] = over->shape.dim[order[i]];
}

static bool joins(const Nest *t, int i) /* loops i and i + 1 are one for everybody */
{
    if (t->out[i] != t->out[i + 1] * t->count[i + 1])
        return false;
    for (int k = 0; k < t->nleaf; k++)
        if (t->leaf[k].stride[i] != t->leaf[k].stride[i + 1] * t->count[i + 1])
            return false;
    return true;
}

static void drop(Nest *t, int i) /* removes loop i */
{
    t->n--;
    for (int j = i; j < t->n; j++) {
        t->count[j] = t->count[j + 1], t->out[j] = t->out[j + 1];
        for (int k = 0; k < t->nleaf; k++)
            t->leaf[k].stride[j] = t->leaf[k].stride[j + 1];
    }
}

static void collapse(Nest *t)
{
    for (int i = t->n - 1; i >= 0; i--)
        if (t->count[i] == 1 && t->n > 1)
            drop(t, i);
    for (int i = t->n - 2; i >= 0; i--)
        if (joins(t, i)) {
            t->count[i + 1] *= t->count[i];
            drop(t, i);
        }
}

static bool vectorizable(const Nest *t)
{
    if (t->out[t->n - 1] != 1)
        return false;
    for (int k = 0; k < t->nleaf; k++)
        if (t->leaf[k].stride[t->n - 1] > 1)
            return false;
    return true;
}

/* "i * 800 + k" for the first `loops` loops; "" when all strides are 0. */
static const char *offset(Writer *w, const Nest *t, const int64_t *stride, int loops)
{
    Text s = text_new(w->arena);

    for (int i = 0; i < loops; i++)
        if (stride[i]) {
            text_printf(&s, " + %c", "ijklmpq"[i]);
            if (stride[i] != 1)
                text_printf(&s, " * %lld", (long long)stride[i]);
        }
    (void)t;
    return s.s;
}

static void open_loops(Text *b, const Nest *t, int loops)
{
    for (int i = 0; i < loops; i++)
        text_printf(b, "    %*sfor (int %c = 0; %c < %lld; %c++)\n", 0, "", "ijklmpq"[i],
                    "ijklmpq"[i], (long long)t -> count[i], "ijklmpq"[i]);
}

/* ------------------------------------------------------------------------------- elementwise
 * trees */

static bool is_inlined(const Node *n)
{
    return node_attr(n, "inline") != NULL;
}

static void collect(const Node *root, const Node *n, Nest *t)
{
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        bool known = node_is(x, "const");
        for (int k = 0; k < t->nleaf; k++)
            known |= t->leaf[k].node == x;
        if (is_inlined(x)) {
            collect(root, x, t);
        } else if (!known && t->nleaf < LOOP_LEAVES) {
            Leaf *l = &t->leaf[t->nleaf];
            l->node = x, l->letter = letters[t->nleaf++];
            walk(root, x, node_is(n, "bias") && i == 1, l->stride);
        }
    }
}

static const char *operand(Writer *w, const Nest *t, const Node *x, bool vector)
{
    if (node_is(x, "const"))
        return arena_printf(w->arena, vector ? "v_set((real)%.17g)" : "(real)%.17g",
                            node_float(x, "value"));
    for (int k = 0; k < t->nleaf; k++) {
        const Leaf *l = &t->leaf[k];
        if (l->node != x)
            continue;
        const int64_t inner = l->stride[t->n - 1];
        const char *base = offset(w, t, l->stride, vector ? t->n - 1 : t->n);
        if (!vector)
            return arena_printf(w->arena, "%c[%s]", l->letter, *base ? base + 3 : "0");
        return arena_printf(w->arena, inner ? "LOAD(%c%s)" : "v_set(*(%c%s))", l->letter, base);
    }
    return "?";
}

static const char *expression(Writer *w, const Nest *t, const Node *n, bool vector)
{
    const char *in[4] = {0};

    for (int i = 0; i < n->nin && i < 4; i++)
        in[i] = is_inlined(n->in[i]) ? expression(w, t, n->in[i], vector)
                                     : operand(w, t, n->in[i], vector);
    if (node_is(n, "bias"))
        return arena_printf(w->arena, "(%s + %s)", in[0], in[1]);
    return elementwise_format(w->arena, n, in, !vector);
}

static const char *parameters(Writer *w, const Nest *t, const Node *n)
{
    Text p = text_new(w->arena);

    text_printf(&p, "%s *y", pointer_type(n));
    for (int k = 0; k < t->nleaf; k++)
        text_printf(&p, ", const %s *%c", pointer_type(t->leaf[k].node), t->leaf[k].letter);
    return p.s;
}

static const char *arguments(Writer *w, const Nest *t, const Node *n)
{
    Text p = text_new(w->arena);

    text_add(&p, pointer_to(w, n));
    for (int k = 0; k < t->nleaf; k++)
        text_printf(&p, ", %s", pointer_to(w, t->leaf[k].node));
    return p.s;
}

const char *loop_statement(Writer *w, const Node *n)
{
    Nest t = {0};
    Text b = text_new(w->arena);

    open_nest(w, n, &t);
    walk(n, n, false, t.out);
    collect(n, n, &t);
    collapse(&t);
    const bool vector = !w->in->options->plain && vectorizable(&t);
    const char *value = expression(w, &t, n, vector);
    open_loops(&b, &t, vector ? t.n - 1 : t.n);
    if (vector)
        text_printf(&b, "    RT_MAP(%lld, STORE(y%s, %s));\n", (long long)t.count[t.n - 1],
                    offset(w, &t, t.out, t.n - 1), value);
    else {
        const char *at = offset(w, &t, t.out, t.n);
        text_printf(&b, "        y[%s] = %s;\n", *at ? at + 3 : "0", value);
    }
    return arena_printf(w->arena, "%s(%s);",
                        kernel_define(w, n->op->name, parameters(w, &t, n), b.s),
                        arguments(w, &t, n));
}

/* ------------------------------------------------------------------------------- sums over what
 * was broadcast */

static bool along_first(const Node *n) /* a vector over dimension 0: the gradient of a bias */
{
    const Attr *a = node_attr(n, "align");
    return a && !strcmp(a->s, "first") && n->shape.rank == 1 && n->in[0]->shape.rank > 1;
}

const char *loop_sum(Writer *w, const Node *n)
{
    const Node *x = n->in[0];
    Nest t = {.nleaf = 1};
    Text b = text_new(w->arena);

    open_nest(w, x, &t);
    walk(x, x, false, t.leaf[0].stride);
    walk(x, n, along_first(n), t.out);
    t.leaf[0].node = x, t.leaf[0].letter = 'a';
    collapse(&t);
    if (n->shape.batched)
        text_printf(&b, "    memset(y, 0, sizeof(real) * %lld);\n",
                    (long long)(shape_count(&n->shape) * w->g->step->chunk));
    const bool rows = t.out[t.n - 1] == 1 && t.leaf[0].stride[t.n - 1] == 1 &&
                      (t.n == 1 || (t.n == 2 && t.out[0] == 0));
    if (rows && !w->in->options->plain) {
        text_printf(&b, "    channel_sum(y, a, %lld, %lld);\n",
                    (long long)(t.n == 2 ? t.count[0] : 1), (long long)t.count[t.n - 1]);
    } else {
        const char *to = offset(w, &t, t.out, t.n), *from = offset(w, &t, t.leaf[0].stride, t.n);
        open_loops(&b, &t, t.n);
        text_printf(&b, "        y[%s] += a[%s];\n", *to ? to + 3 : "0", *from ? from + 3 : "0");
    }
    return arena_printf(w->arena, "%s(%s);", kernel_define(w, "sum_to", parameters(w, &t, n), b.s),
                        arguments(w, &t, n));
}
