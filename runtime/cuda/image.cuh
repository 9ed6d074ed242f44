/* image.cuh -- image samples for the first layer, normalised and, in training, augmented: a thread
 * for each number of the result.
 *
 * Formulas and random numbers are those of runtime/cpu/image.h, so GPU and processor make the same
 * image, up to rounding with contrast.  Each thread draws the numbers of its sample again: twenty
 * rounds of Philox for shift, mirror, cutout and brightness, and no memory.
 *
 * For contrast, each block computes the mean grey of the samples whose numbers it has.  A block of
 * 256 threads reads an image of 3 x 32 x 32 numbers 12 times as often as it writes, and one of
 * 3 x 224 x 224 588 times, from the cache.
 */
#ifndef CUDA_IMAGE_CUH
#define CUDA_IMAGE_CUH
#include "augment.h"

struct Image {
    int c, h, w;
    bool resize;              /* stored samples are r->x_height x r->x_width */
    double mean[16], std[16]; /* of a channel; std 0 stands for 1 */
    bool last;                /* channels are innermost in the result */
    int lanes;                /* channels of the result, padded with zeros; 0: c */
};
/* Channels of a pixel of the result. */
DEVICE int image_lanes(const Image &m)
{
    return m.lanes ? m.lanes : m.c;
}
/* The channel of element `at` of the result; below, its pixel. */
DEVICE int image_of(const Image &m, int at)
{
    return m.last ? at % image_lanes(m) : at / (m.h * m.w) % m.c;
}
DEVICE int image_place_of(const Image &m, int at)
{
    return m.last ? at / image_lanes(m) % (m.h * m.w) : at % (m.h * m.w);
}

DEVICE Draw image_draw(const Rt *r, uint32_t sample, const Image &m, const Augment &a)
{
    return rt_draw(r->seed, r->epoch, sample, m.h, m.w, &a);
}

/* v[k] with constant indices only: an array with a variable index would be in local memory. */
DEVICE real image_channel(const double (&v)[16], int k, int channels)
{
    double x = v[0];
    RT_UNROLL
    for (int i = 1; i < 16; i++)
        if (i < channels && k == i)
            x = v[i];
    return (real)x;
}

DEVICE real image_stored(const Rt *r, const char *row, int64_t at)
{
    return r->x_type == RT_U8    ? (real)((const uint8_t *)row)[at]
           : r->x_type == RT_F32 ? (real)((const float *)row)[at]
                                 : (real)((const double *)row)[at];
}

/* The position of pixel i of n among `stored` pixels: between *low and *high; returns the weight of
 * *high. */
DEVICE real image_place(int i, int n, int stored, int *low, int *high)
{
    const real at = ((real)i + (real)0.5) * ((real)stored / (real)n) - (real)0.5;
    *low = at > 0 ? (int)at : 0;
    *high = *low + 1 < stored ? *low + 1 : *low;
    return at > 0 ? at - (real)*low : 0;
}

DEVICE real image_mix(real a, real b, real share)
{
    return a + (b - a) * share;
}

/* Element (k, i, j) of a sample, stretched from its stored size by bilinear interpolation. */
DEVICE real image_stretched(const Rt *r, const char *row, const Image &m, int k, int i, int j)
{
    int top, bottom, left, right;
    const real down = image_place(i, m.h, r->x_height, &top, &bottom),
               along = image_place(j, m.w, r->x_width, &left, &right);
    const int64_t plane = (int64_t)k * r->x_height, a = (plane + top) * r->x_width,
                  b = (plane + bottom) * r->x_width;
    return image_mix(image_mix(image_stored(r, row, a + left), image_stored(r, row, a + right),
                               along),
                     image_mix(image_stored(r, row, b + left), image_stored(r, row, b + right),
                               along),
                     down);
}

/* Element (k, i, j) of a stored sample, times `factor`. */
DEVICE real image_raw(const Rt *r, const char *row, const Image &m, int k, int i, int j,
                      real factor)
{
    const real by = r->x_type == RT_U8 ? (real)r->x_scale * factor : factor;
    return (m.resize ? image_stretched(r, row, m, k, i, j)
                     : image_stored(r, row, ((int64_t)k * m.h + i) * m.w + j)) *
           by;
}

