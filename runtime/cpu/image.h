/* image.h -- image samples for the first layer: normalised and, in training, augmented.
 *
 *   y = (x scale f - mean) / std       mean, std of each channel, or the mean of each pixel
 *
 * runtime/augment.h draws the random numbers, and says in which order a sample is changed.  New
 * pixels are 0 (the mean colour) or repeat the edge; pixels of cutout and erase become 0.
 *
 *   brightness   x = f x
 *   contrast     x = g + f (x - g)     g: the mean grey of the stored image, times brightness
 *   saturation   x = g + f (x - g)     g: the grey of the pixel
 *   hue          a turn of the hue in HSV; largest and smallest number of a pixel stay
 *
 * With `resize`, stored images of another size are first stretched to (H, W), bilinear with half
 * pixels at both ends (PyTorch's align_corners = false, antialias = false).
 *
 * Per image, one core of a Zen 4 with AVX-512: 3.4 us for 3 x 32 x 32 with all of this (a copy:
 * 2.5), 1.4 ms for 3 x 299 x 299 stretched from 32 x 32.  That is below 1 % of the training step of
 * any network for such images, so no thread prepares samples in advance.  With AVX2, 3 x 224 x 224
 * bytes take 0.1 ms mirrored, 0.2 to 0.3 ms with another contrast or hue, and 1.0 ms turned.
 *
 * Places between pixels are interpolated from the stored image, also with `resize`, so a pixel is
 * interpolated once.
 *
 * For mixup and cutmix, each row of a second sample is computed, too: twice the time.
 *
 * Sources: crop and flip as in He et al. 2015 (CIFAR-10), section 4.2; cutout: DeVries & Taylor
 * 2017; colours: torchvision's ColorJitter, without its cut to 0 .. 1.
 */
#ifndef CPU_IMAGE_H
#define CPU_IMAGE_H
#include "augment.h"
#include "cpu/input.h"
#include "cpu/library.h"

