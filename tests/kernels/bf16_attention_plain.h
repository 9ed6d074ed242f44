/* bf16_attention_plain.h -- causal_attention in bf16 and its gradient, with products by their
 * definition; o and dx are not rounded.
 *
 * p and ds are f32 rows of BF16_BLOCKS(T) * BF16_BLOCK numbers.
 */
#ifndef BF16_ATTENTION_PLAIN_H
#define BF16_ATTENTION_PLAIN_H
#include "cpu/bf16_attention.h"

/* A sum over `count` positions of bf16(p[i * next]) x[i * step]. */
RT_INLINE real bf16_attention_sum_plain(const real *p, int64_t next, const bf16 *x, int64_t step,
                                        int count)
{
    Bf16Sum s = {0};
    for (int i = 0; i < count; i++)
        bf16_sum_add(&s, bf16_wide(bf16_narrow(p[i * next])), bf16_wide(x[i * step]));
    bf16_sum_end(&s);
    return s.sum;
}

/* s[j] = a . b[j * step ..] for the first `count` positions. */
RT_INLINE void bf16_attention_scores_plain(real *s, const bf16 *a, const bf16 *b, int64_t step,
                                           int count, int d)
{
    for (int j = 0; j < count; j++) {
        Bf16Sum sum = {0};
        for (int c = 0; c < d; c++)
            bf16_sum_add(&sum, bf16_wide(a[c]), bf16_wide(b[j * step + c]));
        bf16_sum_end(&sum);
        s[j] = sum.sum;
    }
}

/* The end of the block that contains position i, or of the sequence. */
RT_INLINE int bf16_attention_block_end(Attention a, int i)
{
    const int end = (i / BF16_BLOCK + 1) * BF16_BLOCK;
    return a.causal && end < a.t ? end : a.t;
}

/* p: a row. */
RT_INLINE void bf16_attention_plain(real *o, const bf16 *x, real *p, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d;
    for (int s = 0; s < a.n; s++, x += a.t * row, o += a.t * width)
        for (int64_t head = 0; head < width; head += a.d)
            for (int i = 0; i < a.t; i++) {
                const bf16 *q = x + head, *v = q + 2 * width;
                bf16_attention_scores_plain(p, q + i * row, q + width, row, a.t, a.d);
                const real share =
                    1 / bf16_attention_exp(p, BF16_BLOCK, a.causal ? i + 1 : a.t,
                                           BF16_BLOCKS(a.t) * BF16_BLOCK, (real)a.scale);
                for (int c = 0; c < a.d; c++)
                    o[i * width + head + c] =
                        bf16_attention_sum_plain(p, 1, v + c, row, bf16_attention_block_end(a, i)) *
                        share;
            }
}

/* p, ds: T rows each; two: a row of bf16. */
RT_INLINE void bf16_attention_dx_plain(real *dx, const bf16 *x, const bf16 *dy, real *p, real *ds,
                                       bf16 *two, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d,
                  line = BF16_BLOCKS(a.t) * BF16_BLOCK;
    for (int s = 0; s < a.n; s++, x += a.t * row, dx += a.t * row, dy += a.t * width)
        for (int64_t head = 0; head < width; head += a.d) {
            const bf16 *q = x + head, *k = q + width, *g = dy + head;
            real *dq = dx + head, *dk = dq + width, *dv = dk + width;
            for (int i = 0; i < a.t; i++) {
                real *const e = p + i * line, *const d = ds + i * line;
                const int seen = a.causal ? i + 1 : a.t;
                bf16_attention_scores_plain(e, q + i * row, k, row, a.t, a.d);
                const real share =
                    1 / bf16_attention_exp(e, BF16_BLOCK, seen, (int)line, (real)a.scale);
                for (int j = 0; j < line; j++)
                    e[j] *= share;
                bf16_attention_scores_plain(d, g + i * width, k + width, row, a.t, a.d);
                bf16_attention_ds(two, e, d, BF16_BLOCK, seen, (int)line, (real)a.scale);
                bf16_to_f32(d, two, line);
                for (int c = 0; c < a.d; c++)
                    dq[i * row + c] =
                        bf16_attention_sum_plain(d, 1, k + c, row, bf16_attention_block_end(a, i));
            }
            for (int j = 0; j < a.t; j++)
                for (int c = 0; c < a.d; c++) {
                    const int first = a.causal ? j / BF16_BLOCK * BF16_BLOCK : 0;
                    const real *of_p = p + first * line + j, *of_ds = ds + first * line + j;
                    dk[j * row + c] = bf16_attention_sum_plain(of_ds, line, q + first * row + c,
                                                               row, a.t - first);
                    dv[j * row + c] = bf16_attention_sum_plain(of_p, line, g + first * width + c,
                                                               width, a.t - first);
                }
        }
}

#endif
