/* bf16.cuh -- numbers stored in two bytes: the upper half of an f32, rounded to nearest even
 * (--dtype bf16).
 *
 * Nothing computes in this type: a read converts to float, and a write rounds.  Do not combine a
 * Bf16 and an integer with `?:`, which would convert both to an integer.
 */
#ifndef CUDA_BF16_CUH
#define CUDA_BF16_CUH
#include <string.h>

struct Bf16 {
    uint16_t bits;

    __device__ operator float() const
    {
        const uint32_t wide = (uint32_t)bits << 16;
        float x;
        memcpy(&x, &wide, sizeof x);
        return x;
    }
    __device__ void operator=(float x)
    {
        uint32_t wide;
        memcpy(&wide, &x, sizeof wide);
        const bool nan = (wide & 0x7fffffffu) > 0x7f800000u;
        bits = nan ? 0x7fc0u : (uint16_t)((wide + 0x7fffu + (wide >> 16 & 1)) >> 16);
    }
};

/* Copies numbers to another type. */
SIZE int convert_blocks(int count)
{
    return rt_fills_packs(count) ? pack_blocks(count) : each_blocks(count);
}
template <class Y, class X> DEVICE void convert(Y *y, const X *x, int count)
{
    if (rt_fills_packs(count) && pack_aligned(x) && pack_aligned(y))
        each_pack(
            count, [](unsigned i, auto y, auto x) { y[i] = (float)x[i]; }, y, x);
    else
        FOR_EACH(i, count)
            y[i] = (float)x[i];
}

/* These functions pad rows of c numbers to `lanes` numbers with zeros, `count` numbers in all, and
 * remove the padding. */
SIZE int convert_padded_blocks(int count, int, int)
{
    return each_blocks(count);
}
template <class Y, class X>
DEVICE void convert_padded(Y *y, const X *x, int count, int c, int lanes)
{
    FOR_EACH(i, count) {
        const int k = i % lanes;
        y[i] = k < c ? (float)x[i / lanes * c + k] : 0.0f;
    }
}
template <class Y, class X>
DEVICE void convert_unpadded(Y *y, const X *x, int count, int c, int lanes)
{
    FOR_EACH(i, count)
        y[i] = (float)x[i / c * lanes + i % c];
}

#endif