/* A number of channel k, normalised; off: the mean of its pixel, or nullptr. */
DEVICE real image_normal(real x, const real *off, const Image &m, int k)
{
    const double std = image_channel(m.std, k, m.c);
    return (x - (off ? *off : image_channel(m.mean, k, m.c))) * (std > 0 ? (real)(1 / std) : 1);
}

/* Element (k, i, j) of a stored sample, normalised; mean: of each pixel, or nullptr. */
DEVICE real image_number(const Rt *r, const char *row, const real *mean, const Image &m, int k,
                         int i, int j, real factor)
{
    return image_normal(image_raw(r, row, m, k, i, j, factor),
                        mean ? mean + (k * m.h + i) * m.w + j : nullptr, m, k);
}

/* ---- places between pixels */

/* The four stored pixels around the place of a pixel, and the weights of the lower and the right
 * ones. */
struct ImageSpot {
    int at[4];
    real down, along;
    bool known; /* false: a new pixel */
};

/* The place of pixel (i, j) of an image of m.h x m.w, among stored pixels of h x w. */
DEVICE ImageSpot image_spot(const Image &m, const Augment &a, const Draw &d, int h, int w, int i,
                            int j)
{
    ImageSpot s;
    double y, x;
    s.known = rt_place(&y, &x, &d, &a, m.h, m.w, i, j);
    if (m.resize) {
        y = rt_clamp((y + 0.5) * ((double)h / m.h) - 0.5, 0, h - 1);
        x = rt_clamp((x + 0.5) * ((double)w / m.w) - 0.5, 0, w - 1);
    }
    const int top = (int)y, left = (int)x, bottom = top + 1 < h ? top + 1 : top,
              right = left + 1 < w ? left + 1 : left;
    s.at[0] = top * w + left, s.at[1] = top * w + right;
    s.at[2] = bottom * w + left, s.at[3] = bottom * w + right;
    s.down = (real)(y - top), s.along = (real)(x - left);
    return s;
}

/* The number between four, bilinear; number(i): stored number i. */
template <class Of> DEVICE real image_between(const ImageSpot &s, Of number)
{
    return image_mix(image_mix(number(s.at[0]), number(s.at[1]), s.along),
                     image_mix(number(s.at[2]), number(s.at[3]), s.along), s.down);
}

/* The mean grey of a stored sample of one or three channels; all threads of the block call it. */
DEVICE real image_mean_grey(Parts<double> &parts, const Rt *r, const char *row, const Image &m)
{
    const int n = m.resize ? r->x_height * r->x_width : m.h * m.w;
    double sum = 0;
    for (int i = threadIdx.x; i < m.c * n; i += THREADS) {
        const double share = m.c < 3 ? 1 : i < n ? 0.2989 : i < 2 * n ? 0.587 : 0.114;
        sum += share * (double)image_stored(r, row, i);
    }
    return (real)(block_sum(parts, sum) * (r->x_type == RT_U8 ? r->x_scale : 1) / n);
}

/* Turns the hue of a pixel by `turn` sixths of the circle. */
DEVICE void image_hue(real (&v)[3], real turn)
{
    const real r = v[0], g = v[1], b = v[2];
    const real most = r > g ? r > b ? r : b : g > b ? g : b;
    const real least = r < g ? r < b ? r : b : g < b ? g : b;
    const real chroma = most - least, over = chroma > 0 ? 1 / chroma : 0;
    real hue = most == r ? (g - b) * over : most == g ? (b - r) * over + 2 : (r - g) * over + 4;
    hue += turn;
    hue += hue < 0 ? 6 : 0;
    hue -= hue >= 6 ? 6 : 0;
    const real p = (hue > 3 ? hue - 3 : 3 - hue) - 1, q = 2 - (hue > 2 ? hue - 2 : 2 - hue),
               s = 2 - (hue > 4 ? hue - 4 : 4 - hue);
    v[0] = least + chroma * (p < 0 ? 0 : p > 1 ? 1 : p);
    v[1] = least + chroma * (q < 0 ? 0 : q > 1 ? 1 : q);
    v[2] = least + chroma * (s < 0 ? 0 : s > 1 ? 1 : s);
}

