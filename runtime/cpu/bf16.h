/* bf16.h -- numbers of two bytes: conversion, and the order in which a product of such numbers is
 * added.
 *
 * A bf16 is the upper half of a float: sign, 8 bits of exponent, 7 bits of fraction.
 *
 * Conversion from a float rounds to nearest even.  A NaN stays a NaN and becomes quiet.  A denormal
 * becomes a zero of its sign.  This is what VCVTNEPS2BF16 computes.
 *
 * The sum of a product, s = sum over k of a[k] b[k], is a float.  Its factors are in blocks of 32:
 *
 *     s = 0
 *     for each block:  even = odd = 0
 *                      for k = 0, 2, ... 30:  even = fma(a[k], b[k], even)
 *                                             odd  = fma(a[k + 1], b[k + 1], odd)
 *                      s = s + (even + odd)
 *
 * This is what TDPBF16PS computes, so all processors get the same bits.  A last block that is not
 * full behaves as if both factors of its missing elements were +0.  These elements change no number
 * but one: a chain that is -0 becomes +0.  (It is -0 only if its sum was so small that it was
 * flushed.)  So a NaN or an infinity reaches only the sums of which it is a factor.
 *
 * Denormals are zeros, in factors and in results.  Therefore threads must have set FTZ and DAZ, as
 * those of a program have.  All forms give a NaN for the same results; sign and payload of the NaN
 * can differ.
 *
 * A product of two bf16 has 16 bits, so it is exact in a double, and rounding its sum with c to a
 * double and then to a float rounds once: either the sum fits the 53 bits of a double, or it is so
 * far from the middle of two floats that the first rounding does not matter.  So bf16_fma needs no
 * instruction for FMA.
 */
#ifndef CPU_BF16_H
#define CPU_BF16_H
#include "cpu/vec.h"

typedef uint16_t bf16;

enum {
    BF16_LANES = 16, /* outputs of a packed panel */
    BF16_BLOCK = 32, /* factors of a block */
};

/* ------------------------------------------------------------------------------ a single number */

