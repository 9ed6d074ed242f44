/* tokens.c -- the gradient of an embedding with many tokens, on a GPU: its tokens are sorted first
 * (runtime/cuda/embedding.cuh).
 *
 *   embedding_sort        runs of RT_THREADS sorted tokens
 *   embedding_merge       RT_MERGED runs become one, until one run is left
 *   embedding_dw_sorted   adds the rows of equal tokens, which are neighbours now
 *
 * The sorted tokens lie in the region APART, where parts of products lie in other launches.  Two
 * lists are used in turn. */
#include "cuda/lower.h"

enum { SORTED_BYTES = 8 }; /* of a SortedToken: a token and its index */

/* Whether sorting takes less time than the one launch in which warps scan all tokens.  Both forms
 * give the same bits.
 *
 * Without a sort, the first of equal tokens has a warp for each RT_WARP columns, which scans all
 * tokens.  A step of a scan compares RT_WARP tokens: it takes a load that hits the L1 cache, and
 * few instructions.  If there are many such warps, the instructions of all warps take longer than
 * the steps of one warp.  The rows of equal tokens are loaded one after another; at least one token
 * has rows / vocab rows or more.  A sort takes further launches, and steps of binary searches; then
 * RT_WARP rows are loaded at a time.
 *
 * The numbers are estimates, in clocks of a multiprocessor.  The warps are divided among the
 * multiprocessors that RT_FULL blocks occupy. */
static bool sorting_pays(int64_t rows, int64_t width, int64_t vocab)
{
    enum { STEP = 100, STEP_INSTRUCTIONS = 12, EACH_CLOCK = 4 * RT_FULL / RT_RESIDENT };
    enum { L2 = 300 /* a load from the L2 cache */, LAUNCH = 1600, SORT = 1600, ROWS = 1600 };
    const int64_t scans = (rows < vocab ? rows : vocab) * ceil_div(width, RT_WARP),
                  all = scans * STEP_INSTRUCTIONS / EACH_CLOCK, equal = ceil_div(rows, vocab),
                  scan = ceil_div(rows, RT_WARP) * (all > STEP ? all : STEP) + equal * L2;
    int64_t sorted = LAUNCH + SORT + ceil_div(equal, RT_WARP) * ROWS;

    for (int64_t run = RT_THREADS; run < rows; run *= RT_MERGED) {
        sorted += LAUNCH;
        for (int64_t step = run; step > 0; step /= 2)
            sorted += L2;
    }
    return sorted < scan;
}

/* List 0 or 1 of sorted tokens. */
static Given sorted_list(Writer *w, int list, int64_t rows, bool writes)
{
    const int64_t before = (int64_t)SUMS_MOST * cuda_real_bytes(w) / SORTED_BYTES,
                  first = before + list * rows;
    Given g =
        ADDRESS(MEMORY_APART, "SortedToken *", writes ? "to" : "from",
                arena_printf(w->arena, "APART(SortedToken) + %lld", (long long)first), writes);
    g.operand.from = first * SORTED_BYTES, g.operand.to = (first + rows) * SORTED_BYTES;
    cuda_keep_apart(w, g.operand.to);
    return g;
}

bool tokens_lower(Writer *w, const Node *n, const Sizes *s)
{
    if (!node_is(n, "embedding_dw"))
        return false;
    const int64_t rows = sizes_get(s, "rows"), width = sizes_get(s, "width");
    /* indices of embedding_merge are of type int */
    if (rows > INT32_MAX / RT_MERGED || !sorting_pays(rows, width, node_int(n, "vocab")))
        return false;
    int list = 0;

    cuda_call(w, "embedding_sort", n, sorted_list(w, list, rows, true), IN("token", n->in[0]),
              NUMBER(rows), BLOCKS(ceil_div(rows, RT_THREADS)));
    for (int64_t run = RT_THREADS; run < rows; run *= RT_MERGED, list = !list)
        cuda_call(w, "embedding_merge", n, sorted_list(w, !list, rows, true),
                  sorted_list(w, list, rows, false), NUMBER(rows), NUMBER(run), EACH(rows));
    CudaCall *last = cuda_call(w, "embedding_dw_sorted", n, OUT("dw", n),
                               sorted_list(w, list, rows, false), IN("dy", n->in[1]), SIZES(s));
    last->blocks.count =
        ceil_div(ceil_div(rows, RT_WARP) * ceil_div(width, RT_WARP), RT_THREADS / RT_WARP);
    return true;
}
