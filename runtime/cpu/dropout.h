/* dropout.h -- zeroes a share `rate` of the elements and scales the others by 1/(1 - rate).
 *
 * The mask is never stored: element e of a sample is dropped if its 32 random bits, lane e % 4 of
 *     philox(seed; e / 4, RT_PURPOSE_DROPOUT + purpose, stored sample, epoch)
 * are less than rate * 2^32.  So forward and backward agree, for each division of the batch and
 * after each resume.
 */
#ifndef CPU_DROPOUT_H
#define CPU_DROPOUT_H

RT_INLINE uint32_t dropout_limit(real rate)
{
    return rate >= 1 ? UINT32_MAX : (uint32_t)((double)rate * 4294967296.0);
}
RT_INLINE real dropout_scale(real rate)
{
    return rate >= 1 ? 0 : 1 / (1 - rate);
}

/* y (N, K) from x (N, K); first: index of the chunk's first sample in the global batch. */
RT_INLINE void dropout_plain(real *y, const real *x, const Rt *r, int purpose, int first, real rate,
                             int n, int k)
{
    const uint32_t limit = dropout_limit(rate);
    for (int i = 0; i < n; i++)
        for (int e = 0; e < k; e++, x++) {
            uint32_t bits[4];
            rt_philox(bits, r->seed, (uint32_t)(e / 4), (uint32_t)(RT_PURPOSE_DROPOUT + purpose),
                      r->index[first + i], (uint32_t)r->epoch);
            *y++ = bits[e % 4] < limit ? 0 : *x * dropout_scale(rate);
        }
}

/* ------------------------------------------------- PHILOX_BLOCKS blocks of rt_philox at a time */
#if defined(RT_AVX512)
enum { PHILOX_BLOCKS = 8 };
typedef __m512i PhiloxLanes;
#define PHILOX(name) _mm512_##name
#define PHILOX_XOR   _mm512_xor_si512
#define PHILOX_AND   _mm512_and_si512
#define PHILOX_OR    _mm512_or_si512
RT_INLINE PhiloxLanes philox_all(uint32_t x)
{
    return _mm512_set1_epi64(x);
}
RT_INLINE PhiloxLanes philox_count(void)
{
    return _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
}
#elif defined(RT_AVX2)
enum { PHILOX_BLOCKS = 4 };
typedef __m256i PhiloxLanes;
#define PHILOX(name) _mm256_##name
#define PHILOX_XOR   _mm256_xor_si256
#define PHILOX_AND   _mm256_and_si256
#define PHILOX_OR    _mm256_or_si256
RT_INLINE PhiloxLanes philox_all(uint32_t x)
{
    return _mm256_set1_epi64x(x);
}
RT_INLINE PhiloxLanes philox_count(void)
{
    return _mm256_setr_epi64x(0, 1, 2, 3);
}
#else
enum { PHILOX_BLOCKS = 4 };
#endif

/* bits[4 i + j] = word j of the block with counter c0 + i. */
#ifdef PHILOX
/* A lane has 64 bits and holds a word.  A product leaves other bits above the word; the next
 * product reads only the word. */
RT_INLINE void philox_blocks(uint32_t bits[4 * PHILOX_BLOCKS], uint64_t key, uint32_t c0,
                             uint32_t c1, uint32_t c2, uint32_t c3)
{
    const PhiloxLanes m0 = philox_all(0xD2511F53u), m1 = philox_all(0xCD9E8D57u);
    PhiloxLanes x0 = PHILOX(add_epi64)(philox_count(), philox_all(c0));
    PhiloxLanes x1 = philox_all(c1), x2 = philox_all(c2);
    PhiloxLanes x3 = philox_all(c3);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 10; i++) {
        const PhiloxLanes a = PHILOX(mul_epu32)(m0, x0), b = PHILOX(mul_epu32)(m1, x2);
        x0 = PHILOX_XOR(PHILOX_XOR(PHILOX(srli_epi64)(b, 32), x1), philox_all(k0));
        x2 = PHILOX_XOR(PHILOX_XOR(PHILOX(srli_epi64)(a, 32), x3), philox_all(k1));
        x1 = b, x3 = a;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    const PhiloxLanes low = philox_all(UINT32_MAX);
    const PhiloxLanes front = PHILOX_OR(PHILOX_AND(x0, low), PHILOX(slli_epi64)(x1, 32));
    const PhiloxLanes back = PHILOX_OR(PHILOX_AND(x2, low), PHILOX(slli_epi64)(x3, 32));
    const PhiloxLanes even = PHILOX(unpacklo_epi64)(front, back),
                      odd = PHILOX(unpackhi_epi64)(front, back);
    for (int i = 0; i < PHILOX_BLOCKS / 2; i++) {
        memcpy(bits + 8 * i, (const char *)&even + 16 * i, 16);
        memcpy(bits + 8 * i + 4, (const char *)&odd + 16 * i, 16);
    }
}
#else
RT_INLINE void philox_blocks(uint32_t bits[4 * PHILOX_BLOCKS], uint64_t key, uint32_t c0,
                             uint32_t c1, uint32_t c2, uint32_t c3)
{
    for (int i = 0; i < PHILOX_BLOCKS; i++)
        rt_philox(bits + 4 * i, key, c0 + (uint32_t)i, c1, c2, c3);
}
#endif

RT_INLINE void dropout(real *restrict y, const real *restrict x, const Rt *r, int purpose,
                       int first, real rate, int n, int k)
{
    enum { STEP = 4 * PHILOX_BLOCKS };
    const uint32_t limit = dropout_limit(rate);
    const real scale = dropout_scale(rate);
    uint32_t bits[STEP];
    const RtGrid part = team_grid(n, (k + STEP - 1) / STEP);
    const TeamRange samples = team_rows(part, n), steps = team_columns(part, (k + STEP - 1) / STEP);
    x += samples.first * k, y += samples.first * k;
    for (int i = (int)samples.first; i < samples.end; i++, x += k, y += k) {
        const uint32_t sample = r->index[first + i];
        for (int e = (int)steps.first * STEP; e < k && e < steps.end * STEP; e += STEP) {
            philox_blocks(bits, r->seed, (uint32_t)(e / 4),
                          (uint32_t)(RT_PURPOSE_DROPOUT + purpose), sample, (uint32_t)r->epoch);
            if (e + STEP <= k)
                for (int j = 0; j < STEP; j++)
                    y[e + j] = bits[j] < limit ? 0 : x[e + j] * scale;
            else
                for (int j = 0; e + j < k; j++)
                    y[e + j] = bits[j] < limit ? 0 : x[e + j] * scale;
        }
    }
}

/* The gradient: the same mask on dy. */
RT_INLINE void dropout_dx(real *restrict dx, const real *restrict dy, const Rt *r, int purpose,
                          int first, real rate, int n, int k)
{
    dropout(dx, dy, r, purpose, first, rate, n, k);
}

#endif
