/* loop.c -- elementwise trees and sums over broadcast dimensions, as loops with literal bounds.
 *
 * The innermost loop processes vectors (RT_MAP, runtime/cpu/vec.h) if all operands have stride 1 or
 * 0 in this loop.  Else, and with --plain, it is a loop over single numbers.
 */
#include "cpu/parts.h"
#include "emit/nest.h"
#include <string.h>

/* The parameters of the kernel: y, then the leaves of the tree. */
static Signature signature_of(Writer *w, const Nest *t, const Node *n)
{
    Arguments s = {0};

    arguments_pointer(w, &s, "y", n, true);
    for (int k = 0; k < t->nleaf; k++)
        arguments_pointer(w, &s, arena_printf(w->arena, "%c", t->leaf[k].letter), t->leaf[k].node,
                          false);
    return kernel_signature(w->arena, s.arg, s.n, false);
}

/* BY_SAMPLES_MOST: up to this count of numbers in a call, members of a team take whole samples.
 * Members without work then cost less time than a barrier.  Larger calls are divided as equally as
 * possible.  VECTOR_MOST: numbers in the longest vector. */
enum { BY_SAMPLES_MOST = 16384, VECTOR_MOST = 16 };

/* Whether members of a team take whole samples in the loops of t over n. */
static bool by_samples(const Writer *w, const Nest *t, const Node *n, bool vector)
{
    const int64_t chunk = w->g->step->chunk, sample = shape_count(&n->shape);
    if (!n->shape.batched || chunk == 1 || chunk * sample > BY_SAMPLES_MOST)
        return false;
    if (vector && t->n == 1) /* no vector has numbers of two samples */
        return t->count[0] == chunk * sample && sample % VECTOR_MOST == 0;
    return t->n > 1 && t->count[0] == chunk && t->out[0] == nest_sample(n);
}

/* The operands of the loops of t over n.  samples: members of a team take whole samples. */
static Accesses accesses_of(Writer *w, const Nest *t, const Node *n, bool samples)
{
    Accesses all = {0};
    joint_access(w, &all, (Access){n, true, samples});
    for (int k = 0; k < t->nleaf; k++)
        joint_access(w, &all, (Access){t->leaf[k].node, false, samples});
    return all;
}

Statement loop_statement(Writer *w, const Node *n)
{
    Nest t = {0};
    Text b = text_new(w->arena);

    loop_open(w, n, &t);
    const bool vector = !w->in->options->plain && nest_vectorizable(&t);
    const char *value = loop_expression(w, &t, n, vector);
    const bool parts = !w->in->options->plain, samples = parts && by_samples(w, &t, n, vector);
    nest_open_loops(&b, &t, vector ? t.n - 1 : t.n, parts);
    if (vector && t.n == 1 && samples)
        text_printf(&b, "    TEAM_SAMPLES(%lld, %lld, STORE(y%s, %s));\n",
                    (long long)w->g->step->chunk, (long long)t.count[0],
                    nest_offset(w, &t, t.out, 0), value);
    else if (vector)
        text_printf(&b, "    %s(%lld, STORE(y%s, %s));\n", t.n == 1 ? "TEAM_MAP" : "RT_MAP",
                    (long long)t.count[t.n - 1], nest_offset(w, &t, t.out, t.n - 1), value);
    else
        text_printf(&b, n->half ? "        y[%s] = bf16_narrow(%s);\n" : "        y[%s] = %s;\n",
                    nest_index(w, "", &t, t.out), value);
    const Signature sign = signature_of(w, &t, n);
    return (Statement){kernel_define(w, n->op->name, sign.params.s, b.s), sign.values.s, parts,
                       accesses_of(w, &t, n, samples)};
}

/* ---------------------------------------- sums over broadcast dimensions */

/* The loop that members of a team divide: the outermost one that runs over outputs.  Each of its
 * trips has t->out numbers of y, and the order of the terms of an output stays the same.  -1: y is
 * one number, or the loops do not visit y in the order of memory. */
static int shared_loop(const Nest *t)
{
    int i = 0;
    while (i < t->n && t->out[i] == 0)
        i++;
    return i < t->n && nest_in_order(t, t->out, t->out) ? i : -1;
}

/* Writes the heads of `loops` loops; members of a team divide loop `shared`. */
static void open_loops(Text *b, const Nest *t, int loops, int shared)
{
    for (int i = 0; i < loops; i++)
        if (i == shared)
            text_printf(b, "    TEAM_FOR(%c, %lld)\n", nest_letter(i), (long long)t->count[i]);
        else
            text_printf(b, "    for (int %c = 0; %c < %lld; %c++)\n", nest_letter(i),
                        nest_letter(i), (long long)t->count[i], nest_letter(i));
}

