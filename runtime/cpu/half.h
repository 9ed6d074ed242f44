/* half.h -- vectors of at most 32 bytes, VH reals: for copies of short runs at any address, and for
 * the last outputs of a product.
 *
 * A load of 64 bytes that does not start at a cache line always crosses a line, which takes two
 * cycles; at most one of two loads of 32 bytes crosses a line.  In products, two halves take the
 * time of one whole vector.  Without AVX-512, and in every bf16 program, a half is a whole vector:
 * in a bf16 program, the order of additions is the same on each processor.
 */
#ifndef CPU_HALF_H
#define CPU_HALF_H

#if defined(RT_AVX512) && !defined(RT_BF16)
#define RT_HALVES 1
enum { VH = V / 2 };
typedef real hvec __attribute__((vector_size(32)));
typedef real hvec_memory __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));

RT_LEAF hvec h_load(const real *p)
{
    return *(const hvec_memory *)p;
}
RT_LEAF void h_store(real *p, hvec x)
{
    *(hvec_memory *)p = x;
}
RT_LEAF hvec h_load_opaque(const real *p)
{
    hvec x;
    __asm__ volatile(RT_MOVE : "=v"(x) : "m"(*(const hvec_memory *)p));
    return x;
}
/* The first k reals, 0 < k <= VH. */
#ifdef RT_DOUBLE
RT_LEAF hvec h_load_n(const real *p, int k)
{
    return _mm256_maskz_loadu_pd(V_MASK(k), p);
}
RT_LEAF void h_store_n(real *p, hvec x, int k)
{
    _mm256_mask_storeu_pd(p, V_MASK(k), x);
}
#else
RT_LEAF hvec h_load_n(const real *p, int k)
{
    return _mm256_maskz_loadu_ps(V_MASK(k), p);
}
RT_LEAF void h_store_n(real *p, hvec x, int k)
{
    _mm256_mask_storeu_ps(p, V_MASK(k), x);
}
#endif
/* The lower half of x. */
RT_LEAF hvec h_low(vec x)
{
    union {
        vec whole;
        hvec half[2];
    } u = {x};
    return u.half[0];
}
/* The upper half of x. */
RT_LEAF hvec h_high(vec x)
{
    union {
        vec whole;
        hvec half[2];
    } u = {x};
    return u.half[1];
}
/* The upper half of a, then the lower half of b. */
RT_LEAF vec h_between(vec a, vec b)
{
#ifdef RT_DOUBLE
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 8, 9, 10, 11);
#else
    return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                   23);
#endif
}
/* x in the upper half. */
RT_LEAF vec h_upper(hvec x)
{
    union {
        hvec half[2];
        vec whole;
    } u = {{x, x}};
    return u.whole;
}
#ifdef RT_DOUBLE
RT_LEAF hvec h_fma(hvec a, hvec b, hvec c)
{
    return _mm256_fmadd_pd(a, b, c);
}
#else
RT_LEAF hvec h_fma(hvec a, hvec b, hvec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
#endif
#else
enum { VH = V };
typedef vec hvec;

RT_LEAF hvec h_load(const real *p)
{
    return v_load(p);
}
RT_LEAF void h_store(real *p, hvec x)
{
    v_store(p, x);
}
RT_LEAF hvec h_load_n(const real *p, int k)
{
    return v_load_n(p, k);
}
RT_LEAF void h_store_n(real *p, hvec x, int k)
{
    v_store_n(p, x, k);
}
RT_LEAF hvec h_load_opaque(const real *p)
{
    return v_load_opaque(p);
}
RT_LEAF hvec h_low(vec x)
{
    return x;
}
RT_LEAF hvec h_fma(hvec a, hvec b, hvec c)
{
    return v_fma(a, b, c);
}
#endif

#endif
