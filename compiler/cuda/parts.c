/* parts.c -- gradients of weights and biases with their sums in parts, on a GPU: two launches
 * (runtime/cuda/parts.cuh).
 *
 * The first launch computes the parts of the sums, and stores them after the scratch.  The second
 * launch adds them. */
#include "cuda/lower.h"
#include "ops/step_price.h"
#include "runtime/constants.h"

/* A tile of a product has 16 rows at least: with fewer filters in a group, a block takes one. */
enum { FILTERS_LEAST = 8 };
/* Parts of sums of one number each stand before those of products: then a launch can compute
 * both. */
enum { SUMS_MOST = RT_FULL };

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

/* The address of parts, after `after` numbers of the region APART. */
static Given apart(Writer *w, int64_t after, bool writes)
{
    const int64_t bytes = cuda_real_bytes(w);
    Given g = ADDRESS(MEMORY_APART, "real *", "part",
                      after ? arena_printf(w->arena, "APART(real) + %lld", (long long)after)
                            : "APART(real)",
                      writes);
    g.operand.from = after * bytes;
    if (after == 0)
        g.operand.to = SUMS_MOST * bytes;
    return g;
}

/* The second launch: adds the parts of n. */
static void lower_join(Writer *w, const Node *n, int64_t after, int64_t parts, bool writes)
{
    const int64_t count = shape_count(&n->shape);
    CudaCall *join = cuda_call(w, "parts_join", n, OUT("y", n), apart(w, after, false),
                               NUMBER(count), NUMBER(parts), BOOL(writes), EACH(count));
    join->natural = cuda_order(w->arena, (Order){.walk = WALK_EACH, .count = count});
    join->operand[0].walked = true;
    cuda_give_order(w, join, join->natural);
    cuda_keep_apart(w, (after + parts * count) * cuda_real_bytes(w));
}

bool parts_lower(Writer *w, const Node *n, const Sizes *s)
{
    const bool conv = node_is(n, "conv2d_dw");
    int64_t blocks = 0;
    const RtSplit p = conv                     ? conv_split(s, &blocks)
                      : node_is(n, "dense_dw") ? dense_split(s, &blocks)
                                               : (RtSplit){0, 0};

    if (!p.parts)
        return false;
    CudaCall *first =
        cuda_call(w, conv ? "conv2d_dw_parts" : "dense_dw_parts", n, apart(w, SUMS_MOST, true),
                  IN("a", n->in[0]), IN("b", n->in[1]), SIZES(s),
                  ARGUMENT(.inner = arena_printf(w->arena, "%s, %d", tile_names[p.tile], p.parts),
                           .counts = true));
    first->blocks.count = blocks;
    first->last = true;
    lower_join(w, n, SUMS_MOST, p.parts, step_writes_sum(w->g, n, w->in->options));
    return true;
}

/* Few long sums: as many parts as fill a GPU, each of at least LEAST numbers.  0: a block adds such
 * a sum in less time than a further launch takes. */
static int64_t sum_parts(int64_t kept, int64_t summed)
{
    enum { LEAST = 4096, LONG = 8 * LEAST };
    const int64_t fill = RT_FULL / kept, most = summed / LEAST;
    return summed < LONG || fill < 2 ? 0 : fill < most ? fill : most;
}

bool parts_lower_sum(Writer *w, const Node *n, int64_t kept, int64_t summed, const char *value)
{
    const int64_t parts = sum_parts(kept, summed);
    if (!parts || n->shape.batched)
        return false;
    CudaCall *first =
        cuda_call(w, "sum_to_parts", n, apart(w, 0, true), IN("a", n->in[0]), BLOCKS(kept * parts));
    first->code = arena_printf(w->arena, "    block_sum_parts(part, %lld, %lld, %lld, %s);\n",
                               (long long)kept, (long long)summed, (long long)parts, value);
    first->last = true;
    lower_join(w, n, 0, parts, step_writes_sum(w->g, n, w->in->options));
    return true;
}
