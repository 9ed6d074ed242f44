/* embedding.cuh -- rows of a table, looked up by tokens; the sum of the gradients for each row;
 * which tokens count; classes as vectors.
 *
 *   y[i] = w[token[i]]        dw[token[i]] += dy[i], i in order        token `padding`: y[i] = 0
 *
 *   y, dy (rows, F)   w, dw (V, F)
 *
 * In the backward pass, no two threads add to one number: the first of equal tokens adds the rows
 * of all of them, in order.  It finds them by a scan of all tokens if these are few
 * (embedding_dw), else in a sorted list (embedding_sort, embedding_merge, embedding_dw_sorted).
 * Both forms give the same bits.
 */
#ifndef CUDA_EMBEDDING_CUH
#define CUDA_EMBEDDING_CUH

struct Embedding {
    int rows, width, padding;
    bool panels; /* only used on the processor; false here */
};

SIZE int embedding_blocks(Embedding e)
{
    return each_blocks(e.rows * e.width);
}
DEVICE void embedding(real *y, const int32_t *token, const real *w, Embedding e)
{
    FOR_EACH(at, e.rows * e.width) {
        const int32_t row = token[at / e.width];
        y[at] = row == e.padding ? 0 : w[(int64_t)row * e.width + at % e.width];
    }
}

/* A warp has a token and 32 columns.  It compares 32 tokens at a time, and returns if an earlier
 * token is the same: in a text with few distinct tokens most warps return at once. */
SIZE int embedding_dw_blocks(Embedding e)
{
    return ceil_div(e.rows * ceil_div(e.width, WARP), WARPS);
}
DEVICE void embedding_dw_row(real *dw, const int32_t *token, const real *dy, Embedding e, int own,
                             int strip)
{
    const int lane = threadIdx.x % WARP, column = strip * WARP + lane;
    if (token[own] == e.padding)
        return;
    const int32_t row = token[own];
    real sum = 0;
    for (int first = 0; first < e.rows; first += WARP) {
        unsigned same = warp_votes(first + lane < e.rows && token[first + lane] == row);
        if (same && first + __ffs(same) - 1 < own)
            return;
        for (; same; same &= same - 1)
            if (column < e.width)
                sum += dy[(int64_t)(first + __ffs(same) - 1) * e.width + column];
    }
    if (column < e.width)
        dw[(int64_t)row * e.width + column] += sum;
}
DEVICE void embedding_dw(real *dw, const int32_t *token, const real *dy, Embedding e, bool)
{
    const int strips = ceil_div(e.width, WARP);
    FOR_ROWS(warp, e.rows * strips)
        embedding_dw_row(dw, token, dy, e, (int)warp / strips, (int)warp % strips);
}

/* ------------------------------------------------------------------------------- sorted tokens */

/* A token and its index i: sorted by tokens, equal tokens by i. */
struct alignas(8) SortedToken {
    int32_t token, at;
};

struct TokenBlock {
    int32_t token[THREADS];
};

/* Sorts each run of THREADS tokens: a thread counts the tokens that come before its own.  In the
 * last run, threads without a token take the largest number, which comes last, and store
 * nothing. */
DEVICE void embedding_sort(SortedToken *to, const int32_t *token, int rows)
{
    SHARED(TokenBlock, s);
    const int own = threadIdx.x;
    FOR_BLOCKS(block, ceil_div(rows, THREADS)) {
        const int at = block * THREADS + own;
        const int32_t mine = at < rows ? token[at] : INT32_MAX - 1;
        s.token[own] = mine;
        block_sync();
        int before = 0;
        RT_UNROLL_16
        for (int i = 0; i < THREADS; i++)
            before += s.token[i] < mine + (i < own);
        if (at < rows)
            to[at - own + before] = SortedToken{mine, at};
        block_sync(); /* no thread writes the next tokens before these have been read */
    }
}

