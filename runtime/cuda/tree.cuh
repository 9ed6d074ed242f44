/* tree.cuh -- the fixed tree of runtime/comm/tree.h for sums and other combinations: adjacent
 * pairs, ((01)(23))45. */
#ifndef CUDA_TREE_CUH
#define CUDA_TREE_CUH

enum { TREE_LEVELS = 16 }; /* 2^15 numbers */

/* Combines at(0) ... at(n - 1) as a binary counter: level[l] waits for its right neighbour while
 * bit l of the count is set.  Indices of levels are constants, so that levels stay in registers.
 * n < 2^LEVELS. */
template <class T, int LEVELS = TREE_LEVELS, class At, class Join>
DEVICE T tree_joined(int n, At at, Join join)
{
    T level[LEVELS];
    RT_UNROLL_4
    for (int i = 0; i < n; i++) {
        T x = at(i);
        bool rises = true;
        RT_UNROLL
        for (int l = 0; l < LEVELS; l++) {
            if (!rises)
                continue;
            rises = i >> l & 1;
            if (rises)
                x = join(level[l], x);
            else
                level[l] = x;
        }
    }
    T all{};
    bool any = false;
    RT_UNROLL
    for (int l = 0; l < LEVELS; l++)
        if (n >> l & 1) {
            all = any ? join(level[l], all) : level[l];
            any = true;
        }
    return all;
}

/* at(0) + ... + at(n - 1) */
template <class At> DEVICE real tree_sum(int n, At at)
{
    return tree_joined<real>(n, at, [](real a, real b) { return a + b; });
}

#endif
