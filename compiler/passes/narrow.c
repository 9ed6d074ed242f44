/* narrow.c -- with --dtype bf16 or f16, products read and write two-byte numbers, and the values
 * between products are stored as two-byte numbers.
 *
 *   relu(dense(x, w, b))   ->   relu(dense(bf16(x), bf16(w), bf16(b)):bf16):bf16
 *
 * Weights, their gradients and optimizer states stay f32; a product reads a copy of its weights,
 * made once a step.  Sums are f32 everywhere.  These values are stored in two bytes:
 *
 *   the result of a convolution
 *   samples: if all readers can read two bytes and one of them is a product
 *   the result of another product or layer: if all readers can read two bytes, and if an input is
 *       stored in two bytes or a product reads the result
 *
 * Losses, exponentials, logarithms, quotients, roots, statistics, tables and loops over time stay
 * f32, as in PyTorch's autocast (Op.half).  An op convert changes the type of a value.  In a loop
 * over time on a GPU, the library rounds the factors of products itself (cuda/library.c).
 *
 * On a processor (Target.few_half) the same values are stored in two bytes, with these differences:
 *
 *   a product stays f32 if its channels are too few (op_half_fits); so do convolutions and
 *       attention in loops over time
 *   attention is a product: it reads q, k and v in two bytes, and rounds what its softmax gives
 *   in a loop over time, dense layers and matmul are products, and a value has two bytes if a
 *       product reads it: the state h of an LSTM, and the gradient of its gates.  A state has two
 *       bytes if a product of the step reads it directly.  Sequences have the type of their
 *       elements, and recomputed values (pass stretch) have the type of the values that they
 *       repeat.  All other values of the loop stay f32: the state c, gates, and what exponentials
 *       read
 *   a product reads its weights from a packed copy in two bytes (pass layout), and a bias in f32
 *   a kernel that reads or writes only f32 gets converts around it, one for the readers of the
 *       forward pass and one for those of the backward pass; so the f32 copy of a value never waits
 *       for the backward pass
 */
#include "ir/readers.h"
#include "ir/target.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include <string.h>

typedef struct Narrow {
    Graph *g;
    Readers *r;
    Half type;
    bool few_half; /* Target.few_half */
    /* by id: the value in the other type, if a node needs it; few_half: for the forward pass, and
     * for the backward pass */
    Node **other[2];
    const Node **first; /* by id: for a recomputed value, the value that it repeats */
} Narrow;

static bool is_convolution(const Node *n)
{
    return n->op->product == PRODUCT_CONV;
}

/* Whether a loop over time computes n, also where a token graph has only one of its steps: a text
 * that is generated token by token must have the same numbers as with whole windows. */
static bool in_loop(const Node *n)
{
    return n->loop || n->looped;
}

static bool has_const(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->op->leaf == LEAF_CONST)
            return true;
    return false;
}

/* Whether n is a product that is computed from two-byte operands.  On a GPU, no product that
 * belongs to a loop or reads a value of a loop is one. */
static bool is_product(const Narrow *a, const Node *n)
{
    const ProductKind p = n->op->product;
    if (a->few_half && !op_half_fits(n))
        return false;
    if (a->few_half && (p == PRODUCT_DENSE || p == PRODUCT_MATMUL || p == PRODUCT_ATTENTION))
        return !has_const(n);
    const bool mine =
        p == PRODUCT_CONV ? !graph_keeps(a->g, n) : p == PRODUCT_DENSE || p == PRODUCT_MATMUL;
    if (in_loop(n) || !mine || has_const(n))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (in_loop(n->in[i]))
            return false;
    return true;
}

/* Whether n only moves numbers or gives them another shape, and so keeps the type of its input. */
static bool keeps_type(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i]->shape.batched || n->in[i]->op->leaf == LEAF_CONST)
            return false;
    return n->op->flags & OP_VIEW || n->op->move;
}

/* ---- what readers read */

static bool reads_half(const Narrow *a, const Node *n);

static bool all_read(const Narrow *a, const Node *x)
{
    if (graph_keeps(a->g, x) || readers_count(a->r, x) == 0)
        return false;
    for (int i = 0; i < readers_count(a->r, x); i++)
        if (!reads_half(a, readers_at(a->r, x, i)))
            return false;
    return true;
}

/* On a processor: whether n is a sequence, an element of a sequence or a copy, with the numbers of
 * in[0]. */
static bool same_numbers(const Narrow *a, const Node *n)
{
    const ScanRole s = n->op->scan;
    return a->few_half && s != SCAN_NONE && s != SCAN_NEXT && !scan_begins(n);
}

static bool state_is_half(const Narrow *a, const Node *state);

/* Whether values of samples that n reads can have two bytes. */
static bool reads_half(const Narrow *a, const Node *n)
{
    const HalfUse use = n->op->half;
    if (same_numbers(a, n) || (a->few_half && keeps_type(n)))
        return all_read(a, n);
    if (keeps_type(n))
        return !in_loop(n) && all_read(a, n);
    if (a->few_half && n->op->scan == SCAN_STATE)
        return state_is_half(a, n);
    if (a->few_half && is_product(a, n))
        return true;
    if (n->op->flags & OP_SIDE) /* the call of in[0] writes the side, and its type is fixed */
        return true;
    return !in_loop(n) && (is_product(a, n) || use == HALF_USE_IN || use == HALF_USE_IN_OUT);
}

