/* winograd_pack.h -- transformed filters, in the order in which the products read them.
 *
 *   u [ceil(O / P)][a^2][C][P] = (G w G')[a^2]         zeros after the last output
 *
 * For the gradient of the images: the same with C and O exchanged and taps reversed.
 * A vector of filters is packed at a time: on AVX-512, 512 x 512 filters of 3 x 3 take 2 ms; one by
 * one they took 11 ms, as long as two convolutions of 7 x 7 images.
 */
#ifndef CPU_WINOGRAD_PACK_H
#define CPU_WINOGRAD_PACK_H
#include "cpu/transpose.h"
#include "cpu/winograd_transform.h"

/* u[e * step] = (G w G')[e] for a vector of filters; tap k of them is g[k * g_step]. */
RT_INLINE void wino_pack_vector(real *restrict u, int64_t step, const vec *g, int g_step, int taps,
                                int a)
{
    vec t[5 * WINO_A], r[WINO_A];

    RT_UNROLL
    for (int i = 0; i < taps; i++) /* along columns of taps: t[row of points][i] */
        wino_filter(t + i, taps, g + i * g_step, taps * g_step, taps, a);
    RT_UNROLL
    for (int e = 0; e < a; e++) {
        wino_filter(r, 1, t + e * taps, 1, taps, a);
        RT_UNROLL
        for (int f = 0; f < a; f++)
            v_store(u + (e * a + f) * step, r[f]);
    }
}

/* Packs V outputs from `first` on and `lanes` channels from i on.  The square of each tap is
 * transposed, so that lanes are outputs. */
RT_INLINE void wino_pack_square(real *restrict u, const real *restrict w, Conv c, int a, int first,
                                int i, int lanes)
{
    const int taps = c.r * c.s;
    vec g[WINO_TAPS * V];

    for (int k = 0; k < taps; k++) {
        vec *t = g + k * V;
        RT_UNROLL
        for (int j = 0; j < V; j++)
            t[j] = first + j < c.o
                       ? v_load_lanes(w + ((int64_t)(first + j) * taps + k) * c.c + i, lanes)
                       : v_set(0);
        v_transpose(t);
    }
    for (int j = 0; j < lanes; j++)
        wino_pack_vector(u + (int64_t)j * P, (int64_t)c.c * P, g + j, V, c.r, a);
}

/* Packs u [ceil(O / P)][a^2][C][P] from w (O, R, S, C). */
RT_INLINE void wino_pack(real *restrict u, const real *restrict w, Conv c, int m, int unit,
                         int units)
{
    const int a = wino_side(c, m), panels = conv_ceil(c.o, P), across = conv_ceil(c.c, V);
    const int64_t squares = (int64_t)panels * 2 * across, block = (int64_t)a * a * c.c * P;

    for (int64_t k = squares * unit / units; k < squares * (unit + 1) / units; k++) {
        const int half = (int)(k / across), i = (int)(k % across) * V;
        wino_pack_square(u + half / 2 * block + half % 2 * V + (int64_t)i * P, w, c, a, half * V, i,
                         c.c - i < V ? c.c - i : V);
    }
}

/* Packs u [ceil(C / P)][a^2][O][P] from w (O, R, S, C), with taps in reverse order. */
RT_INLINE void wino_pack_dx(real *restrict u, const real *restrict w, Conv c, int m, int unit,
                            int units)
{
    const int a = wino_side(c, m), panels = conv_ceil(c.c, P), taps = c.r * c.s;
    const int64_t rows = (int64_t)panels * c.o, block = (int64_t)a * a * c.o * P;

    for (int64_t row = rows * unit / units; row < rows * (unit + 1) / units; row++)
        for (int half = 0; half < 2; half++) {
            const int o = (int)(row % c.o), i = (int)(row / c.o) * P + half * V;
            const int lanes = c.c - i < V ? c.c - i : V;
            vec g[WINO_TAPS];
            for (int k = 0; k < taps; k++)
                g[k] = lanes <= 0
                           ? v_set(0)
                           : v_load_lanes(w + ((int64_t)o * taps + taps - 1 - k) * c.c + i, lanes);
            wino_pack_vector(u + row / c.o * block + (int64_t)o * P + half * V, (int64_t)c.o * P, g,
                             1, c.r, a);
        }
}

#endif
