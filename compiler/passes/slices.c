/* slices.c -- producers write straight into their slice of a concat, readers of a slice read it where it lies: no copy.
 *
 *   concat(a, b)     a and b live in its memory, one channel range each (Node.within); it has no code of its own left
 *   slice(x)         lives in x's memory, where x lies; it has no code either
 *
 * Rows of a value that lies within another are as far apart as the other's: only for channels of images stored LAST, and for
 * vectors.  A value moves only when the kernel that makes it and all that read it can step over what lies between (the two
 * lists below); else concat copies it and slice makes its own.  Concats within concats nest: a dense block is one buffer.
 * Pass recompute, which makes values again one by one, takes it all back where --memory-limit leaves no other way.
 */
#include "ir/readers.h"
#include "ops/move.h"
#include "passes/pass.h"

static bool in_loop(const Node *n)
{
    return n->op->flags & OP_ELEMENTWISE || node_is(n, "bias");
}

/* Its rows are its channels, one beside the other. */
static bool has_rows(const Node *n)
{
    return n->shape.batched && n->dtype == DT_REAL &&
           (n->shape.rank == 1 ? n->layout == LAYOUT_ROW
                               : n->shape.rank == 3 && n->layout == LAYOUT_LAST);
}

/* A convolution that runs the direct kernel of runtime/cpu/conv_gather.h. */
static bool gathers(const Node *n)
{
    const Attr *x = node_attr(n, "x_shape");
    return node_is(n, "conv2d") && !node_attr(n, "winograd") && !node_attr(n, "pool") &&
           (node_int(n, "groups") == 1 || node_int(n, "groups") < x->list[0]);
}

/* The kernel that makes n can leave room between its rows. */
static bool writes_rows(const Node *n)
{
    static const char *const kernel[] = {"concat",   "slice",    "crop",       "transpose",
                                         "max_pool", "avg_pool", "batch_norm", "batch_norm_test"};
    bool can = (in_loop(n) && !node_attr(n, "inline")) || gathers(n);
    for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++)
        can |= node_is(n, kernel[i]);
    return can;
}

/* u can read x with room between its rows. */
static bool reads_rows(const Node *u, const Node *x)
{
    static const struct {
        const char *op;
        int input;
    } kernel[] = {{"max_pool_dx", 1},    {"avg_pool_dx", 0},   {"batch_moments", 0},
                  {"batch_norm", 0},     {"batch_norm_dw", 1}, {"batch_norm_dx", 1},
                  {"batch_norm_test", 0}};
    if (in_loop(u) || u->op->move || node_is(u, "sum_to") || node_is(u, "amax_to"))
        return true;
    for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++) {
        if (!node_is(u, kernel[i].op))
            continue;
        for (int k = 0; k < u->nin; k++)
            if ((u->in[k] == x) != (k == kernel[i].input))
                return false;
        return true;
    }
    return false;
}

static bool all_read_rows(const Graph *g, const Readers *r, const Node *x)
{
    for (int i = 0; i < readers_count(r, x); i++)
        if (!reads_rows(readers_at(r, x, i), x))
            return false;
    return !graph_keeps(g, x);
}

/* Along the first dimension; where input i begins there. */
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

/* What lies in memory under its own name: not computed inside its readers' loops. */
static bool stored(const Node *x)
{
    return !node_attr(x, "inline") && !node_is(x, "const");
}

static void place_slice(const Graph *g, const Readers *r, Node *n)
{
    Node *x = n->in[0];
    int64_t start;
    if (!n->within && stored(x) && has_rows(n) && has_rows(x) && along_channels(n, 0, &start) &&
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
