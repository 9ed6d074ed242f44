/* gather.cuh -- elements of a dimension, selected by an index that each sample has
 * (runtime/cpu/gather.h).
 *
 *   y[n][o][j][i] = x[n][o][index[n][j]][i]
 *   dx[n][o][k][i] = sum over j with index[n][j] = k of dy[n][o][j][i], j in order
 *
 *   x, dx (N, outer, K, inner)   index (N, places)   y, dy (N, outer, places, inner)
 *
 * An index outside of 0 .. K - 1 gives zeros, and its gradient is dropped.  Real indices are
 * rounded.
 *
 * In the backward pass, a thread has one number of dx and compares all indices of its sample: a
 * warp reads each index once, and the sum has the bits of the processor's.
 */
#ifndef CUDA_GATHER_CUH
#define CUDA_GATHER_CUH

struct Gather {
    int n, outer, k, inner, places;
    bool numbers; /* only used on the processor; here the type of the index decides */
};

/* The index; -1: outside of 0 .. K - 1. */
DEVICE int gather_place(int32_t at, Gather g)
{
    return at >= 0 && at < g.k ? at : -1;
}
DEVICE int gather_place(real at, Gather g)
{
    at = R_MATH(rint)(at);
    return at >= 0 && at < g.k ? (int)at : -1;
}

SIZE int gather_blocks(Gather g)
{
    return each_blocks(g.n * g.outer * g.places * g.inner);
}
template <class X, class Index> DEVICE void gather(real *y, X x, Index index, Gather g)
{
    FOR_EACH(at, g.n * g.outer * g.places * g.inner) {
        const int row = at / (g.places * g.inner), j = at / g.inner % g.places;
        const int place = gather_place(index[row / g.outer * g.places + j], g);
        y[at] = place < 0 ? 0 : x[((int64_t)row * g.k + place) * g.inner + at % g.inner];
    }
}

SIZE int gather_dx_blocks(Gather g)
{
    return each_blocks(g.n * g.outer * g.k * g.inner);
}
template <class Index, class D> DEVICE void gather_dx(real *dx, Index index, D dy, Gather g)
{
    FOR_EACH(at, g.n * g.outer * g.k * g.inner) {
        const int row = at / (g.k * g.inner), k = at / g.inner % g.k;
        const int64_t first = (int64_t)row * g.places;
        real sum = 0;
        for (int j = 0; j < g.places; j++)
            if (gather_place(index[row / g.outer * g.places + j], g) == k)
                sum += dy[(first + j) * g.inner + at % g.inner];
        dx[at] = sum;
    }
}

#endif
