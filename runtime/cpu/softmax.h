/* softmax.h -- y = exp(x - max) / sum exp(x - max) over the K numbers of a row, and its gradient.
 *
 *   dx = y (dy - sum y dy)
 *
 *   x, y (N, K) row-major in plain and fast kernels; softmax_along: (outer, K, inner)
 */
#ifndef CPU_SOFTMAX_H
#define CPU_SOFTMAX_H

RT_INLINE real row_max_plain(const real *x, int k)
{
    real top = x[0];
    for (int j = 1; j < k; j++)
        top = x[j] > top ? x[j] : top;
    return top;
}

/* y = exp(x - max); returns the sum. */
RT_INLINE real row_exp_plain(real *y, const real *x, int k)
{
    const real top = row_max_plain(x, k);
    real sum = 0;
    for (int j = 0; j < k; j++)
        sum += y[j] = s_exp(x[j] - top);
    return sum;
}

RT_INLINE void softmax_plain(real *y, const real *x, int n, int k)
{
    for (int i = 0; i < n; i++, y += k, x += k) {
        const real sum = row_exp_plain(y, x, k);
        for (int j = 0; j < k; j++)
            y[j] /= sum;
    }
}

RT_INLINE void softmax_dx_plain(real *dx, const real *y, const real *dy, int n, int k)
{
    for (int i = 0; i < n; i++, dx += k, y += k, dy += k) {
        real dot = 0;
        for (int j = 0; j < k; j++)
            dot += y[j] * dy[j];
        for (int j = 0; j < k; j++)
            dx[j] = y[j] * (dy[j] - dot);
    }
}

/* x: squares of K rows.  Row i becomes a softmax over elements 0 .. i; its other elements become
 * 0. */
RT_INLINE void softmax_causal_plain(real *y, const real *x, int n, int k)
{
    for (int i = 0; i < n; i++, y += k, x += k) {
        const int seen = i % k + 1;
        const real sum = row_exp_plain(y, x, seen);
        for (int j = 0; j < k; j++)
            y[j] = j < seen ? y[j] / sum : 0;
    }
}

/* Computes a softmax over K numbers that are `inner` apart. */
RT_INLINE void softmax_along_plain(real *y, const real *x, int outer, int k, int inner)
{
    for (int i = 0; i < outer; i++, y += (int64_t)k * inner, x += (int64_t)k * inner)
        for (int c = 0; c < inner; c++) {
            real top = x[c], sum = 0;
            for (int j = 1; j < k; j++)
                top = x[(int64_t)j * inner + c] > top ? x[(int64_t)j * inner + c] : top;
            for (int j = 0; j < k; j++)
                sum += y[(int64_t)j * inner + c] = s_exp(x[(int64_t)j * inner + c] - top);
            for (int j = 0; j < k; j++)
                y[(int64_t)j * inner + c] /= sum;
        }
}

RT_INLINE void softmax_dx_along_plain(real *dx, const real *y, const real *dy, int outer, int k,
                                      int inner)
{
    for (int i = 0; i < outer * inner; i++) {
        const int64_t at = (int64_t)(i / inner) * k * inner + i % inner;
        real dot = 0;
        for (int64_t j = 0; j < k; j++)
            dot += y[at + j * inner] * dy[at + j * inner];
        for (int64_t j = 0; j < k; j++)
            dx[at + j * inner] = y[at + j * inner] * (dy[at + j * inner] - dot);
    }
}

/* Loads some lanes; the others do not change the row's maximum and sum. */
RT_INLINE vec row_load(const real *x, int lanes)
{
    return lanes == V ? v_load(x) : v_load_fill(x, lanes, -INFINITY);
}

RT_INLINE real row_max(const real *x, int k)
{
    vec top = v_set(-INFINITY);
    RT_MAP(k, top = v_max(top, row_load(x + AT, rt_lanes)));
    return v_top(top);
}

/* y = exp(x - max); returns the sum.  y and x can be the same row. */
RT_INLINE real row_exp(real *y, const real *x, int k)
{
    const vec top = v_set(row_max(x, k));
    vec sum = v_set(0);
    RT_MAP(k, vec e = v_exp(row_load(x + AT, rt_lanes) - top); STORE(y, e); sum += e);
    return v_sum(sum);
}

RT_INLINE void softmax(real *restrict y, const real *restrict x, int n, int k)
{
    const TeamRange part = team_range(n);
    x += part.first * k, y += part.first * k;
    for (int64_t i = part.first; i < part.end; i++, y += k, x += k) {
        const vec share = v_set(1 / row_exp(y, x, k));
        RT_MAP(k, STORE(y, LOAD(y) * share));
    }
}

RT_INLINE void softmax_dx(real *restrict dx, const real *restrict y, const real *restrict dy, int n,
                          int k)
{
    const TeamRange part = team_range(n);
    dx += part.first * k, y += part.first * k, dy += part.first * k;
    for (int64_t i = part.first; i < part.end; i++, dx += k, y += k, dy += k) {
        vec dot = v_set(0);
        RT_MAP(k, dot += LOAD(y) * LOAD(dy));
        const vec sum = v_set(v_sum(dot));
        RT_MAP(k, STORE(dx, LOAD(y) * (LOAD(dy) - sum)));
    }
}

RT_INLINE void softmax_causal(real *restrict y, const real *restrict x, int n, int k)
{
    const TeamRange part = team_range(n);
    x += part.first * k, y += part.first * k;
    for (int64_t i = part.first; i < part.end; i++, y += k, x += k) {
        const int seen = (int)(i % k) + 1;
        const vec share = v_set(1 / row_exp(y, x, seen));
        RT_MAP(seen, STORE(y, LOAD(y) * share));
        memset(y + seen, 0, sizeof(real) * (size_t)(k - seen));
    }
}

/* Computes V softmaxes at a time, one in each lane. */
RT_INLINE void softmax_along(real *restrict y, const real *restrict x, int outer, int k, int inner)
{
    for (int i = 0; i < outer; i++, y += (int64_t)k * inner, x += (int64_t)k * inner)
        RT_MAP(
            inner, vec top = LOAD(x); vec sum = v_set(0);
            for (int64_t j = 1; j < k; j++) top = v_max(top, LOAD(x + j * inner));
            for (int64_t j = 0; j < k; j++) {
                const vec e = v_exp(LOAD(x + j * inner) - top);
                STORE(y + j * inner, e);
                sum += e;
            } const vec share = v_set(1) / sum;
            for (int64_t j = 0; j < k; j++) STORE(y + j * inner, LOAD(y + j * inner) * share));
}

RT_INLINE void softmax_dx_along(real *restrict dx, const real *restrict y, const real *restrict dy,
                                int outer, int k, int inner)
{
    const int64_t size = (int64_t)k * inner;
    for (int i = 0; i < outer; i++, dx += size, y += size, dy += size)
        RT_MAP(inner, vec dot = v_set(0); for (int64_t j = 0; j < k; j++) dot =
                                              v_fma(LOAD(y + j * inner), LOAD(dy + j * inner), dot);
               for (int64_t j = 0; j < k; j++)
                   STORE(dx + j * inner, LOAD(y + j * inner) * (LOAD(dy + j * inner) - dot)));
}

#endif
