/* conv_pool_dx.h -- gradient of the images of a convolution with a fused 2x2 max-pool.
 *
 * The outputs of a window are sorted by the corner that won, so that a run of dx is loaded once for
 * all outputs of a corner.  Groups and dilated columns have no runs: they go one position at a
 * time.
 */
#ifndef CPU_CONV_POOL_DX_H
#define CPU_CONV_POOL_DX_H
#include "cpu/conv_pool_run.h"

RT_LEAF void pool_dx_positions(real *dx, const real *p, const real *dy, const uint8_t *index,
                               Conv c)
{
    const int inputs = c.c / c.groups, outputs = c.o / c.groups;
    for (int py = 0; py < c.oh / 2; py++)
        for (int px = 0; px < c.ow / 2; px++, dy += c.o, index += c.o)
            for (int o = 0; o < c.o; o++)
                conv_dx_position(dx + o / outputs * inputs, p + (int64_t)o * c.r * CONV_RUN(c),
                                 dy[o], c, 2 * py + index[o] / 2, 2 * px + index[o] % 2);
}

/* For each of some windows and each corner, the outputs for which this corner won: offsets of their
 * weights, and their gradients.  Gradients of 0, which a relu produces, are left out.  A list has
 * room for all outputs and one vector more. */
enum { POOL_LIST = 8192 };
typedef struct PoolList {
    RtInt at[POOL_LIST];
    real g[POOL_LIST];
} PoolList;
RT_LEAF int pool_room(Conv c)
{
    return c.o + V;
}

/* Windows are numbered down the columns, number i is (i % bands, i / bands), so that two
 * consecutive windows never add to the same image row. */
RT_LEAF int64_t pool_window_at(Conv c, int bands, int i)
{
    return (int64_t)(i % bands) * (c.ow / 2) + i / bands;
}

/* Sorts the outputs of a window into the four lists at slot * 4 * room; count: their lengths.  With
 * AVX-512, a vector of outputs at a time: this saves 0.25 of the 13.5 us that LeNet's
 * conv2d_pool_dx takes for a sample on a Zen 4 with one output at a time. */
#ifdef RT_AVX512
RT_LEAF void pool_sort_vector(PoolList *list, int *end, vint at, const real *dy,
                              const uint8_t *index, int lanes)
{
    uint8_t corner[V];
    if (lanes < V)
        memset(corner, 4, sizeof corner);
    memcpy(corner, index, lanes);
    const vec number = v_load_bytes(corner), g = v_load_lanes(dy, lanes);
    RT_UNROLL
    for (int k = 0; k < 4; k++) {
        const int won = v_equal(number, v_set(k)) & (int)v_nonzero(g);
        v_store(list->g + end[k], v_together(g, won));
        v_store((real *)(list->at + end[k]), v_together((vec)at, won));
        end[k] += __builtin_popcount(won);
    }
}
RT_LEAF void pool_sort(PoolList *list, int *count, const real *dy, const uint8_t *index, Conv c,
                       int slot)
{
    const int room = pool_room(c), first = slot * 4 * room, full = c.o / V * V;
    int end[4] = {first, first + room, first + 2 * room, first + 3 * room};
    vint at = v_count() * (c.r * CONV_RUN(c));
    for (int o = 0; o < full; o += V, at += V * c.r * CONV_RUN(c))
        pool_sort_vector(list, end, at, dy + o, index + o, V);
    if (full < c.o)
        pool_sort_vector(list, end, at, dy + full, index + full, c.o - full);
    RT_UNROLL
    for (int k = 0; k < 4; k++)
        count[k] = end[k] - (first + k * room);
}
#else
RT_LEAF void pool_sort(PoolList *list, int *count, const real *dy, const uint8_t *index, Conv c,
                       int slot)
{
    const int room = pool_room(c), first = slot * 4 * room;
    int next[4] = {first, first + room, first + 2 * room, first + 3 * room};
    for (int o = 0; o < c.o; o++) {
        int *const at = &next[index[o] & 3];
        list->at[*at] = o * c.r * CONV_RUN(c);
        list->g[*at] = dy[o];
        *at += dy[o] != 0;
    }
    for (int k = 0; k < 4; k++)
        count[k] = next[k] - (first + k * room);
}
#endif

/* Adds to dx a few kernel rows.  dx: the image, `row` reals a row, at the first of these kernel
 * rows; p: the weights, at the same kernel row. */
