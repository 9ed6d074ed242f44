/* normal.h -- random numbers with the standard normal distribution, two from two uniform ones.
 *
 *   y[2 i] = r cos(2 pi v), y[2 i + 1] = r sin(2 pi v), r = sqrt(-2 log u)
 *
 * u and v are words 2 (i mod 2) and 2 (i mod 2) + 1, times 2^-32, of
 *     philox(seed; i / 2, RT_PURPOSE_NORMAL + purpose, stored sample, epoch)
 * An evaluation takes seed 0 and the last epoch of all.  With 32 bits for u, |y| is at most 6.8.
 * Source: Box and Muller 1958, "A note on the generation of random normal deviates".
 */
#ifndef CPU_NORMAL_H
#define CPU_NORMAL_H
#include "cpu/dropout.h"

RT_INLINE real normal_radius(uint32_t bits)
{
    return s_sqrt(-2 * s_log(((real)bits + (real)0.5) * (real)0x1p-32));
}
RT_INLINE real normal_angle(uint32_t bits)
{
    return (real)bits * (real)(6.283185307179586 * 0x1p-32);
}

/* y (N, K); first: index of the chunk's first sample in the global batch. */
RT_INLINE void normal_like_plain(real *y, const Rt *r, int purpose, int first, bool training, int n,
                                 int k)
{
    for (int i = 0; i < n; i++)
        for (int e = 0; e < k; e++, y++) {
            uint32_t bits[4];
            rt_philox(bits, training ? r->seed : 0, (uint32_t)(e / 4),
                      (uint32_t)(RT_PURPOSE_NORMAL + purpose), r->index[first + i],
                      training ? (uint32_t)r->epoch : UINT32_MAX);
            const real size = normal_radius(bits[e % 4 / 2 * 2]),
                       angle = normal_angle(bits[e % 4 / 2 * 2 + 1]);
            *y = size * (e % 2 ? s_sin(angle) : s_cos(angle));
        }
}

RT_INLINE void normal_like(real *restrict y, const Rt *r, int purpose, int first, bool training,
                           int n, int k)
{
    enum { STEP = 4 * PHILOX_BLOCKS, HALF = STEP / 2 };
    const RtGrid part = team_grid(n, (k + STEP - 1) / STEP);
    const TeamRange samples = team_rows(part, n), steps = team_columns(part, (k + STEP - 1) / STEP);
    y += samples.first * k;
    for (int i = (int)samples.first; i < samples.end; i++, y += k)
        for (int e = (int)steps.first * STEP; e < k && e < steps.end * STEP; e += STEP) {
            uint32_t bits[STEP];
            real size[HALF], angle[HALF];
            philox_blocks(bits, training ? r->seed : 0, (uint32_t)(e / 4),
                          (uint32_t)(RT_PURPOSE_NORMAL + purpose), r->index[first + i],
                          training ? (uint32_t)r->epoch : UINT32_MAX);
            for (int j = 0; j < HALF; j++) {
                size[j] = ((real)bits[2 * j] + (real)0.5) * (real)0x1p-32;
                angle[j] = normal_angle(bits[2 * j + 1]);
            }
            for (int j = 0; j < HALF; j += V) {
                const vec s = v_sqrt(v_set(-2) * v_log(v_load(size + j))), a = v_load(angle + j);
                v_store(size + j, s * v_cos(a));
                v_store(angle + j, s * v_sin(a));
            }
            for (int j = 0; j < STEP && e + j < k; j++)
                y[e + j] = j % 2 ? angle[j / 2] : size[j / 2];
        }
}

#endif
