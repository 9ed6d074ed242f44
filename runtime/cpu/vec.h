/* vec.h -- one vector type for all processors: `vec`, V reals wide, and its operations.
 *
 * The target's macros of the C compiler select the width: AVX-512 (16 floats), AVX2 + FMA (8), NEON
 * (4), else a plain real (1).  vec is a vector type of the C compiler, so + - * / and [] work on
 * it, for float and for double (-DRT_F64).
 * In a bf16 program (-DRT_BF16), vec has 16 lanes on each processor, so that no sum over lanes
 * depends on the processor.  Without AVX-512, the compiler divides a vec into what the processor
 * has (RT_WIDE).
 * A panel, in which outputs are stored side by side, is two vectors wide: P = 2 V.
 * rt.h includes this file after the definition of `real`.
 */
#ifndef CPU_VEC_H
#define CPU_VEC_H
#include "cpu/library.h"

/* A kernel is many small functions, RT_INLINE, that are inlined into one, RT_FLATTEN.  gcc also
 * optimises each always_inline function with all that it has inlined, before the sizes are known.
 * With ten levels that takes longer than the kernel itself, so only the lowest levels are
 * always_inline (RT_LEAF): operations on vectors, tiles and rows, functions that are passed to
 * others, and what the step calls.  The rest has no attribute, and RT_FLATTEN inlines it.  clang's
 * flatten does not reach the callees of callees.
 * RT_NESTED: for tests and yardsticks, which call RT_INLINE functions from others. */
#define RT_LEAF static inline __attribute__((always_inline, unused))
#if defined(__clang__) || !defined(__OPTIMIZE__) || defined(RT_NESTED)
#define RT_INLINE RT_LEAF
#define RT_FLATTEN
#else
#define RT_INLINE  static inline __attribute__((unused))
#define RT_FLATTEN __attribute__((flatten))
#endif
#ifndef RT_SEPARATE /* tests of kernels add an attribute */
#define RT_SEPARATE RT_FLATTEN __attribute__((noinline, unused))
#endif

/* Full unrolling keeps a tile's accumulators in registers; without it they live in memory, 2.5
 * times slower. */
#define RT_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#pragma clang diagnostic ignored                                                                   \
    "-Wpass-failed" /* sizes that are no literals (in tests) need not be unrolled */
#define RT_UNROLL   RT_PRAGMA(clang loop unroll(enable))
#define RT_UNROLL_4 RT_PRAGMA(clang loop unroll_count(4))
#else
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* accumulators whose number is no literal */
#define RT_UNROLL   RT_PRAGMA(GCC unroll 32)
#define RT_UNROLL_4 RT_PRAGMA(GCC unroll 4)
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define RT_AVX512    1
#define RT_VEC_BYTES 64
#elif defined(RT_BF16)
#define RT_WIDE      1
#define RT_VEC_BYTES 64
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wpsabi" /* all functions with a vec are inlined */
#endif
#elif defined(__AVX2__) && defined(__FMA__)
#define RT_AVX2      1
#define RT_VEC_BYTES 32
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define RT_VEC_BYTES 16
#else
#define RT_SCALAR 1
#endif

#if defined(RT_AVX512) || defined(__AVX2__)
#include "cpu/x86.h"
#elif !defined(RT_SCALAR) && !defined(RT_WIDE)
#include <arm_neon.h>
#endif

/* --------------------------------------------------------------------------------- a plain real */
/* clang-format off */
#ifdef RT_SCALAR
enum { V = 1, P = 2 };
typedef int32_t RtInt, vint;
typedef real vec;
#define V_LANE(x, i) (x)

