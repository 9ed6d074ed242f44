/* tree.cuh -- a sum in the fixed tree of runtime/tree.h: adjacent pairs, ((01)(23))45. */
#ifndef CUDA_TREE_CUH
#define CUDA_TREE_CUH

enum { TREE_LEVELS = 16 }; /* 2^15 numbers */

/* at(0) + ... + at(n - 1), as a binary counter: level[l] waits for its right neighbour while bit l of the count is set.  Levels are
 * named by constants, so they stay in registers. */
template <class At> DEVICE real tree_sum(int n, At at)
{
    real level[TREE_LEVELS];
    for (int i = 0; i < n; i++) {
        real x = at(i);
        bool rises = true;
        RT_UNROLL
        for (int l = 0; l < TREE_LEVELS; l++) {
            if (!rises)
                continue;
            rises = i >> l & 1;
            if (rises)
                x = level[l] + x;
            else
                level[l] = x;
        }
    }
    real sum = 0;
    bool any = false;
    RT_UNROLL
    for (int l = 0; l < TREE_LEVELS; l++)
        if (n >> l & 1) {
            sum = any ? level[l] + sum : level[l];
            any = true;
        }
    return sum;
}

#endif