/* Whether colours change. */
DEVICE bool image_colours(const Augment &a)
{
    return a.contrast > 0 || a.saturation > 0 || a.hue > 0;
}

/* Number k of a pixel, with another contrast, saturation and hue; number(k): number k of the pixel;
 * grey: the mean grey of the image, with its brightness. */
template <class Of>
DEVICE real image_coloured(const Augment &a, const Draw &d, real grey, int k, Of number)
{
    if (a.saturation == 0 && a.hue == 0)
        return image_mix(grey, number(k), (real)d.contrast);
    real v[3] = {number(0), number(1), number(2)};
    if (a.contrast > 0) {
        RT_UNROLL
        for (int i = 0; i < 3; i++)
            v[i] = image_mix(grey, v[i], (real)d.contrast);
    }
    if (a.saturation > 0) {
        const real own = (real)0.2989 * v[0] + (real)0.587 * v[1] + (real)0.114 * v[2];
        RT_UNROLL
        for (int i = 0; i < 3; i++)
            v[i] = image_mix(own, v[i], (real)d.saturation);
    }
    if (a.hue > 0)
        image_hue(v, (real)(6 * d.hue));
    return k == 0 ? v[0] : k == 1 ? v[1] : v[2];
}

/* Element (k, i, j) of an augmented sample, whose place is between pixels. */
DEVICE real image_turned(const Rt *r, const char *row, const real *mean, const Image &m,
                         const Augment &a, const Draw &d, real grey, int k, int i, int j)
{
    const int h = m.resize ? r->x_height : m.h, w = m.resize ? r->x_width : m.w;
    const ImageSpot s = image_spot(m, a, d, h, w, i, j);
    const real by = r->x_type == RT_U8 ? (real)r->x_scale * d.factor : d.factor;
    auto number = [&](int channel) {
        return image_between(s,
                             [&](int at) {
                                 return image_stored(r, row, (int64_t)channel * h * w + at);
                             }) *
               by;
    };
    if (!s.known)
        return 0;
    const real x = image_colours(a) ? image_coloured(a, d, grey, k, number) : number(k);
    const real off =
        mean ? image_between(s, [&](int at) { return mean[k * h * w + at]; }) : (real)0;
    return image_normal(x, mean ? &off : nullptr, m, k);
}

/* Element (k, i, j) of an augmented sample, whose place is a stored pixel. */
DEVICE real image_shifted(const Rt *r, const char *row, const real *mean, const Image &m,
                          const Augment &a, const Draw &d, real grey, int k, int i, int j)
{
    int from = (d.upside ? m.h - 1 - i : i) + d.dy, column = (d.flip ? m.w - 1 - j : j) + d.dx;
    if (a.edge)
        from = rt_clamp_int(from, 0, m.h - 1), column = rt_clamp_int(column, 0, m.w - 1);
    if (from < 0 || from >= m.h || column < 0 || column >= m.w)
        return 0;
    if (!image_colours(a))
        return image_number(r, row, mean, m, k, from, column, d.factor);
    const real x = image_coloured(a, d, grey, k, [&](int channel) {
        return image_raw(r, row, m, channel, from, column, d.factor);
    });
    return image_normal(x, mean ? mean + (k * m.h + from) * m.w + column : nullptr, m, k);
}

/* Whether pixel (i, j) is 0 by cutout or erase. */
DEVICE bool image_cut(const Augment &a, const Draw &d, int i, int j)
{
    return (a.cutout && i >= d.top && i < d.top + a.cutout && j >= d.left &&
            j < d.left + a.cutout) ||
           (a.erase > 0 && i >= d.erased.top && i < d.erased.bottom && j >= d.erased.left &&
            j < d.erased.right);
}

/* Element (k, i, j) of the augmented sample at a place of the batch. */
DEVICE real image_changed(const Rt *r, int sample, const real *mean, const Image &m,
                          const Augment &a, real grey, int k, int i, int j)
{
    const Draw d = image_draw(r, r->index[sample], m, a);
    const char *row = stored(r->x, r->x_stride, r, sample);
    grey *= d.factor;
    return k >= m.c || image_cut(a, d, i, j) ? (real)0
           : rt_interpolates(&a)             ? image_turned(r, row, mean, m, a, d, grey, k, i, j)
                                             : image_shifted(r, row, mean, m, a, d, grey, k, i, j);
}

