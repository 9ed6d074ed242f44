/* group_norm.h -- groups of channels of each sample are normalised.
 *
 *   xhat = (x - mean) r    r = 1 / sqrt(mean (x - mean)^2 + epsilon), of the c / groups channels of
 *                          a group over all pixels
 *   y = xhat w + b
 *   dx = r (g - mean g - xhat mean(g xhat)), g = dy w
 *
 *   plain: x (N, C, HW), or with last (N, HW, C)      fast: always (N, HW, C), lanes = channels
 *   w, b (C)
 *
 * The fast kernels sum each channel over the pixels, then the channels of a group.
 */
#ifndef CPU_GROUP_NORM_H
#define CPU_GROUP_NORM_H
#include "cpu/team.h"

typedef struct GroupNorm {
    int n, c, hw, groups;
    bool last;
    double epsilon;
} GroupNorm;

/* Reals of scratch: four rows of channels (compiler/ops/group_norm.c). */
#define GROUP_NORM_ROW(p)  ((p).c + V)
#define GROUP_NORM_ROOM(p) (4 * GROUP_NORM_ROW(p))

typedef struct GroupMoments {
    real mean, r;
} GroupMoments;

/* ------------------------------------------------------------------------------------ reference */

/* The place of pixel j of channel k of group g in a sample; a group has p.c / p.groups channels. */
RT_INLINE int64_t group_place(GroupNorm p, int g, int k, int j)
{
    const int64_t channel = (int64_t)g * (p.c / p.groups) + k;
    return p.last ? (int64_t)j * p.c + channel : channel * p.hw + j;
}

RT_INLINE GroupMoments group_moments_plain(const real *x, GroupNorm p, int g)
{
    const int cg = p.c / p.groups;
    const real first = x[group_place(p, g, 0, 0)], count = (real)cg * (real)p.hw;
    real sum = 0, squares = 0;
    for (int k = 0; k < cg; k++)
        for (int j = 0; j < p.hw; j++)
            sum += x[group_place(p, g, k, j)] - first;
    const real mean = first + sum / count;
    for (int k = 0; k < cg; k++)
        for (int j = 0; j < p.hw; j++) {
            const real from = x[group_place(p, g, k, j)] - mean;
            squares += from * from;
        }
    return (GroupMoments){mean, 1 / s_sqrt(squares / count + (real)p.epsilon)};
}

RT_INLINE void group_norm_plain(real *y, const real *x, const real *w, const real *b, real *scratch,
                                GroupNorm p)
{
    const int cg = p.c / p.groups;
    (void)scratch;
    for (int i = 0; i < p.n; i++, x += (int64_t)p.c * p.hw, y += (int64_t)p.c * p.hw)
        for (int g = 0; g < p.groups; g++) {
            const GroupMoments m = group_moments_plain(x, p, g);
            for (int k = 0; k < cg; k++)
                for (int j = 0; j < p.hw; j++) {
                    const int64_t at = group_place(p, g, k, j);
                    y[at] = (x[at] - m.mean) * m.r * w[g * cg + k] + b[g * cg + k];
                }
        }
}

RT_INLINE void group_norm_dx_plain(real *dx, const real *dy, const real *x, const real *w,
                                   real *scratch, GroupNorm p)
{
    const int cg = p.c / p.groups;
    const int64_t sample = (int64_t)p.c * p.hw;
    (void)scratch;
    for (int i = 0; i < p.n; i++, x += sample, dy += sample, dx += sample)
        for (int g = 0; g < p.groups; g++) {
            const GroupMoments m = group_moments_plain(x, p, g);
            real sum = 0, dot = 0;
            for (int k = 0; k < cg; k++)
                for (int j = 0; j < p.hw; j++) {
                    const int64_t at = group_place(p, g, k, j);
                    sum += dy[at] * w[g * cg + k];
                    dot += dy[at] * w[g * cg + k] * (x[at] - m.mean) * m.r;
                }
            sum /= (real)cg * (real)p.hw, dot /= (real)cg * (real)p.hw;
            for (int k = 0; k < cg; k++)
                for (int j = 0; j < p.hw; j++) {
                    const int64_t at = group_place(p, g, k, j);
                    dx[at] = m.r * (dy[at] * w[g * cg + k] - sum - (x[at] - m.mean) * m.r * dot);
                }
        }
}

/* ----------------------------------------------------------------------------------------- fast */

/* Sum of row[c] over the channels of group g. */
RT_INLINE real group_sum(const real *row, GroupNorm p, int g)
{
    const int cg = p.c / p.groups;
    real sum = 0;
    for (int k = 0; k < cg; k++)
        sum += row[g * cg + k];
    return sum;
}
/* Sets row[c] to v for the channels c of group g. */
RT_INLINE void group_fill(real *row, GroupNorm p, int g, real v)
{
    const int cg = p.c / p.groups;
    for (int k = 0; k < cg; k++)
        row[g * cg + k] = v;
}

/* Sums over pixels have RT_GROUP_CHAINS accumulators, because an addition waits four cycles for the
 * one before it. */