RT_LEAF vec v_set(real x) { return x; }
RT_LEAF vec v_load(const real *p) { return *p; }
RT_LEAF void v_store(real *p, vec x) { *p = x; }
RT_LEAF vec v_load_fill(const real *p, int k, real fill) { return k > 0 ? *p : fill; }
RT_LEAF void v_store_n(real *p, vec x, int k)
{
    if (k > 0)
        *p = x;
}
RT_LEAF vec v_fma(vec a, vec b, vec c)
{
#if defined(RT_DOUBLE) && defined(__FP_FAST_FMA)
    return __builtin_fma(a, b, c);
#elif !defined(RT_DOUBLE) && defined(__FP_FAST_FMAF)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}
RT_LEAF vec v_max(vec a, vec b) { return a > b ? a : b; }
RT_LEAF vec v_min(vec a, vec b) { return a < b ? a : b; }
RT_LEAF vec v_select_gt(vec a, vec b, vec x, vec y) { return a > b ? x : y; }
RT_LEAF vec v_select_ge(vec a, vec b, vec x, vec y) { return a >= b ? x : y; }
RT_LEAF unsigned v_nonzero(vec x) { return x != 0; }
RT_LEAF vint v_marks(vec x, RtInt bit) { return x != 0 ? bit : 0; }
RT_LEAF real v_sum(vec x) { return x; }
RT_LEAF real v_top(vec x) { return x; }

/* --------------------------------------------------------------------------------- real vectors */
#else
enum { V = RT_VEC_BYTES / sizeof(real), P = 2 * V };
#ifdef RT_DOUBLE
typedef int64_t RtInt;
#else
typedef int32_t RtInt;
#endif
typedef real vec __attribute__((vector_size(RT_VEC_BYTES)));
typedef RtInt vint __attribute__((vector_size(RT_VEC_BYTES)));
typedef real vec_memory
    __attribute__((vector_size(RT_VEC_BYTES), aligned(sizeof(real)), may_alias));
#define V_LANE(x, i) (x)[i]

RT_LEAF vec v_set(real x) { return x - (vec){0}; }
RT_LEAF vec v_load(const real *p) { return *(const vec_memory *)p; }
RT_LEAF void v_store(real *p, vec x) { *(vec_memory *)p = x; }

/* The indices of the lanes: 0, 1, 2 ... */
RT_LEAF vint v_count(void)
{
    vint x = {0};
    RT_UNROLL
    for (int i = 0; i < V; i++)
        x[i] = i;
    return x;
}
/* `bit` in the lanes where x is not 0. */
RT_LEAF vint v_marks(vec x, RtInt bit) { return (vint)(x != 0) & (bit - (vint){0}); }
/* x where the lanes of m are all ones, y where they are all zeros. */
RT_LEAF vec v_choose(vint m, vec x, vec y) { return (vec)(((vint)x & m) | ((vint)y & ~m)); }

#ifdef RT_AVX512
#ifdef RT_DOUBLE
#define V_OP(name) _mm512_##name##_pd
#define V_MASKED(name) _mm512_##name##_pd_mask
#define V_MASK(k)  ((__mmask8)((1u << (k)) - 1))
#else
#define V_OP(name) _mm512_##name##_ps
#define V_MASKED(name) _mm512_##name##_ps_mask
#define V_MASK(k)  ((__mmask16)((1u << (k)) - 1))
#endif
RT_LEAF vec v_load_fill(const real *p, int k, real fill)
{
    return V_OP(mask_loadu)(v_set(fill), V_MASK(k), p);
}
RT_LEAF void v_store_n(real *p, vec x, int k) { V_OP(mask_storeu)(p, V_MASK(k), x); }
RT_LEAF vec v_fma(vec a, vec b, vec c) { return V_OP(fmadd)(a, b, c); }
RT_LEAF vec v_max(vec a, vec b) { return V_OP(max)(a, b); }
RT_LEAF vec v_min(vec a, vec b) { return V_OP(min)(a, b); }
/* v_equal: a bit for each lane in which a == b.  v_nonzero: in which x is not 0. */
RT_LEAF int v_equal(vec a, vec b) { return V_MASKED(cmp)(a, b, _CMP_EQ_OQ); }
/* The lanes of x that have a bit in `lanes`, moved to the front. */
RT_LEAF vec v_together(vec x, int lanes) { return V_OP(maskz_compress)(lanes, x); }
RT_LEAF unsigned v_nonzero(vec x) { return V_MASKED(cmp)(x, v_set(0), _CMP_NEQ_UQ); }
#ifdef RT_DOUBLE
RT_LEAF vec v_select_gt(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), y, x);
}
RT_LEAF vec v_select_ge(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_GE_OQ), y, x);
}
#else
RT_LEAF vec v_select_gt(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}
RT_LEAF vec v_select_ge(vec a, vec b, vec x, vec y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), y, x);
}
#endif

