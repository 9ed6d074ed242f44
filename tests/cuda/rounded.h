/* rounded.h -- factors as tensor cores round them, to nearest even: tf32 has 10 bits after the
 * point, bf16 has 7; and bf16 and f16 as they are stored. */
#ifndef ROUNDED_H
#define ROUNDED_H
#include <cmath>
#include <cstdint>
#include <cstdlib>
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
    static const bool exact = getenv("FAKE_EXACT") != NULL; /* to test everything but the rounding of a program in tf32 */
    return exact ? x : rounded(x, 13);
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

/* f16 by its definition: m / 1024 times 2^e, 1024 <= m < 2048, -14 <= e <= 15; m < 1024 for e = -14; larger numbers are infinite. */
enum { F16_LEAST = -14, F16_MOST = 15 };
inline int f16_exponent(double x)
{
    int e;
    frexp(x, &e);
    return e - 1 > F16_LEAST ? e - 1 : F16_LEAST;
}
inline float f16(float x)
{
    if (!std::isfinite(x) || x == 0)
        return x;
    const double unit = ldexp(1, f16_exponent(x) - 10), y = nearbyint(x / unit) * unit;
    return (float)(fabs(y) < ldexp(1, F16_MOST + 1) ? y : copysign(INFINITY, x));
}
inline float f16_at(const void *a, int64_t i)
{
    const int bits = ((const uint16_t *)a)[i], e = bits >> 10 & 31, m = bits & 1023;
    const double size = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return (float)(bits & 0x8000 ? -size : size);
}
inline void f16_put(void *a, int64_t i, float x)
{
    const float y = f16(x);
    const int sign = std::signbit(y) ? 0x8000 : 0;
    int bits = std::isnan(y) ? 0x7e00 : 0x7c00;
    if (std::isfinite(y)) {
        const int e = f16_exponent(y), m = (int)ldexp(fabs(y), 10 - e);
        bits = m < 1024 ? m : (e + 15) << 10 | (m - 1024);
    }
    ((uint16_t *)a)[i] = (uint16_t)(sign | bits);
}

#endif
