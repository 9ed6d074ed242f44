/* loop.c -- elementwise trees and sums over broadcast dimensions as loop nests (nest.h). */
#include "emit/nest.h"
#include "ops/elementwise.h"
#include <string.h>

static const char letters[] = "abcdefghrsuv"; /* without the letters of loops and without y */

/* ---------------------------------------- elementwise trees */

static bool is_inlined(const Node *n)
{
    return node_attr(n, "inline") != NULL;
}

static void collect_leaves(const Node *root, const Node *n, Nest *t)
{
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        bool known = x->op->leaf == LEAF_CONST;
        for (int k = 0; k < t->nleaf; k++)
            known |= t->leaf[k].node == x;
        if (is_inlined(x)) {
            collect_leaves(root, x, t);
        } else if (!known && t->nleaf < LOOP_LEAVES) {
            Leaf *l = &t->leaf[t->nleaf];
            l->node = x, l->letter = letters[t->nleaf++];
            nest_walk(root, x, n->op->epilogue == EPILOGUE_BIAS && i == 1 && n->shape.rank != 2,
                      l->stride);
        }
    }
}

/* A C expression for a real: converts `at`, the expression of a number in memory with the type of
 * n. */
static const char *real_text(Writer *w, const Node *n, const char *at)
{
    const char *widen = w->target->widen;
    return !n->half ? at
           : widen  ? arena_printf(w->arena, "%s(%s)", widen, at)
                    : arena_printf(w->arena, "(real)%s", at);
}

/* The value of a constant or of a leaf of the tree. */
static const char *leaf_text(Writer *w, const Nest *t, const Node *x, bool vector)
{
    if (x->op->leaf == LEAF_CONST)
        return arena_printf(w->arena, vector ? "v_set((real)%.17g)" : "(real)%.17g",
                            node_float(x, "value"));
    for (int k = 0; k < t->nleaf; k++) {
        const Leaf *l = &t->leaf[k];
        if (l->node != x)
            continue;
        const int64_t inner = l->stride[t->n - 1];
        if (!vector)
            return real_text(w, x,
                             arena_printf(w->arena, "%c[%s]", l->letter,
                                          nest_index(w, "", t, l->stride)));
        const char *base = nest_offset(w, t, l->stride, t->n - 1);
        if (inner)
            return arena_printf(w->arena, "LOAD(%c%s)", l->letter, base);
        return arena_printf(w->arena, "v_set(%s)",
                            real_text(w, x, arena_printf(w->arena, "*(%c%s)", l->letter, base)));
    }
    return "?";
}

static Operand expression(Writer *w, const Nest *t, const Node *n, bool vector);

static Operand operand(Writer *w, const Nest *t, const Node *x, bool vector)
{
    if (is_inlined(x))
        return expression(w, t, x, vector);
    const bool negative = !vector && x->op->leaf == LEAF_CONST && node_float(x, "value") < 0;
    return (Operand){leaf_text(w, t, x, vector), negative};
}

static Operand expression(Writer *w, const Nest *t, const Node *n, bool vector)
{
    Operand in[4] = {{0}};

    for (int i = 0; i < n->nin && i < 4; i++)
        in[i] = operand(w, t, n->in[i], vector);
    if (n->op->epilogue == EPILOGUE_BIAS)
        return (Operand){arena_printf(w->arena, "(%s + %s)", in[0].s, in[1].s), false};
    return elementwise_format(w->arena, n, in, !vector);
}

const char *loop_expression(Writer *w, const Nest *t, const Node *n, bool vector)
{
    return expression(w, t, n, vector).s;
}

void loop_open(Writer *w, const Node *n, Nest *t)
{
    nest_open(w, n, t);
    nest_walk(n, n, false, t->out);
    collect_leaves(n, n, t);
    nest_collapse(t);
}

/* ---------------------------------------- sums over broadcast dimensions */

/* whether n is a vector along dimension 0: the gradient of a bias */
static bool along_first(const Node *n)
{
    const Attr *a = node_attr(n, "align");
    return a && !strcmp(a->s, "first") && n->shape.rank == 1 && n->in[0]->shape.rank > 1;
}

void loop_open_sum(Writer *w, const Node *n, Nest *t)
{
    const Node *x = n->in[0];

    *t = (Nest){.nleaf = 1};
    nest_open(w, x, t);
    nest_walk(x, x, false, t->leaf[0].stride);
    nest_walk(x, n, along_first(n), t->out);
    t->leaf[0].node = x, t->leaf[0].letter = 'a';
    nest_collapse(t);
}
