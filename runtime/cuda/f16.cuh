/* f16.cuh -- numbers stored in two bytes: IEEE 754's half, with 11 bits from 2^-14 to 65504, fewer
 * bits down to 2^-24, and infinity above (--dtype f16).
 *
 * Like Bf16, this type is only storage: a read converts to float exactly, and a write rounds to
 * nearest even.  The GPU has an instruction for each direction.  On the processor, where the tests
 * run, the conversion uses integers, on which no mode of the float unit has an effect.
 */
#ifndef CUDA_F16_CUH
#define CUDA_F16_CUH
#include <string.h>

#ifdef __CUDA_ARCH__
DEVICE float f16_read(uint16_t bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
DEVICE uint16_t f16_round(float x)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#else
DEVICE float f16_read(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31,
                   m = bits & 1023;
    if (exponent == 0)
        return (sign ? -0x1p-24f : 0x1p-24f) * (float)m;
    const uint32_t wide = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | m << 13;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}
/* Below 2^-14 the last bit is worth 2^-24, as in a float from 1/2 on. */
DEVICE uint16_t f16_round(float x)
{
    uint32_t wide;
    memcpy(&wide, &x, sizeof wide);
    const uint32_t sign = wide >> 16 & 0x8000u, size = wide & 0x7fffffffu;
    uint32_t bits;
    if (size > 0x7f800000u)
        bits = 0x7fffu;
    else if (size >= 0x477ff000u) /* 65520, the middle between 65504 and the next number */
        bits = 0x7c00u;
    else if (size >= 0x38800000u) /* 2^-14 */
        bits = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
    else {
        const float shifted = (x < 0 ? -x : x) + 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        bits -= 0x3f000000u;
    }
    return (uint16_t)(sign | bits);
}
#endif

struct F16 {
    uint16_t bits;

    __device__ operator float() const
    {
        return f16_read(bits);
    }
    __device__ void operator=(float x)
    {
        bits = f16_round(x);
    }
};

#endif
