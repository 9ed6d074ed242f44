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

/* Computes t [rows][lanes_o]: a few taps of one kernel row by one panel of outputs. */
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

/* Tiles of taps of all kernel rows. */
RT_INLINE TileSplit conv_dw_few_split(Conv c, int lanes)
{
    return tile_split(c.s * c.c, lanes > V ? TILE_ROWS : TILE_ROWS_1);
}

/* Computes, for one panel of outputs, the tiles of taps that belong to a member of a team. */
RT_INLINE void conv_dw_few_panel(real *sum, int64_t step, ConvImage m, const real *dy, Conv c,
                                 int band, int lanes, TeamRange own)
{
    const TileSplit k = conv_dw_few_split(c, lanes);
    int tile = 0;
    for (int r = 0; r < c.r; r++) {
        ConvImage at = {m.x + r * c.dil_h * m.row, m.row};
        for (int i = 0; i < k.bigs; i++, at.x += k.big, sum += k.big * step, tile++)
            if (team_has(own, tile))
                conv_dw_few_tile(sum, step, at, dy, c, k.big, band, lanes);
        for (int i = 0; i < k.smalls; i++, at.x += k.small, sum += k.small * step, tile++)
            if (team_has(own, tile))
                conv_dw_few_tile(sum, step, at, dy, c, k.small, band, lanes);
    }
}

/* A member's part: panels of outputs, and a share of the tiles of taps of each. */
typedef struct FewPart {
    TeamRange panels;
    int at, of; /* share `at` of `of` equal shares */
} FewPart;
RT_INLINE FewPart conv_dw_few_part(Conv c)
{
    const int panels = conv_ceil(c.o, P);
    const TileSplit k = conv_dw_few_split(c, P);
    const RtGrid g = team_grid(panels, c.r * (k.bigs + k.smalls));
    return (FewPart){team_rows(g, panels), g.column, g.columns};
}
RT_INLINE TeamRange conv_dw_few_own(Conv c, FewPart p, int lanes)
{
    const TileSplit k = conv_dw_few_split(c, lanes);
    return team_part(c.r * (k.bigs + k.smalls), p.at, p.of);
}

RT_INLINE void conv_dw_few_band(real *sum, int64_t step, ConvImage m, const real *dy, Conv c,
                                int band, FewPart part)
{
    const int full = c.o / P * P;
    for (int o = 0; o < full; o += P)
        if (team_has(part.panels, o / P))
            conv_dw_few_panel(sum + o, step, m, dy + o, c, band, P, conv_dw_few_own(c, part, P));
    if (full < c.o && team_has(part.panels, full / P))
        conv_dw_few_panel(sum + full, step, m, dy + full, c, band, c.o - full,
                          conv_dw_few_own(c, part, c.o - full));
}

/* dw += the sums of one panel, for the taps of a member's tiles. */
RT_INLINE void conv_dw_few_add(real *dw, const real *sum, int64_t step, Conv c, int lanes,
                               TeamRange own)
{
    const TileSplit k = conv_dw_few_split(c, lanes);
    const int tiles = k.bigs + k.smalls, run = c.s * c.c, taps = c.r * run;
    for (int tile = (int)own.first; tile < own.end; tile++) {
        const int i = tile % tiles, first = tile / tiles * run + tile_first(k, i),
                  count = i < k.bigs ? k.big : k.small;
        for (int o = 0; o < lanes; o++)
            for (int j = first; j < first + count; j++)
                dw[(int64_t)o * taps + j] += sum[(int64_t)j * step + o];
    }
}

RT_INLINE void conv_dw_few(real *restrict dw, const real *restrict x, const real *restrict dy,
                           Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    real sum[FEW_SCRATCH] __attribute__((aligned(64)));
    const int taps = c.r * c.s * c.c, step = conv_ceil(c.o, V) * V, most = conv_band(c, 1);
    const FewPart part = conv_dw_few_part(c);

    memset(sum, 0, sizeof(real) * taps * step);
    for (int n = 0; n < c.n && part.panels.first < part.panels.end;
         n++, x += (int64_t)c.h * c.w * c.c)
        for (int oy = 0; oy < c.oh; oy += most) {
            const int band = c.oh - oy < most ? c.oh - oy : most;
            conv_dw_few_band(sum, step, conv_pad(scratch, x, c, oy, band), dy, c, band, part);
            dy += (int64_t)band * c.ow * c.o;
        }
    for (int o = 0; o < c.o; o += P) {
        const int lanes = c.o - o < P ? c.o - o : P;
        if (team_has(part.panels, o / P))
            conv_dw_few_add(dw + (int64_t)o * taps, sum + o, step, c, lanes,
                            conv_dw_few_own(c, part, lanes));
    }
}

#endif
