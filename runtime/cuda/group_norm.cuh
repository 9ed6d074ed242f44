/* group_norm.cuh -- group_norm: a warp for each group of channels of a sample, or a block if the
 * group has many numbers (formulas: runtime/cpu/group_norm.h).
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

SIZE bool group_norm_warps(GroupNorm p)
{
    return group_count(p) <= 32 * WARP;
}
SIZE int group_norm_blocks(GroupNorm p)
{
    return group_norm_warps(p) ? ceil_div(p.n * p.groups, WARPS) : p.n * p.groups;
}

/* The threads of a group: those of a warp. */
struct GroupWarp {
    /* Calls add(load(i)) for this thread's numbers i of the group, several loads at a time. */
    template <class Load, class Add> __device__ void each(GroupNorm p, Load load, Add add) const
    {
        load_ahead<4>((int)(threadIdx.x % WARP), group_count(p), (int)WARP, load, add);
    }
    /* The sum of the threads' numbers, in each of them. */
    __device__ real sum(real x) const
    {
        return warp_sum(x);
    }
};
/* The threads of a group: those of a block. */
struct GroupBlock {
    Parts<real> &parts;
    template <class Load, class Add> __device__ void each(GroupNorm p, Load load, Add add) const
    {
        load_ahead<8>((int)threadIdx.x, group_count(p), (int)THREADS, load, add);
    }
    __device__ real sum(real x) const
    {
        return block_sum(parts, x);
    }
};
/* Calls run(threads, row) for each group. */
template <class Run> DEVICE void each_group(GroupNorm p, Run run)
{
    if (group_norm_warps(p)) {
        FOR_ROWS(row, p.n * p.groups)
            run(GroupWarp{}, row);
        return;
    }
    SHARED(Parts<real>, parts);
    FOR_BLOCKS(row, p.n * p.groups)
        run(GroupBlock{parts}, (int64_t)row);
}

struct GroupMoments {
    real mean, r;
};
/* Mean and r of a group, in all of its threads. */
template <class Threads, class X>
DEVICE GroupMoments group_moments(Threads t, const X *x, GroupNorm p, int64_t row)
{
    const auto load = [=](int i) { return (real)x[group_place(p, row, i)]; };
    real sum = 0, squares = 0;
    t.each(p, load, [&](real v) { sum += v; });
    const real mean = t.sum(sum) / (real)group_count(p);
    t.each(p, load, [&](real v) { squares = s_fma(v - mean, v - mean, squares); });
    return {mean, 1 / s_sqrt(t.sum(squares) / (real)group_count(p) + (real)p.epsilon)};
}

template <class X, class W, class B>
DEVICE void group_norm(real *y, const X *x, W w, B b, GroupNorm p)
{
    struct Loaded {
        int i;
        real x;
    };
    each_group(p, [=](auto t, int64_t row) {
        const GroupMoments m = group_moments(t, x, p, row);
        t.each(
            p,
            [=](int i) {
                return Loaded{i, (real)x[group_place(p, row, i)]};
            },
            [=](Loaded v) {
                const int c = group_channel(p, row, v.i);
                y[group_place(p, row, v.i)] = (v.x - m.mean) * m.r * w[c] + b[c];
            });
    });
}

SIZE int group_norm_dx_blocks(GroupNorm p)
{
    return group_norm_blocks(p);
}
template <class X, class W>
DEVICE void group_norm_dx(real *dx, const X *dy, const X *x, W w, GroupNorm p)
{
    struct Loaded {
        int i;
        real g, x; /* dy w, and the input */
    };
    each_group(p, [=](auto t, int64_t row) {
        const auto load = [=](int i) {
            const int64_t at = group_place(p, row, i);
            return Loaded{i, (real)dy[at] * w[group_channel(p, row, i)], (real)x[at]};
        };
        const GroupMoments m = group_moments(t, x, p, row);
        real sum = 0, dot = 0;
        t.each(p, load, [&](Loaded v) {
            sum += v.g;
            dot = s_fma(v.g, (v.x - m.mean) * m.r, dot);
        });
        sum = t.sum(sum) / (real)group_count(p);
        dot = t.sum(dot) / (real)group_count(p);
        t.each(p, load, [=](Loaded v) {
            dx[group_place(p, row, v.i)] = m.r * (v.g - sum - (v.x - m.mean) * m.r * dot);
        });
    });
}

#endif
