/* x86.h -- the vector intrinsics that kernels use, one line for each.
 *
 * <immintrin.h> declares about ten thousand intrinsics. gcc 12 needs 0.18 s to read this header for
 * x86-64-v4, and 0.27 s for v3, in each translation unit: more than for the compilation of most
 * kernels.  So this file defines the few that are used, by builtins of gcc 12; other compilers get
 * the header.  The names are Intel's; a kernel that needs another intrinsic adds its line (the body
 * is in gcc's own headers).
 */
#ifndef CPU_X86_H
#define CPU_X86_H

#if !defined(__GNUC__) || __GNUC__ != 12 || defined(__clang__)
#include <immintrin.h>
#elif !defined(_IMMINTRIN_H_INCLUDED)
/* clang-format off */
#define RT_VECTOR(type, bytes) type __attribute__((vector_size(bytes), may_alias))
typedef RT_VECTOR(float, 16) __m128;
typedef RT_VECTOR(double, 16) __m128d;
typedef RT_VECTOR(long long, 16) __m128i;
typedef RT_VECTOR(float, 32) __m256;
typedef RT_VECTOR(double, 32) __m256d;
typedef RT_VECTOR(long long, 32) __m256i;
typedef int RtInt8 __attribute__((vector_size(32)));
typedef char RtChar16 __attribute__((vector_size(16)));

#define _mm_movehl_ps(a, b)              ((__m128)__builtin_ia32_movhlps((__m128)(a), (__m128)(b)))

#define _CMP_EQ_OQ 0x00
#define _CMP_NEQ_UQ 0x04
#define _CMP_GE_OQ 0x1d
#define _CMP_GT_OQ 0x1e
#define _mm256_fmadd_ps(a, b, c)                                                                   \
    ((__m256)__builtin_ia32_vfmaddps256((__m256)(a), (__m256)(b), (__m256)(c)))
