/* simplify.c -- applies algebraic identities that need fewer nodes.
 *
 *   x + 0, x - 0, x * 1, x / 1, pow(x, 1) = x     - -x = x      x + -y = x - y      x - -y = x + y
 *   0 - x = -x
 *   (x * a) * b = x * (a b)                       pow(x, 2) = square(x)   pow(x, 0.5) = sqrt(x)
 *   pow(x, -1) = reciprocal(x)
 *   reshape of reshape = one reshape, to the same shape = none; sum_to the same shape = none;
 *   f(constants) = a constant, a reshape of a constant = a constant
 *   transpose of the inverse transpose = none
 *   f(sequence(a)) = sequence(f(a)), image(f(a, sequence(b))) = f(image(a), b): elementwise f;
 *       sequence and image are the moves of conv1d.  So f stands beside the convolution, whose
 *       kernel can compute it, and the moves between two layers meet and cancel
 *   slice_dx(a) + slice_dx(b) + .. = concat(a, b, ..) if they cover all: gradients of gates
 *
 * No rule changes a result by more than one rounding, and no rule drops a term that can be inf or
 * NaN (x * 0 stays).  A rule applies only if the result keeps its shape, because x * 1 can
 * broadcast x.
 *
 * The rules test ops by name: each one is an identity of exactly these ops.
 */
#include "ops/elementwise.h"
#include "ops/window1d.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include <float.h>
#include <math.h>
#include <string.h>

static bool is_const(const Node *n, double v)
{
    return n->op->leaf == LEAF_CONST && node_float(n, "value") == v;
}

/* ---- constants */

/* Whether v is finite in the type of the program.  bf16 and f16 programs compute with f32. */
static bool is_finite(const Graph *g, double v)
{
    return isfinite(dtype_bytes(g->recipe.dtype) == 8 ? v : (double)(float)v);
}

/* Whether v is finite, and no program flushes v to zero: v is zero, or not too small. */
static bool is_normal(const Graph *g, double v)
{
    const double least = dtype_bytes(g->recipe.dtype) == 8 ? DBL_MIN : FLT_MIN;
    return is_finite(g, v) && (v == 0 || fabs(v) >= least);
}

/* Folds an op of constants.  An op whose result is not finite stays, so that the program reports
 * the op with its line. */
static Node *fold(Graph *g, Node *n)
{
    const bool all =
        n->nin > 0 && n->in[0]->op->leaf == LEAF_CONST && n->in[n->nin - 1]->op->leaf == LEAF_CONST;
    if (all && n->op->flags & OP_VIEW && n->shape.batched)
        return graph_const(g, node_float(n->in[0], "value"), n->shape, n->span);
    double v;
    if (!all || !elementwise_value(n->op, node_float(n->in[0], "value"),
                                   node_float(n->in[n->nin - 1], "value"), &v))
        return NULL;
    return is_finite(g, v) ? graph_const(g, v, n->shape, n->span) : NULL;
}

/* ---- the rules: each returns the value to use instead of n, or NULL */

/* x if n is -x; else NULL. */
static Node *negated(const Node *n)
{
    return node_is(n, "neg") ? n->in[0] : NULL;
}

enum { PARTS = 16 };

/* Collects the terms of a sum of gradients of slices; false: there are other terms, or too many. */
static bool slices_of(Node *n, Node **part, int *count)
{
    if (node_is(n, "add") && n->shape.batched)
        return slices_of(n->in[1], part, count) && slices_of(n->in[0], part, count);
    if (!node_is(n, "slice_dx") || *count == PARTS)
        return false;
    part[(*count)++] = n;
    return true;
}

/* The only dimension along which a slice is shorter than its input; -1: several, or none. */
static int cut_axis(const Node *part)
{
    const Shape *whole = &part->shape, *cut = &part->in[0]->shape;
    int axis = -1;
    for (int i = 0; i < whole->rank; i++)
        if (whole->dim[i] != cut->dim[i] && axis != -1)
            return -1;
        else if (whole->dim[i] != cut->dim[i])
            axis = i;
    return axis;
}

/* Replaces the sum of gradients of slices by a concat, if the slices cover the whole dimension
 * without overlap. */
static Node *join_slices(Graph *g, Node *n)
{
    Node *part[PARTS], like = {.op = op_find("concat"), .span = n->span};
    int count = 0;
    if (!slices_of(n, part, &count) || count < 2)
        return NULL;
    const int axis = cut_axis(part[0]);
    int64_t at = 0;
    /* the next part begins where the parts so far end */
    for (int i = 0; i < count && axis >= 0; i++) {
        int k = i;
        while (k < count &&
               (cut_axis(part[k]) != axis || node_attr(part[k], "start")->list[axis] != at))
            k++;
        if (k == count)
            return NULL;
        Node *next = part[k];
        part[k] = part[i], part[i] = next;
        at += next->in[0]->shape.dim[axis];
    }
    if (axis < 0 || at != n->shape.dim[axis])
        return NULL;
    for (int i = 0; i < count; i++)
        part[i] = part[i]->in[0];
    Node *all = graph_add(g, like.op, part, count, n->span);
    node_set_int(g, all, "axis", axis);
    return like.op->shape(all, diag_new(g->arena, DIAG_NEVER)) ? all : NULL;
}

