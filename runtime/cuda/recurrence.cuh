/* recurrence.cuh -- a loop over time in one launch: each block computes all time steps of its own
 * samples.
 *
 * No sample of a step reads another sample, so blocks never wait for each other, and a barrier of
 * the block stands where a launch would end.  Values that only the loop needs lie in shared memory,
 * and so do parts of the weights.  Each thread keeps the rest of its weights in registers, because
 * a multiprocessor has as many bytes of registers as of shared memory.
 *
 *   y[sample][output] = sum over step of x[sample][step] w(output, step)
 *
 * A sum, or a part of it, belongs to one thread, which adds its terms in the order of product.cuh:
 * the bits are those of one launch for each call.  Elements of sequences are prefetched while
 * the block computes products.
 */
#ifndef CUDA_RECURRENCE_CUH
#define CUDA_RECURRENCE_CUH

/* One block on each multiprocessor, so that a thread may have 255 registers. */
#define RECURRENCE static __global__ void __launch_bounds__(THREADS, 1)

#define LAUNCH_RECURRENCE(kernel, ...)                                                             \
    launch_sharing(#kernel, kernel, kernel##_blocks, kernel##_numbers *(int)sizeof(real),          \
                   __VA_ARGS__)

/* The shared memory of a block: its values, weights and parts of sums. */
DEVICE real *recurrence_memory()
{
    return dynamic_memory();
}

/* The samples of a block: `most`, or the rest of the n samples. */
template <int n, int most> struct Samples {
    static constexpr int each = most;
    static constexpr bool whole = n % most == 0;
    const int first = blockIdx.x * most, end = whole || first + most < n ? first + most : n;

    /* A value with `size` numbers a sample, at number `at` of the shared memory.  Its index is that
     * of all samples, as in global memory. */
    __device__ __forceinline__ real *value(int at, int size) const
    {
        return recurrence_memory() + at - (int64_t)first * size;
    }
    /* The number that this thread has in a turn, and whether there is one. */
    __device__ __forceinline__ unsigned index(int size, int turn) const
    {
        return first * size + turn * THREADS + threadIdx.x;
    }
    __device__ __forceinline__ bool has(int size, int turn, unsigned at) const
    {
        return (most * size % THREADS == 0 || turn * THREADS + (int)threadIdx.x < most * size) &&
               (whole || (int)at < end * size);
    }
};

/* Numbers of the block's samples, with `size` numbers each.  `at`: the index among the numbers of
 * all samples. */
