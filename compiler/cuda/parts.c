/* parts.c -- products, and gradients of biases, with their sums in parts, on a GPU: two launches
 * (runtime/cuda/parts.cuh).
 *
 * The first launch computes the parts of the sums, and stores them after the scratch.  The second
 * launch adds them. */
#include "cuda/lower.h"
#include "ops/step_price.h"

/* A tile of a product has 16 rows at least: with fewer filters in a group, a block takes one
 * filter. */
enum { FILTERS_LEAST = 8 };

static const char *const tile_names[] = {RT_TILE_NAMES};

/* groups products of m x n results, with k steps each. */
typedef struct SplitProduct {
    int64_t groups, m, n, k;
} SplitProduct;

static SplitProduct split_dense(Role role, const Sizes *s)
{
    const int64_t n = sizes_get(s, "n"), k = sizes_get(s, "k"), o = sizes_get(s, "o");
    return role == ROLE_Y    ? (SplitProduct){1, n, o, k}
           : role == ROLE_DX ? (SplitProduct){1, n, k, o}
                             : (SplitProduct){1, o, k, n};
}

static SplitProduct split_conv(Role role, const Sizes *s)
{
    const int64_t groups = sizes_get(s, "groups"), outputs = sizes_get(s, "o") / groups,
                  inputs = sizes_get(s, "c") / groups, n = sizes_get(s, "n"),
                  taps = sizes_get(s, "r") * sizes_get(s, "s"),
                  places = n * sizes_get(s, "oh") * sizes_get(s, "ow"),
                  pixels = n * sizes_get(s, "h") * sizes_get(s, "w");
    return role == ROLE_Y    ? (SplitProduct){groups, outputs, places, inputs * taps}
           : role == ROLE_DX ? (SplitProduct){groups, inputs, pixels, outputs * taps}
                             : (SplitProduct){groups, outputs, inputs * taps, places};
}

/* The product that computes n, and its parts; parts = 0: no function of parts.cuh computes n. */
static RtSplit split_of(const Node *n, const Sizes *s, SplitProduct *p)
{
    const RtSplit none = {0, 0};
    const bool conv = n->op->product == PRODUCT_CONV, dw = n->op->role == ROLE_DW;

    if ((!conv && n->op->product != PRODUCT_DENSE) || node_attr(n, "act") || n->nin > 2)
        return none; /* a join adds no bias, and computes no relu or mask */
    if (!dw && (n->half || n->in[0]->half || n->in[1]->half))
        return none;
    *p = conv ? split_conv(n->op->role, s) : split_dense(n->op->role, s);
    const RtSplit split =
        rt_split(conv && n->op->role == ROLE_DX ? RT_TILE_DX : 0, p->groups, p->m, p->n, p->k);
    if (conv && dw) /* one part is possible, too */
        return p->m >= FILTERS_LEAST ? split : none;
    return split.parts > 1 ? split : none;
}

/* The address of `count` numbers of parts, after `after` numbers of the region APART. */
static Given parts_address(Writer *w, int64_t after, int64_t count, bool writes)
{
    const int64_t bytes = cuda_real_bytes(w);
    Given g = ADDRESS(MEMORY_APART, "real *", "part",
                      after ? arena_printf(w->arena, "APART(real) + %lld", (long long)after)
                            : "APART(real)",
                      writes);
    g.operand.from = after * bytes;
    g.operand.to = (after + count) * bytes;
    cuda_keep_apart(w, g.operand.to);
    return g;
}

/* Adds the call of the second launch, which adds the parts of n. */
static void lower_join(Writer *w, const Node *n, int64_t after, int64_t parts, bool writes)
{
    const int64_t count = cuda_numbers(w, n);
    CudaCall *join =
        cuda_call(w, "parts_join", n, OUT("y", n), parts_address(w, after, parts * count, false),
                  NUMBER(count), NUMBER(parts), BOOL(writes), EACH(count));
    join->operand[0].walked = join->waits = true;
    cuda_give_natural(w, join, (Order){.walk = WALK_EACH, .count = count});
}

/* Whether parts of `count` numbers from `begin` on have no place in common with the parts of the
 * last two products. */
static bool is_free(const Writer *w, int64_t begin, int64_t count)
{
    for (int i = 0; i < 2; i++)
        if (begin < w->cuda->parts[i].end && w->cuda->parts[i].begin < begin + count)
            return false;
    return true;
}

/* Returns the number at which parts of `count` numbers begin.  The parts of the last two products
 * lie elsewhere, because these products may share a launch with this one. */
static int64_t parts_begin(Writer *w, int64_t count)
{
    PartsPlace *last = w->cuda->parts;
    const int64_t ends[] = {SUMS_MOST, last[0].end, last[1].end};
    int64_t begin = INT64_MAX;

    for (int i = 0; i < 3; i++)
        if (ends[i] >= SUMS_MOST && ends[i] < begin && is_free(w, ends[i], count))
            begin = ends[i];
    last[0] = last[1];
    last[1] = (PartsPlace){begin, begin + count};
    return begin;
}

bool parts_lower(Writer *w, const Node *n, const Sizes *s)
{
    SplitProduct p;
    const RtSplit split = split_of(n, s, &p);

    if (!split.parts)
        return false;
    const bool dw = n->op->role == ROLE_DW;
    /* A step that is one launch leaves fewer registers for a product.  Gradients of weights need
     * fewer of them for addresses, so their tiles can be larger. */
    const int least = !w->cuda->list->persistent ? 0
                      : dw                       ? RT_TILE_64_128
                                                 : RT_TILE_ONE_LAUNCH,
              tile = split.tile > least ? split.tile : least;
    const int64_t count = split.parts * cuda_numbers(w, n), begin = parts_begin(w, count);
    CudaCall *first =
        cuda_call(w, arena_printf(w->arena, "%s_parts", n->op->name), n,
                  parts_address(w, begin, count, true), IN("a", n->in[0]), IN("b", n->in[1]),
                  SIZES(s),
                  ARGUMENT(.inner = arena_printf(w->arena, "%s, %d", tile_names[tile], split.parts),
                           .counts = true));
    first->blocks.count = p.groups * rt_tile_blocks(tile, p.m, p.n) * split.parts;
    first->last = dw;
    first->split = (RtSplit){tile, split.parts};
    lower_join(w, n, begin, split.parts, !dw || step_writes_sum(w->g, n, w->in->options));
    return true;
}

/* Number of parts for few long sums: as many as fill a GPU, each of at least LEAST numbers.  0: no
 * parts, because a block adds such a sum in less time than a further launch takes. */
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
    CudaCall *first = cuda_call(w, "sum_to_parts", n, parts_address(w, 0, kept * parts, true),
                                IN("a", n->in[0]), BLOCKS(kept * parts));
    first->code = arena_printf(w->arena, "    block_sum_parts(part, %lld, %lld, %lld, %s);\n",
                               (long long)kept, (long long)summed, (long long)parts, value);
    first->last = true;
    lower_join(w, n, 0, parts, step_writes_sum(w->g, n, w->in->options));
    return true;
}
