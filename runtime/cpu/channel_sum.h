/* channel_sum.h -- sums over rows: gradients of biases, and the second part of reductions. */
#ifndef CPU_CHANNEL_SUM_H
#define CPU_CHANNEL_SUM_H
#include "cpu/team.h"

/* db += sum over the rows of dy (rows, step), for `vectors` vectors, of which the last has `last`
 * lanes.  The sums stay in registers, so that a row costs only additions. */
RT_INLINE void channel_sum_block(real *restrict db, const void *restrict dy, bool half, int64_t at,
                                 int rows, int step, int vectors, int last)
{
    vec t[4];
    RT_UNROLL
    for (int k = 0; k < vectors; k++)
        t[k] = v_load_lanes(db + k * V, k + 1 < vectors ? V : last);
    for (int i = 0; i < rows; i++, at += step) {
        RT_UNROLL
        for (int k = 0; k < vectors; k++)
            t[k] += v_load_number(dy, half, at + k * V, k + 1 < vectors ? V : last);
    }
    RT_UNROLL
    for (int k = 0; k < vectors; k++)
        v_store_lanes(db + k * V, t[k], k + 1 < vectors ? V : last);
}

RT_INLINE void channel_sum_of(real *restrict db, const void *restrict dy, bool half, int rows,
                              int o)
{
    const int full = o / (4 * V) * (4 * V), rest = o - full, vectors = (rest + V - 1) / V;
    if (rt_team.of > 1) {
        const TeamRange part = team_range((o + V - 1) / V);
        for (int i = (int)part.first * V; i < o && i < part.end * V; i += V)
            channel_sum_block(db + i, dy, half, i, rows, o, 1, o - i < V ? o - i : V);
        return;
    }
    for (int i = 0; i < full; i += 4 * V)
        channel_sum_block(db + i, dy, half, i, rows, o, 4, V);
    if (rest)
        channel_sum_block(db + full, dy, half, full, rows, o, vectors, rest - (vectors - 1) * V);
}

/* db += sum over the rows of dy (rows, O); a team shares the columns. */
RT_INLINE void channel_sum(real *restrict db, const real *restrict dy, int rows, int o)
{
    channel_sum_of(db, dy, false, rows, o);
}
#ifdef RT_BF16
RT_INLINE void channel_sum_bf16(real *restrict db, const bf16 *restrict dy, int rows, int o)
{
    channel_sum_of(db, dy, true, rows, o);
}
#endif

#endif
