/* slices.c -- producers write into their part of a concat, and readers of a slice read it in place,
 * without a copy.
 *
 *   concat(a, b)     a and b lie in the memory of the concat (Node.within), each in a range of
 *                    channels; the concat has no code left
 *   slice(x)         lies in the memory of x; it has no code either
 *
 * The rows of a value within another one are as far apart as the rows of the other one.  So this is
 * for channels of images in layout LAST, and for vectors.  A value lies within another one only if
 * its kernel and all its readers can step over the bytes between two rows (Op.strided).  Otherwise
 * the concat copies the value, and a slice is a copy.  Concats within concats nest: a dense block
 * is one buffer.  Pass recompute, which makes single values again, undoes this if --memory-limit
 * needs it.
 *
 * concat and slice are tested by name: of the ops that move numbers, only they are ranges of
 * channels.
 */
#include "ir/readers.h"
#include "ops/move.h"
#include "passes/pass.h"

/* Whether the rows of n are its channels, as neighbours. */
static bool has_rows(const Node *n)
{
    return n->shape.batched && n->dtype == DT_REAL &&
           (n->shape.rank == 1 ? n->layout == LAYOUT_ROW
                               : n->shape.rank == 3 && n->layout == LAYOUT_LAST);
}

/* Whether n is a convolution by the direct kernel of runtime/cpu/conv_gather.h. */
static bool gathers(const Node *n)
{
    const Attr *x = node_attr(n, "x_shape");
    return op_computes(n, PRODUCT_CONV, ROLE_Y) && !node_attr(n, "winograd") &&
           !node_attr(n, "pool") &&
           (node_int(n, "groups") == 1 || node_int(n, "groups") < x->list[0]);
}

/* Whether the kernel of n can write its rows with a distance between them. */
static bool writes_rows(const Node *n)
{
    return n->op->strided & STRIDED_OUT || (n->op->flags & OP_MAP && !node_attr(n, "inline")) ||
           gathers(n);
}

/* Whether u can read x with a distance between the rows of x. */
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

/* Whether n joins or cuts along the first dimension; *start gets the begin of input i there. */
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