RT_INLINE float bf16_wide(bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

RT_INLINE bf16 bf16_narrow(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (bf16)(bits >> 16 | 0x40);
    if ((bits & 0x7f800000) == 0)
        return (bf16)(bits >> 16 & 0x8000);
    return (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* a b + c, rounded once, for a and b that are bf16 numbers. */
RT_INLINE float bf16_fma(float a, float b, float c)
{
    return (float)((double)a * b + c);
}

/* The sum of a product by its definition: the next factors are a and b. */
typedef struct Bf16Sum {
    float sum, even, odd;
    int count; /* factors of the current block */
} Bf16Sum;

/* Ends a block.  A chain that has missing elements adds +0. */
RT_INLINE void bf16_sum_end(Bf16Sum *s)
{
    if (s->count == 0)
        return;
    if (s->count < BF16_BLOCK) {
        s->odd += 0.0f;
        if (s->count < BF16_BLOCK - 1)
            s->even += 0.0f;
    }
    s->sum += s->even + s->odd;
    s->even = s->odd = 0, s->count = 0;
}
RT_INLINE void bf16_sum_add(Bf16Sum *s, float a, float b)
{
    if (s->count % 2 == 0)
        s->even = bf16_fma(a, b, s->even);
    else
        s->odd = bf16_fma(a, b, s->odd);
    if (++s->count == BF16_BLOCK)
        bf16_sum_end(s);
}

#ifndef RT_DOUBLE
/* ---------------------------------------------------------------------------------- V numbers
 * Loads give floats; stores round.  _n: the first k numbers, 0 <= k <= V; others are 0, and their
 * memory is not touched.  _lanes: V numbers or fewer. */
#ifdef RT_SCALAR
RT_INLINE vec v_load_bf16(const bf16 *p)
{
    return bf16_wide(*p);
}
RT_INLINE vec v_load_bf16_n(const bf16 *p, int k)
{
    return k > 0 ? bf16_wide(*p) : 0;
}
RT_INLINE void v_store_bf16(bf16 *p, vec x)
{
    *p = bf16_narrow(x);
}
RT_INLINE void v_store_bf16_n(bf16 *p, vec x, int k)
{
    if (k > 0)
        *p = bf16_narrow(x);
}
#else
typedef uint32_t vbits __attribute__((vector_size(RT_VEC_BYTES)));
typedef bf16 vbf16 __attribute__((vector_size(RT_VEC_BYTES / 2)));
typedef bf16 vbf16_memory
    __attribute__((vector_size(RT_VEC_BYTES / 2), aligned(sizeof(bf16)), may_alias));

#ifndef RT_AVX512
/* bf16_narrow, in the upper halves of the lanes. */
RT_INLINE vbits v_round_bf16(vec x)
{
    const vbits bits = (vbits)x, size = bits & 0x7fffffff,
                rounded = bits + 0x7fff + (bits >> 16 & 1);
    const vbits nan = (vbits)((vint)size > 0x7f800000), flushed = (vbits)((vint)size < 0x800000);
    return (nan & (bits | 0x400000)) | (flushed & (bits & 0x80000000)) |
           (~(nan | flushed) & rounded);
}
#endif

#ifdef RT_AVX512
RT_INLINE vec v_load_bf16(const bf16 *p)
{
    vbits x;
    __asm__("vpmovzxwd %1, %0" : "=v"(x) : "m"(*(const vbf16_memory *)p));
    return (vec)(x << 16);
}
RT_INLINE vec v_load_bf16_n(const bf16 *p, int k)
{
    vbits x;
    __asm__("vpmovzxwd %1, %0%{%2%}%{z%}"
            : "=v"(x)
            : "m"(*(const vbf16_memory *)p), "Yk"(V_MASK(k)));
    return (vec)(x << 16);
}
#ifdef __AVX512BF16__
RT_INLINE vbf16 v_narrow_bf16(vec x)
{
    vbf16 y;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(x));
    return y;
}
#else
RT_INLINE vbf16 v_narrow_bf16(vec x)
{
    const vbits bits = (vbits)x, exponent = 0x7f800000 - (vbits){0}, quiet = 0x400000 - (vbits){0},
                sign = 0x80000000 - (vbits){0};
    vbits rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint16_t nan, flushed;
    vbf16 y;
    __asm__("vcmpunordps %1, %1, %0" : "=Yk"(nan) : "v"(x));
    __asm__("vptestnmd %2, %1, %0" : "=Yk"(flushed) : "v"(bits), "v"(exponent));
    __asm__("vpord %2, %1, %0%{%3%}" : "+v"(rounded) : "v"(bits), "v"(quiet), "Yk"(nan));
    __asm__("vpandd %2, %1, %0%{%3%}" : "+v"(rounded) : "v"(bits), "v"(sign), "Yk"(flushed));
    __asm__("vpmovdw %1, %0" : "=v"(y) : "v"(rounded >> 16));
    return y;
}
#endif
RT_INLINE void v_store_bf16(bf16 *p, vec x)
{
    *(vbf16_memory *)p = v_narrow_bf16(x);
}
RT_INLINE void v_store_bf16_n(bf16 *p, vec x, int k)
{
    __asm__("vmovdqu16 %1, %0%{%2%}"
            : "+m"(*(vbf16_memory *)p)
            : "v"(v_narrow_bf16(x)), "Yk"(V_MASK(k)));
}
#elif defined(RT_WIDE) && defined(__AVX2__)
/* Two registers make a vec.  gcc 12 compares vectors of two registers one number at a time. */
typedef uint32_t bits_half __attribute__((vector_size(32)));
typedef int32_t ints_half __attribute__((vector_size(32)));
RT_INLINE bits_half v_round_half(bits_half bits)
{
    const bits_half size = bits & 0x7fffffff, rounded = bits + 0x7fff + (bits >> 16 & 1);
    const bits_half nan = (bits_half)((ints_half)size > 0x7f800000),
                    flushed = (bits_half)((ints_half)size < 0x800000);
    return (nan & (bits | 0x400000)) | (flushed & (bits & 0x80000000)) |
           (~(nan | flushed) & rounded);
}
RT_INLINE vbf16 v_narrow_bf16(vec x)
{
    union {
        vec whole;
        bits_half half[2];
    } u = {x};
    const __m256i pairs =
        _mm256_packus_epi32(v_round_half(u.half[0]) >> 16, v_round_half(u.half[1]) >> 16);
    return (vbf16)_mm256_permute4x64_epi64(pairs, 0xd8); /* lanes were packed apart */
}
RT_INLINE vec v_wide_bf16(vbf16 x)
{
    typedef bf16 Quarter __attribute__((vector_size(16)));
    union {
        vbf16 whole;
        Quarter half[2];
    } u = {x};
    union {
        bits_half half[2];
        vec whole;
    } y;
    __asm__("vpmovzxwd %1, %0" : "=x"(y.half[0]) : "xm"(u.half[0]));
    __asm__("vpmovzxwd %1, %0" : "=x"(y.half[1]) : "xm"(u.half[1]));
    y.half[0] <<= 16, y.half[1] <<= 16;
    return y.whole;
}
#else
RT_INLINE vbf16 v_narrow_bf16(vec x)
{
    const vbits y = v_round_bf16(x) >> 16;
#ifdef RT_AVX2
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packus_epi32(y, y), 0x08);
    vbf16 low;
    memcpy(&low, &pairs, sizeof low);
    return low;
#else
    return __builtin_convertvector(y, vbf16);
#endif
}
RT_INLINE vec v_wide_bf16(vbf16 x)
{
#ifdef RT_AVX2
    vbits y;
    __asm__("vpmovzxwd %1, %0" : "=x"(y) : "x"(x));
    return (vec)(y << 16);
#else
    return (vec)(__builtin_convertvector(x, vbits) << 16);
#endif
}
#endif
#ifndef RT_AVX512
RT_INLINE vec v_load_bf16(const bf16 *p)
{
    return v_wide_bf16(*(const vbf16_memory *)p);
}
RT_INLINE vec v_load_bf16_n(const bf16 *p, int k)
{
    vbf16 x = {0};
    memcpy(&x, p, sizeof(bf16) * (size_t)k);
    return v_wide_bf16(x);
}
RT_INLINE void v_store_bf16(bf16 *p, vec x)
{
    *(vbf16_memory *)p = v_narrow_bf16(x);
}
RT_INLINE void v_store_bf16_n(bf16 *p, vec x, int k)
{
    const vbf16 y = v_narrow_bf16(x);
    memcpy(p, &y, sizeof(bf16) * (size_t)k);
}
#endif
#endif

RT_INLINE vec v_load_bf16_lanes(const bf16 *p, int lanes)
{
    return lanes == V ? v_load_bf16(p) : v_load_bf16_n(p, lanes);
}
RT_INLINE void v_store_bf16_lanes(bf16 *p, vec x, int lanes)
{
    if (lanes == V)
        v_store_bf16(p, x);
    else
        v_store_bf16_n(p, x, lanes);
}

/* to = from, narrow and wide. */
RT_INLINE void bf16_from_f32(bf16 *restrict to, const real *restrict from, int64_t count)
{
    RT_MAP(count, v_store_bf16_lanes(to + AT, LOAD(from), rt_lanes));
}
RT_INLINE void bf16_to_f32(real *restrict to, const bf16 *restrict from, int64_t count)
{
    RT_MAP(count, STORE(to, v_load_bf16_lanes(from + AT, rt_lanes)));
}
#endif

#endif
