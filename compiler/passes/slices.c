/* slices.c -- producers of a concat write directly into it, and readers of a slice read its input,
 * so that nothing is copied.
 *
 *   concat(a, b)     a and b lie in the memory of the concat (Node.within), each in a range of
 *                    channels; the concat needs no call
 *   slice(x)         lies in the memory of x; it needs no call
 *
 * A value within another one has the row stride of the other one.  So the pass is for channels of
 * images in layout LAST, and for vectors.  A value lies within another one only if its kernel and
 * all its readers support a row stride (Op.strided).  Otherwise the concat copies the value, and a
 * slice is a copy.  Concats within concats nest: a dense block is one buffer.  Pass recompute moves
 * values out of others if the program does not fit into --memory-limit, because it can recompute
 * only values with memory of their own.
 *
 * concat and slice are tested by name: only these two ops place a range of channels.
 */
#include "ir/readers.h"
#include "ops/move.h"
#include "passes/pass.h"

/* Whether the rows of n in memory are its channels: an image in layout LAST, or a vector. */
static bool has_rows(const Node *n)
{
    return n->shape.batched && n->dtype == DT_REAL &&
           (n->shape.rank == 1 ? n->layout == LAYOUT_ROW
                               : n->shape.rank == 3 && n->layout == LAYOUT_LAST);
}

/* Whether the direct kernel of runtime/cpu/conv_gather.h computes the convolution n. */
static bool gathers(const Node *n)
{
    const Attr *x = node_attr(n, "x_shape");
    return op_computes(n, PRODUCT_CONV, ROLE_Y) && !node_attr(n, "winograd") &&
           !node_attr(n, "pool") && !op_reads_half(n) &&
           (node_int(n, "groups") == 1 || node_int(n, "groups") < x->list[0]);
}

/* Whether the kernel of n can write its result with a row stride. */
static bool writes_rows(const Node *n)
{
    return n->op->strided & STRIDED_OUT || (n->op->flags & OP_MAP && !node_attr(n, "inline")) ||
           gathers(n);
}

/* Whether u can read x with a row stride. */
static bool reads_rows(const Node *u, const Node *x)
{
    if (u->op->flags & (OP_MAP | OP_REDUCE) || u->op->move)
        return true;
    for (int i = 0; i < u->nin; i++)
        if (u->in[i] == x && !(u->op->strided & 1u << i))
            return false;
    return true;
}

static bool all_read_rows(const Graph *g, const Readers *r, const Node *x)
{
    for (int i = 0; i < readers_count(r, x); i++)
        if (!reads_rows(readers_at(r, x, i), x))
            return false;
    return !graph_keeps(g, x);
}

/* Whether n joins or cuts along the first dimension; *start gets the index at which input i
 * begins. */
static bool along_channels(const Node *n, int i, int64_t *start)
{
    const int64_t axis = node_int(n, "axis");
    Move m = {0};
    n->op->move(n, i, &m);
    *start = m.start[0];
    return axis == 0 || axis == -n->shape.rank;
}

static bool once(const Node *n, const Node *x)
{
    int count = 0;
    for (int i = 0; i < n->nin; i++)
        count += n->in[i] == x;
    return count == 1;
}

static void place_parts(const Graph *g, const Readers *r, Node *n)
{
    for (int i = 0; i < n->nin; i++) {
        Node *x = n->in[i];
        int64_t start;
        if (!x->within && has_rows(n) && has_rows(x) && along_channels(n, i, &start) &&
            once(n, x) && writes_rows(x) && all_read_rows(g, r, x))
            x->within = n, x->start = start;
    }
}

/* Whether x is in memory, not computed in the loops of its readers. */
static bool in_memory(const Node *x)
{
    return !node_attr(x, "inline") && x->op->leaf != LEAF_CONST;
}

static void place_slice(const Graph *g, const Readers *r, Node *n)
{
    Node *x = n->in[0];
    int64_t start;
    if (!n->within && in_memory(x) && has_rows(n) && has_rows(x) && along_channels(n, 0, &start) &&
        all_read_rows(g, r, n))
        n->within = x, n->start = start;
}

void pass_slices(Graph *g, const Options *o, Diag *d)
{
    const Readers *r = readers_new(g);

    (void)o;
    (void)d;
    for (int i = 0; i < g->nnode; i++) {
        if (node_is(g->node[i], "concat"))
            place_parts(g, r, g->node[i]);
        else if (node_is(g->node[i], "slice"))
            place_slice(g, r, g->node[i]);
    }
}