static Node *simplify_add(Graph *g, Node *n)
{
    Node *a = n->in[0], *b = n->in[1];
    Node *joined = join_slices(g, n);
    if (joined)
        return joined;
    if (is_const(b, 0))
        return a;
    if (is_const(a, 0))
        return b;
    if (negated(b))
        return op_make(g, "sub", n->span, 2, a, negated(b));
    return negated(a) ? op_make(g, "sub", n->span, 2, b, negated(a)) : NULL;
}

static Node *simplify_sub(Graph *g, Node *n)
{
    Node *a = n->in[0], *b = n->in[1];
    if (is_const(b, 0))
        return a;
    if (is_const(a, 0))
        return op_make(g, "neg", n->span, 1, b);
    return negated(b) ? op_make(g, "add", n->span, 2, a, negated(b)) : NULL;
}

/* Replaces (x * a) * b with constants a and b by x * (a b), unless the type of the program cannot
 * hold a b: x * 1e30 * 1e30 is 0 for x = 0. */
static Node *join_factors(Graph *g, Node *n, Node *x, const Node *b)
{
    if (b->op->leaf != LEAF_CONST || !node_is(x, "mul"))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (x->in[i]->op->leaf == LEAF_CONST) {
            const double f = node_float(x->in[i], "value"), v = f * node_float(b, "value");
            if (!is_normal(g, v) || (v == 0 && f != 0 && node_float(b, "value") != 0))
                return NULL;
            Node *ab = graph_const(g, v, shape_make(false, NULL, NULL, 0), n->span);
            return op_make(g, "mul", n->span, 2, x->in[1 - i], ab);
        }
    return NULL;
}

static Node *simplify_mul(Graph *g, Node *n)
{
    Node *a = n->in[0], *b = n->in[1];
    if (is_const(b, 1))
        return a;
    if (is_const(a, 1))
        return b;
    if (is_const(b, -1))
        return op_make(g, "neg", n->span, 1, a);
    if (is_const(a, -1))
        return op_make(g, "neg", n->span, 1, b);
    if (negated(a) && negated(b))
        return op_make(g, "mul", n->span, 2, negated(a), negated(b));
    Node *joined = join_factors(g, n, a, b);
    return joined ? joined : join_factors(g, n, b, a);
}

static Node *simplify_div(Graph *g, Node *n)
{
    (void)g;
    return is_const(n->in[1], 1) ? n->in[0] : NULL;
}

static Node *simplify_neg(Graph *g, Node *n)
{
    (void)g;
    return negated(n->in[0]);
}

static Node *simplify_pow(Graph *g, Node *n)
{
    Node *x = n->in[0], *e = n->in[1];
    if (is_const(e, 1))
        return x;
    const char *op = is_const(e, 2)     ? "square"
                     : is_const(e, 0.5) ? "sqrt"
                     : is_const(e, -1)  ? "reciprocal"
                                        : NULL;
    return op ? op_make(g, op, n->span, 1, x) : NULL;
}

static Node *simplify_reshape(Graph *g, Node *n)
{
    Node *x = n->in[0];
    if (shape_same(&x->shape, &n->shape))
        return x;
    if (!node_is(x, "reshape") && !node_is(x, "flatten"))
        return NULL;
    return op_make_like(g, n->op->name, n, 1, x->in[0]);
}

static Node *simplify_sum_to(Graph *g, Node *n)
{
    (void)g;
    return n->in[0];
}

/* abs(-x) = abs(x), square likewise. */
static Node *simplify_even(Graph *g, Node *n)
{
    Node *x = negated(n->in[0]);
    return x ? op_make(g, n->op->name, n->span, 1, x) : NULL;
}

/* relu(relu(x)) = relu(x), abs likewise. */
static Node *simplify_twice(Graph *g, Node *n)
{
    (void)g;
    return n->in[0]->op == n->op ? n->in[0] : NULL;
}

static Node *simplify_transpose(Graph *g, Node *n)
{
    (void)g;
    const Node *x = n->in[0];
    if (!node_is(x, "transpose"))
        return NULL;
    const int rank = n->shape.rank;
    const int64_t *second = node_attr(n, "axes")->list, *first = node_attr(x, "axes")->list;
    for (int i = 0; i < rank; i++)
        if ((first[(second[i] + rank) % rank] + rank) % rank != i)
            return NULL;
    return x->in[0];
}

/* ---- elementwise operations between the moves of conv1d (ops/window1d.h) */

/* The image (F, T, 1) whose numbers the sequence n (T, F) has; NULL: n is no such sequence. */
static Node *image_of(const Node *n)
{
    if (!node_is(n, "reshape") || n->shape.rank != 2 || n->loop)
        return NULL;
    Node *rows = n->in[0], *image = node_transposes(rows, 1, 2, 0) ? rows->in[0] : NULL;
    return image && image->shape.dim[2] == 1 ? image : NULL;
}

