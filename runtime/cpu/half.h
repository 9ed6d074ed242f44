/* half.h -- vectors of at most 32 bytes, VH reals: for copies of short runs that lie anywhere.
 *
 * A vector of 64 bytes that does not start on a cache line always crosses one, which takes two
 * turns; of two halves at most one does.  Without AVX-512 a half is a whole vector.
 */
#ifndef CPU_HALF_H
#define CPU_HALF_H

#ifdef RT_AVX512
enum { VH = V / 2 };
typedef real hvec __attribute__((vector_size(32)));
typedef real hvec_memory __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));

RT_INLINE hvec h_load(const real *p)
{
    return *(const hvec_memory *)p;
}
RT_INLINE void h_store(real *p, hvec x)
{
    *(hvec_memory *)p = x;
}
#else
enum { VH = V };
typedef vec hvec;

RT_INLINE hvec h_load(const real *p)
{
    return v_load(p);
}
RT_INLINE void h_store(real *p, hvec x)
{
    v_store(p, x);
}
#endif

#endif
