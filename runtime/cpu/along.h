/* along.h -- running sums and indices of maxima along one dimension: x (outer, K, inner).
 *
 *   cumsum    y[i] = x[0] + .. + x[i]; backwards: y[i] = x[i] + .. + x[K - 1]
 *   argmax    y = the smallest i with x[i] = max x; 0 if all numbers are NaN
 */
#ifndef CPU_ALONG_H
#define CPU_ALONG_H
#include "cpu/softmax.h"

RT_INLINE void cumsum_plain(real *y, const real *x, int outer, int k, int inner, bool backwards)
{
    for (int64_t i = 0; i < (int64_t)outer * inner; i++) {
        const int64_t at = i / inner * k * inner + i % inner;
        real sum = 0;
        for (int64_t j = 0; j < k; j++) {
            const int64_t to = at + (backwards ? k - 1 - j : j) * inner;
            y[to] = sum += x[to];
        }
    }
}

RT_INLINE void argmax_plain(real *y, const real *x, int outer, int k, int inner)
{
    for (int64_t i = 0; i < (int64_t)outer * inner; i++) {
        const int64_t at = i / inner * k * inner + i % inner;
        int64_t best = 0;
        for (int64_t j = 1; j < k; j++)
            best = x[at + j * inner] > x[at + best * inner] ? j : best;
        y[i] = (real)best;
    }
}

/* Rows of adjacent numbers: an addition waits for the one before it, so four rows at a time. */
RT_INLINE void cumsum_rows(real *restrict y, const real *restrict x, TeamRange rows, int k,
                           bool backwards)
{
    enum { ROWS = 4 };
    const int64_t step = backwards ? -1 : 1, from = backwards ? k - 1 : 0;
    int64_t i = rows.first;
    for (; i + ROWS <= rows.end; i += ROWS) {
        real sum[ROWS] = {0};
        for (int64_t j = 0, at = i * k + from; j < k; j++, at += step)
            for (int r = 0; r < ROWS; r++)
                y[at + r * k] = sum[r] += x[at + r * k];
    }
    for (; i < rows.end; i++) {
        real sum = 0;
        for (int64_t j = 0, at = i * k + from; j < k; j++, at += step)
            y[at] = sum += x[at];
    }
}

RT_INLINE void cumsum(real *restrict y, const real *restrict x, int outer, int k, int inner,
                      bool backwards)
{
    if (inner == 1) {
        cumsum_rows(y, x, team_range(outer), k, backwards);
        return;
    }
    const RtGrid part = team_grid(outer, inner);
    const TeamRange rows = team_rows(part, outer), columns = team_columns(part, inner);
    const int64_t step = backwards ? -inner : inner,
                  from = (backwards ? (int64_t)(k - 1) * inner : 0) + columns.first;
    for (int64_t i = rows.first; i < rows.end; i++) {
        const real *a = x + i * k * inner + from;
        real *b = y + i * k * inner + from;
        const int64_t n = columns.end - columns.first;
        RT_MAP(n, STORE(b, LOAD(a) + v_set(0)));
        for (int j = 1; j < k; j++, a += step, b += step)
            RT_MAP(n, STORE(b + step, LOAD(b) + LOAD(a + step)));
    }
}

RT_INLINE int argmax_row(const real *x, int k)
{
    const real top = row_max(x, k);
    int i = 0;
    while (i < k && !(x[i] == top))
        i++;
    return i < k ? i : 0;
}

RT_INLINE void argmax(real *restrict y, const real *restrict x, int outer, int k, int inner)
{
    if (inner == 1) {
        const TeamRange rows = team_range(outer);
        for (int64_t i = rows.first; i < rows.end; i++)
            y[i] = (real)argmax_row(x + i * k, k);
        return;
    }
    const RtGrid part = team_grid(outer, inner);
    const TeamRange rows = team_rows(part, outer), columns = team_columns(part, inner);
    for (int64_t i = rows.first; i < rows.end; i++) {
        const real *a = x + i * k * inner + columns.first;
        real *b = y + i * inner + columns.first;
        RT_MAP(
            columns.end - columns.first, vec top = LOAD(a); vec at = v_set(0);
            for (int64_t j = 1; j < k; j++) {
                const vec next = LOAD(a + j * inner);
                at = v_select_gt(next, top, v_set((real)j), at);
                top = v_max(next, top);
            } STORE(b, at));
    }
}

#endif
