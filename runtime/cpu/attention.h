/* attention.h -- causal_attention: each position mixes the values of the positions up to its own.
 *
 *   s[i][j] = scale q[i] . k[j]      p[i][.] = softmax over j <= i (mask none: over all j)
 *   o[i] = sum over j of p[i][j] v[j]
 *   dv[j] = sum p[i][j] do[i]        dp[i][j] = do[i] . v[j]
 *   ds = scale p (dp - sum over j of p dp)
 *   dq[i] = sum ds[i][j] k[j]        dk[j] = sum ds[i][j] q[i]
 *
 *   x (N, T, 3 C): q, k and v side by side, C = heads D      o (N, T, C)      dx like x
 *
 * The kernel takes one head of one sample at a time, and ATTENTION_ROWS positions of it at a time.
 * Only the scores of these positions exist, and they fit the caches; the backward pass computes
 * them again.  K and V are packed once a head.  Blocks of scores above the diagonal are not
 * computed.
 * Scores and packed copies lie in `room`, a part of the thread's scratch: ATTENTION_ROOM or
 * ATTENTION_DX_ROOM reals, aligned to 64 bytes, which compiler/ops/attention.c plans.
 * Source: Dao et al. 2022, "FlashAttention"; here rows of scores are kept whole, because T scores
 * of a few rows take little memory.
 */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H
#include "cpu/gemm.h"

typedef struct Attention {
    int n, t, heads, d;
    bool causal;
    double scale;
} Attention;

/* ------------------------------------------------------------------------------------ reference */

/* p = softmax of the scores of position i; 0 for positions that i does not see. */
RT_INLINE void attention_row_plain(real *p, const real *x, int i, int head, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d;
    const real *q = x + i * row + head * a.d, *k = x + (a.heads + head) * a.d;
    const int seen = a.causal ? i + 1 : a.t;
    real top = 0, sum = 0;
    for (int j = 0; j < seen; j++) {
        p[j] = 0;
        for (int c = 0; c < a.d; c++)
            p[j] += q[c] * k[j * row + c];
        p[j] *= (real)a.scale;
        top = j == 0 || p[j] > top ? p[j] : top;
    }
    for (int j = 0; j < seen; j++)
        sum += p[j] = s_exp(p[j] - top);
    for (int j = 0; j < a.t; j++)
        p[j] = j < seen ? p[j] / sum : 0;
}

RT_INLINE void attention_plain(real *o, const real *x, real *p, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d;
    for (int s = 0; s < a.n; s++, x += a.t * row, o += a.t * width)
        for (int head = 0; head < a.heads; head++)
            for (int i = 0; i < a.t; i++) {
                const real *v = x + 2 * width + head * a.d;
                attention_row_plain(p, x, i, head, a);
                for (int c = 0; c < a.d; c++) {
                    real sum = 0;
                    for (int j = 0; j < a.t; j++)
                        sum += p[j] * v[j * row + c];
                    o[i * width + head * a.d + c] = sum;
                }
            }
}

RT_INLINE void attention_dx_plain(real *dx, const real *x, const real *dy, real *p, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d;
    real *dp = p + a.t;
    memset(dx, 0, sizeof(real) * (size_t)(a.n * a.t * row));
    for (int s = 0; s < a.n; s++, x += a.t * row, dx += a.t * row, dy += a.t * width)
        for (int head = 0; head < a.heads; head++)
            for (int i = 0; i < a.t; i++) {
                const int at = head * a.d;
                const real *q = x + i * row + at, *k = x + width + at, *v = k + width,
                           *g = dy + i * width + at;
                real *dq = dx + i * row + at, *dk = dx + width + at, *dv = dk + width, dot = 0;
                attention_row_plain(p, x, i, head, a);
                for (int j = 0; j < a.t; j++) {
                    dp[j] = 0;
                    for (int c = 0; c < a.d; c++)
                        dp[j] += g[c] * v[j * row + c];
                    dot += p[j] * dp[j];
                }
                for (int j = 0; j < a.t; j++) {
                    const real ds = (real)a.scale * p[j] * (dp[j] - dot);
                    for (int c = 0; c < a.d; c++) {
                        dq[c] += ds * k[j * row + c];
                        dk[j * row + c] += ds * q[c];
                        dv[j * row + c] += p[j] * g[c];
                    }
                }
            }
}

/* ----------------------------------------------------------------------------------------- fast */
enum { ATTENTION_ROWS = RT_ATTENTION_ROWS }; /* positions at a time: whole panels for each V */

/* Reals from one row of scores to the next: whole panels plus a vector, so no power of two. */
#define ATTENTION_SCORES(t) (GEMM_PANELS(t) * P + V)

