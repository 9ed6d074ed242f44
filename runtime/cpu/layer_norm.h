/* layer_norm.h -- layer_norm and rms_norm: each row of K numbers is normalised.
 *
 *   xhat = (x - mean) r    r = 1 / sqrt(mean (x - mean)^2 + epsilon)    without center: mean = 0
 *   y = xhat w + b
 *   dx = r (g - mean g - xhat mean(g xhat)), g = dy w      without center: no mean g
 *   dw += sum over the rows of dy xhat
 *
 *   x, y, dy, dx (rows, K)   w, b, dw (K); b may be NULL
 */
#ifndef CPU_LAYER_NORM_H
#define CPU_LAYER_NORM_H

typedef struct LayerNorm {
    int rows, k;
    bool center;
    double epsilon;
} LayerNorm;

/* Mean and r of a row; r = 1 / sqrt(variance + epsilon). */
typedef struct RowMoments {
    real mean, r;
} RowMoments;

/* ------------------------------------------------------------------------------------ reference */
RT_INLINE RowMoments row_moments_plain(const real *x, LayerNorm l)
{
    const real first = l.center ? x[0] : 0; /* a sum of numbers far from 0 loses digits */
    real sum = 0, squares = 0;
    for (int j = 0; j < l.k && l.center; j++)
        sum += x[j] - first;
    const real mean = first + sum / (real)l.k;
    for (int j = 0; j < l.k; j++)
        squares += (x[j] - mean) * (x[j] - mean);
    return (RowMoments){mean, 1 / s_sqrt(squares / (real)l.k + (real)l.epsilon)};
}

RT_INLINE void layer_norm_plain(real *y, const real *x, const real *w, const real *b, LayerNorm l)
{
    for (int i = 0; i < l.rows; i++, x += l.k, y += l.k) {
        const RowMoments m = row_moments_plain(x, l);
        for (int j = 0; j < l.k; j++)
            y[j] = (x[j] - m.mean) * m.r * w[j] + (b ? b[j] : 0);
    }
}

RT_INLINE void layer_norm_dx_plain(real *dx, const real *dy, const real *x, const real *w,
                                   LayerNorm l)
{
    for (int i = 0; i < l.rows; i++, x += l.k, dy += l.k, dx += l.k) {
        const RowMoments m = row_moments_plain(x, l);
        real sum = 0, dot = 0;
        for (int j = 0; j < l.k; j++) {
            sum += dy[j] * w[j];
            dot += dy[j] * w[j] * (x[j] - m.mean) * m.r;
        }
        sum = l.center ? sum / (real)l.k : 0;
        for (int j = 0; j < l.k; j++)
            dx[j] = m.r * (dy[j] * w[j] - sum - (x[j] - m.mean) * m.r * (dot / (real)l.k));
    }
}

RT_INLINE void layer_norm_dw_plain(real *dw, const real *dy, const real *x, LayerNorm l)
{
    for (int i = 0; i < l.rows; i++, x += l.k, dy += l.k) {
        const RowMoments m = row_moments_plain(x, l);
        for (int j = 0; j < l.k; j++)
            dw[j] += dy[j] * (x[j] - m.mean) * m.r;
    }
}

/* ----------------------------------------------------------------------------------------- fast */

/* Additions for each lane in a row's sum.  In longer rows, differences from the first number are
 * summed, because numbers far from 0 lose more digits with each addition. */
enum { RT_ROW_CHAIN = 256 };

/* Lanes after the end of the row add nothing: in the sum they hold the number that is subtracted,
 * and in the sum of squares the mean. */
RT_INLINE RowMoments row_moments(const real *x, LayerNorm l)
{
    const bool many = l.k > RT_ROW_CHAIN * V;
    const real first = l.center && many ? x[0] : 0;
    vec sum = v_set(0), squares = v_set(0);
    if (l.center)
        RT_MAP(l.k, sum += (rt_lanes == V ? v_load(x + AT) : v_load_fill(x + AT, rt_lanes, first)) -
                           v_set(first));
    const real about = v_sum(sum) / (real)l.k, mean = many ? first + about : about;
    RT_MAP(l.k,
           const vec d =
               (rt_lanes == V ? v_load(x + AT) : v_load_fill(x + AT, rt_lanes, mean)) - v_set(mean);
           squares = v_fma(d, d, squares));
    return (RowMoments){mean, 1 / s_sqrt(v_sum(squares) / (real)l.k + (real)l.epsilon)};
}

RT_INLINE void layer_norm(real *restrict y, const real *restrict x, const real *restrict w,
                          const real *restrict b, LayerNorm l)
{
    const TeamRange part = team_range(l.rows);
    x += part.first * l.k, y += part.first * l.k;
    for (int64_t i = part.first; i < part.end; i++, x += l.k, y += l.k) {
        const RowMoments m = row_moments(x, l);
        const vec mean = v_set(m.mean), r = v_set(m.r);
        RT_MAP(l.k, const vec z = (LOAD(x) - mean) * r * LOAD(w); STORE(y, b ? z + LOAD(b) : z));
    }
}

RT_INLINE void layer_norm_dx(real *restrict dx, const real *restrict dy, const real *restrict x,
                             const real *restrict w, LayerNorm l)
{
    const TeamRange part = team_range(l.rows);
    x += part.first * l.k, dy += part.first * l.k, dx += part.first * l.k;
    for (int64_t i = part.first; i < part.end; i++, x += l.k, dy += l.k, dx += l.k) {
        const RowMoments m = row_moments(x, l);
        const vec mean = v_set(m.mean), r = v_set(m.r);
        vec sum = v_set(0), dot = v_set(0);
        RT_MAP(l.k, const vec g = LOAD(dy) * LOAD(w); sum += g;
               dot = v_fma(g, (LOAD(x) - mean) * r, dot));
        const vec share = v_set(l.center ? v_sum(sum) / (real)l.k : 0),
                  along = v_set(v_sum(dot) / (real)l.k);
        RT_MAP(l.k, STORE(dx, r * (LOAD(dy) * LOAD(w) - share - (LOAD(x) - mean) * r * along)));
    }
}

RT_INLINE void layer_norm_dw(real *restrict dw, const real *restrict dy, const real *restrict x,
                             LayerNorm l)
{
    for (int i = 0; i < l.rows; i++, x += l.k, dy += l.k) {
        const RowMoments m = row_moments(x, l);
        const vec mean = v_set(m.mean), r = v_set(m.r);
        if (rt_team.of > 1) /* a team shares the columns */
            TEAM_MAP(l.k, STORE(dw, v_fma(LOAD(dy) * r, LOAD(x) - mean, LOAD(dw))));
        else
            RT_MAP(l.k, STORE(dw, v_fma(LOAD(dy) * r, LOAD(x) - mean, LOAD(dw))));
    }
}

#endif
