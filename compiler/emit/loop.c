/* loop.c -- elementwise trees and sums over broadcast dimensions, as loops with literal bounds
 * (nest.h).
 *
 * When the innermost loop is walked with strides 1 and 0 only, it becomes vectors (RT_MAP,
 * runtime/cpu/vec.h); else, and under --plain, plain C.
 */
#include "emit/cuda_library.h"
#include "emit/cuda_lower.h"
#include "emit/nest.h"
#include "ops/elementwise.h"
#include "ops/step_price.h"
#include <string.h>

static const char letters[] = "abcdefghrsuv"; /* not those of the loops, nor y */

/* ---------------------------------------- elementwise trees */

static bool is_inlined(const Node *n)
{
    return node_attr(n, "inline") != NULL;
}

static void collect_leaves(const Node *root, const Node *n, Nest *t)
{
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        bool known = node_is(x, "const");
        for (int k = 0; k < t->nleaf; k++)
            known |= t->leaf[k].node == x;
        if (is_inlined(x)) {
            collect_leaves(root, x, t);
        } else if (!known && t->nleaf < LOOP_LEAVES) {
            Leaf *l = &t->leaf[t->nleaf];
            l->node = x, l->letter = letters[t->nleaf++];
            nest_walk(root, x, node_is(n, "bias") && i == 1 && n->shape.rank != 2, l->stride);
        }
    }
}

static const char *operand_text(Writer *w, const Nest *t, const Node *x, bool vector)
{
    if (node_is(x, "const"))
        return arena_printf(w->arena, vector ? "v_set((real)%.17g)" : "(real)%.17g",
                            node_float(x, "value"));
    for (int k = 0; k < t->nleaf; k++) {
        const Leaf *l = &t->leaf[k];
        if (l->node != x)
            continue;
        const int64_t inner = l->stride[t->n - 1];
        const char *base = nest_offset(w, t, l->stride, vector ? t->n - 1 : t->n);
        if (!vector)
            return arena_printf(w->arena, l->node->half ? "(real)%c[%s]" : "%c[%s]", l->letter,
                                *base ? base + 3 : "0");
        return arena_printf(w->arena, inner ? "LOAD(%c%s)" : "v_set(*(%c%s))", l->letter, base);
    }
    return "?";
}

static const char *expression(Writer *w, const Nest *t, const Node *n, bool vector)
{
    const char *in[4] = {0};

    for (int i = 0; i < n->nin && i < 4; i++)
        in[i] = is_inlined(n->in[i]) ? expression(w, t, n->in[i], vector)
                                     : operand_text(w, t, n->in[i], vector);
    if (node_is(n, "bias"))
        return arena_printf(w->arena, "(%s + %s)", in[0], in[1]);
    return elementwise_format(w->arena, n, in, !vector);
}

static const char *loop_parameters(Writer *w, const Nest *t, const Node *n)
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

/* y and the leaves. */
static CudaCall *lower_operands(Writer *w, const Nest *t, const Node *n)
{
    CudaCall *c = cuda_add(w, n->op->name, n);
    cuda_value(w, c, "y", n, true);
    for (int k = 0; k < t->nleaf; k++) {
        const char letter[2] = {t->leaf[k].letter, 0};
        cuda_value(w, c, arena_strdup(w->arena, letter), t->leaf[k].node, false);
    }
    return c;
}

static void open_nest(Writer *w, const Node *n, Nest *t)
{
    nest_open(w, n, t);
    nest_walk(n, n, false, t->out);
    collect_leaves(n, n, t);
    nest_collapse(t);
}

/* On a GPU a thread takes a number, and the next one as many on as there are threads; or those that the order of
 * another call gives it. */
void loop_lower(Writer *w, const Node *n)
{
    Nest t = {0};
    Text b = text_new(w->arena);

    open_nest(w, n, &t);
    const int64_t all = nest_trips(&t, false) * nest_trips(&t, true);
    const char *at = nest_offset(w, &t, t.out, t.n);
    CudaCall *c = lower_operands(w, &t, n);
    if (t.n > 1)
        nest_indices(&b, &t, false, "at");
    text_printf(&b, "        y[%s] = %s;\n", *at ? at + 3 : "0", expression(w, &t, n, false));
    c->code = b.s, c->index = t.n == 1 ? "i" : "at", c->follows = true;
    cuda_blocks(w, c, "each", all);
    for (int i = 0; i < c->noperand; i++)
        c->operand[i].walked = nest_in_order(&t, i ? t.leaf[i - 1].stride : t.out, NULL);
    c->natural = cuda_order(w->arena, (Order){.walk = WALK_EACH, .count = all});
    cuda_give_order(w, c, c->natural);
}

const char *loop_statement(Writer *w, const Node *n)
{
    Nest t = {0};
    Text b = text_new(w->arena);

    open_nest(w, n, &t);
    const bool vector = !w->in->options->plain && nest_vectorizable(&t);
    const char *value = expression(w, &t, n, vector);
    nest_open_loops(&b, &t, vector ? t.n - 1 : t.n);
    if (vector)
        text_printf(&b, "    RT_MAP(%lld, STORE(y%s, %s));\n", (long long)t.count[t.n - 1],
                    nest_offset(w, &t, t.out, t.n - 1), value);
    else {
        const char *at = nest_offset(w, &t, t.out, t.n);
        text_printf(&b, "        y[%s] = %s;\n", *at ? at + 3 : "0", value);
    }
    return arena_printf(w->arena, "%s(%s);",
                        kernel_define(w, n->op->name, loop_parameters(w, &t, n), b.s),
                        arguments(w, &t, n));
}

/* ---------------------------------------- sums over what was broadcast */