#define _mm256_fmadd_pd(a, b, c)                                                                   \
    ((__m256d)__builtin_ia32_vfmaddpd256((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define _mm256_max_ps(a, b)              ((__m256)__builtin_ia32_maxps256((__m256)(a), (__m256)(b)))
#define _mm256_max_pd(a, b)                                                                        \
    ((__m256d)__builtin_ia32_maxpd256((__m256d)(a), (__m256d)(b)))
#define _mm256_min_ps(a, b)              ((__m256)__builtin_ia32_minps256((__m256)(a), (__m256)(b)))
#define _mm256_min_pd(a, b)                                                                        \
    ((__m256d)__builtin_ia32_minpd256((__m256d)(a), (__m256d)(b)))
#define _mm256_sqrt_ps(a)                ((__m256)__builtin_ia32_sqrtps256((__m256)(a)))
#define _mm256_sqrt_pd(a)                ((__m256d)__builtin_ia32_sqrtpd256((__m256d)(a)))
#define _mm256_cmp_ps(a, b, how)                                                                   \
    ((__m256)__builtin_ia32_cmpps256((__m256)(a), (__m256)(b), how))
#define _mm256_cmp_pd(a, b, how)                                                                   \
    ((__m256d)__builtin_ia32_cmppd256((__m256d)(a), (__m256d)(b), how))
#define _mm256_movemask_ps(a)            __builtin_ia32_movmskps256((__m256)(a))
#define _mm256_movemask_pd(a)            __builtin_ia32_movmskpd256((__m256d)(a))
#define _mm256_blendv_ps(a, b, m)                                                                  \
    ((__m256)__builtin_ia32_blendvps256((__m256)(a), (__m256)(b), (__m256)(m)))
#define _mm256_blendv_pd(a, b, m)                                                                  \
    ((__m256d)__builtin_ia32_blendvpd256((__m256d)(a), (__m256d)(b), (__m256d)(m)))
#define _mm256_maskload_ps(p, m)                                                                   \
    ((__m256)__builtin_ia32_maskloadps256((const __m256 *)(p), (RtInt8)(m)))
#define _mm256_maskload_pd(p, m)                                                                   \
    ((__m256d)__builtin_ia32_maskloadpd256((const __m256d *)(p), (__m256i)(m)))
#define _mm256_maskstore_ps(p, m, a)                                                               \
    __builtin_ia32_maskstoreps256((__m256 *)(p), (RtInt8)(m), (__m256)(a))
#define _mm256_maskstore_pd(p, m, a)                                                               \
    __builtin_ia32_maskstorepd256((__m256d *)(p), (__m256i)(m), (__m256d)(a))
#define _mm256_castps256_ps128(a)        ((__m128)__builtin_ia32_vextractf128_ps256((__m256)(a), 0))
#define _mm256_castpd256_pd128(a)                                                                  \
    ((__m128d)__builtin_ia32_vextractf128_pd256((__m256d)(a), 0))
#define _mm256_extractf128_ps(a, half)                                                             \
    ((__m128)__builtin_ia32_vextractf128_ps256((__m256)(a), half))
#define _mm256_extractf128_pd(a, half)                                                             \
    ((__m128d)__builtin_ia32_vextractf128_pd256((__m256d)(a), half))
#define _mm256_set1_epi64x(x)            ((long long)(x) - (__m256i){0})
#define _mm256_setr_epi64x(a, b, c, d)   ((__m256i){a, b, c, d})
#define _mm256_set1_epi32(x)             ((__m256i)((int)(x) - (RtInt8){0}))
#define _mm256_setr_epi32(...)           ((__m256i)(RtInt8){__VA_ARGS__})
#define _mm256_cmpgt_epi32(a, b)         ((__m256i)((RtInt8)(a) > (RtInt8)(b)))
#define _mm256_cmpgt_epi64(a, b)         ((__m256i)((__m256i)(a) > (__m256i)(b)))
#define _mm256_and_si256(a, b)           ((__m256i)(a) & (__m256i)(b))
#define _mm256_or_si256(a, b)            ((__m256i)(a) | (__m256i)(b))
#define _mm256_xor_si256(a, b)           ((__m256i)(a) ^ (__m256i)(b))
#define _mm256_add_epi64(a, b)           ((__m256i)(a) + (__m256i)(b))
#define _mm256_mul_epu32(a, b)                                                                     \
    ((__m256i)__builtin_ia32_pmuludq256((RtInt8)(a), (RtInt8)(b)))
#define _mm256_srli_epi64(a, n)          ((__m256i)__builtin_ia32_psrlqi256((__m256i)(a), n))
#define _mm256_slli_epi64(a, n)          ((__m256i)__builtin_ia32_psllqi256((__m256i)(a), n))
#define _mm256_packus_epi32(a, b)                                                                  \
    ((__m256i)__builtin_ia32_packusdw256((RtInt8)(a), (RtInt8)(b)))
#define _mm256_permute4x64_epi64(a, order)                                                         \
    ((__m256i)__builtin_ia32_permdi256((__m256i)(a), order))
#define _mm256_unpacklo_epi64(a, b)                                                                \
    ((__m256i)__builtin_ia32_punpcklqdq256((__m256i)(a), (__m256i)(b)))
#define _mm256_unpackhi_epi64(a, b)                                                                \
    ((__m256i)__builtin_ia32_punpckhqdq256((__m256i)(a), (__m256i)(b)))

#ifdef __AVX512F__
typedef RT_VECTOR(float, 64) __m512;
typedef RT_VECTOR(double, 64) __m512d;
typedef RT_VECTOR(long long, 64) __m512i;
typedef int RtInt16 __attribute__((vector_size(64)));
typedef unsigned char __mmask8;
typedef unsigned short __mmask16;
#define RT_ROUND 4                       /* rounding as MXCSR says */
#define _mm512_fmadd_ps(a, b, c)                                                                   \
    ((__m512)__builtin_ia32_vfmaddps512_mask((__m512)(a), (__m512)(b), (__m512)(c),                \
        (__mmask16)-1, RT_ROUND))
#define _mm512_fmadd_pd(a, b, c)                                                                   \
    ((__m512d)__builtin_ia32_vfmaddpd512_mask((__m512d)(a), (__m512d)(b), (__m512d)(c),            \
        (__mmask8)-1, RT_ROUND))
#define _mm512_max_ps(a, b)                                                                        \
    ((__m512)__builtin_ia32_maxps512_mask((__m512)(a), (__m512)(b), (__m512){0}, (__mmask16)-1,    \
        RT_ROUND))
#define _mm512_max_pd(a, b)                                                                        \
    ((__m512d)__builtin_ia32_maxpd512_mask((__m512d)(a), (__m512d)(b), (__m512d){0},               \
        (__mmask8)-1, RT_ROUND))
#define _mm512_min_ps(a, b)                                                                        \
    ((__m512)__builtin_ia32_minps512_mask((__m512)(a), (__m512)(b), (__m512){0}, (__mmask16)-1,    \
        RT_ROUND))
#define _mm512_min_pd(a, b)                                                                        \
    ((__m512d)__builtin_ia32_minpd512_mask((__m512d)(a), (__m512d)(b), (__m512d){0},               \
        (__mmask8)-1, RT_ROUND))
#define _mm512_sqrt_ps(a)                                                                          \
    ((__m512)__builtin_ia32_sqrtps512_mask((__m512)(a), (__m512){0}, (__mmask16)-1, RT_ROUND))
#define _mm512_sqrt_pd(a)                                                                          \
    ((__m512d)__builtin_ia32_sqrtpd512_mask((__m512d)(a), (__m512d){0}, (__mmask8)-1, RT_ROUND))
#define _mm512_cmp_ps_mask(a, b, how)                                                              \
    ((__mmask16)__builtin_ia32_cmpps512_mask((__m512)(a), (__m512)(b), how, (__mmask16)-1,         \
        RT_ROUND))
#define _mm512_cmp_pd_mask(a, b, how)                                                              \
    ((__mmask8)__builtin_ia32_cmppd512_mask((__m512d)(a), (__m512d)(b), how, (__mmask8)-1,         \
        RT_ROUND))
#define _mm512_maskz_compress_ps(m, a)                                                             \
    ((__m512)__builtin_ia32_compresssf512_mask((__m512)(a), (__m512){0}, (__mmask16)(m)))
#define _mm512_maskz_compress_pd(m, a)                                                             \
    ((__m512d)__builtin_ia32_compressdf512_mask((__m512d)(a), (__m512d){0}, (__mmask8)(m)))
#define _mm512_mask_blend_ps(m, a, b)                                                              \
    ((__m512)__builtin_ia32_blendmps_512_mask((__m512)(a), (__m512)(b), m))
#define _mm512_mask_blend_pd(m, a, b)                                                              \
    ((__m512d)__builtin_ia32_blendmpd_512_mask((__m512d)(a), (__m512d)(b), m))
#define _mm512_mask_loadu_ps(a, m, p)                                                              \
    ((__m512)__builtin_ia32_loadups512_mask((const float *)(p), (__m512)(a), m))
#define _mm512_mask_loadu_pd(a, m, p)                                                              \
    ((__m512d)__builtin_ia32_loadupd512_mask((const double *)(p), (__m512d)(a), m))
#define _mm512_mask_storeu_ps(p, m, a)                                                             \
    __builtin_ia32_storeups512_mask((float *)(p), (__m512)(a), m)
#define _mm512_mask_storeu_pd(p, m, a)                                                             \
    __builtin_ia32_storeupd512_mask((double *)(p), (__m512d)(a), m)
#define _mm256_maskz_loadu_ps(m, p)                                                                \
    ((__m256)__builtin_ia32_loadups256_mask((const float *)(p), (__m256){0}, (__mmask8)(m)))
#define _mm256_maskz_loadu_pd(m, p)                                                                \
    ((__m256d)__builtin_ia32_loadupd256_mask((const double *)(p), (__m256d){0}, (__mmask8)(m)))
#define _mm256_mask_storeu_ps(p, m, a)                                                             \
    __builtin_ia32_storeups256_mask((float *)(p), (__m256)(a), (__mmask8)(m))
#define _mm256_mask_storeu_pd(p, m, a)                                                             \
    __builtin_ia32_storeupd256_mask((double *)(p), (__m256d)(a), (__mmask8)(m))
#define _mm512_extractf64x4_pd(a, half)                                                            \
    ((__m256d)__builtin_ia32_extractf64x4_mask((__m512d)(a), half, (__m256d){0}, (__mmask8)-1))
#define _mm512_extractf32x8_ps(a, half)                                                            \
    ((__m256)__builtin_ia32_extractf32x8_mask((__m512)(a), half, (__m256){0}, (__mmask8)-1))
#define _mm512_castps512_ps256(a)        _mm512_extractf32x8_ps(a, 0)
#define _mm512_castpd512_pd256(a)        _mm512_extractf64x4_pd(a, 0)
#define _mm512_cvtps_epi32(a)                                                                      \
    ((__m512i)__builtin_ia32_cvtps2dq512_mask((__m512)(a), (RtInt16){0}, (__mmask16)-1, RT_ROUND))
#define _mm512_cvtpd_epi64(a)                                                                      \
    ((__m512i)__builtin_ia32_cvtpd2qq512_mask((__m512d)(a), (__m512i){0}, (__mmask8)-1, RT_ROUND))
#define _mm512_cvtepi32_epi8(a)                                                                    \
    ((__m128i)__builtin_ia32_pmovdb512_mask((RtInt16)(a), (RtChar16){0}, (__mmask16)-1))
#define _mm512_cvtepi64_epi8(a)                                                                    \
    ((__m128i)__builtin_ia32_pmovqb512_mask((__m512i)(a), (RtChar16){0}, (__mmask8)-1))
#define _mm_mask_storeu_epi8(p, m, a)                                                              \
    __builtin_ia32_storedquqi128_mask((char *)(p), (RtChar16)(a), m)
#define _mm512_set1_epi64(x)             ((long long)(x) - (__m512i){0})
#define _mm512_setr_epi64(...)           ((__m512i){__VA_ARGS__})
#define _mm512_and_si512(a, b)           ((__m512i)(a) & (__m512i)(b))
#define _mm512_or_si512(a, b)            ((__m512i)(a) | (__m512i)(b))
#define _mm512_xor_si512(a, b)           ((__m512i)(a) ^ (__m512i)(b))
#define _mm512_add_epi64(a, b)           ((__m512i)(a) + (__m512i)(b))
#define _mm512_mul_epu32(a, b)                                                                     \
    ((__m512i)__builtin_ia32_pmuludq512_mask((RtInt16)(a), (RtInt16)(b), (__m512i){0},             \
        (__mmask8)-1))
#define _mm512_srli_epi64(a, n)                                                                    \
    ((__m512i)__builtin_ia32_psrlqi512_mask((__m512i)(a), n, (__m512i){0}, (__mmask8)-1))
#define _mm512_slli_epi64(a, n)                                                                    \
    ((__m512i)__builtin_ia32_psllqi512_mask((__m512i)(a), n, (__m512i){0}, (__mmask8)-1))
#define _mm512_unpacklo_epi64(a, b)                                                                \
    ((__m512i)__builtin_ia32_punpcklqdq512_mask((__m512i)(a), (__m512i)(b), (__m512i){0},          \
        (__mmask8)-1))
#define _mm512_unpackhi_epi64(a, b)                                                                \
    ((__m512i)__builtin_ia32_punpckhqdq512_mask((__m512i)(a), (__m512i)(b), (__m512i){0},          \
        (__mmask8)-1))
#endif
/* clang-format on */
#endif

#endif
