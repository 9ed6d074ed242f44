/* rounded.h -- factors as tensor cores take them: tf32, 10 bits behind the point, bf16, 7; halves to even.  And bf16 as it lies in memory. */
#ifndef ROUNDED_H
#define ROUNDED_H
#include <cstdint>
#include <cstring>

/* x without its lowest `drop` bits. */
inline float rounded(float x, int drop)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) & ~((1u << drop) - 1);
    memcpy(&x, &bits, sizeof x);
    return x;
}
inline float tf32(float x)
{
    return rounded(x, 13);
}
inline float bf16(float x)
{
    return rounded(x, 16);
}

inline float bf16_at(const void *a, int64_t i)
{
    const uint32_t bits = (uint32_t)((const uint16_t *)a)[i] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
inline void bf16_put(void *a, int64_t i, float x)
{
    uint32_t bits;
    x = bf16(x);
    memcpy(&bits, &x, sizeof bits);
    ((uint16_t *)a)[i] = (uint16_t)(bits >> 16);
}

#endif