#elif defined(RT_AVX2)
#ifdef RT_DOUBLE
#define V_OP(name) _mm256_##name##_pd
RT_LEAF __m256i v_lanes_below(int k)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(k), _mm256_setr_epi64x(0, 1, 2, 3));
}
#else
#define V_OP(name) _mm256_##name##_ps
RT_LEAF __m256i v_lanes_below(int k)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(k), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif
RT_LEAF vec v_load_fill(const real *p, int k, real fill)
{
    const __m256i m = v_lanes_below(k);
    return v_choose((vint)m, V_OP(maskload)(p, m), v_set(fill));
}
RT_LEAF void v_store_n(real *p, vec x, int k) { V_OP(maskstore)(p, v_lanes_below(k), x); }
RT_LEAF vec v_fma(vec a, vec b, vec c) { return V_OP(fmadd)(a, b, c); }
RT_LEAF vec v_max(vec a, vec b) { return V_OP(max)(a, b); }
RT_LEAF vec v_min(vec a, vec b) { return V_OP(min)(a, b); }
RT_LEAF vec v_select_gt(vec a, vec b, vec x, vec y)
{
    return V_OP(blendv)(y, x, V_OP(cmp)(a, b, _CMP_GT_OQ));
}
RT_LEAF vec v_select_ge(vec a, vec b, vec x, vec y)
{
    return V_OP(blendv)(y, x, V_OP(cmp)(a, b, _CMP_GE_OQ));
}
RT_LEAF unsigned v_nonzero(vec x)
{
    return (unsigned)V_OP(movemask)(V_OP(cmp)(x, v_set(0), _CMP_NEQ_UQ));
}

#elif defined(RT_WIDE) && defined(__AVX2__) && defined(__FMA__)
/* Two registers make a vec.  gcc 12 divides + - * / and bit operations by itself, but it compares
 * such vectors one number at a time. */
typedef union {
    vec whole;
    __m256 half[2];
} V_Halves;
#define V_BY_HALVES(result, ...)                                                                   \
    V_Halves result;                                                                               \
    RT_UNROLL                                                                                      \
    for (int i = 0; i < 2; i++)                                                                    \
        result.half[i] = __VA_ARGS__
RT_LEAF __m256i v_half_below(int k)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(k), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
RT_LEAF vec v_load_fill(const real *p, int k, real fill)
{
    const V_Halves other = {v_set(fill)};
    V_BY_HALVES(x, (__m256)_mm256_blendv_ps(other.half[i],
                                            _mm256_maskload_ps(p + 8 * i, v_half_below(k - 8 * i)),
                                            (__m256)v_half_below(k - 8 * i)));
    return x.whole;
}
RT_LEAF void v_store_n(real *p, vec x, int k)
{
    const V_Halves u = {x};
    for (int i = 0; i < 2; i++)
        _mm256_maskstore_ps(p + 8 * i, v_half_below(k - 8 * i), u.half[i]);
}
RT_LEAF vec v_fma(vec a, vec b, vec c)
{
    const V_Halves x = {a}, y = {b}, z = {c};
    V_BY_HALVES(to, _mm256_fmadd_ps(x.half[i], y.half[i], z.half[i]));
    return to.whole;
}
RT_LEAF vec v_max(vec a, vec b)
{
    const V_Halves x = {a}, y = {b};
    V_BY_HALVES(to, _mm256_max_ps(x.half[i], y.half[i]));
    return to.whole;
}
RT_LEAF vec v_min(vec a, vec b)
{
    const V_Halves x = {a}, y = {b};
    V_BY_HALVES(to, _mm256_min_ps(x.half[i], y.half[i]));
    return to.whole;
}
RT_LEAF vec v_select_gt(vec a, vec b, vec x, vec y)
{
    const V_Halves l = {a}, r = {b}, yes = {x}, no = {y};
    V_BY_HALVES(to, _mm256_blendv_ps(no.half[i], yes.half[i],
                                     _mm256_cmp_ps(l.half[i], r.half[i], _CMP_GT_OQ)));
    return to.whole;
}
RT_LEAF vec v_select_ge(vec a, vec b, vec x, vec y)
{
    const V_Halves l = {a}, r = {b}, yes = {x}, no = {y};
    V_BY_HALVES(to, _mm256_blendv_ps(no.half[i], yes.half[i],
                                     _mm256_cmp_ps(l.half[i], r.half[i], _CMP_GE_OQ)));
    return to.whole;
}
RT_LEAF unsigned v_nonzero(vec x)
{
    const V_Halves u = {x};
    unsigned bits = 0;
    for (int i = 0; i < 2; i++)
        bits |= (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(u.half[i], (__m256){0}, _CMP_NEQ_UQ))
                << 8 * i;
    return bits;
}
#undef V_BY_HALVES

