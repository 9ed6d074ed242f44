/* own.cuh -- weights and optimizer states that stay on the chip from step to step (persistent.cuh).
 *
 * The numbers of a parameter belong to the threads that sum its gradient (results.cuh): each thread
 * updates its own numbers, and needs no barrier for that.  The numbers stay in the shared memory of
 * the thread's block for a whole launch: they are loaded at the start of the launch and updated
 * there; the states are stored at its end.  Weights are also stored at each update, because other
 * blocks read them.  Numbers that do not fit stay in memory (at < 0).
 */
#ifndef CUDA_OWN_CUH
#define CUDA_OWN_CUH

/* The owners of a gradient's numbers.  parts: number of parts, which blocks take in turns; slots:
 * of a thread in a part; width: threads that have slots; walk(f): as in results.cuh. */
struct DenseOwn {
    Dense d;
    static constexpr int width = THREADS;
    constexpr __host__ __device__ int parts() const
    {
        return dense_dw_blocks(d);
    }
    constexpr __host__ __device__ int slots() const
    {
        return product_each(d.o, d.k);
    }
    template <class F> __device__ __forceinline__ void walk(F f) const
    {
        dense_dw_results(d, f);
    }
};
struct ConvOwn {
    Conv c;
    static constexpr int width = WARP;
    constexpr __host__ __device__ int parts() const
    {
        return conv2d_dw_blocks(c);
    }
    constexpr __host__ __device__ int slots() const
    {
        return ceil_div(c.r * c.s, WARP);
    }
    template <class F> __device__ __forceinline__ void walk(F f) const
    {
        conv2d_dw_results(c, f);
    }
};
struct SumOwn {
    int count;
    static constexpr int width = 1;
    constexpr __host__ __device__ int parts() const
    {
        return count;
    }
    constexpr __host__ __device__ int slots() const
    {
        return 1;
    }
    template <class F> __device__ __forceinline__ void walk(F f) const
    {
        sum_results(count, f);
    }
};

/* FOR_EACH: a part has a number for each thread of a block. */
struct EachOwn {
    int count;
    static constexpr int width = THREADS;
    constexpr __host__ __device__ int parts() const
    {
        return ceil_div(count, THREADS);
    }
    constexpr __host__ __device__ int slots() const
    {
        return 1;
    }
    template <class F> __device__ __forceinline__ void walk(F f) const
    {
        each_results(count, f);
    }
};

/* ------------------------------------------------------------------------------- layout */

struct OwnLayout {
    int parts, reals; /* reals of a part: weights and states */
};
template <class Of> SIZE OwnLayout own_layout(Of of, int states)
{
    return OwnLayout{of.parts(), of.slots() * of.width * (1 + states)};
}

/* Offset of each parameter in a block's shared memory, in reals; -1: it stays in memory. */
struct Chip {
    int at[RT_OWNED];
    int bytes;
};

/* Decides which parameters fit, in order, for a launch of `blocks` blocks with `limit` bytes
 * each. */
static inline Chip chip_of(const OwnLayout *layout, int blocks, int64_t limit)
{
    Chip c = {};
    for (int i = 0; i < RT_OWNED; i++) {
        const int64_t bytes =
            (int64_t)ceil_div(layout[i].parts, blocks) * layout[i].reals * (int64_t)sizeof(real);
        const bool fits = layout[i].parts > 0 && c.bytes + bytes <= limit;
        c.at[i] = fits ? c.bytes / (int)sizeof(real) : -1;
        c.bytes += fits ? (int)bytes : 0;
    }
    return c;
}

/* ------------------------------------------------------------------------------- operations */

enum OwnWhat { OWN_FETCH, OWN_UPDATE, OWN_PUT };

DEVICE void own_copy(const UpdateNumber &to, const UpdateNumber &from)
{
    if (to.s0)
        *to.s0 = *from.s0;
    if (to.s1)
        *to.s1 = *from.s1;
}

/* Element i of a parameter, slot `slot` of this thread; r and q as for the update. */
struct OwnNumber {
    UpdateNumber there, here; /* in memory; on the chip, or the same as `there` */
};
DEVICE OwnNumber own_number(const Rt *r, const UpdateRow &q, unsigned i, int at, int slot,
                            int states, int width)
{
    const UpdateNumber there = update_number(r, q, i);
    if (at < 0)
        return OwnNumber{there, there};
    real *const w = dynamic_memory() + at + slot * (1 + states) * width + threadIdx.x;
    return OwnNumber{there, UpdateNumber{w, there.s0 ? w + width : nullptr,
                                         there.s1 ? w + 2 * width : nullptr}};
}

/* Does one operation for one parameter.  The sum over shards (a literal number), the formulas and
 * the check of the loss are those of update.cuh. */
template <class Of, class Rule>
DEVICE void own(OwnWhat what, const Rt *r, const UpdateRow *q, int at, int states, int shards,
                int loss, Of of, Rule rule)
{
    if (what == OWN_UPDATE ? !update_allowed(r, loss) : at < 0)
        return;
    of.walk([=](unsigned i, int slot) {
        const OwnNumber x = own_number(r, *q, i, at, slot, states, Of::width);
        if (what == OWN_UPDATE)
            update_with(r, r, *q, x.here,
                        update_tree(r->shard + q->sum + i * (int64_t)sizeof(real), r->shard_bytes,
                                    shards),
                        rule);
        if (what == OWN_FETCH)
            *x.here.w = *x.there.w, own_copy(x.here, x.there);
        else if (at >= 0)
            *x.there.w = *x.here.w;
        if (what == OWN_PUT)
            own_copy(x.there, x.here);
    });
}

/* Computes dense_dw and the update, for a step of one shard: the gradient is never stored. */
template <class Rule>
DEVICE void dense_dw_own(const Rt *r, const UpdateRow *q, int at, int states, int loss,
                         const real *x, const real *dy, DenseOwn of, Rule rule)
{
    const Dense d = of.d;
    int part = 0;
    if (!update_allowed(r, loss))
        return;
    FOR_BLOCKS(block, of.parts()) {
        product(block, d.o, d.k, d.n, matrix<ALONG_RESULT>(dy, d.o), matrix<ALONG_RESULT>(x, d.k),
                [=](int o, int k, real g, int s) {
                    const int slot = part * of.slots() + s;
                    const OwnNumber mine =
                        own_number(r, *q, o * d.k + k, at, slot, states, of.width);
                    update_with(r, r, *q, mine.here, g, rule);
                    if (at >= 0)
                        *mine.there.w = *mine.here.w;
                });
        part++;
    }
}

#endif