/* The sequence (T, F) whose numbers the image n (F, T, 1) has; NULL: n is no such image. */
static Node *sequence_of(const Node *n)
{
    const Node *rows = node_transposes(n, 2, 0, 1) && !n->loop ? n->in[0] : NULL;
    Node *x = rows && node_is(rows, "reshape") ? rows->in[0] : NULL;
    return x && x->shape.rank == 2 && n->shape.dim[2] == 1 ? x : NULL;
}

enum { OPERANDS = 2 };

/* Elementwise n of images instead of sequences; NULL if an operand is neither the sequence of an
 * image nor a number.  With `move`, other sequences become images if one operand is one already. */
static Node *of_images(Graph *g, const Node *n, bool move)
{
    Node *in[OPERANDS];
    const Node *image = NULL;
    for (int i = 0; i < n->nin; i++)
        image = image ? image : image_of(n->in[i]);
    if (!image || !(n->op->flags & OP_ELEMENTWISE) || n->nin > OPERANDS || n->shape.rank != 2)
        return NULL;
    for (int i = 0; i < n->nin; i++) {
        Node *x = n->in[i];
        const bool same = shape_same(&x->shape, &n->shape);
        in[i] = image_of(x);
        if (!in[i] && x->op->leaf == LEAF_CONST && (same || x->shape.rank == 0))
            in[i] = graph_const(g, node_float(x, "value"),
                                same ? image->shape : shape_make(false, NULL, NULL, 0), n->span);
        if (!in[i] && move && same)
            in[i] = window1d_image(g, x, n->span);
        if (!in[i])
            return NULL;
    }
    return op_make_like(g, n->op->name, n, n->nin, in[0], in[n->nin - 1]);
}

/* Gives the marks of n to the nodes from index `first` on, which replace n. */
static void mark_like(Graph *g, int first, const Node *n)
{
    for (int i = first; i < g->nnode; i++)
        g->node[i]->backward = n->backward, g->node[i]->needs_grad = n->needs_grad;
}

static Node *simplify_map(Graph *g, Node *n)
{
    const int first = g->nnode;
    Node *y = of_images(g, n, false);
    Node *by = y ? window1d_sequence(g, y, n->span) : NULL;
    mark_like(g, first, n);
    return by;
}

static bool read_once(const Graph *g, const Node *x)
{
    int count = 0;
    for (int i = 0; i < g->nnode; i++)
        for (int k = 0; k < g->node[i]->nin; k++)
            count += g->node[i]->in[k] == x;
    return count == 1 && x != g->output;
}

static Node *simplify_image(Graph *g, Node *n)
{
    const int first = g->nnode;
    const Node *x = sequence_of(n);
    if (!x || image_of(x) || !read_once(g, x) || !read_once(g, n->in[0]))
        return NULL;
    Node *by = of_images(g, x, true);
    mark_like(g, first, n);
    return by;
}

static const struct {
    const char *op;
    Node *(*rule)(Graph *g, Node *n);
} rule[] = {{"add", simplify_add},         {"sub", simplify_sub},
            {"mul", simplify_mul},         {"div", simplify_div},
            {"neg", simplify_neg},         {"pow", simplify_pow},
            {"reshape", simplify_reshape}, {"flatten", simplify_reshape},
            {"sum_to", simplify_sum_to},   {"abs", simplify_even},
            {"square", simplify_even},     {"relu", simplify_twice},
            {"abs", simplify_twice},       {"transpose", simplify_transpose},
            {"transpose", simplify_image}};

static Node *simplify(Graph *g, Node *n)
{
    const int made = g->next_id;
    Node *by = fold(g, n);
    for (size_t i = 0; !by && i < sizeof rule / sizeof *rule; i++)
        if (node_is(n, rule[i].op)) {
            by = rule[i].rule(g, n);
            by = by && shape_same(&by->shape, &n->shape) ? by : NULL;
        }
    by = by ? by : simplify_map(g, n);
    if (by && by->id >= made) /* a new node replaces n; an old one can belong to the forward pass */
        by->backward = n->backward, by->needs_grad = n->needs_grad;
    return by;
}

/* Visits each node once; true if something has changed.  A rule that fails can leave nodes, which
 * dce drops. */
static bool sweep(Graph *g)
{
    Rewrite r = rewrite_begin(g);
    const int count = g->nnode;
    for (int i = 0; i < count; i++) {
        Node *n = g->node[i];
        rewrite_inputs(&r, n);
        Node *by = simplify(g, n);
        if (by)
            rewrite_replace(&r, n, by);
    }
    rewrite_end(&r);
    return r.replaced > 0;
}

void pass_simplify(Graph *g, const Options *o, Diag *d)
{
    (void)o, (void)d;
    while (sweep(g))
        ;
}
