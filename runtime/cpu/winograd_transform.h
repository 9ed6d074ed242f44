/* winograd_transform.h -- Winograd's transforms along one dimension, on vectors of channels.
 *
 *   F(2, 3): points 0, 1, -1, infinity             a = 4
 *   F(4, 3), F(2, 5): points 0, 1, -1, 2, -2, infinity     a = 6
 *
 * G transforms r filter taps to a points, B' a inputs to a points, A' a points to m outputs.
 * Source: Lavin & Gray 2016, "Fast algorithms for convolutional neural networks".
 */
#ifndef CPU_WINOGRAD_TRANSFORM_H
#define CPU_WINOGRAD_TRANSFORM_H
#include "cpu/conv_pack.h"

enum { WINO_A = 6, WINO_TAPS = 25 }; /* at most */

/* m: outputs of a tile in each direction, 2 or 4; kernels are 3 x 3, and 5 x 5 with m = 2. */
RT_INLINE int wino_side(Conv c, int m)
{
    return m + c.r - 1;
}
#define WINO_COUNT(q, m)                                                                           \
    ((int64_t)(((q).o + P - 1) / P) * ((m) + (q).r - 1) * ((m) + (q).r - 1) * (q).c * P)
#define WINO_DX_COUNT(q, m)                                                                        \
    ((int64_t)(((q).c + P - 1) / P) * ((m) + (q).r - 1) * ((m) + (q).r - 1) * (q).o * P)

/* r = G g: `taps` filter taps to a points. */
RT_INLINE void wino_filter(vec *r, int r_step, const vec *g, int step, int taps, int a)
{
    const vec g0 = g[0], g1 = g[step], g2 = g[2 * step];

    if (a == 4) {
        const vec half = v_set((real)0.5), even = g0 + g2;
        r[0] = g0, r[r_step] = half * (even + g1);
        r[2 * r_step] = half * (even - g1), r[3 * r_step] = g2;
        return;
    }
    const vec sixth = v_set((real)(-1.0 / 6)), small = v_set((real)(1.0 / 24));
    vec even = g0 + g2, odd = g1, even2 = v_fma(v_set(4), g2, g0), odd2 = g1 + g1, last = g2;
    if (taps == 5) {
        const vec g3 = g[3 * step], g4 = g[4 * step];
        even = even + g4, odd = odd + g3, last = g4;
        even2 = v_fma(v_set(16), g4, even2), odd2 = v_fma(v_set(8), g3, odd2);
    }
    r[0] = v_set((real)0.25) * g0, r[5 * r_step] = last;
    r[r_step] = sixth * (even + odd), r[2 * r_step] = sixth * (even - odd);
    r[3 * r_step] = small * (even2 + odd2), r[4 * r_step] = small * (even2 - odd2);
}

/* r = B' d, in place. */
RT_INLINE void wino_input_1d(vec *d, int step, int a)
{
    const vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];

    if (a == 4) {
        d[0] = d0 - d2, d[step] = d1 + d2;
        d[2 * step] = d2 - d1, d[3 * step] = d1 - d3;
        return;
    }
    const vec d4 = d[4 * step], d5 = d[5 * step], four = v_set(4), five = v_set(-5);
    const vec p = v_fma(v_set(-4), d2, d4), q = v_fma(v_set(-4), d1, d3);
    const vec u = d4 - d2, v = d3 - d1, v2 = v + v;
    d[0] = v_fma(four, d0, v_fma(five, d2, d4));
    d[step] = p + q, d[2 * step] = p - q;
    d[3 * step] = u + v2, d[4 * step] = u - v2;
    d[5 * step] = v_fma(four, d1, v_fma(five, d3, d5));
}

/* y = A' x: a points to m outputs, `step` apart. */
RT_INLINE void wino_output_1d(vec *y, int y_step, const vec *x, int step, int a, int m)
{
    const vec x0 = x[0], s = x[step] + x[2 * step], t = x[step] - x[2 * step];

    if (a == 4) {
        y[0] = x0 + s;
        y[y_step] = t - x[3 * step];
        return;
    }
    const vec s2 = x[3 * step] + x[4 * step], t2 = x[3 * step] - x[4 * step], x5 = x[5 * step];
    y[0] = x0 + s + s2;
    if (m == 2) {
        y[y_step] = v_fma(v_set(2), t2, t) + x5;
        return;
    }
    y[y_step] = v_fma(v_set(2), t2, t);
    y[2 * y_step] = v_fma(v_set(4), s2, s);
    y[3 * y_step] = v_fma(v_set(8), t2, t) + x5;
}

/* z = A y, the adjoint of wino_output_1d: m gradients of outputs to a points. */
RT_INLINE void wino_gradient_1d(vec *z, int z_step, const vec *y, int step, int a, int m)
{
    const vec y0 = y[0], y1 = y[step];

    z[0] = y0;
    if (m == 2) {
        z[z_step] = y0 + y1, z[2 * z_step] = y0 - y1;
        if (a == 4) {
            z[3 * z_step] = -y1;
            return;
        }
        z[3 * z_step] = v_fma(v_set(2), y1, y0), z[4 * z_step] = v_fma(v_set(-2), y1, y0);
        z[5 * z_step] = y1;
        return;
    }
    const vec y2 = y[2 * step], y3 = y[3 * step], even = y0 + y2, odd = y1 + y3;
    const vec even2 = v_fma(v_set(4), y2, y0), odd2 = v_fma(v_set(8), y3, y1 + y1);
    z[z_step] = even + odd, z[2 * z_step] = even - odd;
    z[3 * z_step] = even2 + odd2, z[4 * z_step] = even2 - odd2;
    z[5 * z_step] = y3;
}

/* g = G' r, the adjoint of wino_filter: a points to the gradients of `taps` filter taps. */
RT_INLINE void wino_filter_back(vec *g, int step, const vec *r, int taps, int a)
{
    const vec s = r[1] + r[2], t = r[1] - r[2];

    if (a == 4) {
        const vec half = v_set((real)0.5);
        g[0] = v_fma(half, s, r[0]), g[step] = half * t, g[2 * step] = v_fma(half, s, r[3]);
        return;
    }
    const vec sixth = v_set((real)(-1.0 / 6)), s1 = sixth * s, t1 = sixth * t;
    const vec s2 = r[3] + r[4], t2 = r[3] - r[4];
    g[0] = v_fma(v_set((real)0.25), r[0], v_fma(v_set((real)(1.0 / 24)), s2, s1));
    g[step] = v_fma(v_set((real)(1.0 / 12)), t2, t1);
    g[2 * step] = v_fma(v_set((real)(1.0 / 6)), s2, s1);
    if (taps == 5) {
        g[3 * step] = v_fma(v_set((real)(1.0 / 3)), t2, t1);
        g[4 * step] = v_fma(v_set((real)(2.0 / 3)), s2, s1);
    }
    g[(taps - 1) * step] = g[(taps - 1) * step] + r[5];
}

#endif