#else /* NEON and RT_WIDE, through the compiler's vectors alone */
RT_LEAF vec v_load_fill(const real *p, int k, real fill)
{
    vec x = v_set(fill);
    for (int i = 0; i < k; i++)
        x[i] = p[i];
    return x;
}
RT_LEAF void v_store_n(real *p, vec x, int k)
{
    for (int i = 0; i < k; i++)
        p[i] = x[i];
}
#if defined(RT_WIDE)
/* A processor without the instruction gets the same bits from fmaf. */
RT_LEAF vec v_fma(vec a, vec b, vec c)
{
    for (int i = 0; i < V; i++)
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
#elif defined(RT_DOUBLE)
RT_LEAF vec v_fma(vec a, vec b, vec c)
{
    return (vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
RT_LEAF vec v_fma(vec a, vec b, vec c)
{
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#endif
RT_LEAF vec v_select_gt(vec a, vec b, vec x, vec y) { return v_choose((vint)(a > b), x, y); }
RT_LEAF vec v_select_ge(vec a, vec b, vec x, vec y) { return v_choose((vint)(a >= b), x, y); }
RT_LEAF unsigned v_nonzero(vec x)
{
    unsigned bits = 0;
    for (int i = 0; i < V; i++)
        bits |= (unsigned)(x[i] != 0) << i;
    return bits;
}
RT_LEAF vec v_max(vec a, vec b) { return v_select_gt(a, b, a, b); }
RT_LEAF vec v_min(vec a, vec b) { return v_select_gt(b, a, a, b); }
#endif

/* clang-format on */

/* Sum and maximum of the lanes.  Halves are combined first: the order depends on V alone. */
#if (defined(RT_AVX512) || defined(RT_AVX2)) && defined(RT_DOUBLE)
RT_LEAF real v_sum(vec x)
{
#ifdef RT_AVX512
    const __m256d a = _mm512_castpd512_pd256(x) + _mm512_extractf64x4_pd(x, 1);
#else
    const __m256d a = x;
#endif
    const __m128d b = _mm256_castpd256_pd128(a) + _mm256_extractf128_pd(a, 1);
    return b[0] + b[1];
}
#elif defined(RT_AVX512) || defined(RT_AVX2)
RT_LEAF real v_sum(vec x)
{
#ifdef RT_AVX512
    const __m256 a = _mm512_castps512_ps256(x) + _mm512_extractf32x8_ps(x, 1);
#else
    const __m256 a = x;
#endif
    const __m128 b = _mm256_castps256_ps128(a) + _mm256_extractf128_ps(a, 1);
    const __m128 c = b + _mm_movehl_ps(b, b);
    return c[0] + c[1];
}
#else
RT_LEAF real v_sum(vec x)
{
    real t[V];
    memcpy(t, &x, sizeof t);
    for (int half = V / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            t[i] += t[i + half];
    return t[0];
}
#endif
RT_LEAF real v_top(vec x)
{
    real t = x[0];
    RT_UNROLL
    for (int i = 1; i < V; i++)
        t = x[i] > t ? x[i] : t;
    return t;
}
#endif

typedef uint8_t bytes __attribute__((vector_size(16)));

/* Stores the first k lanes as bytes, 0 <= lane < 256. */
RT_LEAF void v_store_bytes(uint8_t *p, vec x, int k)
{
#if defined(RT_AVX512) && defined(RT_DOUBLE)
    _mm_mask_storeu_epi8(p, (__mmask16)V_MASK(k), _mm512_cvtepi64_epi8(_mm512_cvtpd_epi64(x)));
#elif defined(RT_AVX512)
    _mm_mask_storeu_epi8(p, V_MASK(k), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
#elif defined(RT_AVX2) && !defined(RT_DOUBLE)
    const __m256 n = (__m256) __builtin_convertvector(x, vint);
    const bytes low = (bytes)_mm256_castps256_ps128(n), high = (bytes)_mm256_extractf128_ps(n, 1);
    const bytes all =
        __builtin_shufflevector(low, high, 0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
    memcpy(p, &all, (size_t)k);
#else
    for (int i = 0; i < k; i++)
        p[i] = (uint8_t)V_LANE(x, i);
#endif
}

/* V bytes as reals.  (GCC 12 splits a vector of bytes if it is asked to widen it.) */
RT_LEAF vec v_load_bytes(const uint8_t *p)
{
#if defined(RT_AVX512) || defined(RT_AVX2)
    typedef uint8_t Bytes __attribute__((vector_size(V), aligned(1), may_alias));
    typedef int32_t Ints __attribute__((vector_size(4 * V)));
    Ints x;
    __asm__("vpmovzxbd %1, %0" : "=v"(x) : "m"(*(const Bytes *)p));
    return __builtin_convertvector(x, vec);
#else
    vec x = v_set(0);
    for (int i = 0; i < V; i++)
        V_LANE(x, i) = (real)p[i];
    return x;
#endif
}

/* Prefetches the line of p for writing, so that this core owns it in time.  (With
 * __builtin_prefetch(p, 1), GCC does this only for some processors; all of x86-64-v3 have the
 * instruction.) */
RT_LEAF void v_fetch_to_write(const real *p)
{
#if defined(RT_AVX512) || defined(RT_AVX2)
    __asm__ volatile("prefetchw %0" : : "m"(*p));
#else
    __builtin_prefetch(p, 1);
#endif
}

/* The first k lanes, 0 <= k <= V; the others are 0, and their memory is not read. */
RT_LEAF vec v_load_n(const real *p, int k)
{
    return v_load_fill(p, k, 0);
}

/* v_max and v_min return their second argument if one is a NaN: v_max(v_set(0), x) keeps the NaN of
 * x. */
RT_LEAF vec v_clamp(vec x, real low, real high)
{
    return v_min(v_set(high), v_max(v_set(low), x));
}

/* Hides the value of a pointer from the compiler: addresses based on it are computed separately. */
#define RT_OPAQUE(p) __asm__("" : "+r"(p))

/* Loads that the compiler cannot see through.  GCC would fold one load into each FMA that uses it
 * (16 load slots for 12 FMA instead of 7: 45-57 instead of 90 GF/s), and share broadcasts across
 * unrolled taps until accumulators spill. */
#if defined(RT_AVX512) || defined(RT_AVX2)
#ifdef RT_DOUBLE
#define RT_MOVE      "vmovupd %1, %0"
#define RT_BROADCAST "vbroadcastsd %1, %0"
#else
#define RT_MOVE      "vmovups %1, %0"
#define RT_BROADCAST "vbroadcastss %1, %0"
#endif
RT_LEAF vec v_load_opaque(const real *p)
{
    vec x;
    __asm__ volatile(RT_MOVE : "=v"(x) : "m"(*(const vec_memory *)p));
    return x;
}
RT_LEAF vec v_broadcast(const real *p)
{
    vec x;
    __asm__ volatile(RT_BROADCAST : "=v"(x) : "m"(*p));
    return x;
}
/* Stores past the caches, for data that is read much later.  p: aligned to a vector; lines must be
 * written completely.  Call v_stream_end before other threads may read the data. */
RT_LEAF void v_stream(real *p, vec x)
{
    __asm__("vmovntps %1, %0" : "=m"(*(vec_memory *)p) : "v"(x));
}
RT_LEAF void v_stream_end(void)
{
    __asm__ volatile("sfence" : : : "memory");
}
#else
RT_LEAF void v_stream(real *p, vec x)
{
    v_store(p, x);
}
RT_LEAF void v_stream_end(void)
{
}
RT_LEAF vec v_load_opaque(const real *p)
{
    return v_load(p);
}
RT_LEAF vec v_broadcast(const real *p)
{
    return v_set(*p);
}
#endif

#include "cpu/map.h"

#include "cpu/team.h"

#endif
