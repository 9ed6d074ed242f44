/* dropout.h -- zeroes a share `rate` of the elements and scales the others by 1/(1 - rate).
 *
 * The mask is never stored: element e of a sample is dropped when its 32 random bits, lane e % 4 of
 *     philox(seed; e / 4, RT_PURPOSE_DROPOUT + purpose, stored sample, epoch)
 * fall below rate * 2^32.  So forward and backward agree, on any split of the batch and after any resume.
 */
#ifndef CPU_DROPOUT_H
#define CPU_DROPOUT_H

RT_INLINE uint32_t dropout_limit(real rate) { return rate >= 1 ? UINT32_MAX : (uint32_t)((double)rate * 4294967296.0); }
RT_INLINE real dropout_scale(real rate) { return rate >= 1 ? 0 : 1 / (1 - rate); }

/* y (N, K) from x (N, K); `first`: where the chunk's first sample stands in the global batch. */
RT_INLINE void dropout_plain(real *y, const real *x, const Rt *r, int purpose, int first, real rate, int n, int k)
{
    const uint32_t limit = dropout_limit(rate);
    for (int i = 0; i < n; i++)
    for (int e = 0; e < k; e++, x++) {
        uint32_t bits[4];
        rt_philox(bits, r->seed, (uint32_t)(e / 4), (uint32_t)(RT_PURPOSE_DROPOUT + purpose), r->index[first + i],
                  (uint32_t)r->epoch);
        *y++ = bits[e % 4] < limit ? 0 : *x * dropout_scale(rate);
    }
}

/* A block of random bits serves four elements. */
RT_INLINE void dropout(real *restrict y, const real *restrict x, const Rt *r, int purpose, int first, real rate, int n,
                       int k)
{
    const uint32_t limit = dropout_limit(rate);
    const real scale = dropout_scale(rate);
    for (int i = 0; i < n; i++, x += k, y += k)
    for (int e = 0; e < k; e += 4) {
        uint32_t bits[4];
        rt_philox(bits, r->seed, (uint32_t)(e / 4), (uint32_t)(RT_PURPOSE_DROPOUT + purpose), r->index[first + i],
                  (uint32_t)r->epoch);
        for (int j = 0; j < 4 && e + j < k; j++)
            y[e + j] = bits[j] < limit ? 0 : x[e + j] * scale;
    }
}

/* The gradient: the same mask on dy. */
RT_INLINE void dropout_dx(real *restrict dx, const real *restrict dy, const Rt *r, int purpose, int first, real rate,
                          int n, int k)
{
    dropout(dx, dy, r, purpose, first, rate, n, k);
}

#endif
