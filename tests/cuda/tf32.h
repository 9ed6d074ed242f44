/* tf32.h -- factors as tensor cores take them: 10 bits behind the point, halves to even. */
#ifndef TF32_H
#define TF32_H
#include <cstdint>
#include <cstring>

inline float tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}
inline double tf32(double x)
{
    return x;
}

#endif
