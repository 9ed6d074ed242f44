/* bf16_vec.h -- the registers in which products in bf16 are computed.
 *
 * bvec is a register of the processor: BV floats.  A vec can be wider (RT_BF16 in vec.h); there the
 * compiler divides each operation.
 */
#ifndef CPU_BF16_VEC_H
#define CPU_BF16_VEC_H
#include "cpu/bf16.h"

#ifndef RT_DOUBLE
/* -------------------------------------------------------------------------- registers of products
 * bvec: BV floats.  b_even, b_odd: the even and odd numbers of BV adjacent pairs.
 * BFactor: the type of a row's factors in the inner loop.  b_even_of, b_odd_of: one number of the
 * pair at p, in all lanes; b_single: a number that has no pair. */
#if defined(RT_AVX512)
enum { BV = 16, BF16_CHAINS = 8 }; /* chains: of even, and of odd factors */
typedef float bvec __attribute__((vector_size(64)));
typedef float bvec_memory __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t bvec_bits __attribute__((vector_size(64)));
typedef bf16 BFactor;
typedef bf16 Bf16Line __attribute__((vector_size(64), may_alias));
typedef bf16 Bf16LineMemory __attribute__((vector_size(64), aligned(2), may_alias));

RT_LEAF bvec b_fma(bvec a, bvec b, bvec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
RT_LEAF bvec b_even_of(const bf16 *p)
{
    bvec x;
    __asm__ volatile("vpslld $16, %1%{1to16%}, %0"
                     : "=v"(x)
                     : "m"(*(const uint32_t *)(const void *)p));
    return x;
}
RT_LEAF bvec b_odd_of(const bf16 *p, bvec_bits odd)
{
    bvec x;
    __asm__ volatile("vpandd %1%{1to16%}, %2, %0"
                     : "=v"(x)
                     : "m"(*(const uint32_t *)(const void *)p), "v"(odd));
    return x;
}
RT_LEAF bvec b_single(const bf16 *p)
{
    return bf16_wide(*p) - (bvec){0};
}
#elif defined(__AVX2__) && defined(__FMA__)
enum { BV = 8, BF16_PART = 3, BF16_CHAINS = 6 };
typedef float bvec __attribute__((vector_size(32)));
typedef float bvec_memory __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t bvec_bits __attribute__((vector_size(32)));

RT_LEAF bvec b_fma(bvec a, bvec b, bvec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
#else
#if defined(__aarch64__) && defined(__ARM_NEON)
enum { BV = 4, BF16_PART = 3, BF16_CHAINS = 12 };
#else
enum { BV = 4, BF16_PART = 1, BF16_CHAINS = 4 };
#endif
typedef float bvec __attribute__((vector_size(16)));
typedef float bvec_memory __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t bvec_bits __attribute__((vector_size(16)));

RT_LEAF bvec b_fma(bvec a, bvec b, bvec c)
{
#if defined(__aarch64__) && defined(__ARM_NEON)
    return (bvec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    typedef double Wide __attribute__((vector_size(32)));
    return __builtin_convertvector(__builtin_convertvector(a, Wide) *
                                           __builtin_convertvector(b, Wide) +
                                       __builtin_convertvector(c, Wide),
                                   bvec);
#endif
}
#endif

#ifndef RT_AVX512
typedef float BFactor;

RT_LEAF bvec b_single(const float *p)
{
#ifdef __AVX2__
    bvec x;
    __asm__ volatile("vbroadcastss %1, %0" : "=x"(x) : "m"(*p));
    return x;
#else
    return *p - (bvec){0};
#endif
}
RT_LEAF bvec b_even_of(const float *p)
{
    return b_single(p);
}
RT_LEAF bvec b_odd_of(const float *p, bvec_bits odd)
{
    (void)odd;
    return b_single(p + 1);
}
#endif

/* Pairs; the compiler may not fold the load into the shift or the mask. */
RT_LEAF bvec_bits b_load_pairs(const bf16 *p)
{
#if defined(RT_AVX512) || defined(__AVX2__)
    bvec_bits x;
    __asm__ volatile("vmovups %1, %0" : "=v"(x) : "m"(*(const bvec_memory *)p));
    return x;
#else
    return (bvec_bits) * (const bvec_memory *)p;
#endif
}
RT_LEAF bvec b_load_odd(const bf16 *p, bvec_bits odd)
{
#if defined(RT_AVX512) || !defined(__AVX2__)
    return (bvec)(b_load_pairs(p) & odd);
#else
    bvec x;
    __asm__ volatile("vpand %1, %2, %0" : "=x"(x) : "m"(*(const bvec_memory *)p), "x"(odd));
    return x;
#endif
}
RT_LEAF bvec b_even(bvec_bits x)
{
    return (bvec)(x << 16);
}
RT_LEAF bvec b_odd(bvec_bits x, bvec_bits odd)
{
    return (bvec)(x & odd);
}

/* BV numbers, and the first k of them, as floats without their rounding: the bits of each in the
 * lower half of a lane. */
#if defined(RT_AVX512)
RT_LEAF bvec_bits b_load_low(const bf16 *p)
{
    bvec_bits x;
    __asm__("vpmovzxwd %1, %0" : "=v"(x) : "m"(*(const vbf16_memory *)p));
    return x;
}
RT_LEAF bvec_bits b_load_low_n(const bf16 *p, int k)
{
    bvec_bits x;
    __asm__("vpmovzxwd %1, %0%{%2%}%{z%}"
            : "=v"(x)
            : "m"(*(const vbf16_memory *)p), "Yk"((uint16_t)((1u << k) - 1)));
    return x;
}
RT_LEAF bvec b_load_n(const float *p, int k)
{
    return _mm512_mask_loadu_ps((bvec){0}, (uint16_t)((1u << k) - 1), p);
}
#else
RT_LEAF bvec_bits b_load_low_n(const bf16 *p, int k)
{
    typedef bf16 Half __attribute__((vector_size(2 * BV)));
    Half x = {0};
    if (k == BV)
        memcpy(&x, p, sizeof x);
    else
        memcpy(&x, p, sizeof(bf16) * (size_t)k);
#if defined(__AVX2__)
    bvec_bits y;
    __asm__("vpmovzxwd %1, %0" : "=x"(y) : "x"(x));
    return y;
#else
    return __builtin_convertvector(x, bvec_bits);
#endif
}
RT_LEAF bvec_bits b_load_low(const bf16 *p)
{
#if defined(__AVX2__)
    typedef bf16 Half __attribute__((vector_size(2 * BV), aligned(2), may_alias));
    bvec_bits x;
    __asm__("vpmovzxwd %1, %0" : "=x"(x) : "m"(*(const Half *)p));
    return x;
#else
    return b_load_low_n(p, BV);
#endif
}
RT_LEAF bvec b_load_n(const float *p, int k)
{
    if (k == BV)
        return *(const bvec_memory *)p;
    bvec x = {0};
    memcpy(&x, p, sizeof(float) * (size_t)k);
    return x;
}
#endif

/* bf16_narrow, in the upper halves of the lanes. */
RT_LEAF bvec_bits b_round(bvec x)
{
    typedef int32_t Ints __attribute__((vector_size(4 * BV)));
    const bvec_bits bits = (bvec_bits)x, size = bits & 0x7fffffff,
                    rounded = bits + 0x7fff + (bits >> 16 & 1);
    const bvec_bits nan = (bvec_bits)((Ints)size > 0x7f800000),
                    flushed = (bvec_bits)((Ints)size < 0x800000);
    return (nan & (bits | 0x400000)) | (flushed & (bits & 0x80000000)) |
           (~(nan | flushed) & rounded);
}

/* Transposes BV x BV lanes, as v_transpose. */
RT_LEAF void b_transpose(bvec *t)
{
#if defined(RT_AVX512)
#define B_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define B_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__) && defined(__FMA__)
#define B_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define B_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define B_LOW  0, 4, 1, 5
#define B_HIGH 2, 6, 3, 7
#endif
    RT_UNROLL
    for (int stage = 1; stage < BV; stage *= 2) {
        bvec u[BV];
        RT_UNROLL
        for (int i = 0; i < BV / 2; i++) {
            u[2 * i] = __builtin_shufflevector(t[i], t[i + BV / 2], B_LOW);
            u[2 * i + 1] = __builtin_shufflevector(t[i], t[i + BV / 2], B_HIGH);
        }
        RT_UNROLL
        for (int i = 0; i < BV; i++)
            t[i] = u[i];
    }
}
#endif

#endif
