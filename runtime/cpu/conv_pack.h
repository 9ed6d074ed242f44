/* conv_pack.h -- the weights of a convolution in the order in which its kernels read them, packed
 * once a step.
 *
 * Forward: panels of P outputs, [group][ceil(O/g / P)][R][S][C/g][P], zeros after the last output.
 * Backward: the same with outputs and inputs exchanged, [group][ceil(C/g / P)][R][S][O/g][P].
 * Depthwise: [R][S][C], forward and backward.
 * Backward through a fused max-pool: [O][R][run], run = S C/g rounded up to whole vectors with
 * zeros: what a row of taps of one output adds to.
 */
#ifndef CPU_CONV_PACK_H
#define CPU_CONV_PACK_H
#include "cpu/conv.h"
#include "cpu/transpose.h"

RT_INLINE int conv_ceil(int n, int unit)
{
    return (n + unit - 1) / unit;
}
#define CONV_DEPTHWISE(q) ((q).groups == (q).c && (q).o == (q).c && (q).c > 1 && !(q).pool)
#define CONV_PACK_COUNT(q)                                                                         \
    (CONV_DEPTHWISE(q) ? (int64_t)(q).r * (q).s * (q).c                                            \
                       : (int64_t)(q).groups * (((q).o / (q).groups + P - 1) / P) * (q).r *        \
                             (q).s * ((q).c / (q).groups) * P)
#define CONV_PACK_BACK_COUNT(q)                                                                    \
    (CONV_DEPTHWISE(q) ? (int64_t)(q).r * (q).s * (q).c                                            \
                       : (int64_t)(q).groups * (((q).c / (q).groups + P - 1) / P) * (q).r *        \
                             (q).s * ((q).o / (q).groups) * P)
#define CONV_RUN(q)           (((q).s * ((q).c / (q).groups) + V - 1) / V * V)
#define CONV_PACK_DX_COUNT(q) ((int64_t)(q).o * (q).r * CONV_RUN(q))

RT_INLINE void conv2d_pack_depthwise(real *restrict p, const real *restrict w, Conv c, int unit,
                                     int units)
{
    const int taps = c.r * c.s;
    for (int i = (int)((int64_t)c.c * unit / units); i < (int64_t)c.c * (unit + 1) / units; i++)
        for (int tap = 0; tap < taps; tap++)
            p[(int64_t)tap * c.c + i] = w[(int64_t)i * taps + tap];
}

/* Packs by the definition, one number after another. */
RT_INLINE void conv2d_pack_plain(real *p, const real *w, Conv c)
{
    const int outputs = c.o / c.groups, inputs = c.c / c.groups, panels = conv_ceil(outputs, P),
              taps = c.r * c.s;
    for (int64_t k = 0; k < CONV_PACK_COUNT(c); k++) {
        const int64_t row = k / P / inputs, i = k / P % inputs;
        const int64_t o = row / taps % panels * P + k % P, group = row / taps / panels;
        p[k] = o < outputs ? w[((group * outputs + o) * taps + row % taps) * inputs + i] : 0;
    }
}

/* Filters of 1 MB and more are written past the caches.  Before a network reads such filters
 * again, it uses more data than a cache holds.  A streaming store need not read the line first
 * (packing for resnet50_cifar10: 15 instead of 22 ms a step).  If a vector is half a line, the
 * other half must follow at once (`whole`). */
RT_INLINE bool conv_pack_streams(const real *p, int64_t count, bool whole)
{
    return count * (int64_t)sizeof(real) >= 1 << 20 && (uintptr_t)p % 64 == 0 &&
           (whole || V * sizeof(real) == 64);
}

/* A row of a panel: the weights of one (group, panel, r, s), for P outputs, or backward for P
 * inputs. */
typedef struct ConvPackRow {
    int tap, panel, group;
} ConvPackRow;

RT_INLINE ConvPackRow conv_pack_row(int64_t row, int taps, int panels)
{
    return (ConvPackRow){(int)(row % taps), (int)(row / taps % panels), (int)(row / taps / panels)};
}

/* This unit of `units` packs its share of the panels' rows.  Squares are transposed in registers.
 * With single numbers, 1x1 1024->2048 took 4.2 ms instead of 1.0, as long as its product with 32
 * images of 1 x 1, because the rows of wide layers are a power of two apart. */
RT_INLINE void conv2d_pack(real *restrict p, const real *restrict w, Conv c, int unit, int units)
{
    const int outputs = c.o / c.groups, inputs = c.c / c.groups, panels = conv_ceil(outputs, P),
              taps = c.r * c.s;
    const int64_t rows = (int64_t)c.groups * panels * taps, stride = (int64_t)taps * inputs;
    const bool stream = conv_pack_streams(p, CONV_PACK_COUNT(c), false);
    if (CONV_DEPTHWISE(c)) {
        conv2d_pack_depthwise(p, w, c, unit, units);
        return;
    }
    for (int64_t row = rows * unit / units; row < rows * (unit + 1) / units; row++) {
        const ConvPackRow at = conv_pack_row(row, taps, panels);
        for (int half = 0; half < P; half += V) {
            const int first = at.panel * P + half;
            pack_transposed(p + row * inputs * P + half,
                            w + (at.group * outputs + first) * stride + (int64_t)at.tap * inputs,
                            stride, inputs, outputs - first, stream);
        }
    }
    if (stream)
        v_stream_end();
}

/* The same share for the backward pass: P inputs of one (group, panel, r, s) for each output. */
RT_INLINE void conv2d_pack_back(real *restrict p, const real *restrict w, Conv c, int unit,
                                int units)
{
    const int outputs = c.o / c.groups, inputs = c.c / c.groups, panels = conv_ceil(inputs, P),
              taps = c.r * c.s;
    const int64_t rows = (int64_t)c.groups * panels * taps;
    const bool stream = conv_pack_streams(p, CONV_PACK_BACK_COUNT(c), true);
    if (CONV_DEPTHWISE(c)) {
        conv2d_pack_depthwise(p, w, c, unit, units);
        return;
    }
    for (int64_t row = rows * unit / units; row < rows * (unit + 1) / units; row++) {
        const ConvPackRow at = conv_pack_row(row, taps, panels);
        const int first = at.panel * P, lanes = inputs - first < P ? inputs - first : P;
        for (int o = 0; o < outputs; o++) {
            const real *from =
                w + (((int64_t)at.group * outputs + o) * taps + at.tap) * inputs + first;
            for (int half = 0; half < P; half += V)
                pack_store(p + (row * outputs + o) * P + half,
                           lanes - half >= V  ? v_load(from + half)
                           : lanes - half > 0 ? v_load_n(from + half, lanes - half)
                                              : v_set(0),
                           stream);
        }
    }
    if (stream)
        v_stream_end();
}

RT_INLINE void conv2d_pack_dx(real *restrict p, const real *restrict w, Conv c, int unit, int units)
{
    const int length = c.s * (c.c / c.groups), run = CONV_RUN(c);
    const int64_t rows = (int64_t)c.o * c.r;
    for (int64_t row = rows * unit / units; row < rows * (unit + 1) / units; row++) {
        memcpy(p + row * run, w + row * length, sizeof(real) * length);
        memset(p + row * run + length, 0, sizeof(real) * (run - length));
    }
}

#endif
