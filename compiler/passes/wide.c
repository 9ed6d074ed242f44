/* wide.c -- computes large dense layers of small batches in phases of their own: for all samples of
 * all shards at once, with a few panels of weights for each unit.
 *
 * In a slice phase each chunk reads all weights.  Reading them limits the speed of a layer if they
 * do not fit into the second-level cache beside other data, and if a chunk has few rows.  The layer
 * 2450 x 500 of lenet_relu, 64 samples in 8 shards, ran at 57 % of the FMA peak of two threads of a
 * Xeon; by panels it runs at 85 %.  Each number is the same sum in the same order, so no bit
 * changes.
 *
 * The cost is two barriers, and memory in the shard regions for the values of all samples that
 * cross these barriers.  So this pass does nothing if these values are large.  With ranks there are
 * no such phases, because ranks would wait for a bucket of gradients at the end of a phase.  With
 * --memory-limit there are none, because pass recompute supports slice phases only.  In both cases
 * the layer stays in the slice phases, and its dense_dx reads transposed weights, so that it adds
 * in the same order as by panels.
 */
#include "ir/step.h"
#include "ops/dense_price.h"
#include "ops/op.h"
#include "passes/pass.h"

static const int64_t WEIGHTS = 1 << 20; /* bytes of weights; as in runtime/cpu/dense.h: dense_far */
static const int64_t VALUES = 64 << 20; /* largest bytes of all values of a batch */
/* SAMPLES: largest number of samples in a shard.  OUTPUTS: largest number of outputs, which is
 * limited because runtime/cpu/dense_wide.h transposes a panel on the stack. */
enum { SAMPLES = 64, OUTPUTS = 4096 };

/* Whether the graph has no totals and no loops over time, which need phases of their own. */
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
    const int at = n->op->product == PRODUCT_DENSE ? op_weights(n) : -1;
    if (at < 0 || dense_rows(n) > 1 || (n->op->role == ROLE_Y && dense_seeks_zeros(n)))
        return false;
    const Node *w = n->in[at];
    return w->op->leaf == LEAF_PARAM && shape_count(&w->shape) * real > WEIGHTS &&
           node_int(n, "units") <= OUTPUTS;
}

void pass_wide(Graph *g, const Options *o, Diag *d)
{
    const int64_t real = dtype_bytes(g->recipe.dtype);
    const char *key = o->overlap || o->memory_limit ? "transposed" : "wide";
    Step s = {0};

    (void)d;
    schedule_cut(g, &s);
    if (s.shard > SAMPLES || !straight(g) || value_bytes(g, real) > VALUES)
        return;
    for (int i = 0; i < g->nnode; i++)
        if (is_large(g->node[i], real))
            node_set_attr(g->arena, g->node[i], (Attr){.key = key, .kind = ATTR_BOOL, .i = true});
}