/* Writes the initial value of y, which members of a team divide as in write_join.  A sum over
 * samples gets no initial value here, because its slice phase sets it to 0. */
static void write_first(Writer *w, Text *b, const Node *n, const Nest *t, int shared, bool vector)
{
    const int64_t all = shape_count(&n->shape) * (n->shape.batched ? w->g->step->chunk : 1);
    const bool max = node_is(n, "amax_to");

    if (!max && !n->shape.batched)
        return;
    if (shared >= 0 && shared == t->n - 1 && vector) {
        text_printf(b, "    TEAM_MAP(%lld, STORE(y, v_set(%s)));\n", (long long)all,
                    max ? "-INFINITY" : "0");
    } else if (shared >= 0) {
        const long long each = (long long)t->out[shared];
        const char i = nest_letter(shared);
        text_printf(b, "    TEAM_FOR(%c, %lld)\n", i, (long long)t->count[shared]);
        if (each == 1)
            text_printf(b, "        y[%c] = %s;\n", i, max ? "-INFINITY" : "0");
        else if (max)
            text_printf(b,
                        "        for (int q = 0; q < %lld; q++)\n"
                        "            y[%c * %lld + q] = -INFINITY;\n",
                        each, i, each);
        else
            text_printf(b, "        memset(y + %c * %lld, 0, sizeof(real) * %lld);\n", i, each,
                        each);
    } else if (max) {
        text_printf(b, "    for (int i = 0; i < %lld; i++)\n        y[i] = -INFINITY;\n",
                    (long long)all);
    } else {
        text_printf(b, "    memset(y, 0, sizeof(real) * %lld);\n", (long long)all);
    }
}

/* Writes the innermost statement: adds a number of a to y, or keeps the larger one. */
static void write_join(Writer *w, Text *b, const Nest *t, bool max, int shared, bool vector)
{
    const int64_t *in = t->leaf[0].stride;
    const bool half = t->leaf[0].node->half;
    const int loops = vector ? t->n - 1 : t->n;
    const char *to = nest_offset(w, t, t->out, loops), *from = nest_offset(w, t, in, loops);

    open_loops(b, t, loops, shared);
    if (!vector) {
        to = nest_index(w, "", t, t->out), from = nest_index(w, "", t, in);
        from = arena_printf(w->arena, half ? "bf16_wide(a[%s])" : "a[%s]", from);
        if (max)
            text_printf(b, "        y[%s] = s_max(%s, y[%s]);\n", to, from, to);
        else
            text_printf(b, "        y[%s] += %s;\n", to, from);
    } else {
        const char *value = max ? arena_printf(w->arena, "v_max(LOAD(a%s), LOAD(y%s))", from, to)
                                : arena_printf(w->arena, "LOAD(y%s) + LOAD(a%s)", to, from);
        text_printf(b, "    %s(%lld, STORE(y%s, %s));\n", shared == loops ? "TEAM_MAP" : "RT_MAP",
                    (long long)t->count[t->n - 1], to, value);
    }
}

Statement loop_sum(Writer *w, const Node *n)
{
    const bool max = node_is(n, "amax_to"), plain = w->in->options->plain;
    Nest t;
    Text b = text_new(w->arena);

    loop_open_sum(w, n, &t);
    const bool ones = t.out[t.n - 1] == 1 && t.leaf[0].stride[t.n - 1] == 1;
    const bool rows =
        ones && (t.n == 1 || (t.n == 2 && t.out[0] == 0 && t.leaf[0].stride[0] == t.count[1]));
    const bool channels = rows && !max && !n->shape.batched && !plain;
    const int shared = plain ? -1 : shared_loop(&t);
    if (channels) {
        text_printf(&b, "    channel_sum%s(y, a, %lld, %lld);\n", n->in[0]->half ? "_bf16" : "",
                    (long long)(t.n == 2 ? t.count[0] : 1), (long long)t.count[t.n - 1]);
    } else {
        write_first(w, &b, n, &t, shared, ones && !plain);
        write_join(w, &b, &t, max, shared, ones && !plain);
    }
    const Signature s = signature_of(w, &t, n);
    return (Statement){kernel_define(w, n->op->name, s.params.s, b.s), s.values.s,
                       channels || shared >= 0, accesses_of(w, &t, n, false)};
}
