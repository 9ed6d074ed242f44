/* bf16_pack.h -- weights as the second factor of a product in bf16, packed once a step.
 *
 * A panel has 16 outputs.  Pairs of factors are adjacent: [k / 2][16 outputs][k % 2].  So the 32
 * factors of a block are 16 rows of 64 bytes: a tile of AMX, or 16 vectors of AVX-512.  The last
 * block of a sum is filled with zeros, and so are the outputs after the last one.
 * The layout is the same for all processors.
 *
 *   dense     [ceil(O / 16)][K]         back: [ceil(K / 16)][O]
 *   conv      [group][ceil(O/g / 16)][run][length]     back: [group][ceil(C/g / 16)][R][S][O/g]
 *
 * A run: the factors of adjacent taps that are adjacent in the image.  It is a kernel row of S C
 * numbers if there is one group and no dilation across, else the C/g channels of a tap.
 */
#ifndef CPU_BF16_PACK_H
#define CPU_BF16_PACK_H
#include "cpu/bf16_vec.h"
#include "cpu/conv.h"
#include "cpu/dense.h"

#define BF16_BLOCKS(k) (((k) + BF16_BLOCK - 1) / BF16_BLOCK)
#define BF16_PANELS(o) (((o) + BF16_LANES - 1) / BF16_LANES)
#define BF16_PANEL(k)  ((int64_t)BF16_BLOCKS(k) * (BF16_BLOCK * BF16_LANES))
/* Numbers of packed weights, for k factors and o outputs. */
#define BF16_PACKED(k, o) (BF16_PANELS(o) * BF16_PANEL(k))

#define BF16_CONV_WHOLE(q)  ((q).groups == 1 && (q).dil_w == 1)
#define BF16_CONV_RUNS(q)   ((q).r * (BF16_CONV_WHOLE(q) ? 1 : (q).s))
#define BF16_CONV_LENGTH(q) (BF16_CONV_WHOLE(q) ? (q).s * (q).c : (q).c / (q).groups)
#define BF16_CONV_PACKED(q)                                                                        \
    ((q).groups * BF16_CONV_RUNS(q) * BF16_PACKED(BF16_CONV_LENGTH(q), (q).o / (q).groups))
#define BF16_CONV_PACKED_BACK(q)                                                                   \
    ((q).groups * (q).r * (q).s * BF16_PACKED((q).o / (q).groups, (q).c / (q).groups))

/* ------------------------------------------------------------------------------------ reference
 * One panel by its definition.  Output j, factor k is w[j * output + k * factor]. */
RT_INLINE void bf16_pack_plain(bf16 *p, const real *w, int64_t output, int64_t factor, int outputs,
                               int factors)
{
    for (int k = 0; k < BF16_BLOCKS(factors) * BF16_BLOCK; k++)
        for (int j = 0; j < BF16_LANES; j++)
            p[(k / 2 * BF16_LANES + j) * 2 + k % 2] =
                j < outputs && k < factors ? bf16_narrow((float)w[j * output + k * factor]) : 0;
}

/* --------------------------------------------------------------------------- squares of weights */
#ifndef RT_DOUBLE
enum { BF16_SIDE = BF16_LANES / BV }; /* registers of a row of 16 lanes */

/* Loads 16 factors by 16 outputs.  Output j, factor k is w[j * output + k * factor], and one of
 * these two distances is 1.  Numbers of other outputs and factors are 0, and their memory is not
 * read. */
RT_INLINE void bf16_load_square(bvec *t, const real *w, int64_t output, int64_t factor, int outputs,
                                int factors)
{
    for (int j = 0; j < BF16_SIDE; j++) {
        const int lanes = outputs - j * BV < 0 ? 0 : outputs - j * BV < BV ? outputs - j * BV : BV;
        for (int k = 0; output == 1 && k < BF16_LANES; k++)
            t[k * BF16_SIDE + j] =
                k < factors && lanes > 0 ? b_load_n(w + k * factor + j * BV, lanes) : (bvec){0};
        for (int i = 0; output != 1 && i < BF16_SIDE; i++) {
            const int left = factors - i * BV < BV ? factors - i * BV : BV;
            bvec u[BV];
            for (int k = 0; k < BV; k++)
                u[k] = k < lanes && left > 0 ? b_load_n(w + (j * BV + k) * output + i * BV, left)
                                             : (bvec){0};
            b_transpose(u);
            for (int k = 0; k < BV; k++)
                t[(i * BV + k) * BF16_SIDE + j] = u[k];
        }
    }
}

RT_INLINE void bf16_pack_square(bf16 *restrict p, const real *restrict w, int64_t output,
                                int64_t factor, int outputs, int factors)
{
    bvec t[BF16_LANES * BF16_SIDE];
    bf16_load_square(t, w, output, factor, outputs, factors);
    for (int k = 0; k < BF16_LANES; k += 2, p += 2 * BF16_LANES)
        for (int j = 0; j < BF16_SIDE; j++) {
            const bvec_bits pairs = b_round(t[k * BF16_SIDE + j]) >> 16 |
                                    (b_round(t[(k + 1) * BF16_SIDE + j]) & 0xffff0000);
            memcpy(p + 2 * j * BV, &pairs, sizeof pairs);
        }
}

/* The same as bf16_pack_plain, by squares.  One of the two distances is 1. */
RT_INLINE void bf16_pack_panel(bf16 *restrict p, const real *restrict w, int64_t output,
                               int64_t factor, int outputs, int factors)
{
    for (int k = 0; k < BF16_BLOCKS(factors) * BF16_BLOCK; k += BF16_LANES)
        bf16_pack_square(p + k * BF16_LANES, w + k * factor, output, factor, outputs,
                         factors - k < 0            ? 0
                         : factors - k < BF16_LANES ? factors - k
                                                    : BF16_LANES);
}

