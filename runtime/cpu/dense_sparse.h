/* dense_sparse.h -- y = act(x W^T + b) for samples that are mostly zeros, such as images of digits.
 *
 * A product with zero changes no sum, so skipping it changes no bit if the weights are finite.  The
 * inputs of a chunk that are not zero are counted first; dense.h computes a chunk with few zeros.
 * So the choice depends on the samples alone, and the result does not depend on the choice.
 *
 * Inputs are processed in blocks of 64, whose weights fit the L1 and L2 caches.  The sums of a
 * sample, up to eight vectors of outputs, stay in registers for a block.  Each bit of the block's
 * word is an input, which costs one FMA a vector, with weights from memory.
 *
 * Microseconds a sample of 784 x 128 on one thread of a Zen 4, by the share of inputs that are not
 * zero.  AVX-512: dense.h 1.71; 10 % 0.37, 20 % 0.57, 40 % 1.01, 60 % 1.43, all 1.75.  AVX2:
 * dense.h 1.80; 0.41, 0.63, 1.07, 1.50, 1.90.  MNIST has 19 %.
 */
#ifndef CPU_DENSE_SPARSE_H
#define CPU_DENSE_SPARSE_H
#include "cpu/dense.h"

enum { SPARSE_WORD = RT_SPARSE_WORD, SPARSE_PANELS = 4, SPARSE_VECTORS = 2 * SPARSE_PANELS };
enum { SPARSE_LEAST = 4 * V }; /* outputs: with fewer, too few independent sums hide the latency */
#define SPARSE_WORDS(k) (((k) + SPARSE_WORD - 1) / SPARSE_WORD)

/* Percentage of inputs that are not zero up to which these loops are faster than dense.h. */
enum { SPARSE_MOST = 60 };
RT_INLINE bool sparse_pays(int64_t nonzero, int64_t all)
{
    return nonzero * 100 <= all * SPARSE_MOST;
}

/* c += x[i] row[i] for each bit i of the word.  row[i]: `vectors` vectors; panels are `panel` reals
 * apart. */
RT_INLINE void sparse_product(vec *restrict c, uint64_t word, const real *x, int64_t x_step,
                              const real *w, int64_t w_step, int64_t panel, int vectors)
{
    for (; word; word &= word - 1) {
        const int64_t i = __builtin_ctzll(word);
        const vec s = v_broadcast(x + i * x_step);
        const real *row = w + i * w_step;
        RT_OPAQUE(
            row); /* else GCC computes the address of each vector anew: 0.78 us instead of 0.65 */
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            c[j] = v_fma(s, v_load(row + j / 2 * panel + j % 2 * V), c[j]);
    }
}

/* Computes some panels of all samples; word: the words of sample n begin at n * SPARSE_WORDS(k). */
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

/* Computes what dense() computes. */
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
    const TeamRange part = team_range((d.o + SPARSE_PANELS * P - 1) / (SPARSE_PANELS * P));
    for (int o = (int)part.first * SPARSE_PANELS * P; o < full && o < part.end * SPARSE_PANELS * P;
         o += SPARSE_PANELS * P)
        sparse_panels(y + o, x, w + (int64_t)o * d.k, bias ? bias + o : NULL, act, word, d,
                      SPARSE_PANELS * P);
    if (full < d.o && part.end * SPARSE_PANELS * P > full)
        sparse_panels(y + full, x, w + (int64_t)full * d.k, bias ? bias + full : NULL, act, word, d,
                      d.o - full);
}

#endif
