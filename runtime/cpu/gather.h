/* gather.h -- elements of a dimension, selected by an index that each sample has.
 *
 *   y[n][o][j][i] = x[n][o][index[n][j]][i]
 *   dx[n][o][index[n][j]][i] += dy[n][o][j][i], j in order
 *
 *   x, dx (N, outer, K, inner)   index (N, places)   y, dy (N, outer, places, inner)
 *
 * An index outside of 0 .. K - 1 gives zeros, and its gradient is dropped.  Real indices are
 * rounded.
 */
#ifndef CPU_GATHER_H
#define CPU_GATHER_H

typedef struct Gather {
    int n, outer, k, inner, places;
    bool numbers; /* the index is real, not int32_t */
} Gather;

/* Element i of the index; -1: outside of 0 .. K - 1. */
RT_INLINE int gather_place(const void *index, int64_t i, Gather g)
{
    const double at =
        g.numbers ? rint((double)((const real *)index)[i]) : ((const int32_t *)index)[i];
    return at >= 0 && at < g.k ? (int)at : -1;
}

/* ------------------------------------------------------------------------------------ reference */
RT_INLINE void gather_plain(real *y, const real *x, const void *index, Gather g)
{
    for (int n = 0; n < g.n; n++)
        for (int o = 0; o < g.outer; o++, x += (int64_t)g.k * g.inner)
            for (int j = 0; j < g.places; j++)
                for (int i = 0; i < g.inner; i++) {
                    const int place = gather_place(index, (int64_t)n * g.places + j, g);
                    *y++ = place < 0 ? 0 : x[(int64_t)place * g.inner + i];
                }
}

RT_INLINE void gather_dx_plain(real *dx, const void *index, const real *dy, Gather g)
{
    memset(dx, 0, sizeof *dx * (size_t)g.n * (size_t)g.outer * (size_t)g.k * (size_t)g.inner);
    for (int n = 0; n < g.n; n++)
        for (int o = 0; o < g.outer; o++, dx += (int64_t)g.k * g.inner)
            for (int j = 0; j < g.places; j++)
                for (int i = 0; i < g.inner; i++, dy++) {
                    const int place = gather_place(index, (int64_t)n * g.places + j, g);
                    if (place >= 0)
                        dx[(int64_t)place * g.inner + i] += *dy;
                }
}

/* ----------------------------------------------------------------------------------------- fast */
RT_INLINE void gather(real *restrict y, const real *restrict x, const void *restrict index,
                      Gather g)
{
    for (int64_t r = 0; r < (int64_t)g.n * g.outer; r++, x += (int64_t)g.k * g.inner)
        for (int j = 0; j < g.places; j++, y += g.inner) {
            const int place = gather_place(index, r / g.outer * g.places + j, g);
            const real *row = x + (int64_t)place * g.inner;
            if (place < 0)
                memset(y, 0, sizeof *y * (size_t)g.inner);
            else
                RT_MAP(g.inner, STORE(y, LOAD(row)));
        }
}

RT_INLINE void gather_dx(real *restrict dx, const void *restrict index, const real *restrict dy,
                         Gather g)
{
    memset(dx, 0, sizeof *dx * (size_t)g.n * (size_t)g.outer * (size_t)g.k * (size_t)g.inner);
    for (int64_t r = 0; r < (int64_t)g.n * g.outer; r++, dx += (int64_t)g.k * g.inner)
        for (int j = 0; j < g.places; j++, dy += g.inner) {
            const int place = gather_place(index, r / g.outer * g.places + j, g);
            real *row = dx + (int64_t)place * g.inner;
            if (place >= 0)
                RT_MAP(g.inner, STORE(row, LOAD(row) + LOAD(dy)));
        }
}

#endif