/* Element `at` of the augmented samples from `first` on. */
DEVICE real image_augmented(const Rt *r, int first, const real *mean, const Image &m,
                            const Augment &a, real grey, int at)
{
    const int s = at / (image_lanes(m) * m.h * m.w), place = image_place_of(m, at);
    return image_changed(r, first + s, mean, m, a, grey, image_of(m, at), place / m.w, place % m.w);
}

/* ---- mixtures of two samples */

DEVICE RtMix image_mixture(const Rt *r, int sample, int h, int w, const Augment &a)
{
    return rt_mix(r->seed, r->epoch, r->index[sample], h, w, &a);
}

/* Element `at` of the mixed samples from `first` on; grey, other_grey: the mean greys of a sample
 * and of the one that it is mixed with. */
DEVICE real image_mixed(const Rt *r, int first, const real *mean, const Image &m, const Augment &a,
                        real grey, real other_grey, int at)
{
    const int s = at / (image_lanes(m) * m.h * m.w), k = image_of(m, at),
              place = image_place_of(m, at), i = place / m.w, j = place % m.w;
    const RtMix mix = image_mixture(r, first + s, m.h, m.w, a);
    const bool inside =
        i >= mix.box.top && i < mix.box.bottom && j >= mix.box.left && j < mix.box.right;
    if (mix.cut)
        return inside ? image_changed(r, mix.other, mean, m, a, other_grey, k, i, j)
                      : image_changed(r, first + s, mean, m, a, grey, k, i, j);
    const real own = image_changed(r, first + s, mean, m, a, grey, k, i, j);
    return mix.own == 1 ? own
                        : image_mix(image_changed(r, mix.other, mean, m, a, other_grey, k, i, j),
                                    own, (real)mix.own);
}

/* ---- all elements of a chunk */

/* y (N, C, H, W), or (N, H, W, C): samples first .. first + n - 1 of the batch.  For contrast, the
 * threads of a block go on together, and compute the mean greys that its elements need. */
template <bool MIXED, class T>
DEVICE void image_elements(T *y, const Rt *r, int first, int n, const real *mean, const Image &m,
                           const Augment &a)
{
    const int size = image_lanes(m) * m.h * m.w, count = n * size;
    if (a.contrast > 0) {
        SHARED(Parts<double>, parts);
        for (int from = blockIdx.x * THREADS; from < count; from += gridDim.x * THREADS) {
            const int at = from + (int)threadIdx.x,
                      end = from + THREADS < count ? from + THREADS : count;
            real grey = 0, other_grey = 0;
            for (int s = from / size; s <= (end - 1) / size; s++) {
                const real own =
                    image_mean_grey(parts, r, stored(r->x, r->x_stride, r, first + s), m);
                grey = at / size == s ? own : grey;
                if (!MIXED)
                    continue;
                const int place = image_mixture(r, first + s, m.h, m.w, a).other;
                const real other =
                    image_mean_grey(parts, r, stored(r->x, r->x_stride, r, place), m);
                other_grey = at / size == s ? other : other_grey;
            }
            if (at < count)
                y[at] = MIXED ? image_mixed(r, first, mean, m, a, grey, other_grey, at)
                              : image_augmented(r, first, mean, m, a, grey, at);
        }
        return;
    }
    FOR_EACH(at, count)
        y[at] = MIXED ? image_mixed(r, first, mean, m, a, 0, 0, at)
                      : image_augmented(r, first, mean, m, a, 0, at);
}

template <class T>
DEVICE void rt_input_augmented(T *y, const Rt *r, int first, int n, const real *mean, Image m,
                               Augment a)
{
    image_elements<false>(y, r, first, n, mean, m, a);
}

/* As rt_input_augmented, and then mixes each sample with another one of the batch. */
template <class T>
DEVICE void rt_input_mixed(T *y, const Rt *r, int first, int n, const real *mean, Image m,
                           Augment a)
{
    image_elements<true>(y, r, first, n, mean, m, a);
}

