/* wide.c -- large dense layers of small batches run as phases of their own: all samples of all shards, a unit a few panels of weights.
 *
 * In a slice phase each chunk reads all weights.  Where they are larger than what a second-level cache holds beside a chunk's values
 * and a chunk has few rows to use them for, that is what the layer waits for: lenet_relu's 2450 x 500, 64 samples in 8 shards, ran at
 * 57 % of the FMA peak of two threads of a Xeon, and runs at 85 % by panels.  Each number is the same sum in the same order, so no bit
 * depends on it.
 *
 * The price: two barriers, and what the slices hand on over them lies in the shards' memory, of all samples at once.  So not where
 * that is much.  Where ranks share the shards, a phase that ends with a bucket of gradients is what they wait for, and under
 * --memory-limit pass recompute reckons with phases of slices alone: there the layer stays in the slices, and only the order of its
 * gradient's sums, over weights that were turned, is that of a panel.
 */
#include "ir/step.h"
#include "ops/dense_price.h"
#include "ops/op.h"
#include "passes/pass.h"

static const int64_t WEIGHTS = 1 << 20;     /* bytes; as runtime/cpu/dense.h: dense_far */
static const int64_t VALUES = 64 << 20;     /* bytes of all values of a batch at most */
enum { SAMPLES = 64, OUTPUTS = 4096 };      /* of a shard; of a layer (runtime/cpu/dense_wide.h: a panel turned, on the stack) */

/* A layer that waits for all samples anyway, or a loop over time, has its phases. */
static bool straight(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->loop || g->node[i]->op->flags & (OP_TOTAL | OP_KNOWN))
            return false;
    return true;
}

static int64_t value_bytes(const Graph *g, int64_t real)
{
    int64_t count = 0;
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->shape.batched && !node_attr(g->node[i], "inline"))
            count += shape_count(&g->node[i]->shape);
    return count * g->recipe.batch * real;
}

static bool is_large(const Node *n, int64_t real)
{
    const bool dx = node_is(n, "dense_dx");
    if ((!dx && !node_is(n, "dense")) || dense_rows(n) > 1 || (!dx && dense_seeks_zeros(n)))
        return false;
    const Node *w = n->in[dx ? 0 : 1];
    return w->param && node_is(w, "param") && shape_count(&w->shape) * real > WEIGHTS && node_int(n, "units") <= OUTPUTS;
}

void pass_wide(Graph *g, const Options *o, Diag *d)
{
    const int64_t real = dtype_bytes(g->recipe.dtype);
    const char *key = o->overlap || o->memory_limit ? "turned" : "wide";
    Step s = {0};

    (void)d;
    schedule_cut(g, &s);
    if (s.shard > SAMPLES || !straight(g) || value_bytes(g, real) > VALUES)
        return;
    for (int i = 0; i < g->nnode; i++)
        if (is_large(g->node[i], real))
            node_set_attr(g->arena, g->node[i], (Attr){.key = key, .kind = ATTR_BOOL, .i = true});
}
