/* dense_sparse.h -- y = act(x W^T + b) for samples that are mostly zeros, as images of digits are.
 *
 * A product with zero changes no sum, so to leave it out changes no bit, as long as the weights are finite.  Which inputs of
 * a chunk are not zero is counted first; a chunk with few zeros is done by dense.h.  So the choice depends on the
 * samples alone, and the result not on the choice.
 *
 * Inputs are taken in blocks of 64, whose weights lie in the first caches.  A sample's sums, up to eight vectors of outputs, stay
 * in registers for a block; each bit of the block's word is an input, and as many FMAs with weights from memory.
 *
 * Measured, one thread of a Zen 4, microseconds a sample of 784 x 128 where so many inputs are not zero, dense.h's time first: AVX-512
 * 1.71: 10 % 0.37, 20 % 0.57, 40 % 1.01, 60 % 1.43, all 1.75; AVX2 1.80: 0.41, 0.63, 1.07, 1.50, 1.90.  MNIST's are 19 %.
 */
#ifndef CPU_DENSE_SPARSE_H
#define CPU_DENSE_SPARSE_H
#include "cpu/dense.h"

enum { SPARSE_WORD = RT_SPARSE_WORD, SPARSE_PANELS = 4, SPARSE_VECTORS = 2 * SPARSE_PANELS };
enum { SPARSE_LEAST = 4 * V }; /* outputs: fewer sums would wait for each other */
#define SPARSE_WORDS(k) (((k) + SPARSE_WORD - 1) / SPARSE_WORD)

/* Where these loops beat dense.h: at most so many of a hundred inputs are not zero. */
enum { SPARSE_MOST = 60 };
RT_INLINE bool sparse_pays(int64_t nonzero, int64_t all)
{
    return nonzero * 100 <= all * SPARSE_MOST;
}

/* c += x[i] row[i] for each bit i of the word: row[i] are `vectors` vectors, panels of two `panel` reals apart. */
RT_INLINE void sparse_product(vec *restrict c, uint64_t word, const real *x, int64_t x_step,
                              const real *w, int64_t w_step, int64_t panel, int vectors)
{
    for (; word; word &= word - 1) {
        const int64_t i = __builtin_ctzll(word);
        const vec s = v_broadcast(x + i * x_step);
        const real *row = w + i * w_step;
        RT_OPAQUE(
            row); /* else each vector has its address computed anew: 0.78 us instead of 0.65 */
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            c[j] = v_fma(s, v_load(row + j / 2 * panel + j % 2 * V), c[j]);
    }
}

/* Some panels of all samples; word: those of sample n lie at n * SPARSE_WORDS(k). */
RT_INLINE void sparse_panels(real *y, const real *x, const real *w, const real *bias, Act act,
                             const uint64_t *word, Dense d, int lanes)
{
    enum { SUM = SPARSE_VECTORS * V };
    const int vectors = (lanes + V - 1) / V;
    real sum[d.n * SUM] __attribute__((aligned(64)));
    vec c[SPARSE_VECTORS];
    for (int n = 0; n < d.n; n++)
        RT_UNROLL
    for (int j = 0; j < vectors; j++)
        v_store(sum + n * SUM + j * V,
                bias ? v_load_lanes(bias + j * V, tile_lanes(lanes, j)) : v_set(0));
    for (int b = 0; b < SPARSE_WORDS(d.k); b++)
        for (int n = 0; n < d.n; n++) {
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                c[j] = v_load(sum + n * SUM + j * V);
            sparse_product(c, word[n * SPARSE_WORDS(d.k) + b],
                           x + (int64_t)n * d.k + b * SPARSE_WORD, 1, w + b * SPARSE_WORD * P, P,
                           (int64_t)d.k * P, vectors);
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                v_store(sum + n * SUM + j * V, c[j]);
        }
    for (int n = 0; n < d.n; n++)
        RT_UNROLL
    for (int j = 0; j < vectors; j++)
        v_store_lanes(y + (int64_t)n * d.o + j * V, act(v_load(sum + n * SUM + j * V)),
                      tile_lanes(lanes, j));
}

/* As dense(). */
RT_INLINE void dense_sparse(real *restrict y, const real *restrict x, const real *restrict w,
                            const real *restrict bias, Act act, Dense d)
{
    const int words = SPARSE_WORDS(d.k), full = d.o / (SPARSE_PANELS * P) * (SPARSE_PANELS * P);
    uint64_t word[d.n * words];
    const int64_t all = (int64_t)d.n * d.k;
    int64_t nonzero = 0;
    for (int n = 0; n < d.n && sparse_pays(nonzero, all); n++)
        for (int b = 0; b < words; b++) {
            const int k = b * SPARSE_WORD, count = d.k - k < SPARSE_WORD ? d.k - k : SPARSE_WORD;
            word[n * words + b] = v_nonzeros(x + (int64_t)n * d.k + k, count);
            nonzero += __builtin_popcountll(word[n * words + b]);
        }
    if (d.o < SPARSE_LEAST || !sparse_pays(nonzero, all)) {
        dense(y, x, w, bias, act, d);
        return;
    }
    for (int o = 0; o < full; o += SPARSE_PANELS * P)
        sparse_panels(y + o, x, w + (int64_t)o * d.k, bias ? bias + o : NULL, act, word, d,
                      SPARSE_PANELS * P);
    if (full < d.o)
        sparse_panels(y + full, x, w + (int64_t)full * d.k, bias ? bias + full : NULL, act, word, d,
                      d.o - full);
}

#endif
