/* embedding.cuh -- rows of a table, looked up by tokens; the sum of the gradients for each row;
 * which tokens count; classes as vectors.
 *
 *   y[i] = w[token[i]]        dw[token[i]] += dy[i], i in order        token `padding`: y[i] = 0
 *
 *   y, dy (rows, F)   w, dw (V, F)
 *
 * In the backward pass, no two threads add to one number: the first of equal tokens adds the rows
 * of all of them, in order.
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
