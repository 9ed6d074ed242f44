/* token.h -- one token of a text at a time (compiler/passes/token.c), from what earlier tokens
 * stored.
 *
 *   states    r->carried (from the last token) and r->carry (for the next one), reals; the runtime
 *             swaps the two
 *   cache     r->cache: for each attention the keys (C, T) and the values (T, C) of the tokens so
 *             far, and T scores
 *
 * at: offset in states or cache, in reals.  r->position: number of tokens before this one.
 */
#ifndef CPU_TOKEN_H
#define CPU_TOKEN_H

/* y (n): a state; all `first` at the first token. */
RT_INLINE void token_state(real *y, const Rt *r, int64_t at, int n, double first)
{
    const real *x = (const real *)r->carried + at;
    for (int i = 0; i < n; i++)
        y[i] = r->position > 0 ? x[i] : (real)first;
}

/* y = x (n), also stored for the next token. */
RT_INLINE void token_next(real *y, const real *x, const Rt *r, int64_t at, int n)
{
    memcpy(y, x, sizeof *y * (size_t)n);
    memcpy((real *)r->carry + at, x, sizeof *y * (size_t)n);
}

#ifdef RT_BF16
/* The same for a state in two bytes.  The runtime keeps it as reals. */
RT_INLINE void token_state_bf16(bf16 *y, const Rt *r, int64_t at, int n, double first)
{
    const real *x = (const real *)r->carried + at;
    for (int i = 0; i < n; i++)
        y[i] = bf16_narrow(r->position > 0 ? x[i] : (real)first);
}

RT_INLINE void token_next_bf16(bf16 *y, const bf16 *x, const Rt *r, int64_t at, int n)
{
    real *const next = (real *)r->carry + at;
    memcpy(y, x, sizeof *y * (size_t)n);
    for (int i = 0; i < n; i++)
        next[i] = bf16_wide(x[i]);
}
#endif

/* y (n): row r->position of w (T, n). */
RT_INLINE void token_row(real *y, const real *w, const Rt *r, int n)
{
    memcpy(y, w + r->position * n, sizeof *y * (size_t)n);
}

/* ------------------------------------------------------------------------------------- positions
 *
 * The formulas of rotary.h, for the single position r->position. */
RT_INLINE double token_angle(const Rt *r, int i, int d, double base)
{
    return (double)r->position * pow(base, -2.0 * i / d);
}

RT_INLINE void token_rotary(real *y, const real *x, const Rt *r, int heads, int d, double base)
{
    for (int h = 0; h < heads; h++, x += d, y += d)
        for (int i = 0; i < d / 2; i++) {
            const double angle = token_angle(r, i, d, base);
            const real c = (real)cos(angle), s = (real)sin(angle), a = x[i], b = x[i + d / 2];
            y[i] = a * c - b * s;
            y[i + d / 2] = b * c + a * s;
        }
}

RT_INLINE void token_sinusoidal(real *y, const real *x, const Rt *r, int d, double base)
{
    for (int i = 0; i < d; i++) {
        const double angle = token_angle(r, i / 2, d, base);
        y[i] = x[i] + (real)(i % 2 ? cos(angle) : sin(angle));
    }
}

/* ------------------------------------------------------------------------------------- attention
 *
 *   s[j] = scale q . k[j]     p = softmax of s over j <= r->position    o = sum over j of p[j] v[j]
 *
 *   x (3 C): q, k, v     o (C), C = heads D    the cache keeps k and v of this token for later ones
 */
typedef struct TokenAttention {
    int t, heads, d; /* tokens of the cache; C = heads d */
    double scale;
} TokenAttention;

RT_INLINE void token_keep(real *keys, real *values, const real *x, int64_t j, TokenAttention a)
{
    const int width = a.heads * a.d;
    for (int c = 0; c < width; c++)
        keys[(int64_t)c * a.t + j] = x[width + c];
    memcpy(values + j * width, x + 2 * width, sizeof *x * (size_t)width);
}

RT_INLINE void token_attention_plain(real *o, const real *x, const Rt *r, int64_t at,
                                     TokenAttention a)
{
    const int seen = (int)r->position + 1, width = a.heads * a.d;
    const int64_t all = (int64_t)a.t * width;
    real *keys = (real *)r->cache + at, *values = keys + all, *p = values + all;
    token_keep(keys, values, x, r->position, a);
    for (int c0 = 0; c0 < width; c0 += a.d) {
        real top = 0, sum = 0;
        for (int j = 0; j < seen; j++) {
            p[j] = 0;
            for (int c = c0; c < c0 + a.d; c++)
                p[j] += x[c] * keys[(int64_t)c * a.t + j];
            p[j] *= (real)a.scale;
            top = j == 0 || p[j] > top ? p[j] : top;
        }
        for (int j = 0; j < seen; j++)
            sum += p[j] = s_exp(p[j] - top);
        for (int c = c0; c < c0 + a.d; c++) {
            o[c] = 0;
            for (int j = 0; j < seen; j++)
                o[c] += p[j] / sum * values[(int64_t)j * width + c];
        }
    }
}

/* The same as token_attention_plain, with positions in the lanes, then features. */
RT_INLINE void token_attention(real *restrict o, const real *restrict x, const Rt *r, int64_t at,
                               TokenAttention a)
{
    const int seen = (int)r->position + 1, width = a.heads * a.d;
    const int64_t all = (int64_t)a.t * width;
    real *keys = (real *)r->cache + at, *values = keys + all, *p = values + all;
    token_keep(keys, values, x, r->position, a);
    for (int c0 = 0; c0 < width; c0 += a.d, keys += (int64_t)a.d * a.t) {
        real top = -INFINITY, sum = 0;
        RT_MAP(seen, vec s = v_set(0);
               for (int c = 0; c < a.d; c++) s =
                   v_fma(v_set(x[c0 + c]), LOAD(keys + (int64_t)c * a.t), s);
               STORE(p, s * v_set((real)a.scale)));
        for (int j = 0; j < seen; j++)
            top = p[j] > top ? p[j] : top;
        RT_MAP(seen, STORE(p, v_exp(LOAD(p) - v_set(top))));
        for (int j = 0; j < seen; j++)
            sum += p[j];
        RT_MAP(a.d, vec y = v_set(0);
               for (int j = 0; j < seen; j++) y =
                   v_fma(v_set(p[j]), LOAD(values + (int64_t)j * width + c0), y);
               STORE(o + c0, y / v_set(sum)));
    }
}

#endif
