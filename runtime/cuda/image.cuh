/* image.cuh -- image samples for the first layer, normalised and, in training, augmented: a thread
 * for each number of the result.
 *
 * Formulas and random numbers are those of runtime/cpu/image.h (shift, mirror, cutout, brightness),
 * so GPU and processor make the same image.  Each thread draws the numbers of its sample again:
 * twenty rounds of Philox, and no memory.
 */
#ifndef CUDA_IMAGE_CUH
#define CUDA_IMAGE_CUH

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
struct Augment {
    int shift;
    bool edge, flip;
    int cutout;
    double brightness;
};

/* Pixel (i, j) is stored pixel (i + dy, j + dx), j counted from the right if flip.  A square of
 * cutout x cutout pixels from (top, left) on is 0. */
struct Draw {
    int dy, dx, flip, top, left;
    real factor;
};

/* A number from 0 to n - 1. */
DEVICE int draw_below(uint32_t bits, int n)
{
    return (int)(((uint64_t)bits * (uint64_t)n) >> 32);
}

DEVICE Draw image_draw(const Rt *r, uint32_t sample, const Image &m, const Augment &a)
{
    uint32_t move[4], look[4];
    rt_philox(move, r->seed, 0, RT_PURPOSE_AUGMENT, sample, (uint32_t)r->epoch);
    rt_philox(look, r->seed, 1, RT_PURPOSE_AUGMENT, sample, (uint32_t)r->epoch);
    return Draw{draw_below(move[0], 2 * a.shift + 1) - a.shift,
                draw_below(move[1], 2 * a.shift + 1) - a.shift,
                a.flip && move[2] >> 31,
                draw_below(look[0], m.h) - a.cutout / 2,
                draw_below(look[1], m.w) - a.cutout / 2,
                (real)(1 + a.brightness * (2 * (move[3] * 2.3283064365386963e-10) - 1))};
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

DEVICE int clamp_int(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
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

/* Element (k, i, j) of a stored sample, normalised; mean: of each pixel, or nullptr. */
DEVICE real image_number(const Rt *r, const char *row, const real *mean, const Image &m, int k,
                         int i, int j, real factor)
{
    const int at = (k * m.h + i) * m.w + j;
    const double std = image_channel(m.std, k, m.c);
    const real by = r->x_type == RT_U8 ? (real)r->x_scale * factor : factor;
    const real x = (m.resize ? image_stretched(r, row, m, k, i, j) : image_stored(r, row, at)) * by;
    return (x - (mean ? mean[at] : image_channel(m.mean, k, m.c))) *
           (std > 0 ? (real)(1 / std) : 1);
}

/* y (N, C, H, W), or (N, H, W, C): samples first .. first + n - 1 of the batch. */
template <class T>
DEVICE void rt_input_augmented(T *y, const Rt *r, int first, int n, const real *mean, Image m,
                               Augment a)
{
    FOR_EACH(at, n * image_lanes(m) * m.h * m.w) {
        const int s = at / (image_lanes(m) * m.h * m.w), k = image_of(m, at),
                  place = image_place_of(m, at), i = place / m.w, j = place % m.w;
        const Draw d = image_draw(r, r->index[first + s], m, a);
        int from = i + d.dy, column = (d.flip ? m.w - 1 - j : j) + d.dx;
        const bool cut =
            a.cutout && i >= d.top && i < d.top + a.cutout && j >= d.left && j < d.left + a.cutout;
        if (a.edge)
            from = clamp_int(from, 0, m.h - 1), column = clamp_int(column, 0, m.w - 1);
        const bool inside = from >= 0 && from < m.h && column >= 0 && column < m.w;
        y[at] = cut || !inside || k >= m.c
                    ? 0
                    : image_number(r, stored(r->x, r->x_stride, r, first + s), mean, m, k, from,
                                   column, d.factor);
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
