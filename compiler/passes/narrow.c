/* narrow.c -- with --dtype bf16 or f16 products read and write such numbers, and what lies between them is stored as them.
 *
 *   relu(dense(x, w, b))   ->   relu(dense(bf16(x), bf16(w), bf16(b)):bf16):bf16
 *
 * Weights, their gradients and the optimizer's states stay f32: of what a product reads there is a copy of two bytes a number each step.  Sums are f32
 * everywhere.  A convolution's result is narrow; samples are, where all that read them can and a product does; another product's or layer's where all that read it can, and some of its inputs are or a product is to read it.  Losses,
 * exponentials, logarithms, quotients and roots, statistics, tables and loops over time stay f32, as in PyTorch's autocast; where the two meet
 * stands an op convert.  (A product in a loop rounds its factors inside the library: emit/cuda_library.c.)
 */
#include "ir/readers.h"
#include "ops/op.h"
#include "passes/pass.h"
#include <string.h>

typedef struct Narrow {
    Graph *g;
    Readers *r;
    Half type;
    Node **other; /* by id: the value in the other type, once somebody wants it */
} Narrow;

static bool among(const Node *n, const char *const *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (node_is(n, name[i]))
            return true;
    return false;
}
#define AMONG(n, names) among(n, names, sizeof names / sizeof *names)

static bool is_convolution(const Node *n)
{
    static const char *const name[] = {"conv2d", "conv2d_dx", "conv2d_dw"};
    return AMONG(n, name);
}

/* Computed by a library outside of loops: its operands are narrow. */
static bool is_product(const Narrow *a, const Node *n)
{
    static const char *const name[] = {"dense", "dense_dx", "dense_dw", "matmul"};
    if (n->loop || !(is_convolution(n) ? !graph_keeps(a->g, n) : AMONG(n, name)))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->loop || node_is(n->in[i], "const"))
            return false;
    return true;
}

/* Kernels of ours that take either type (templates of runtime/cuda). */
static bool is_layer(const Node *n)
{
    static const char *const name[] = {"batch_norm",  "batch_norm_test", "batch_norm_dx",
                                       "max_pool",    "max_pool_dx",     "avg_pool",
                                       "avg_pool_dx", "global_avg_pool", "global_avg_pool_dx",
                                       "dropout",     "dropout_dx",      "bias"};
    return AMONG(n, name);
}

static bool is_exact(const Node *n)
{
    static const char *const name[] = {"exp", "log",        "sqrt", "pow",
                                       "div", "reciprocal", "erf",  "softplus"};
    return AMONG(n, name);
}

/* Puts numbers elsewhere, or calls them another shape: stays in the type of what it is given. */
static bool is_place(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i]->shape.batched || node_is(n->in[i], "const"))
            return false;
    return n->op->flags & OP_VIEW || n->op->move;
}

static bool reads(const Narrow *a, const Node *n);

static bool all_read(const Narrow *a, const Node *x)
{
    if (graph_keeps(a->g, x) || readers_count(a->r, x) == 0)
        return false;
    for (int i = 0; i < readers_count(a->r, x); i++)
        if (!reads(a, readers_at(a->r, x, i)))
            return false;
    return true;
}

/* Can n read values of samples in two bytes? */
static bool reads(const Narrow *a, const Node *n)
{
    static const char *const sum[] = {"sum_to", "batch_moments", "batch_norm_dw"};
    if (is_place(n))
        return !n->loop && all_read(a, n);
    if (node_is(n, "side")) /* is written with it, whatever its type */
        return true;
    return !n->loop && (is_product(a, n) || is_layer(n) || AMONG(n, sum) ||
                        (n->op->flags & OP_ELEMENTWISE && !is_exact(n)));
}

static bool product_reads(const Narrow *a, const Node *x)
{
    for (int i = 0; i < readers_count(a->r, x); i++) {
        const Node *n = readers_at(a->r, x, i);
        if (is_place(n) ? product_reads(a, n) : is_product(a, n))
            return true;
    }
    return false;
}

static bool some_half(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->half)
            return true;
    return false;
}

/* Filters and a bias with batch_norm in them: made in the type of the convolutions that read them. */
static bool is_folded(const Narrow *a, const Node *n)
{
    bool all = node_is(n, "batch_fold") || node_is(n, "batch_fold_bias");
    for (int i = 0; all && i < readers_count(a->r, n); i++)
        all = is_product(a, readers_at(a->r, n, i));
    return all;
}

static bool is_half(const Narrow *a, const Node *n)
{
    if (is_folded(a, n))
        return true;
    if (!n->shape.batched || n->dtype != DT_REAL || n->loop || graph_keeps(a->g, n))
        return false;
    if (node_is(n, "input"))
        return all_read(a, n) && product_reads(a, n);
    if (is_place(n))
        return some_half(n) && all_read(a, n);
    if (is_product(a, n))
        return is_convolution(n) || all_read(a, n);
    const bool able = is_layer(n) || (n->op->flags & OP_ELEMENTWISE && !is_exact(n));
    return able && all_read(a, n) && (some_half(n) || product_reads(a, n));
}

/* x in the other type. */
static Node *converted(Narrow *a, Node *x)
{
    if (!a->other[x->id]) {
        Node *n = graph_add(a->g, op_find("convert"), &x, 1, x->span);
        n->shape = x->shape, n->half = x->half ? HALF_NONE : a->type;
        n->needs_grad = x->needs_grad, n->backward = x->backward, n->block = x->block;
        a->other[x->id] = n;
    }
    return a->other[x->id];
}

/* What input i of n has to be: products read narrow numbers, a bias in the type of their result; others, and what a dense layer's gradient undoes
 * a relu by, what there is, where they can. */
static bool wants_other(const Narrow *a, const Node *n, int i)
{
    const Node *x = n->in[i];
    if (x->dtype != DT_REAL || node_is(x, "const") || (node_is(n, "dense_dx") && i >= 2))
        return false;
    if (is_product(a, n))
        return (x->half != HALF_NONE) != (i < 2 || n->half != HALF_NONE);
    if (is_place(n))
        return x->half != n->half;
    return x->half && !reads(a, n);
}

void pass_narrow(Graph *g, const Options *o, Diag *d)
{
    (void)d;
    if (!o->half)
        return;
    const int before = g->nnode;
    Narrow a = {.g = g,
                .r = readers_new(g),
                .type = o->half,
                .other = arena_alloc(g->arena, (size_t)g->next_id * sizeof(Node *))};
    for (int i = 0; i < before; i++)
        g->node[i]->half = is_half(&a, g->node[i]) ? a.type : HALF_NONE;
    for (int i = 0; i < before; i++) {
        Node *n = g->node[i];
        for (int k = 0; k < n->nin; k++)
            if (wants_other(&a, n, k))
                n->in[k] = converted(&a, n->in[k]);
    }
    graph_sort(g);
}
