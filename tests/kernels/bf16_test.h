/* bf16_test.h -- what the tests of products in bf16 share: factors, weights, and the comparison
 * with a definition. */
#ifndef BF16_TEST_H
#define BF16_TEST_H
#include "conv_test.h"

#include "cpu/bf16.h"

/* The mode of a program's threads. */
static inline void flush_denormals(void)
{
#ifdef __SSE__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1u << 24));
#endif
}

/* Kinds of factors: usual numbers, of widely different sizes, with NaN and infinities here and
 * there, and so small that products and sums become denormal. */
typedef enum Kind { USUAL, SPREAD, SPECIAL, TINY, KINDS } Kind;
static OPTIMISED float factor(Kind kind, int seed, int64_t i)
{
    uint32_t bits[4];
    rt_philox(bits, 0xfac, (uint32_t)i, (uint32_t)seed, 0, 0);
    const float x = (float)((bits[0] + 0.5) / 2147483648.0 - 1);
    const int shift = (int)(bits[1] % 24);
    switch (kind) {
    case SPREAD:
        return ldexpf(x, shift - 12);
    case SPECIAL:
        return bits[1] % 257 == 0 ? (bits[2] % 3 ? copysignf(INFINITY, x) : NAN) : x;
    case TINY:
        return ldexpf(x, -54 - shift);
    default:
        return bits[1] % 5 == 0 ? 0 : x;
    }
}
static OPTIMISED bf16 *factors(Kind kind, int64_t count, int seed)
{
    bf16 *p = buffer_bytes(count * (int64_t)sizeof *p);
    for (int64_t i = 0; i < count; i++)
        p[i] = bf16_narrow(factor(kind, seed, i));
    return p;
}
static OPTIMISED real *weights(Kind kind, int64_t count, int seed)
{
    real *p = buffer(count);
    for (int64_t i = 0; i < count; i++)
        p[i] = factor(kind, seed, i);
    return p;
}

/* Equal bits; any NaN equals any NaN. */
static OPTIMISED void check_bits(const real *got, const real *want, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        const bool same =
            memcmp(got + i, want + i, sizeof *got) == 0 || (got[i] != got[i] && want[i] != want[i]);
        REQUIRE(same, "%s: number %d is %.9g, not %.9g", what, (int)i, (double)got[i],
                (double)want[i]);
    }
    check_guard(got, count * (int64_t)sizeof *got, what);
}
static OPTIMISED void check_narrow(const bf16 *got, const real *want, int64_t count,
                                   const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        const bf16 w = bf16_narrow(want[i]);
        const bool same = got[i] == w || ((got[i] & 0x7fff) > 0x7f80 && want[i] != want[i]);
        REQUIRE(same, "%s: number %d is %04x, not %04x (%.9g)", what, (int)i, got[i], w,
                (double)want[i]);
    }
    check_guard(got, count * (int64_t)sizeof *got, what);
}

#endif