/* ---------------------------------------------------------------------------------------- dense */

/* Items of unit `unit` of `units`. */
#define BF16_SHARE(i, items, unit, units)                                                          \
    for (int64_t i = (int64_t)(items) * (unit) / (units);                                          \
         i < (int64_t)(items) * ((unit) + 1) / (units); i++)

RT_INLINE int bf16_left(int count, int64_t first)
{
    return count - first < BF16_LANES ? (int)(count - first) : BF16_LANES;
}

/* This unit of `units` packs its share of w, which has the layout of dense.h: panels of P outputs.
 * p: BF16_PACKED(d.k, d.o) numbers. */
RT_INLINE void bf16_dense_pack(bf16 *restrict p, const real *restrict w, Dense d, int unit,
                               int units)
{
    BF16_SHARE(i, BF16_PANELS(d.o), unit, units)
    {
        const int64_t o = i * BF16_LANES;
        bf16 *to = p + i * BF16_PANEL(d.k);
        if (P % BF16_LANES == 0) {
            bf16_pack_panel(to, w + o / P * P * d.k + o % P, 1, P, bf16_left(d.o, o), d.k);
            continue;
        }
        for (int k = 0; k < BF16_BLOCKS(d.k) * BF16_BLOCK; k++)
            for (int j = 0; j < BF16_LANES; j++)
                to[(k / 2 * BF16_LANES + j) * 2 + k % 2] =
                    o + j < d.o && k < d.k
                        ? bf16_narrow(w[((o + j) / P * d.k + k) * P + (o + j) % P])
                        : 0;
    }
}

/* Packs for the gradient of the input.  p: BF16_PACKED(d.o, d.k) numbers. */
RT_INLINE void bf16_dense_pack_back(bf16 *restrict p, const real *restrict w, Dense d, int unit,
                                    int units)
{
    BF16_SHARE(i, BF16_PANELS(d.k), unit, units)
    {
        const int64_t k = i * BF16_LANES;
        bf16 *to = p + i * BF16_PANEL(d.o);
        for (int o = 0; P % BF16_LANES == 0 && o < BF16_BLOCKS(d.o) * BF16_BLOCK; o += BF16_LANES)
            bf16_pack_square(to + o * BF16_LANES, w + (int64_t)(o / P) * P * d.k + k * P + o % P, P,
                             1, bf16_left(d.k, k), o < d.o ? bf16_left(d.o, o) : 0);
        for (int o = 0; P % BF16_LANES != 0 && o < BF16_BLOCKS(d.o) * BF16_BLOCK; o++)
            for (int j = 0; j < BF16_LANES; j++)
                to[(o / 2 * BF16_LANES + j) * 2 + o % 2] =
                    k + j < d.k && o < d.o
                        ? bf16_narrow(w[((int64_t)(o / P) * d.k + k + j) * P + o % P])
                        : 0;
    }
}

/* --------------------------------------------------------------------------------- convolutions */

/* This unit of `units` packs its share of w (O, R, S, C/g).  p: BF16_CONV_PACKED(c) numbers. */
RT_INLINE void bf16_conv_pack(bf16 *restrict p, const real *restrict w, Conv c, int unit, int units)
{
    const int outputs = c.o / c.groups, runs = BF16_CONV_RUNS(c), length = BF16_CONV_LENGTH(c),
              panels = BF16_PANELS(outputs);
    const int64_t filter = (int64_t)c.r * c.s * (c.c / c.groups);
    BF16_SHARE(i, (int64_t)c.groups * panels * runs, unit, units)
    {
        const int64_t first = i / runs % panels * BF16_LANES, group = i / runs / panels;
        bf16_pack_panel(p + i * BF16_PANEL(length),
                        w + (group * outputs + first) * filter + i % runs * length, filter, 1,
                        bf16_left(outputs, first), length);
    }
}

/* For the gradient of the images.  p: BF16_CONV_PACKED_BACK(c) numbers.  Filters are read by up to
 * BF16_PACKED_AT_ONCE adjacent panels of channels, because they lie far apart. */
enum { BF16_PACKED_AT_ONCE = 8 };
RT_INLINE void bf16_conv_pack_back(bf16 *restrict p, const real *restrict w, Conv c, int unit,
                                   int units)
{
    const int outputs = c.o / c.groups, inputs = c.c / c.groups, taps = c.r * c.s,
              panels = BF16_PANELS(inputs),
              parts = (panels + BF16_PACKED_AT_ONCE - 1) / BF16_PACKED_AT_ONCE;
    const int64_t filter = (int64_t)taps * inputs, panel = BF16_PANEL(outputs);
    BF16_SHARE(i, (int64_t)c.groups * parts * taps, unit, units)
    {
        const int64_t tap = i % taps, group = i / taps / parts,
                      first = i / taps % parts * BF16_PACKED_AT_ONCE,
                      end = first + BF16_PACKED_AT_ONCE < panels ? first + BF16_PACKED_AT_ONCE
                                                                 : panels;
        for (int k = 0; k < BF16_BLOCKS(outputs) * BF16_BLOCK; k += BF16_LANES)
            for (int64_t j = first; j < end; j++)
                bf16_pack_square(p + ((group * panels + j) * taps + tap) * panel + k * BF16_LANES,
                                 w + (group * outputs + k) * filter + tap * inputs + j * BF16_LANES,
                                 1, filter, bf16_left(inputs, j * BF16_LANES),
                                 k < outputs ? bf16_left(outputs, k) : 0);
    }
}

#endif

#endif
