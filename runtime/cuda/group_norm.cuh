/* group_norm.cuh -- group_norm: a warp for each group of channels of a sample (formulas:
 * runtime/cpu/group_norm.h).
 *
 *   x, y, dy, dx (N, C, HW), or with last (N, HW, C)   w, b (C)
 */
#ifndef CUDA_GROUP_NORM_CUH
#define CUDA_GROUP_NORM_CUH

struct GroupNorm {
    int n, c, hw, groups;
    bool last;
    double epsilon;
};

/* Numbers of a group. */
SIZE int group_count(GroupNorm p)
{
    return p.c / p.groups * p.hw;
}
/* Number i of group `row`, counted over all samples: its channel, and its place. */
DEVICE int group_channel(GroupNorm p, int64_t row, int i)
{
    const int cg = p.c / p.groups;
    return (int)(row % p.groups) * cg + (p.last ? i % cg : i / p.hw);
}
DEVICE int64_t group_place(GroupNorm p, int64_t row, int i)
{
    const int cg = p.c / p.groups;
    if (!p.last)
        return row * group_count(p) + i;
    return row / p.groups * p.c * p.hw + (int64_t)(i / cg) * p.c + group_channel(p, row, i);
}

struct GroupMoments {
    real mean, r;
};
/* Mean and r of a group, in all lanes of the warp. */
template <class X> DEVICE GroupMoments group_moments(const X *x, GroupNorm p, int64_t row)
{
    real sum = 0, squares = 0;
    for (int i = threadIdx.x % WARP; i < group_count(p); i += WARP)
        sum += x[group_place(p, row, i)];
    const real mean = warp_sum(sum) / (real)group_count(p);
    for (int i = threadIdx.x % WARP; i < group_count(p); i += WARP) {
        const real from = x[group_place(p, row, i)] - mean;
        squares = s_fma(from, from, squares);
    }
    return {mean, 1 / s_sqrt(warp_sum(squares) / (real)group_count(p) + (real)p.epsilon)};
}

SIZE int group_norm_blocks(GroupNorm p)
{
    return ceil_div(p.n * p.groups, WARPS);
}
template <class X, class W, class B>
DEVICE void group_norm(real *y, const X *x, W w, B b, GroupNorm p)
{
    FOR_ROWS(row, p.n * p.groups) {
        const GroupMoments m = group_moments(x, p, row);
        for (int i = threadIdx.x % WARP; i < group_count(p); i += WARP) {
            const int64_t at = group_place(p, row, i);
            const int c = group_channel(p, row, i);
            y[at] = (x[at] - m.mean) * m.r * w[c] + b[c];
        }
    }
}

SIZE int group_norm_dx_blocks(GroupNorm p)
{
    return group_norm_blocks(p);
}
template <class X, class W>
DEVICE void group_norm_dx(real *dx, const X *dy, const X *x, W w, GroupNorm p)
{
    FOR_ROWS(row, p.n * p.groups) {
        const GroupMoments m = group_moments(x, p, row);
        real sum = 0, dot = 0;
        for (int i = threadIdx.x % WARP; i < group_count(p); i += WARP) {
            const int64_t at = group_place(p, row, i);
            const real g = dy[at] * w[group_channel(p, row, i)];
            sum += g;
            dot = s_fma(g, (x[at] - m.mean) * m.r, dot);
        }
        sum = warp_sum(sum) / (real)group_count(p);
        dot = warp_sum(dot) / (real)group_count(p);
        for (int i = threadIdx.x % WARP; i < group_count(p); i += WARP) {
            const int64_t at = group_place(p, row, i);
            const real g = dy[at] * w[group_channel(p, row, i)];
            dx[at] = m.r * (g - sum - (x[at] - m.mean) * m.r * dot);
        }
    }
}

#endif
