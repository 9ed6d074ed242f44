/* image.h -- image samples for the first layer: normalised and, in training, augmented.
 *
 *   y = (x scale f - mean) / std       mean, std of each channel, or the mean of each pixel
 *
 * f (brightness) is drawn from 1 - brightness .. 1 + brightness.  The image is shifted by up to
 * `shift` whole pixels in each direction; new pixels are 0 (the mean colour) or repeat the edge.
 * Then it is mirrored, or not.  Then a square of cutout x cutout pixels around a random pixel
 * becomes 0.
 *
 * With `resize`, stored images of another size are first stretched to (H, W), bilinear with half
 * pixels at both ends (PyTorch's align_corners = false, antialias = false).
 *
 * Per image, one core of a Zen 4 with AVX-512: 3.4 us for 3 x 32 x 32 with all of this (a copy:
 * 2.5), 1.4 ms for 3 x 299 x 299 stretched from 32 x 32.  That is below 1 % of the training step of
 * any network for such images, so no thread prepares samples in advance.
 *
 * Random numbers are two blocks of philox(seed; 0 and 1, RT_PURPOSE_AUGMENT, stored sample, epoch):
 * the same for each division of the batch and after each resume.
 *
 * Source: crop and flip as in He et al. 2015 (CIFAR-10), section 4.2; cutout: DeVries & Taylor
 * 2017.
 */
#ifndef CPU_IMAGE_H
#define CPU_IMAGE_H
#include "cpu/input.h"

/* Stored samples are (C, H, W); std 0 stands for 1. */
typedef struct Image {
    int c, h, w;
    bool resize; /* stored samples are r->x_height x r->x_width */
    double mean[16], std[16];
} Image;
typedef struct Augment {
    int shift;
    bool edge, flip;
    int cutout;
    double brightness;
} Augment;

/* The random numbers of one sample.  Output pixel (i, j) is input pixel (i + dy, j + dx), j counted
 * from the right if flip; pixels in rows top .. bottom - 1 and columns left .. right - 1 become
 * 0. */
typedef struct Draw {
    int dy, dx;
    bool flip;
    int top, bottom, left, right;
    real factor;
} Draw;

/* A number from 0 to n - 1. */
RT_INLINE int draw_below(uint32_t bits, int n)
{
    return (int)(((uint64_t)bits * (uint64_t)n) >> 32);
}

RT_INLINE Draw image_draw(const Rt *r, uint32_t sample, Image m, Augment a)
{
    uint32_t move[4], look[4];
    rt_philox(move, r->seed, 0, RT_PURPOSE_AUGMENT, sample, (uint32_t)r->epoch);
    rt_philox(look, r->seed, 1, RT_PURPOSE_AUGMENT, sample, (uint32_t)r->epoch);
    const int y = draw_below(look[0], m.h) - a.cutout / 2,
              x = draw_below(look[1], m.w) - a.cutout / 2;
    return (Draw){.dy = draw_below(move[0], 2 * a.shift + 1) - a.shift,
                  .dx = draw_below(move[1], 2 * a.shift + 1) - a.shift,
                  .flip = a.flip && move[2] >> 31,
                  .top = y,
                  .bottom = y + a.cutout,
                  .left = x,
                  .right = x + a.cutout,
                  .factor = (real)(1 + a.brightness * (2 * (move[3] * 0x1p-32) - 1))};
}

