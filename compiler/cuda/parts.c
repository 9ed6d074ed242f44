/* parts.c -- gradients of weights with their sums in parts, on a GPU: two launches
 * (runtime/cuda/parts.cuh).
 *
 * The first launch computes the parts of the sums, and stores them after the scratch.  The second
 * launch adds them. */
#include "cuda/lower.h"
#include "ops/step_price.h"
#include "runtime/constants.h"

/* A tile of a product has 16 rows at least: with fewer filters in a group, a block takes one. */
enum { FILTERS_LEAST = 8 };

static const char *const tile_names[] = {RT_TILE_NAMES};

/* parts: 0 where the gradient is one launch. */
static RtSplit conv_split(const Sizes *s, int64_t *blocks)
{
    const int64_t groups = sizes_get(s, "groups"), outputs = sizes_get(s, "o") / groups,
                  columns = sizes_get(s, "c") / groups * sizes_get(s, "r") * sizes_get(s, "s"),
                  places = sizes_get(s, "n") * sizes_get(s, "oh") * sizes_get(s, "ow");
    const RtSplit split = rt_split(outputs, columns, places);
    *blocks = groups * rt_tile_blocks(split.tile, outputs, columns) * split.parts;
    return outputs < FILTERS_LEAST ? (RtSplit){0, 0} : split;
}

static RtSplit dense_split(const Sizes *s, int64_t *blocks)
{
    const int64_t o = sizes_get(s, "o"), k = sizes_get(s, "k");
    const RtSplit split = rt_split(o, k, sizes_get(s, "n"));
    *blocks = rt_tile_blocks(split.tile, o, k) * split.parts;
    return split.parts > 1 ? split : (RtSplit){0, 0};
}

bool parts_lower(Writer *w, const Node *n, const Sizes *s)
{
    const bool conv = node_is(n, "conv2d_dw");
    int64_t blocks = 0;
    const RtSplit p = conv                     ? conv_split(s, &blocks)
                      : node_is(n, "dense_dw") ? dense_split(s, &blocks)
                                               : (RtSplit){0, 0};
    const int64_t count = shape_count(&n->shape), bytes = p.parts * count * cuda_real_bytes(w);

    if (!p.parts)
        return false;
    CudaCall *first =
        cuda_call(w, conv ? "conv2d_dw_parts" : "dense_dw_parts", n,
                  ADDRESS(MEMORY_APART, "real *", "part", "APART(real)", true), IN("a", n->in[0]),
                  IN("b", n->in[1]), SIZES(s),
                  ARGUMENT(.inner = arena_printf(w->arena, "%s, %d", tile_names[p.tile], p.parts),
                           .counts = true));
    first->blocks.count = blocks;
    CudaCall *join =
        cuda_call(w, "parts_join", n, OUT("y", n),
                  ADDRESS(MEMORY_APART, "real *", "part", "APART(real)", false), NUMBER(count),
                  NUMBER(p.parts), BOOL(step_writes_sum(w->g, n, w->in->options)), EACH(count));
    join->natural = cuda_order(w->arena, (Order){.walk = WALK_EACH, .count = count});
    join->operand[0].walked = true;
    cuda_give_order(w, join, join->natural);
    cuda_keep_apart(w, bytes);
    return true;
}