static bool along_first(const Node *n) /* a vector over dimension 0: the gradient of a bias */
{
    const Attr *a = node_attr(n, "align");
    return a && !strcmp(a->s, "first") && n->shape.rank == 1 && n->in[0]->shape.rank > 1;
}

/* y begins as nothing: the sum of no samples is added to by its slice; results of samples are made here. */
static void write_first(Writer *w, Text *b, const Node *n)
{
    const int64_t all = shape_count(&n->shape) * (n->shape.batched ? w->g->step->chunk : 1);

    if (node_is(n, "amax_to"))
        text_printf(b, "    for (int i = 0; i < %lld; i++)\n        y[i] = -INFINITY;\n",
                    (long long)all);
    else if (n->shape.batched)
        text_printf(b, "    memset(y, 0, sizeof(real) * %lld);\n", (long long)all);
}

/* y and a where they meet: added, or the larger kept. */
static void write_join(Writer *w, Text *b, const Nest *t, bool max)
{
    const int64_t *in = t->leaf[0].stride;
    const bool vector = !w->in->options->plain && t->out[t->n - 1] == 1 && in[t->n - 1] == 1;
    const int loops = vector ? t->n - 1 : t->n;
    const char *to = nest_offset(w, t, t->out, loops), *from = nest_offset(w, t, in, loops);

    nest_open_loops(b, t, loops);
    if (!vector) {
        to = *to ? to + 3 : "0", from = *from ? from + 3 : "0";
        if (max)
            text_printf(b, "        y[%s] = s_max(a[%s], y[%s]);\n", to, from, to);
        else
            text_printf(b, "        y[%s] += a[%s];\n", to, from);
    } else {
        const char *value = max ? arena_printf(w->arena, "v_max(LOAD(a%s), LOAD(y%s))", from, to)
                                : arena_printf(w->arena, "LOAD(y%s) + LOAD(a%s)", to, from);
        text_printf(b, "    RT_MAP(%lld, STORE(y%s, %s));\n", (long long)t->count[t->n - 1], to,
                    value);
    }
}

static void open_sum(Writer *w, const Node *n, Nest *t)
{
    const Node *x = n->in[0];

    *t = (Nest){.nleaf = 1};
    nest_open(w, x, t);
    nest_walk(x, x, false, t->leaf[0].stride);
    nest_walk(x, n, along_first(n), t->out);
    t->leaf[0].node = x, t->leaf[0].letter = 'a';
    nest_collapse(t);
}

/* Sums over the rows of a matrix. */
static bool is_columns(const Nest *t)
{
    const int64_t *in = t->leaf[0].stride;
    return t->n == 2 && !t->out[0] && t->out[1] == 1 && in[1] == 1 && in[0] == t->count[1];
}

/* On a GPU a block adds what one number of y is the sum of. */
void loop_lower_sum(Writer *w, const Node *n)
{
    const bool max = node_is(n, "amax_to");
    const bool adds = !n->shape.batched && !max && !step_writes_sum(w->g, n, w->in->options);
    Nest t;
    Text b = text_new(w->arena);

    if (library_brings(w, n) || columns_bring(w, n) || graph_brings(w, n))
        return;
    open_sum(w, n, &t);
    const int64_t kept = nest_trips(&t, false), summed = nest_trips(&t, true);
    if (options_gpu_last(w->in->options) && !max && !n->shape.batched && is_columns(&t)) {
        columns_lower_sum(w, n, t.count[1], t.count[0], adds);
        return;
    }
    const char *to = nest_offset(w, &t, t.out, t.n),
               *from = nest_offset(w, &t, t.leaf[0].stride, t.n);
    const char *const at = *to ? " at" : "", *const of = summed > 1 ? " of" : "";
    text_printf(&b, "    block_%s(%lld, %lld, [=](int%s, int%s) {\n", max ? "maxima" : "sums",
                (long long)kept, (long long)summed, at, of);
    nest_indices(&b, &t, false, "at");
    nest_indices(&b, &t, true, "of");
    text_printf(&b, "        return %sa[%s];\n    }, [=](int%s, real sum) {\n",
                n->in[0]->half ? "(real)" : "", *from ? from + 3 : "0", at);
    nest_indices(&b, &t, false, "at");
    text_printf(&b, "        y[%s] %s sum;\n    });\n", *to ? to + 3 : "0", adds ? "+=" : "=");
    CudaCall *c = lower_operands(w, &t, n);
    c->code = b.s;
    cuda_blocks(w, c, "sum", kept);
    if (!nest_in_order(&t, t.out, t.out) || cuda_numbers(w, n) != kept)
        return;
    c->operand[0].walked = true;
    c->natural = cuda_order(w->arena, (Order){.walk = WALK_SUMS, .count = kept});
    cuda_give_order(w, c, c->natural);
}

const char *loop_sum(Writer *w, const Node *n)
{
    const bool max = node_is(n, "amax_to");
    Nest t;
    Text b = text_new(w->arena);

    open_sum(w, n, &t);
    write_first(w, &b, n);
    const bool rows =
        t.out[t.n - 1] == 1 && t.leaf[0].stride[t.n - 1] == 1 &&
        (t.n == 1 || (t.n == 2 && t.out[0] == 0 && t.leaf[0].stride[0] == t.count[1]));
    if (rows && !max && !n->shape.batched && !w->in->options->plain)
        text_printf(&b, "    channel_sum(y, a, %lld, %lld);\n",
                    (long long)(t.n == 2 ? t.count[0] : 1), (long long)t.count[t.n - 1]);
    else
        write_join(w, &b, &t, max);
    return arena_printf(w->arena, "%s(%s);",
                        kernel_define(w, n->op->name, loop_parameters(w, &t, n), b.s),
                        arguments(w, &t, n));
}