RT_INLINE int clamp_int(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

/* The position of pixel i of n among `stored` pixels: between pixels *low and *high, which are
 * neighbours, or equal at the edge; returns the weight of *high. */
RT_INLINE real image_place(int i, int n, int stored, int *low, int *high)
{
    const real at = ((real)i + (real)0.5) * ((real)stored / (real)n) - (real)0.5;
    *low = at > 0 ? (int)at : 0;
    *high = *low + 1 < stored ? *low + 1 : *low;
    return at > 0 ? at - (real)*low : 0;
}

RT_INLINE real image_mix(real a, real b, real share)
{
    return a + (b - a) * share;
}

/* Computes row i of channel k, stretched from the stored size by bilinear interpolation. */
RT_INLINE void image_stretched(real *restrict line, const Rt *r, const char *restrict row, Image m,
                               int k, int i, real by)
{
    int top, bottom, left, right;
    const real down = image_place(i, m.h, r->x_height, &top, &bottom);
    const int64_t plane = (int64_t)k * r->x_height;
    const int64_t a = (plane + top) * r->x_width, b = (plane + bottom) * r->x_width;
    const uint8_t *byte = (const uint8_t *)row;
    for (int j = 0; j < m.w; j++) {
        const real along = image_place(j, m.w, r->x_width, &left, &right);
        const real p = r->x_type == RT_U8
                           ? image_mix(image_mix(byte[a + left], byte[a + right], along),
                                       image_mix(byte[b + left], byte[b + right], along), down)
                           : image_mix(image_mix(input_at(r, row, a + left),
                                                 input_at(r, row, a + right), along),
                                       image_mix(input_at(r, row, b + left),
                                                 input_at(r, row, b + right), along),
                                       down);
        line[j] = p * by;
    }
}

/* Computes row i of channel k of a stored sample, normalised.  mean: of each pixel, (C, H, W), or
 * NULL. */
RT_INLINE void image_line(real *restrict line, const Rt *r, const char *restrict row,
                          const real *restrict mean, Image m, int k, int i, real factor)
{
    const int64_t at = ((int64_t)k * m.h + i) * m.w;
    const real off = (real)m.mean[k], scale = m.std[k] > 0 ? (real)(1 / m.std[k]) : 1;
    const real by = r->x_type == RT_U8 ? (real)r->x_scale * factor : factor;
    if (m.resize)
        image_stretched(line, r, row, m, k, i, by);
    else if (r->x_type == RT_U8)
        for (int j = 0; j < m.w; j++)
            line[j] = (real)((const uint8_t *)row)[at + j] * by;
    else
        for (int j = 0; j < m.w; j++)
            line[j] = input_at(r, row, at + j) * by;
    for (int j = 0; j < m.w; j++)
        line[j] = (line[j] - (mean ? mean[at + j] : off)) * scale;
}

/* Fills `a.shift` pixels to the left and right of a line. */
RT_INLINE void image_sides(real *line, Image m, Augment a)
{
    for (int j = 1; j <= a.shift; j++) {
        line[-j] = a.edge ? line[0] : 0;
        line[m.w - 1 + j] = a.edge ? line[m.w - 1] : 0;
    }
}

/* Computes row i of channel k of the result, whose pixels are `step` apart. */
RT_INLINE void image_row(real *restrict y, int step, const Rt *r, const char *restrict row,
                         const real *restrict mean, Image m, Augment a, Draw d, int k, int i)
{
    real room[m.w + 2 * a.shift], *const line = room + a.shift;
    const int from = a.edge ? clamp_int(i + d.dy, 0, m.h - 1) : i + d.dy;
    if ((unsigned)from < (unsigned)m.h) {
        image_line(line, r, row, mean, m, k, from, d.factor);
        image_sides(line, m, a);
    } else {
        memset(room, 0, sizeof room);
    }
    if (d.flip)
        for (int j = 0; j < m.w; j++)
            y[(int64_t)j * step] = line[m.w - 1 - j + d.dx];
    else
        for (int j = 0; j < m.w; j++)
            y[(int64_t)j * step] = line[j + d.dx];
    if (a.cutout && i >= d.top && i < d.bottom)
        for (int j = clamp_int(d.left, 0, m.w); j < clamp_int(d.right, 0, m.w); j++)
            y[(int64_t)j * step] = 0;
}

/* Computes samples first .. first + n - 1 of the global batch: y (N, C, H, W), or (N, H, W, C) if
 * last. */
RT_INLINE void rt_input_augmented(real *restrict y, const Rt *r, int first, int n, bool last,
                                  const real *restrict mean, Image m, Augment a)
{
    const int step = last ? m.c : 1;
    const int64_t plane = last ? 1 : (int64_t)m.h * m.w, size = (int64_t)m.c * m.h * m.w;
    const TeamRange rows = team_range((int64_t)n * m.h);
    for (int s = (int)(rows.first / m.h); s < n && (int64_t)s * m.h < rows.end; s++) {
        const uint32_t sample = r->index[first + s];
        const char *row = (const char *)r->x + (int64_t)sample * r->x_stride;
        const Draw d = image_draw(r, sample, m, a);
        const int64_t before = (int64_t)s * m.h;
        const int end = rows.end - before < m.h ? (int)(rows.end - before) : m.h;
        for (int i = rows.first > before ? (int)(rows.first - before) : 0; i < end; i++)
            for (int k = 0; k < m.c; k++)
                image_row(y + s * size + k * plane + (int64_t)i * m.w * step, step, r, row, mean, m,
                          a, d, k, i);
    }
}

/* The same without augmentation: for evaluation, and for recipes without augmentation. */
RT_INLINE void rt_input_normalized(real *restrict y, const Rt *r, int first, int n, bool last,
                                   const real *restrict mean, Image m)
{
    const int step = last ? m.c : 1;
    const int64_t plane = last ? 1 : (int64_t)m.h * m.w, size = (int64_t)m.c * m.h * m.w;
    const TeamRange rows = team_range((int64_t)n * m.h);
    for (int s = (int)(rows.first / m.h); s < n && (int64_t)s * m.h < rows.end; s++) {
        const char *row = (const char *)r->x + (int64_t)r->index[first + s] * r->x_stride;
        const int64_t before = (int64_t)s * m.h;
        const int end = rows.end - before < m.h ? (int)(rows.end - before) : m.h;
        for (int i = rows.first > before ? (int)(rows.first - before) : 0; i < end; i++)
            for (int k = 0; k < m.c; k++)
                image_row(y + s * size + k * plane + (int64_t)i * m.w * step, step, r, row, mean, m,
                          (Augment){0}, (Draw){.factor = 1}, k, i);
    }
}

#endif
