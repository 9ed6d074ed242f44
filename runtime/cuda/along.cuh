/* along.cuh -- running sums and indices of maxima along one dimension, x (outer, K, inner), as on
 * the processor (runtime/cpu/along.h).  A thread takes the K numbers of one place; adjacent threads
 * have adjacent places. */
#ifndef CUDA_ALONG_CUH
#define CUDA_ALONG_CUH

SIZE int cumsum_blocks(int outer, int, int inner, bool)
{
    return each_blocks(outer * inner);
}
DEVICE void cumsum(real *y, const real *x, int outer, int k, int inner, bool backwards)
{
    FOR_EACH(i, outer * inner) {
        const int64_t at = (int64_t)(i / inner) * k * inner + i % inner;
        real sum = 0;
        for (int64_t j = 0; j < k; j++) {
            const int64_t to = at + (backwards ? k - 1 - j : j) * inner;
            y[to] = sum += x[to];
        }
    }
}

SIZE int argmax_blocks(int outer, int, int inner)
{
    return each_blocks(outer * inner);
}
DEVICE void argmax(real *y, const real *x, int outer, int k, int inner)
{
    FOR_EACH(i, outer * inner) {
        const int64_t at = (int64_t)(i / inner) * k * inner + i % inner;
        real top = x[at];
        int best = 0;
        for (int64_t j = 1; j < k; j++)
            if (x[at + j * inner] > top)
                top = x[at + j * inner], best = (int)j;
        y[i] = (real)best;
    }
}

#endif