/* y (N): of the labels of each sample and of the one that it is mixed with, that with more weight,
 * or with less weight.  The label lies `start` bytes after the start of a row; images are h x w. */
DEVICE void rt_labels_mixed(int32_t *y, const Rt *r, int first, int n, int start, int h, int w,
                            Augment a, bool less)
{
    FOR_EACH(at, n) {
        const RtMix mix = image_mixture(r, first + at, h, w, a);
        const int place = rt_mix_place(&mix, first + at, less);
        y[at] = r->label ? rt_integer_at(stored(r->label, r->label_stride, r, place) + start,
                                         r->label_type, 0)
                         : 0;
    }
}

/* y (N, K): the same of targets that are K numbers. */
DEVICE void rt_target_mixed(real *y, const Rt *r, int first, int n, int start, int k, int h, int w,
                            Augment a, bool less)
{
    FOR_EACH(at, n * k) {
        const RtMix mix = image_mixture(r, first + at / k, h, w, a);
        const int place = rt_mix_place(&mix, first + at / k, less);
        y[at] = r->label
                    ? ((const real *)(stored(r->label, r->label_stride, r, place) + start))[at % k]
                    : (real)0;
    }
}

/* y (N): the larger one of both weights. */
DEVICE void rt_mix_weight(real *y, const Rt *r, int first, int n, int h, int w, Augment a)
{
    FOR_EACH(at, n) {
        const double own = image_mixture(r, first + at, h, w, a).own;
        y[at] = (real)(own < 0.5 ? 1 - own : own);
    }
}

/* ---- targets that are moved with the image */

/* y (N, H, W): the labels of the same samples, moved as their images: the nearest label.  New
 * pixels get the label `fill`.  The labels lie `start` bytes after the start of a row. */
DEVICE void rt_labels_moved(int32_t *y, const Rt *r, int first, int n, int start, int h, int w,
                            Augment a, int fill)
{
    FOR_EACH(at, n * h * w) {
        const int s = at / (h * w), i = at / w % h, j = at % w;
        const Draw d = rt_draw(r->seed, r->epoch, r->index[first + s], h, w, &a);
        const int64_t from = rt_nearest(&d, &a, h, w, i, j);
        y[at] = !r->label  ? 0
                : from < 0 ? fill
                           : rt_integer_at(stored(r->label, r->label_stride, r, first + s) + start,
                                           r->label_type, from);
    }
}

/* y (N, C, H, W): targets that are numbers, moved as their images.  nearest: as labels, else
 * bilinear.  New pixels are 0. */
DEVICE void rt_target_moved(real *y, const Rt *r, int first, int n, int start, int c, int h, int w,
                            Augment a, bool nearest)
{
    Image m = {};
    m.h = h, m.w = w;
    FOR_EACH(at, n * c * h * w) {
        const int s = at / (c * h * w), i = at / w % h, j = at % w;
        const int64_t plane = (int64_t)(at / (h * w) % c) * h * w;
        const Draw d = rt_draw(r->seed, r->epoch, r->index[first + s], h, w, &a);
        const real *own =
            (const real *)(stored(r->label, r->label_stride, r, first + s) + start) + plane;
        y[at] = 0;
        if (r->label && nearest) {
            const int64_t from = rt_nearest(&d, &a, h, w, i, j);
            y[at] = from < 0 ? (real)0 : own[from];
        } else if (r->label) {
            const ImageSpot spot = image_spot(m, a, d, h, w, i, j);
            y[at] = spot.known ? image_between(spot, [&](int k) { return own[k]; }) : (real)0;
        }
    }
}

/* The same without augmentation: for evaluation, and for recipes without augmentation. */
template <class T>
DEVICE void rt_input_normalized(T *y, const Rt *r, int first, int n, const real *mean, Image m)
{
    FOR_EACH(at, n * image_lanes(m) * m.h * m.w) {
        const int s = at / (image_lanes(m) * m.h * m.w), k = image_of(m, at),
                  place = image_place_of(m, at), i = place / m.w, j = place % m.w;
        y[at] = k >= m.c
                    ? 0
                    : image_number(r, stored(r->x, r->x_stride, r, first + s), mean, m, k, i, j, 1);
    }
}

#endif