enum { RT_GROUP_CHAINS = 4 };
RT_INLINE vec group_total(const real *x, GroupNorm p, int lanes)
{
    vec sum[RT_GROUP_CHAINS] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    int j = 0;
    for (; j + RT_GROUP_CHAINS <= p.hw; j += RT_GROUP_CHAINS)
        for (int k = 0; k < RT_GROUP_CHAINS; k++, x += p.c)
            sum[k] += v_load_lanes(x, lanes);
    for (; j < p.hw; j++, x += p.c)
        sum[0] += v_load_lanes(x, lanes);
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}
RT_INLINE vec group_squares(const real *x, vec mean, GroupNorm p, int lanes)
{
    vec sum[RT_GROUP_CHAINS] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    int j = 0;
    for (; j + RT_GROUP_CHAINS <= p.hw; j += RT_GROUP_CHAINS)
        for (int k = 0; k < RT_GROUP_CHAINS; k++, x += p.c) {
            const vec from = v_load_lanes(x, lanes) - mean;
            sum[k] = v_fma(from, from, sum[k]);
        }
    for (; j < p.hw; j++, x += p.c) {
        const vec from = v_load_lanes(x, lanes) - mean;
        sum[0] = v_fma(from, from, sum[0]);
    }
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* Writes mean and r of the group of each channel of one sample. */
RT_INLINE void group_moments(real *restrict mean, real *restrict r, const real *restrict x,
                             GroupNorm p)
{
    const real count = (real)(p.c / p.groups) * (real)p.hw;
    RT_MAP(p.c, STORE(mean, group_total(x + AT, p, rt_lanes)));
    for (int g = 0; g < p.groups; g++)
        group_fill(mean, p, g, group_sum(mean, p, g) / count);
    RT_MAP(p.c, STORE(r, group_squares(x + AT, LOAD(mean), p, rt_lanes)));
    for (int g = 0; g < p.groups; g++)
        group_fill(r, p, g, 1 / s_sqrt(group_sum(r, p, g) / count + (real)p.epsilon));
}

RT_INLINE void group_norm(real *restrict y, const real *restrict x, const real *restrict w,
                          const real *restrict b, real *restrict scratch, GroupNorm p)
{
    real *mean = scratch, *scale = scratch + GROUP_NORM_ROW(p);
    const int64_t sample = (int64_t)p.c * p.hw;
    const TeamRange part = team_range(p.n);
    for (int64_t i = part.first; i < part.end; i++) {
        const real *from = x + i * sample;
        real *to = y + i * sample;
        group_moments(mean, scale, from, p);
        RT_MAP(p.c, STORE(scale, LOAD(scale) * LOAD(w)));
        for (int j = 0; j < p.hw; j++, from += p.c, to += p.c)
            RT_MAP(p.c, STORE(to, v_fma(LOAD(from) - LOAD(mean), LOAD(scale), LOAD(b))));
    }
}

/* Computes the sums over the pixels of dy and of dy (x - mean); a lane has a channel. */
RT_INLINE void group_dots(real *restrict sum, real *restrict dot, const real *restrict dy,
                          const real *restrict x, const real *restrict mean, GroupNorm p, int lanes)
{
    const vec middle = v_load_lanes(mean, lanes);
    vec all[RT_GROUP_CHAINS] = {v_set(0), v_set(0), v_set(0), v_set(0)},
        along[RT_GROUP_CHAINS] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    int j = 0;
    for (; j + RT_GROUP_CHAINS <= p.hw; j += RT_GROUP_CHAINS)
        for (int k = 0; k < RT_GROUP_CHAINS; k++, x += p.c, dy += p.c) {
            const vec d = v_load_lanes(dy, lanes);
            all[k] += d;
            along[k] = v_fma(d, v_load_lanes(x, lanes) - middle, along[k]);
        }
    for (; j < p.hw; j++, x += p.c, dy += p.c) {
        const vec d = v_load_lanes(dy, lanes);
        all[0] += d;
        along[0] = v_fma(d, v_load_lanes(x, lanes) - middle, along[0]);
    }
    v_store_lanes(sum, all[0] + all[1] + (all[2] + all[3]), lanes);
    v_store_lanes(dot, along[0] + along[1] + (along[2] + along[3]), lanes);
}

/* dx = dy (r w) - near - (x - mean) far      near = r mean g      far = r^3 mean(g (x - mean)) */
RT_INLINE void group_norm_dx(real *restrict dx, const real *restrict dy, const real *restrict x,
                             const real *restrict w, real *restrict scratch, GroupNorm p)
{
    real *mean = scratch, *r = mean + GROUP_NORM_ROW(p), *near = r + GROUP_NORM_ROW(p),
         *far = near + GROUP_NORM_ROW(p);
    const real count = (real)(p.c / p.groups) * (real)p.hw;
    const int64_t sample = (int64_t)p.c * p.hw;
    const TeamRange part = team_range(p.n);
    for (int64_t i = part.first; i < part.end; i++) {
        const real *from = x + i * sample, *d = dy + i * sample;
        real *to = dx + i * sample;
        group_moments(mean, r, from, p);
        RT_MAP(p.c, group_dots(near + AT, far + AT, d + AT, from + AT, mean + AT, p, rt_lanes));
        RT_MAP(p.c, STORE(near, LOAD(near) * LOAD(w)); STORE(far, LOAD(far) * LOAD(w)));
        for (int g = 0; g < p.groups; g++) {
            const real one = r[g * (p.c / p.groups)];
            group_fill(near, p, g, one * group_sum(near, p, g) / count);
            group_fill(far, p, g, one * one * one * group_sum(far, p, g) / count);
        }
        RT_MAP(p.c, STORE(r, LOAD(r) * LOAD(w)));
        for (int j = 0; j < p.hw; j++, from += p.c, d += p.c, to += p.c)
            RT_MAP(p.c, const vec along = v_fma(LOAD(from) - LOAD(mean), LOAD(far), LOAD(near));
                   STORE(to, LOAD(d) * LOAD(r) - along));
    }
}

#endif