/* Sizes of the parts of `room`, in reals.  Each part begins at a multiple of 64 bytes. */
/* clang-format off */
#define ATTENTION_PART(n) (((int64_t)(n) + 15) / 16 * 16)
#define ATTENTION_BLOCK(t) ATTENTION_PART(ATTENTION_ROWS * ATTENTION_SCORES(t))
/* clang-format on */
#define ATTENTION_ROOM(t, d)                                                                       \
    (ATTENTION_PART(GEMM_PACKED(t, d)) + ATTENTION_PART(GEMM_PACKED(d, t)) + ATTENTION_BLOCK(t))
#define ATTENTION_DX_ROOM(t, d)                                                                    \
    (2 * ATTENTION_PART(GEMM_PACKED(t, d)) + ATTENTION_PART(GEMM_PACKED(d, t)) +                   \
     2 * ATTENTION_BLOCK(t) + ATTENTION_PART(GEMM_PACKED(d, ATTENTION_ROWS)))

/* Number of panels of scores that the `rows` positions from `first` on see. */
RT_INLINE int attention_panels(Attention a, int first, int rows)
{
    return GEMM_PANELS(a.causal ? first + rows : a.t);
}

/* s (rows, ..) = A times the transposed panels (T, D).  Whole panels; the last is padded with
 * zeros. */
RT_INLINE void attention_scores(real *s, GemmA a, const real *panels, Attention t, int first,
                                int rows)
{
    const int count = attention_panels(t, first, rows);
    for (int j = 0; j < count; j++)
        gemm_panel(s + j * P, ATTENTION_SCORES(t.t), a, panels + (int64_t)j * t.d * P, rows, t.d, P,
                   false);
}

/* s = exp(scale s - maximum) for the first `seen` scores of a row, 0 for the rest up to `count`;
 * returns the sum. */
RT_INLINE real attention_exp(real *s, int seen, int count, real scale)
{
    vec top = v_set(-INFINITY), sum = v_set(0);
    RT_MAP(seen, top = v_max(top, rt_lanes == V ? v_load(s + AT)
                                                : v_load_fill(s + AT, rt_lanes, -INFINITY)));
    const vec most = v_set(scale * v_top(top)), by = v_set(scale);
    RT_MAP(seen,
           const vec x = rt_lanes == V ? v_load(s + AT) : v_load_fill(s + AT, rt_lanes, -INFINITY);
           const vec e = v_exp(x * by - most); STORE(s, e); sum += e);
    for (int j = seen; j < count; j++)
        s[j] = 0;
    return v_sum(sum);
}

/* Computes o of `rows` positions from `first` on.  s: scratch of ATTENTION_BLOCK(t) reals. */
RT_INLINE void attention_rows(real *restrict o, const real *restrict x, const real *restrict kt,
                              const real *restrict vp, real *restrict s, Attention a, int first,
                              int rows)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d,
                  lds = ATTENTION_SCORES(a.t);
    const int count = attention_panels(a, first, rows) * P, steps = count < a.t ? count : a.t;
    real sum[ATTENTION_ROWS];
    attention_scores(s, (GemmA){x + first * row, row, 1}, kt, a, first, rows);
    for (int i = 0; i < rows; i++)
        sum[i] = attention_exp(s + i * lds, a.causal ? first + i + 1 : a.t, count, (real)a.scale);
    o += first * width;
    gemm_panels(o, width, (GemmA){s, lds, 1}, vp, a.t, rows, a.d, steps, false);
    for (int i = 0; i < rows; i++) {
        const vec share = v_set(1 / sum[i]);
        RT_MAP(a.d, STORE(o + i * width, LOAD(o + i * width) * share));
    }
}

RT_INLINE void attention(real *restrict o, const real *restrict x, real *restrict room, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d;
    const int whole = a.t / ATTENTION_ROWS * ATTENTION_ROWS;
    real *kt = room, *vp = kt + ATTENTION_PART(GEMM_PACKED(a.t, a.d)),
         *scores = vp + ATTENTION_PART(GEMM_PACKED(a.d, a.t));
    const RtGrid part = team_grid(a.n, a.heads);
    const TeamRange samples = team_rows(part, a.n), heads = team_columns(part, a.heads);
    x += samples.first * a.t * row, o += samples.first * a.t * width;
    for (int64_t s = samples.first; s < samples.end; s++, x += a.t * row, o += a.t * width)
        for (int head = (int)heads.first; head < heads.end; head++) {
            const real *q = x + head * a.d;
            gemm_pack(kt, q + width, row, a.t, a.d, true);
            gemm_pack(vp, q + 2 * width, row, a.d, a.t, false);
            for (int i = 0; i < whole; i += ATTENTION_ROWS)
                attention_rows(o + head * a.d, q, kt, vp, scores, a, i, ATTENTION_ROWS);
            if (whole < a.t)
                attention_rows(o + head * a.d, q, kt, vp, scores, a, whole, a.t - whole);
        }
}

/* ds = scale p (dp - sum of p dp), written over dp. */
RT_INLINE void attention_ds(real *dp, const real *p, int count, real scale)
{
    vec dot = v_set(0);
    RT_MAP(count, dot = v_fma(LOAD(p), LOAD(dp), dot));
    const vec all = v_set(v_sum(dot)), by = v_set(scale);
    RT_MAP(count, STORE(dp, by * LOAD(p) * (LOAD(dp) - all)));
}