/* Merges groups of RT_MERGED sorted runs of `run` tokens, a power of two.  A thread has a token,
 * and searches for its place in all runs of the group at the same time: a step of each search loads
 * one number, and these loads do not wait for each other.  Equal tokens of earlier runs come
 * first. */
DEVICE void embedding_merge(SortedToken *to, const SortedToken *from, int rows, int run)
{
    FOR_EACH(at, rows) {
        const SortedToken mine = from[at];
        const int own = at / run % RT_MERGED, first = at - at % run - own * run;
        int before[RT_MERGED] = {};
        for (int step = run; step > 0; step /= 2) {
            RT_UNROLL
            for (int k = 0; k < RT_MERGED; k++) {
                const int next = before[k] + step, end = first + k * run + next;
                const bool exists = next <= run && end <= rows;
                const int32_t last = exists ? from[end - 1].token : INT32_MAX;
                before[k] += last < mine.token + (k < own) ? step : 0;
            }
        }
        int place = first + at % run;
        RT_UNROLL
        for (int k = 0; k < RT_MERGED; k++)
            place += k == own ? 0 : before[k];
        to[place] = mine;
    }
}

/* A warp has 32 sorted tokens and 32 columns.  It adds the rows of each run of equal tokens that
 * begins among its tokens, up to the end of the run, and loads 32 rows at a time. */
SIZE int embedding_dw_sorted_blocks(Embedding e)
{
    return ceil_div(ceil_div(e.rows, WARP) * ceil_div(e.width, WARP), WARPS);
}
DEVICE void embedding_dw_runs(real *dw, const SortedToken *sorted, const real *dy, Embedding e,
                              int first, int strip)
{
    const int lane = threadIdx.x % WARP, column = strip * WARP + lane;
    const bool inside = column < e.width;
    int32_t row = e.padding; /* the token whose rows are added; padding: none */
    real sum = 0;
    for (int at = first; at == first || row != e.padding; at += WARP) {
        const int own = at + lane;
        /* bit k of `begins`: the token at + k is the first of a run, or there is no such token */
        const unsigned begins = warp_votes(own == 0 || own >= e.rows ||
                                           sorted[own].token != sorted[own - 1].token),
                       exist = warp_votes(own < e.rows), lowest = begins & -begins,
                       wanted = inside ? (at == first ? -lowest : lowest - 1) & exist : 0;
        real x[WARP];
        RT_UNROLL
        for (int k = 0; k < WARP; k++)
            x[k] = wanted >> k & 1 ? (dy + column)[(int64_t)sorted[at + k].at * e.width] : 0;
        RT_UNROLL
        for (int k = 0; k < WARP; k++) {
            if (begins >> k & 1) {
                if (inside && row != e.padding)
                    dw[(int64_t)row * e.width + column] += sum;
                if (at > first || at + k >= e.rows)
                    return;
                row = sorted[at + k].token, sum = 0;
            }
            sum += x[k];
        }
    }
}
DEVICE void embedding_dw_sorted(real *dw, const SortedToken *sorted, const real *dy, Embedding e)
{
    const int strips = ceil_div(e.width, WARP);
    FOR_ROWS(warp, ceil_div(e.rows, WARP) * strips)
        embedding_dw_runs(dw, sorted, dy, e, (int)warp / strips * WARP, (int)warp % strips);
}

/* ------------------------------------------------------------------------------- others */

/* y[i] = 0 where token i is padding, else 1. */
SIZE int mask_blocks(int n, int)
{
    return each_blocks(n);
}
DEVICE void mask(real *y, const int32_t *token, int n, int padding)
{
    FOR_EACH(i, n)
        y[i] = token[i] != padding;
}

/* y (n, K): 1 at the class, 0 elsewhere. */
SIZE int one_hot_blocks(int n, int k)
{
    return each_blocks(n * k);
}
DEVICE void one_hot(real *y, const int32_t *label, int n, int k)
{
    FOR_EACH(at, n * k)
        y[at] = (int)(at % k) == label[at / k];
}

#endif