#define FOR_SAMPLES(at, samples, size)                                                             \
    RT_UNROLL_4                                                                                    \
    for (int at##_turn = 0; at##_turn < ceil_div(samples.each * (size), THREADS); at##_turn++)     \
        if (const unsigned at = samples.index(size, at##_turn); samples.has(size, at##_turn, at))

/* y = x, for values with `size` numbers a sample. */
template <int size, class S> DEVICE void recurrence_copy(const S &s, real *y, const real *x)
{
    FOR_SAMPLES(at, s, size)
        y[at] = x[at];
}

/* Starts the copy of element `step` of x (N, T, size).  Does nothing if there is no such step. */
template <int size, int steps, class S>
DEVICE void recurrence_item(const S &s, real *y, const real *x, int step)
{
    if (step >= 0 && step < steps)
        FOR_SAMPLES(at, s, size)
            copy_start(y + at, x + ((int64_t)(at / size) * steps + step) * size + at % size, true);
}

/* Neighbours in memory: the weights of adjacent steps of a sum, or those of adjacent outputs. */
enum WeightOrder { STEPS_ADJACENT, OUTPUTS_ADJACENT };

/* Keeps the value in a register: without this the compiler could load it again at each use. */
#ifdef RT_SHIM
DEVICE void in_register(real &)
{
}
#else
DEVICE void in_register(float &x)
{
    asm volatile("" : "+f"(x));
}
DEVICE void in_register(double &x)
{
    asm volatile("" : "+d"(x));
}
#endif

/* The weights of a product of a recurrence, as its threads keep them.
 *   parts: number of parts of a sum (parts.cuh)
 *   held: steps of a sum whose weights are in registers; a multiple of 4, or all
 *   pads: product.cuh adds zeros after the last step, which can change the sign of a zero
 * A thread has `chains` sums of one part: those of outputs column, column + columns ... */
template <int outputs, int k, int parts, int held, bool pads> struct Weights {
    static constexpr int columns = THREADS / parts, chains = ceil_div(outputs, columns),
                         length = ceil_div(k, parts), rest = length - held;
    static constexpr bool fours = length % 4 == 0 && k % 4 == 0;
    static constexpr int run = fours ? 4 : 1;
    static_assert(held % run == 0);
    real own[held ? held : 1][chains];
    real *shared; /* [step / run][chain][thread][step % run]; a thread reads only what it wrote */
    int part, column;

    /* Calls take(chain, step, weight) for `run` steps of this thread's part from `step` on, and all
     * chains.  Adjacent steps are loaded at once. */
    template <WeightOrder order, class F>
    __device__ __forceinline__ void load(const real *w, int step, F take) const
    {
        RT_UNROLL
        for (int c = 0; c < chains; c++) {
            const int output = column + c * columns, at = part * length + step;
            const bool there = (parts * columns == THREADS || part < parts) &&
                               (parts * length == k || at < k) &&
                               (chains * columns == outputs || output < outputs);
            if constexpr (order == STEPS_ADJACENT && fours) {
                const Four f = there ? four(w + output * k + at) : Four{};
                RT_UNROLL
                for (int u = 0; u < run; u++)
                    take(c, step + u, f.at[u]);
            } else {
                RT_UNROLL
                for (int u = 0; u < run; u++)
                    take(c, step + u,
                         there ? w[order == STEPS_ADJACENT ? output * k + at + u
                                                           : (at + u) * outputs + output]
                               : (real)0);
            }
        }
    }
    __device__ __forceinline__ real *place(int step, int chain) const
    {
        return shared + (step / run * chains + chain) * (THREADS * run) + step % run;
    }
    template <WeightOrder order> __device__ __forceinline__ void begin(real *memory, const real *w)
    {
        part = parts > 1 ? threadIdx.x / columns : 0;
        column = parts > 1 ? threadIdx.x % columns : threadIdx.x;
        shared = memory + threadIdx.x * run;
        if constexpr (held > 0) {
            RT_UNROLL
            for (int step = 0; step < held; step += run)
                load<order>(w, step, [&](int c, int at, real x) { own[at][c] = x; });
            RT_UNROLL
            for (int step = 0; step < held; step++) {
                RT_UNROLL
                for (int c = 0; c < chains; c++)
                    in_register(own[step][c]);
            }
        }
        RT_UNROLL_4
        for (int step = held; step < length; step += run)
            load<order>(w, step, [&](int c, int at, real x) { *place(at - held, c) = x; });
    }

    /* Adds `run` steps of all chains and samples. */
    template <class S, class W>
    __device__ __forceinline__ void add(real (&sum)[S::each][chains], const real *x, int step,
                                        W weight_of) const
    {
        /* the last part can end after the sum, and another value lies there */
        const bool there = parts * length == k || part * length + step < k;
        real w[chains][run];
        RT_UNROLL
        for (int c = 0; c < chains; c++)
            weight_of(w[c], c);
        RT_UNROLL
        for (int s = 0; s < S::each; s++) {
            real of_x[run];
            if constexpr (fours) {
                const Four f = there ? four(x + s * k + step) : Four{};
                RT_UNROLL
                for (int u = 0; u < run; u++)
                    of_x[u] = f.at[u];
            } else {
                of_x[0] = there ? x[s * k + step] : (real)0;
            }
            RT_UNROLL
            for (int u = 0; u < run; u++) {
                RT_UNROLL
                for (int c = 0; c < chains; c++)
                    sum[s][c] = s_fma(of_x[u], w[c][u], sum[s][c]);
            }
        }
    }

    /* y[sample][output] = the sum; with parts, y[sample][part][output].  x: in shared memory. */
    template <class S>
    __device__ __forceinline__ void product(const S &s, real *y, const real *x) const
    {
        real sum[S::each][chains] = {};
        if (parts * columns < THREADS && part >= parts)
            return;
        x += (int64_t)s.first * k + part * length;
        RT_UNROLL
        for (int step = 0; step < held; step += run)
            add<S>(sum, x, step, [&](real(&w)[run], int c) {
                RT_UNROLL
                for (int u = 0; u < run; u++)
                    w[u] = own[step + u][c];
            });
        RT_UNROLL_16
        for (int step = held; step < length; step += run)
            add<S>(sum, x, step, [&](real(&w)[run], int c) {
                if constexpr (fours) {
                    const Four f = four(place(step - held, c));
                    RT_UNROLL
                    for (int u = 0; u < run; u++)
                        w[u] = f.at[u];
                } else {
                    w[0] = *place(step - held, c);
                }
            });
        RT_UNROLL
        for (int i = 0; i < S::each; i++) {
            RT_UNROLL
            for (int c = 0; c < chains; c++)
                if ((chains * columns == outputs || column + c * columns < outputs) &&
                    (S::whole || s.first + i < s.end))
                    y[((s.first + i) * parts + part) * outputs + column + c * columns] =
                        pads ? sum[i][c] + 0 : sum[i][c];
        }
    }
};

/* y[sample][output] = the sum of the parts, in order, as parts_join adds them. */
template <int outputs, int parts, class S>
DEVICE void recurrence_join(const S &s, real *y, const real *part)
{
    FOR_SAMPLES(at, s, outputs) {
        real sum = 0;
        RT_UNROLL_16
        for (int p = 0; p < parts; p++)
            sum += part[(at / outputs * parts + p) * outputs + at % outputs];
        y[at] = sum;
    }
}

#endif