RT_LEAF void pool_dx_run(real *dx, int64_t row, const real *p, const PoolList *list,
                         const int *count, Conv c, int bands, int first, int windows, Run u)
{
    RT_OPAQUE(p); /* gcc would add the offset of the kernel row in the inner loop */
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < windows; i++) {
            const int begin = (i * 4 + k) * pool_room(c), end = begin + count[i * 4 + k];
            const int64_t py = (first + i) % bands, px = (first + i) / bands;
            real *y = dx + 2 * py * c.stride_h * row + 2 * px * c.stride_w * c.c +
                      pool_corner((PoolFrame){.row = row}, c, k);
            RunSum t;
            if (begin == end)
                continue;
            run_load(&t, y, c.dil_h * row, u);
            for (int e = begin; e < end; e++)
                run_add(&t, list->g[e], p + list->at[e], CONV_RUN(c), u);
            run_store(y, &t, c.dil_h * row, u);
        }
}

/* Adds to dx all windows of a band.  For some windows at a time, kernel rows are the outer loop, so
 * that the L1 cache holds the weights of one row, O runs. */
RT_LEAF void pool_dx_band(real *dx, int64_t row, const real *p, const real *dy,
                          const uint8_t *index, Conv c, int bands)
{
    PoolList list;
    const RunSplit s = run_split(c);
    int count[POOL_LIST];
    const int windows = bands * (c.ow / 2), slots = POOL_LIST / (4 * pool_room(c));
    for (int first = 0; first < windows; first += slots) {
        const int some = windows - first < slots ? windows - first : slots;
        for (int i = 0; i < some; i++) {
            const int64_t at = pool_window_at(c, bands, first + i) * c.o;
            pool_sort(&list, count + 4 * i, dy + at, index + at, c, i);
        }
        for (int r = 0; r < c.r; r++) {
            real *to = dx + r * c.dil_h * row;
            const real *from = p + r * CONV_RUN(c);
            for (int i = 1; i < s.parts; i++, to += s.vectors * V, from += s.vectors * V)
                pool_dx_run(to, row, from, &list, count, c, bands, first, some,
                            (Run){1, s.vectors, V, false});
            pool_dx_run(to, row, from, &list, count, c, bands, first, some,
                        (Run){1, s.last, s.lanes, false});
        }
    }
}

/* dx = mask(w^T unpool(dy), y); p from conv2d_pack_dx.  y: the output of the activation whose
 * derivative `mask` applies, or NULL. */
RT_LEAF void conv2d_pool_dx(real *restrict dx, const real *restrict p, const real *restrict dy,
                            const uint8_t *restrict index, Mask mask, const real *restrict y,
                            Conv c)
{
    real scratch[CONV_SCRATCH] __attribute__((aligned(64)));
    const int64_t outputs = (int64_t)(c.oh / 2) * (c.ow / 2) * c.o,
                  count = (int64_t)c.h * c.w * c.c;
    const int64_t row = conv_padded(c) ? (int64_t)conv_reach_w(c) * c.c : (int64_t)c.w * c.c;
    const int band = conv_band(c, 2);
    const TeamRange samples = team_range(c.n);
    dx += samples.first * count, dy += samples.first * outputs, index += samples.first * outputs;
    for (int64_t n = samples.first; n < samples.end;
         n++, dx += count, dy += outputs, index += outputs) {
        memset(dx, 0, sizeof(real) * count);
        if (c.groups > 1 || c.dil_w > 1 || 4 * pool_room(c) > POOL_LIST ||
            (conv_padded(c) && !band))
            pool_dx_positions(dx, p, dy, index, c);
        else if (!conv_padded(c))
            pool_dx_band(dx, row, p, dy, index, c, c.oh / 2);
        else
            for (int oy = 0; oy + 2 <= c.oh; oy += band) {
                const int rows = c.oh - oy < band ? c.oh - oy : band;
                const int64_t at = (int64_t)(oy / 2) * (c.ow / 2) * c.o;
                memset(scratch, 0, sizeof(real) * conv_reach_h(c, rows) * row);
                pool_dx_band(scratch, row, p, dy + at, index + at, c, rows / 2);
                conv_unpad(dx, scratch, c, oy, rows);
            }
        if (y)
            RT_MAP(count, STORE(dx, mask(LOAD(dx), LOAD(y + n * count))));
    }
}

#endif
