/* conv_dw_few.h -- gradient of the weights with few channels: the first layer of most networks.
 *
 * The lanes are outputs, which are read from dy in place.  The rows of a tile are taps, broadcast
 * from a copy of the image with its padding.  Sums are stored as [R S C][O] and transposed once at
 * the end.  Measured on AVX-512, 7 x 7 / 2 from 3 channels to 64: 87-97 % of the FMA peak.  With
 * taps in the lanes, which fill 21 of 32 lanes, 61 %.
 */
#ifndef CPU_CONV_DW_FEW_H
#define CPU_CONV_DW_FEW_H

enum { FEW_SCRATCH = 128 * 1024 / sizeof(real) };

/* Whether outputs fill vectors clearly better than runs of taps, and the sums fit. */
RT_INLINE bool conv_dw_is_few(Conv c)
{
    const int run = c.s * c.c, lanes_run = conv_ceil(run, V) * V, lanes_o = conv_ceil(c.o, V) * V;
    return c.groups == 1 && c.dil_w == 1 && c.r * run * lanes_o <= FEW_SCRATCH &&
           (int64_t)run * lanes_o * 10 <= (int64_t)9 * c.o * lanes_run && conv_band(c, 1) > 0;
}

/* t [rows][lanes_o]: a few taps of one kernel row by one panel of outputs. */
RT_INLINE void conv_dw_few_tile(real *sum, int64_t step, ConvImage m, const real *dy, Conv c,
                                int rows, int band, int lanes)
{
    const int vectors = lanes > V ? 2 : 1;
    vec t[TILE_MAX];
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            t[i * vectors + j] = v_load(sum + i * step + j * V);
    }
    for (int oy = 0; oy < band; oy++)
        tile_product(t, (TileRows){.count = rows, .step = 1}, vectors, c.ow,
                     m.x + (int64_t)oy * c.stride_h * m.row, (int64_t)c.stride_w * c.c,
                     dy + (int64_t)oy * c.ow * c.o, c.o, lanes);
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store(sum + i * step + j * V, t[i * vectors + j]);
    }
}

/* One panel of outputs, all taps. */
RT_INLINE void conv_dw_few_panel(real *sum, int64_t step, ConvImage m, const real *dy, Conv c,
                                 int band, int lanes)
{
    const TileSplit k = tile_split(c.s * c.c, lanes > V ? TILE_ROWS : TILE_ROWS_1);
    for (int r = 0; r < c.r; r++) {
        ConvImage at = {m.x + r * c.dil_h * m.row, m.row};
        for (int i = 0; i < k.bigs; i++, at.x += k.big, sum += k.big * step)
            conv_dw_few_tile(sum, step, at, dy, c, k.big, band, lanes);
        for (int i = 0; i < k.smalls; i++, at.x += k.small, sum += k.small * step)
            conv_dw_few_tile(sum, step, at, dy, c, k.small, band, lanes);
    }
}

RT_INLINE void conv_dw_few_band(real *sum, int64_t step, ConvImage m, const real *dy, Conv c,
                                int band)
{
    const int full = c.o / P * P;
    const TeamRange part = conv_dw_part(c, P);
    for (int o = (int)part.first; o < full && o < part.end; o += P)
        conv_dw_few_panel(sum + o, step, m, dy + o, c, band, P);
    if (full < c.o && part.end == c.o)
        conv_dw_few_panel(sum + full, step, m, dy + full, c, band, c.o - full);
}

RT_INLINE void conv_dw_few(real *restrict dw, const real *restrict x, const real *restrict dy,
                           Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    real sum[FEW_SCRATCH] __attribute__((aligned(64)));
    const int taps = c.r * c.s * c.c, step = conv_ceil(c.o, V) * V, most = conv_band(c, 1);

    memset(sum, 0, sizeof(real) * taps * step);
    for (int n = 0; n < c.n; n++, x += (int64_t)c.h * c.w * c.c)
        for (int oy = 0; oy < c.oh; oy += most) {
            const int band = c.oh - oy < most ? c.oh - oy : most;
            conv_dw_few_band(sum, step, conv_pad(scratch, x, c, oy, band), dy, c, band);
            dy += (int64_t)band * c.ow * c.o;
        }
    const TeamRange part = conv_dw_part(c, P);
    for (int o = (int)part.first; o < part.end; o++)
        for (int j = 0; j < taps; j++)
            dw[(int64_t)o * taps + j] += sum[(int64_t)j * step + o];
}

#endif