/* Stored samples are (C, H, W); std 0 stands for 1. */
typedef struct Image {
    int c, h, w;
    bool resize; /* stored samples are r->x_height x r->x_width */
    double mean[16], std[16];
} Image;
RT_INLINE Draw image_draw(const Rt *r, uint32_t sample, Image m, Augment a)
{
    return rt_draw(r->seed, r->epoch, sample, m.h, m.w, &a);
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

/* Computes row i of channel k of a stored sample, times `factor`. */
RT_INLINE void image_raw(real *restrict line, const Rt *r, const char *restrict row, Image m, int k,
                         int i, real factor)
{
    const int64_t at = ((int64_t)k * m.h + i) * m.w;
    const real by = r->x_type == RT_U8 ? (real)r->x_scale * factor : factor;
    if (m.resize)
        image_stretched(line, r, row, m, k, i, by);
    else if (r->x_type == RT_U8)
        for (int j = 0; j < m.w; j++)
            line[j] = (real)((const uint8_t *)row)[at + j] * by;
    else
        for (int j = 0; j < m.w; j++)
            line[j] = input_at(r, row, at + j) * by;
}

/* Normalises a row of channel k.  mean: of the row's pixels, or NULL. */
RT_INLINE void image_normal(real *restrict line, const real *restrict mean, Image m, int k)
{
    const real off = (real)m.mean[k], scale = m.std[k] > 0 ? (real)(1 / m.std[k]) : 1;
    for (int j = 0; j < m.w; j++)
        line[j] = (line[j] - (mean ? mean[j] : off)) * scale;
}

/* Computes row i of channel k of a stored sample, normalised.  mean: of each pixel, (C, H, W), or
 * NULL. */
RT_INLINE void image_line(real *restrict line, const Rt *r, const char *restrict row,
                          const real *restrict mean, Image m, int k, int i, real factor)
{
    image_raw(line, r, row, m, k, i, factor);
    image_normal(line, mean ? mean + ((int64_t)k * m.h + i) * m.w : NULL, m, k);
}

/* ---- colours: contrast, saturation and hue */

/* Whether a row is computed for all channels at once, by image_joint. */
RT_INLINE bool image_is_joint(Augment a)
{
    return a.contrast > 0 || a.saturation > 0 || a.hue > 0 || rt_interpolates(&a);
}

/* The weights of red, green and blue in grey, as in ITU-R BT.601 and torchvision. */
RT_INLINE real image_grey(real red, real green, real blue)
{
    return (real)0.2989 * red + (real)0.587 * green + (real)0.114 * blue;
}

/* The mean of a channel of a stored sample.  Bytes are added as whole numbers; other numbers in
 * eight sums, so that the C compiler vectorises the loop. */
RT_INLINE double image_channel_mean(const Rt *r, const char *row, int64_t first, int64_t n)
{
    if (r->x_type == RT_U8) {
        const uint8_t *byte = (const uint8_t *)row + first;
        uint64_t sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += byte[i];
        return (double)sum * r->x_scale / (double)n;
    }
    double sum[8] = {0}, all = 0;
    for (int64_t i = 0; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += (double)input_at(r, row, first + i + k);
    for (int64_t i = n / 8 * 8; i < n; i++)
        all += (double)input_at(r, row, first + i);
    for (int k = 0; k < 8; k++)
        all += sum[k];
    return all / (double)n;
}

/* The mean grey of a stored sample of one or three channels. */
RT_INLINE real image_mean_grey(const Rt *r, const char *row, Image m)
{
    const int64_t n = m.resize ? (int64_t)r->x_height * r->x_width : (int64_t)m.h * m.w;
    double mean[3];
    for (int k = 0; k < m.c && k < 3; k++)
        mean[k] = image_channel_mean(r, row, k * n, n);
    return m.c < 3 ? (real)mean[0] : (real)(0.2989 * mean[0] + 0.587 * mean[1] + 0.114 * mean[2]);
}

/* Turns the hue of n pixels by `turn` sixths of the circle.  Largest and smallest number of a pixel
 * stay, so this is the turn of HSV.  A channel is the smallest number, plus the chroma where it is
 * within one sixth of its own hue, and falls to 0 in the sixth after that. */
RT_INLINE void image_hue(real *restrict red, real *restrict green, real *restrict blue, int n,
                         real turn)
{
    for (int j = 0; j < n; j++) {
        const real r = red[j], g = green[j], b = blue[j];
        const real most = r > g ? r > b ? r : b : g > b ? g : b;
        const real least = r < g ? r < b ? r : b : g < b ? g : b;
        const real chroma = most - least, over = chroma > 0 ? 1 / chroma : 0;
        real hue = most == r ? (g - b) * over : most == g ? (b - r) * over + 2 : (r - g) * over + 4;
        hue += turn; /* from -1 - 3 to 5 + 3 */
        hue += hue < 0 ? 6 : 0;
        hue -= hue >= 6 ? 6 : 0;
        const real d = hue > 3 ? hue - 3 : 3 - hue, e = hue > 2 ? hue - 2 : 2 - hue,
                   f = hue > 4 ? hue - 4 : 4 - hue;
        const real p = d - 1, q = 2 - e, s = 2 - f;
        red[j] = least + chroma * (p < 0 ? 0 : p > 1 ? 1 : p);
        green[j] = least + chroma * (q < 0 ? 0 : q > 1 ? 1 : q);
        blue[j] = least + chroma * (s < 0 ? 0 : s > 1 ? 1 : s);
    }
}

/* Changes the colours of a row: channel k is `width` numbers after channel k - 1.  grey: the mean
 * grey of the image, with its brightness. */
RT_INLINE void image_colours(real *restrict line, int width, Image m, Augment a, Draw d, real grey)
{
    if (a.contrast > 0)
        for (int k = 0; k < m.c; k++)
            for (int j = 0; j < m.w; j++)
                line[k * width + j] = image_mix(grey, line[k * width + j], (real)d.contrast);
    real *red = line, *green = line + width, *blue = green + width;
    if (a.saturation > 0 && m.c == 3)
        for (int j = 0; j < m.w; j++) {
            const real own = image_grey(red[j], green[j], blue[j]);
            red[j] = image_mix(own, red[j], (real)d.saturation);
            green[j] = image_mix(own, green[j], (real)d.saturation);
            blue[j] = image_mix(own, blue[j], (real)d.saturation);
        }
    if (a.hue > 0 && m.c == 3)
        image_hue(red, green, blue, m.w, (real)(6 * d.hue));
}

/* ---- places between pixels: rotate, scale, random_resized_crop */

/* The four stored pixels around the place of a pixel, and the weights of the lower and the right
 * ones. */
typedef struct ImageSpot {
    int32_t at[4];
    real down, along;
    int32_t known; /* 0: a new pixel */
} ImageSpot;

_Static_assert(sizeof(ImageSpot) <= 40, "SPOT of compiler/cpu/target.c");

/* The places of a row of pixels, among stored pixels of h x w. */
RT_INLINE void image_spots(ImageSpot *restrict spot, Image m, Augment a, Draw d, int h, int w,
                           int i)
{
    for (int j = 0; j < m.w; j++) {
        double y, x;
        spot[j].known = rt_place(&y, &x, &d, &a, m.h, m.w, i, j);
        if (m.resize) {
            y = rt_clamp((y + 0.5) * ((double)h / m.h) - 0.5, 0, h - 1);
            x = rt_clamp((x + 0.5) * ((double)w / m.w) - 0.5, 0, w - 1);
        }
        const int top = (int)y, left = (int)x, bottom = top + 1 < h ? top + 1 : top,
                  right = left + 1 < w ? left + 1 : left;
        spot[j].at[0] = top * w + left, spot[j].at[1] = top * w + right;
        spot[j].at[2] = bottom * w + left, spot[j].at[3] = bottom * w + right;
        spot[j].down = (real)(y - top), spot[j].along = (real)(x - left);
    }
}

/* The number between four, bilinear. */
#define IMAGE_BETWEEN(s, number)                                                                   \
    image_mix(image_mix(number((s).at[0]), number((s).at[1]), (s).along),                          \
              image_mix(number((s).at[2]), number((s).at[3]), (s).along), (s).down)

/* The numbers of a row of channel k at these places; first: the first stored number of the
 * channel.  The type is chosen outside of the loop over pixels. */
#define IMAGE_STORED(at) (real) stored[at]
#define IMAGE_BETWEEN_OF(type, by)                                                                 \
    do {                                                                                           \
        const type *stored = (const type *)(const void *)row + first;                              \
        for (int j = 0; j < m.w; j++)                                                              \
            line[j] = IMAGE_BETWEEN(spot[j], IMAGE_STORED) * (by);                                 \
    } while (0)
RT_INLINE void image_between(real *restrict line, const Rt *r, const char *restrict row,
                             const ImageSpot *restrict spot, Image m, int64_t first, real factor)
{
    if (r->x_type == RT_U8)
        IMAGE_BETWEEN_OF(uint8_t, (real)r->x_scale * factor);
    else if (r->x_type == RT_F32)
        IMAGE_BETWEEN_OF(float, factor);
    else
        IMAGE_BETWEEN_OF(double, factor);
}

/* The same numbers of the mean image; plane: its channel k. */
RT_INLINE void image_mean_between(real *restrict line, const real *restrict plane,
                                  const ImageSpot *restrict spot, Image m)
{
#define IMAGE_MEAN(at) plane[at]
    for (int j = 0; j < m.w; j++)
        line[j] = IMAGE_BETWEEN(spot[j], IMAGE_MEAN);
#undef IMAGE_MEAN
}

/* Fills `a.shift` pixels to the left and right of a line. */
RT_INLINE void image_sides(real *line, Image m, Augment a)
{
    for (int j = 1; j <= a.shift; j++) {
        line[-j] = a.edge ? line[0] : 0;
        line[m.w - 1 + j] = a.edge ? line[m.w - 1] : 0;
    }
}

/* Sets the pixels of row i that lie in the box to 0. */
RT_INLINE void image_cut(real *restrict y, int step, Image m, RtBox box, int i)
{
    if (i >= box.top && i < box.bottom)
        for (int j = rt_clamp_int(box.left, 0, m.w); j < rt_clamp_int(box.right, 0, m.w); j++)
            y[(int64_t)j * step] = 0;
}

/* Computes row i of all channels of the result: its pixels are `step` apart, its channels
 * `plane`. */
RT_INLINE void image_joint(real *restrict y, int step, int64_t plane, const Rt *r,
                           const char *restrict row, const real *restrict mean, Image m, Augment a,
                           Draw d, real grey, int i)
{
    const int h = m.resize ? r->x_height : m.h, w = m.resize ? r->x_width : m.w;
    const bool between = rt_interpolates(&a);
    const int width = m.w + 2 * a.shift;
    real room[m.c * width], off[m.w];
    ImageSpot spot[m.w];
    const int up = d.upside ? m.h - 1 - i : i;
    const int from = a.edge ? rt_clamp_int(up + d.dy, 0, m.h - 1) : up + d.dy;
    const bool known = between || (unsigned)from < (unsigned)m.h;
    real *const line = room + a.shift;

    if (between)
        image_spots(spot, m, a, d, h, w, i);
    for (int k = 0; k < m.c && known; k++)
        if (between)
            image_between(line + k * width, r, row, spot, m, (int64_t)k * h * w, d.factor);
        else
            image_raw(line + k * width, r, row, m, k, from, d.factor);
    if (known)
        image_colours(line, width, m, a, d, grey);
    for (int k = 0; k < m.c; k++) {
        real *const own = line + k * width, *const to = y + k * plane;
        if (between && mean)
            image_mean_between(off, mean + (int64_t)k * m.h * m.w, spot, m);
        if (known)
            image_normal(own,
                         !mean     ? NULL
                         : between ? off
                                   : mean + ((int64_t)k * m.h + from) * m.w,
                         m, k);
        else
            memset(own - a.shift, 0, sizeof *own * (size_t)width);
        if (!between && known)
            image_sides(own, m, a);
        for (int j = 0; j < m.w; j++)
            to[(int64_t)j * step] =
                between ? spot[j].known ? own[j] : 0 : own[(d.flip ? m.w - 1 - j : j) + d.dx];
    }
}

/* Computes row i of channel k of the result, whose pixels are `step` apart. */
RT_INLINE void image_row(real *restrict y, int step, const Rt *r, const char *restrict row,
                         const real *restrict mean, Image m, Augment a, Draw d, int k, int i)
{
    real room[m.w + 2 * a.shift], *const line = room + a.shift;
    const int up = d.upside ? m.h - 1 - i : i;
    const int from = a.edge ? rt_clamp_int(up + d.dy, 0, m.h - 1) : up + d.dy;
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
}

/* A sample at a place of the batch, and how it is changed. */
typedef struct ImageSource {
    const char *row;
    Draw d;
    real grey;
} ImageSource;

RT_INLINE ImageSource image_source(const Rt *r, int place, Image m, Augment a)
{
    const uint32_t sample = r->index[place];
    const char *row = (const char *)r->x + (int64_t)sample * r->x_stride;
    const Draw d = image_draw(r, sample, m, a);
    return (ImageSource){row, d, a.contrast > 0 ? image_mean_grey(r, row, m) * d.factor : 0};
}

/* Computes row i of all channels of an augmented sample; step, plane: as in image_joint. */
RT_INLINE void image_changed(real *restrict to, int step, int64_t plane, const Rt *r, ImageSource s,
                             const real *restrict mean, Image m, Augment a, int i)
{
    if (image_is_joint(a))
        image_joint(to, step, plane, r, s.row, mean, m, a, s.d, s.grey, i);
    for (int k = 0; k < m.c; k++) {
        if (!image_is_joint(a))
            image_row(to + k * plane, step, r, s.row, mean, m, a, s.d, k, i);
        if (a.cutout)
            image_cut(to + k * plane, step, m, (RtBox){s.d.top, s.d.bottom, s.d.left, s.d.right},
                      i);
        if (a.erase > 0)
            image_cut(to + k * plane, step, m, s.d.erased, i);
    }
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
        const ImageSource own = image_source(r, first + s, m, a);
        const int64_t before = (int64_t)s * m.h;
        const int end = rows.end - before < m.h ? (int)(rows.end - before) : m.h;
        for (int i = rows.first > before ? (int)(rows.first - before) : 0; i < end; i++)
            image_changed(y + s * size + (int64_t)i * m.w * step, step, plane, r, own, mean, m, a,
                          i);
    }
}

/* ---- mixtures of two samples */

RT_INLINE RtMix image_mixture(const Rt *r, int place, int h, int w, Augment a)
{
    return rt_mix(r->seed, r->epoch, r->index[place], h, w, &a);
}

/* Mixes row i of a sample, at `to`, with that of another one: channels of `other` are m.w apart. */
RT_INLINE void image_mix_row(real *restrict to, int step, int64_t plane, const real *restrict other,
                             Image m, RtMix mix, int i)
{
    if (mix.cut && (i < mix.box.top || i >= mix.box.bottom))
        return;
    const int begin = mix.cut ? mix.box.left : 0, end = mix.cut ? mix.box.right : m.w;
    const real own = mix.cut ? 0 : (real)mix.own;
    for (int k = 0; k < m.c; k++)
        for (int j = begin; j < end; j++) {
            real *const at = to + k * plane + (int64_t)j * step;
            *at = mix.cut ? other[k * m.w + j] : image_mix(other[k * m.w + j], *at, own);
        }
}

/* As rt_input_augmented, and then mixes each sample with another one of the batch. */
RT_INLINE void rt_input_mixed(real *restrict y, const Rt *r, int first, int n, bool last,
                              const real *restrict mean, Image m, Augment a)
{
    const int step = last ? m.c : 1;
    const int64_t plane = last ? 1 : (int64_t)m.h * m.w, size = (int64_t)m.c * m.h * m.w;
    const TeamRange rows = team_range((int64_t)n * m.h);
    real room[m.c * m.w];
    for (int s = (int)(rows.first / m.h); s < n && (int64_t)s * m.h < rows.end; s++) {
        const RtMix mix = image_mixture(r, first + s, m.h, m.w, a);
        const ImageSource own = image_source(r, first + s, m, a),
                          other = mix.own < 1 ? image_source(r, mix.other, m, a) : own;
        const int64_t before = (int64_t)s * m.h;
        const int end = rows.end - before < m.h ? (int)(rows.end - before) : m.h;
        for (int i = rows.first > before ? (int)(rows.first - before) : 0; i < end; i++) {
            real *const to = y + s * size + (int64_t)i * m.w * step;
            image_changed(to, step, plane, r, own, mean, m, a, i);
            if (mix.own == 1)
                continue;
            image_changed(room, 1, m.w, r, other, mean, m, a, i);
            image_mix_row(to, step, plane, room, m, mix, i);
        }
    }
}

/* y (N): of the labels of each sample and of the one that it is mixed with, that with more weight,
 * or with less weight.  The label lies `at` bytes after the start of a row; images are h x w. */
RT_INLINE void rt_labels_mixed(int32_t *restrict y, const Rt *r, int first, int n, int at, int h,
                               int w, Augment a, bool less)
{
    TEAM_FOR(i, n) {
        const RtMix mix = image_mixture(r, first + i, h, w, a);
        const int place = rt_mix_place(&mix, first + i, less);
        y[i] = r->label ? rt_integer_at(label_row(r, place, at), r->label_type, 0) : 0;
    }
}

/* y (N, K): the same of targets that are K numbers. */
RT_INLINE void rt_target_mixed(real *restrict y, const Rt *r, int first, int n, int at, int k,
                               int h, int w, Augment a, bool less)
{
    TEAM_FOR(i, n) {
        const RtMix mix = image_mixture(r, first + i, h, w, a);
        const int place = rt_mix_place(&mix, first + i, less);
        const real *row = r->label ? label_row(r, place, at) : NULL;
        for (int j = 0; j < k; j++)
            y[(int64_t)i * k + j] = row ? row[j] : 0;
    }
}

/* y (N): the larger one of both weights. */
RT_INLINE void rt_mix_weight(real *restrict y, const Rt *r, int first, int n, int h, int w,
                             Augment a)
{
    TEAM_FOR(i, n) {
        const double own = image_mixture(r, first + i, h, w, a).own;
        y[i] = (real)(own < 0.5 ? 1 - own : own);
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

/* ---- targets that are moved with the image */

/* y (N, H, W): the labels of the same samples, moved as their images: the nearest label.  New
 * pixels get the label `fill`.  The labels lie `at` bytes after the start of a row. */
RT_INLINE void rt_labels_moved(int32_t *restrict y, const Rt *r, int first, int n, int at, int h,
                               int w, Augment a, int fill)
{
    const TeamRange rows = team_range((int64_t)n * h);
    for (int s = (int)(rows.first / h); s < n && (int64_t)s * h < rows.end; s++) {
        const Draw d = rt_draw(r->seed, r->epoch, r->index[first + s], h, w, &a);
        const char *row = r->label ? label_row(r, first + s, at) : NULL;
        const int64_t before = (int64_t)s * h;
        const int end = rows.end - before < h ? (int)(rows.end - before) : h;
        for (int i = rows.first > before ? (int)(rows.first - before) : 0; i < end; i++)
            for (int j = 0; j < w; j++) {
                const int64_t from = rt_nearest(&d, &a, h, w, i, j);
                y[(before + i) * w + j] = !row       ? 0
                                          : from < 0 ? fill
                                                     : rt_integer_at(row, r->label_type, from);
            }
    }
}

/* y (N, C, H, W): targets that are numbers, moved as their images.  nearest: as labels, else
 * bilinear.  New pixels are 0. */
RT_INLINE void rt_target_moved(real *restrict y, const Rt *r, int first, int n, int at, int c,
                               int h, int w, Augment a, bool nearest)
{
    const Image m = {.h = h, .w = w};
    const int64_t plane = (int64_t)h * w;
    const TeamRange rows = team_range((int64_t)n * h);
    ImageSpot spot[w];
    for (int s = (int)(rows.first / h); s < n && (int64_t)s * h < rows.end; s++) {
        const Draw d = rt_draw(r->seed, r->epoch, r->index[first + s], h, w, &a);
        const real *row = r->label ? label_row(r, first + s, at) : NULL;
        const int64_t before = (int64_t)s * h;
        const int end = rows.end - before < h ? (int)(rows.end - before) : h;
        for (int i = rows.first > before ? (int)(rows.first - before) : 0; i < end; i++) {
            real *const to = y + (int64_t)s * c * plane + (int64_t)i * w;
            if (nearest)
                for (int j = 0; j < w; j++) {
                    const int64_t from = rt_nearest(&d, &a, h, w, i, j);
                    for (int k = 0; k < c; k++)
                        to[k * plane + j] = row && from >= 0 ? row[k * plane + from] : 0;
                }
            else
                image_spots(spot, m, a, d, h, w, i);
            for (int k = 0; k < c && !nearest; k++)
                for (int j = 0; j < w; j++) {
#define IMAGE_TARGET(at) row[k * plane + (at)]
                    to[k * plane + j] =
                        row && spot[j].known ? IMAGE_BETWEEN(spot[j], IMAGE_TARGET) : 0;
#undef IMAGE_TARGET
                }
        }
    }
}

#endif