/* Whether x is a factor of the product n. */
static bool is_factor(const Narrow *a, const Node *n, const Node *x)
{
    for (int i = 0; i < 2 && i < n->nin && is_product(a, n); i++)
        if (n->in[i] == x && i != op_weights(n))
            return true;
    return false;
}

static bool product_reads(const Narrow *a, const Node *x)
{
    for (int i = 0; i < readers_count(a->r, x); i++) {
        const Node *n = readers_at(a->r, x, i);
        if (keeps_type(n) || same_numbers(a, n) ? product_reads(a, n)
            : a->few_half                       ? is_factor(a, n, x)
                                                : is_product(a, n))
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

/* Whether n is filters or a bias with batch_norm folded in, and only products read n.  The type of
 * n is then that of these products. */
static bool is_folded(const Narrow *a, const Node *n)
{
    bool all = n->op->half == HALF_USE_WEIGHTS;
    for (int i = 0; all && i < readers_count(a->r, n); i++)
        all = is_product(a, readers_at(a->r, n, i));
    return all;
}

/* ---- loops over time on a processor */

static bool is_state(const Node *n)
{
    return scan_begins(n) || node_is(n, "token_state");
}

static bool is_next(const Node *n)
{
    return n->op->scan == SCAN_NEXT || node_is(n, "token_next");
}

/* The node that passes the value of `state` on, or the state to which `next` passes a value. */
static const Node *partner(const Narrow *a, const Node *n)
{
    for (int i = 0; n->loop && i < n->loop->ncarry; i++) {
        const Carry *c = &n->loop->carry[i];
        if (c->state == n || c->next == n)
            return c->state == n ? c->next : c->state;
    }
    for (int i = 0; !n->loop && i < a->g->nnode; i++) { /* a token graph */
        const Node *x = a->g->node[i];
        if ((is_state(n) ? is_next(x) : is_state(x)) && node_int(x, "at") == node_int(n, "at"))
            return x;
    }
    return NULL;
}

/* Whether the loss, a metric or the user reads n, also as a sequence or as the last value. */
static bool is_kept(const Narrow *a, const Node *n)
{
    bool kept = graph_keeps(a->g, n);
    for (int i = 0; i < readers_count(a->r, n) && !kept; i++)
        kept = same_numbers(a, readers_at(a->r, n, i)) && is_kept(a, readers_at(a->r, n, i));
    return kept;
}

/* Whether a product of the same step reads x, directly or after moves. */
static bool step_reads(const Narrow *a, const Node *x)
{
    for (int i = 0; i < readers_count(a->r, x); i++) {
        const Node *n = readers_at(a->r, x, i);
        if (n->loop != x->loop || !in_loop(n))
            continue;
        if (keeps_type(n) || n->op->scan == SCAN_KEEP ? step_reads(a, n) : is_factor(a, n, x))
            return true;
    }
    return false;
}

static bool state_is_half(const Narrow *a, const Node *state)
{
    if (state->op->scan == SCAN_RESUME)
        return state->in[0]->half;
    const Node *next = partner(a, state);
    return step_reads(a, state) && !(next && is_kept(a, next));
}

/* Whether n becomes a state of this type.  A state stands before the values that it gets. */
static bool passes_to(const Narrow *a, const Node *n, bool half)
{
    for (int i = 0; i < readers_count(a->r, n); i++) {
        const Node *u = readers_at(a->r, n, i), *state = is_next(u) ? partner(a, u) : NULL;
        if (state && (state->half != HALF_NONE) == half)
            return true;
    }
    return false;
}

/* Sets Narrow.first of n, a node of a loop that pass stretch has made: the node of the forward loop
 * that computes the same value.  Narrow.first of the values that n reads is already set. */
static void find_first(Narrow *a, const Node *n)
{
    const Node *x = n->nin ? n->in[0] : NULL;
    if (n->op->scan == SCAN_RESUME) {
        a->first[n->id] = x->in[0];
        return;
    }
    if (n->op->scan == SCAN_ITEM && x->op->scan == SCAN_STACK &&
        x->loop->mirror == n->loop->inside) {
        a->first[n->id] = x->in[0];
        return;
    }
    for (int i = 0; i < a->g->nnode && !a->first[n->id]; i++) {
        const Node *u = a->g->node[i];
        bool same = u->loop && u->loop->mirror == n->loop->inside && u->op == n->op &&
                    u->nin == n->nin && node_same_attrs(u, n);
        for (int k = 0; k < n->nin && same; k++)
            same = u->in[k] == n->in[k] || u->in[k] == a->first[n->in[k]->id];
        a->first[n->id] = same ? u : NULL;
    }
}

static bool is_half_in_loop(const Narrow *a, const Node *n)
{
    if (a->first[n->id])
        return a->first[n->id]->half;
    if (is_state(n))
        return state_is_half(a, n);
    if (is_next(n)) {
        const Node *state = partner(a, n);
        return state && state->half;
    }
    if (same_numbers(a, n))
        return n->in[0]->half;
    if (!n->shape.batched || n->dtype != DT_REAL || is_kept(a, n) || passes_to(a, n, false))
        return false;
    if (keeps_type(n) && n->nin == 1)
        return n->in[0]->half;
    return (keeps_type(n) || n->op->flags & OP_MAP || is_product(a, n)) &&
           (product_reads(a, n) || passes_to(a, n, true));
}

/* ---- types */

/* Whether the result of n is stored in two bytes. */
static bool is_half(const Narrow *a, const Node *n)
{
    if (is_folded(a, n))
        return true;
    if (a->few_half && (in_loop(n) || n->op->scan != SCAN_NONE))
        return is_half_in_loop(a, n);
    if (!n->shape.batched || n->dtype != DT_REAL || in_loop(n) || graph_keeps(a->g, n))
        return false;
    if (n->op->leaf == LEAF_INPUT)
        return all_read(a, n) && product_reads(a, n);
    if (keeps_type(n))
        return some_half(n) && all_read(a, n);
    if (is_product(a, n))
        return is_convolution(n) || all_read(a, n) || (a->few_half && n->op->role == ROLE_DX);
    return n->op->half == HALF_USE_IN_OUT && all_read(a, n) &&
           (some_half(n) || product_reads(a, n));
}

/* The value of x in the other type, for the reader n. */
static Node *converted(Narrow *a, Node *x, const Node *n)
{
    Node **other = &a->other[a->few_half && n->backward][x->id];
    if (!*other) {
        Node *c = graph_add(a->g, op_find("convert"), &x, 1, x->span);
        c->shape = x->shape, c->half = x->half ? HALF_NONE : a->type;
        c->needs_grad = x->needs_grad, c->call = x->call;
        c->backward = a->few_half ? n->backward : x->backward;
        *other = c;
    }
    return *other;
}

/* Whether n needs input i in the other type.  A product reads two-byte factors, and a bias in the
 * type of its result.  On a GPU, dense_dx reads the values of its mask in either type.  Other nodes
 * read the given type if they can. */
static bool wants_other(const Narrow *a, const Node *n, int i)
{
    const Node *x = n->in[i];
    if (x->dtype != DT_REAL || x->op->leaf == LEAF_CONST ||
        (!a->few_half && op_computes(n, PRODUCT_DENSE, ROLE_DX) && i >= 2))
        return false;
    if (a->few_half && is_product(a, n))
        return i != op_weights(n) && (x->half != HALF_NONE) != (i < 2 || n->op->role == ROLE_DX);
    if (is_product(a, n))
        return (x->half != HALF_NONE) != (i < 2 || n->half != HALF_NONE);
    if (keeps_type(n) || (a->few_half && (n->op->scan != SCAN_NONE || is_next(n))))
        return x->half != n->half;
    if (a->few_half && in_loop(n) && n->op->flags & OP_MAP)
        return false;
    if (a->few_half && n->op->half_cpu == HALF_USE_NONE && !(n->op->flags & (OP_MAP | OP_SIDE)))
        return x->half;
    return x->half && !reads_half(a, n);
}

/* Whether the kernel for processors that computes n can write two-byte numbers. */
static bool writes_half(const Narrow *a, const Node *n)
{
    return keeps_type(n) || n->op->flags & OP_MAP || is_product(a, n) || is_state(n) ||
           is_next(n) || same_numbers(a, n) || n->op->half_cpu == HALF_USE_IN_OUT;
}

/* Lets n compute f32.  A convert rounds its value, and all readers of n read the convert. */
static void round_apart(Narrow *a, Node *n)
{
    n->half = HALF_NONE;
    Node *c = converted(a, n, n);
    readers_add(a->r, c);
    readers_replace(a->r, n, c);
}

void pass_narrow(Graph *g, const Options *o, Diag *d)
{
    (void)d;
    if (!o->half)
        return;
    const int before = g->nnode;
    Narrow a = {.g = g, .r = readers_new(g), .type = o->half, .few_half = target_of(o).few_half};
    for (int i = 0; i < 2; i++)
        a.other[i] = arena_alloc(g->arena, (size_t)(2 * g->next_id) * sizeof(Node *));
    a.first = arena_alloc(g->arena, (size_t)g->next_id * sizeof *a.first);
    for (int i = 0; i < before; i++) {
        if (a.few_half && g->node[i]->loop && g->node[i]->loop->inside)
            find_first(&a, g->node[i]);
        g->node[i]->half = is_half(&a, g->node[i]) ? a.type : HALF_NONE;
    }
    for (int i = 0; i < before && a.few_half; i++)
        if (g->node[i]->half && !writes_half(&a, g->node[i]))
            round_apart(&a, g->node[i]);
    for (int i = 0; i < before; i++) {
        Node *n = g->node[i];
        for (int k = 0; k < n->nin; k++)
            if (wants_other(&a, n, k))
                n->in[k] = converted(&a, n->in[k], n);
    }
    graph_sort(g);
}
