/* dropout.cuh -- zeroes a share `rate` of the elements and scales the others by 1/(1 - rate), with
 * the same bits as on the processor (runtime/cpu/dropout.h).
 *
 * Element e of a sample is dropped if word e % 4 of
 *     philox(seed; e / 4, RT_PURPOSE_DROPOUT + purpose, stored sample, epoch)
 * is less than rate * 2^32.  A thread takes the four elements of a block of bits.
 */
#ifndef CUDA_DROPOUT_CUH
#define CUDA_DROPOUT_CUH

SIZE int dropout_blocks(int, real, int n, int k)
{
    return each_blocks(n * ceil_div(k, 4));
}
template <class Y, class X>
DEVICE void dropout(Y *y, X x, const Rt *r, int purpose, int first, real rate, int n, int k)
{
    const uint32_t limit = rate >= 1 ? UINT32_MAX : (uint32_t)((double)rate * 4294967296.0);
    const real scale = rate >= 1 ? 0 : 1 / (1 - rate);
    const int fours = ceil_div(k, 4);

    FOR_EACH(at, n * fours) {
        const int i = at / fours, e = at % fours * 4;
        uint32_t bits[4];
        rt_philox(bits, r->seed, (uint32_t)(e / 4), (uint32_t)(RT_PURPOSE_DROPOUT + purpose),
                  r->index[first + i], (uint32_t)r->epoch);
        RT_UNROLL
        for (int j = 0; j < 4; j++)
            if (e + j < k)
                y[(int64_t)i * k + e + j] =
                    bits[j] < limit ? (real)0 : x[(int64_t)i * k + e + j] * scale;
    }
}

/* The gradient: the same mask on dy. */
SIZE int dropout_dx_blocks(int purpose, real rate, int n, int k)
{
    return dropout_blocks(purpose, rate, n, k);
}
template <class Y, class D>
DEVICE void dropout_dx(Y *dx, const D *dy, const Rt *r, int purpose, int first, real rate, int n,
                       int k)
{
    dropout(dx, dy, r, purpose, first, rate, n, k);
}

/* The same for samples (HW, C) whose elements are numbered as (C, HW).  If groups of four end with
 * channels, they are ordered so that adjacent threads have adjacent channels. */
SIZE int dropout_last_blocks(int, real, int n, int c, int hw)
{
    return each_blocks(n * ceil_div(c * hw, 4));
}
template <class Y, class X>
DEVICE void dropout_last(Y *y, const X *x, const Rt *r, int purpose, int first, real rate, int n,
                         int c, int hw)
{
    const uint32_t limit = rate >= 1 ? UINT32_MAX : (uint32_t)((double)rate * 4294967296.0);
    const real scale = rate >= 1 ? 0 : 1 / (1 - rate);
    const int k = c * hw, fours = ceil_div(k, 4);

    FOR_EACH(at, n * fours) {
        const int i = at / fours, of = at % fours,
                  e = (hw % 4 ? of : of % c * (hw / 4) + of / c) * 4;
        uint32_t bits[4];
        rt_philox(bits, r->seed, (uint32_t)(e / 4), (uint32_t)(RT_PURPOSE_DROPOUT + purpose),
                  r->index[first + i], (uint32_t)r->epoch);
        RT_UNROLL
        for (int j = 0; j < 4; j++)
            if (e + j < k) {
                const int64_t to = (int64_t)i * k + (e + j) % hw * c + (e + j) / hw;
                y[to] = bits[j] < limit ? (real)0 : x[to] * scale;
            }
    }
}
SIZE int dropout_dx_last_blocks(int purpose, real rate, int n, int c, int hw)
{
    return dropout_last_blocks(purpose, rate, n, c, hw);
}
template <class Y, class D>
DEVICE void dropout_dx_last(Y *dx, const D *dy, const Rt *r, int purpose, int first, real rate,
                            int n, int c, int hw)
{
    dropout_last(dx, dy, r, purpose, first, rate, n, c, hw);
}

#endif