/* to (positions, D) += s^T g, with s (rows, positions), and g (rows, D) packed.  steps: number of
 * positions. */
RT_INLINE void attention_add(real *to, const real *s, const real *g, Attention a, int steps,
                             int rows)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, lds = ATTENTION_SCORES(a.t);
    const int whole = steps / ATTENTION_ROWS * ATTENTION_ROWS;
    for (int j = 0; j < whole; j += ATTENTION_ROWS)
        gemm_panels(to + j * row, row, (GemmA){s + j, 1, lds}, g, rows, ATTENTION_ROWS, a.d, rows,
                    true);
    if (whole < steps) /* the last positions of the sequence */
        gemm_panels(to + whole * row, row, (GemmA){s + whole, 1, lds}, g, rows,
                    a.t % ATTENTION_ROWS, a.d, rows, true);
}

/* Packed operands of a head in the backward pass: K and V transposed, K.  Then the scratch of a
 * block of positions: scores and their gradients, ATTENTION_BLOCK(t) reals each, and a packed
 * operand. */
typedef struct AttentionPacked {
    const real *kt, *vt, *kp;
    real *p, *dp, *g;
} AttentionPacked;

/* Computes dq of `rows` positions, and their parts of dk and dv.  x, dx: at the head's q; dy: at
 * its columns. */
RT_INLINE void attention_dx_rows(real *dx, const real *x, const real *dy, AttentionPacked packed,
                                 Attention a, int first, int rows)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d,
                  lds = ATTENTION_SCORES(a.t);
    const int count = attention_panels(a, first, rows) * P, seen = a.causal ? first + rows : a.t;
    real *restrict p = packed.p, *restrict dp = packed.dp, *restrict g = packed.g;
    attention_scores(p, (GemmA){x + first * row, row, 1}, packed.kt, a, first, rows);
    attention_scores(dp, (GemmA){dy + first * width, width, 1}, packed.vt, a, first, rows);
    for (int i = 0; i < rows; i++) {
        real *at = p + i * lds;
        const real sum = attention_exp(at, a.causal ? first + i + 1 : a.t, count, (real)a.scale);
        const vec share = v_set(1 / sum);
        RT_MAP(count, STORE(at, LOAD(at) * share));
        attention_ds(dp + i * lds, at, count, (real)a.scale);
    }
    gemm_panels(dx + first * row, row, (GemmA){dp, lds, 1}, packed.kp, a.t, rows, a.d, seen, false);
    gemm_pack(g, x + first * row, row, a.d, rows, false);
    attention_add(dx + width, dp, g, a, seen, rows);
    gemm_pack(g, dy + first * width, width, a.d, rows, false);
    attention_add(dx + 2 * width, p, g, a, seen, rows);
}

RT_INLINE void attention_dx(real *restrict dx, const real *restrict x, const real *restrict dy,
                            real *restrict room, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d;
    const int whole = a.t / ATTENTION_ROWS * ATTENTION_ROWS;
    const int64_t transposed = ATTENTION_PART(GEMM_PACKED(a.t, a.d));
    real *kt = room, *vt = kt + transposed, *kp = vt + transposed,
         *p = kp + ATTENTION_PART(GEMM_PACKED(a.d, a.t)), *dp = p + ATTENTION_BLOCK(a.t);
    const AttentionPacked packed = {kt, vt, kp, p, dp, dp + ATTENTION_BLOCK(a.t)};
    const RtGrid part = team_grid(a.n, a.heads);
    const TeamRange samples = team_rows(part, a.n), heads = team_columns(part, a.heads);
    x += samples.first * a.t * row, dx += samples.first * a.t * row,
        dy += samples.first * a.t * width;
    if (part.columns == 1)
        memset(dx, 0, sizeof(real) * (size_t)((samples.end - samples.first) * a.t * row));
    for (int64_t s = samples.first; s < samples.end;
         s++, x += a.t * row, dx += a.t * row, dy += a.t * width)
        for (int head = (int)heads.first; head < heads.end; head++) {
            const int at = head * a.d;
            for (int64_t i = 0; i < 3 * a.t && part.columns > 1; i++) /* q, k and v by position */
                memset(dx + i * width + at, 0, sizeof(real) * (size_t)a.d);
            gemm_pack(kt, x + at + width, row, a.t, a.d, true);
            gemm_pack(vt, x + at + 2 * width, row, a.t, a.d, true);
            gemm_pack(kp, x + at + width, row, a.d, a.t, false);
            for (int i = 0; i < whole; i += ATTENTION_ROWS)
                attention_dx_rows(dx + at, x + at, dy + at, packed, a, i, ATTENTION_ROWS);
            if (whole < a.t)
                attention_dx_rows(dx + at, x + at, dy + at, packed, a, whole, a.t - whole);
        }
}

#endif
