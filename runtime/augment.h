/* augment.h -- the random numbers that augment a sample, and the place that each pixel comes from.
 *
 * Kernels move images and targets with these functions, and the runtime counts moved labels with
 * them, so all of them see the same places.  The file that includes this one has rt.h and exp, sin,
 * cos and sqrt.
 *
 * A sample is changed in this order: random_resized_crop, rotate and scale, random_crop or shift,
 * flips, then brightness, contrast, saturation and hue, then cutout and erase, then mixup or cutmix
 * with another sample of the batch, which is changed by its own numbers.  Positions are composed,
 * so a pixel is interpolated once.  Pixel i covers i - 1/2 .. i + 1/2.
 *
 *   place of pixel (i, j) of the result, from the last change to the first
 *     flips            i = H - 1 - i, j = W - 1 - j
 *     shift            v = i + dy, u = j + dx
 *     rotate, scale    v = c + (sin (u - c') + cos (v - c)) / factor   c, c': the centre
 *                      u = c' + (cos (u - c') - sin (v - c)) / factor
 *     resized crop     y = top + (v + 1/2) height / H - 1/2
 *                      x = left + (u + 1/2) width / W - 1/2
 *
 * A place outside of the image is a new pixel.  In a crop, places are clamped to its pixels.
 *
 * Random numbers are blocks of philox(seed; block, RT_PURPOSE_AUGMENT, stored sample, epoch): the
 * same for each division of the batch and after each resume.
 *
 *   block   numbers
 *   0       dy, dx, horizontal flip, brightness
 *   1       row and column of the cutout
 *   2       vertical flip, angle, scale, whether to erase
 *   3       contrast, saturation, hue
 *   4-13    tries of the resized crop: area, ratio, top, left
 *   14-23   tries of erase: area, aspect, top, left
 *   24      place of the other sample in the batch, mixup or cutmix, whether to mix
 *   25      two numbers of the weight; row and column of the centre of cutmix's box
 *
 * Mixtures, with the weight v of distribution Beta(a, a):
 *
 *   mixup     x = v own + (1 - v) other
 *   cutmix    a box of sqrt(1 - v) H x sqrt(1 - v) W is that of the other sample; what lies outside
 *             of the image is cut off, and then v is the share of the area that is left
 *
 * Both samples have a label; the program compares with both, and weights their losses by v.
 *
 * Sources: random resized crop: Szegedy et al. 2015, in torchvision's form (ten tries, then a
 * centre crop); erase: Zhong et al. 2017, in torchvision's form; mixup: Zhang et al. 2018
 * (arXiv 1710.09412); cutmix: Yun et al. 2019 (arXiv 1905.04899); a symmetric beta distribution
 * from two numbers: Bailey 1994 (Student's t by a polar method) and Devroye 1996, "Random variate
 * generation in one line of code".
 */
#ifndef RT_AUGMENT_H
#define RT_AUGMENT_H
#include "rt.h"

/* Rows top .. bottom - 1 and columns left .. right - 1. */
typedef struct RtBox {
    int top, bottom, left, right;
} RtBox;

/* The random numbers of one sample.  With shift and flips alone, output pixel (i, j) is input pixel
 * (i + dy, j + dx), j counted from the right if flip, i from below if upside; pixels of the box
 * `top` .. `right`, and of `erased`, become 0. */
typedef struct Draw {
    int dy, dx;
    bool flip;
    int top, bottom, left, right;
    real factor;
    bool upside;
    double sine, cosine; /* divided by the factor of scale */
    RtBox crop, erased;
    double contrast, saturation, hue; /* two factors, and a share of the circle */
} Draw;

/* A number from 0 to n - 1. */
static inline RT_EVERYWHERE int draw_below(uint32_t bits, int n)
{
    return (int)(((uint64_t)bits * (uint64_t)n) >> 32);
}

/* A number from low to high. */
static inline RT_EVERYWHERE double draw_between(uint32_t bits, double low, double high)
{
    return low + (high - low) * (bits * 2.3283064365386963e-10);
}

static inline RT_EVERYWHERE int rt_clamp_int(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

static inline RT_EVERYWHERE double rt_clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

enum { RT_DRAW_CROP = 4, RT_DRAW_ERASE = 14, RT_DRAW_TRIES = 10, RT_DRAW_MIX = 24 };

/* The whole number of pixels nearest to the root of x. */
static inline RT_EVERYWHERE int draw_side(double x)
{
    return (int)(sqrt(x) + 0.5);
}

/* A box of a random share of the area, with a random ratio; false after ten tries of boxes that do
 * not fit into rows x columns.  log_ratio: of width / height. */
static inline RT_EVERYWHERE bool draw_box(RtBox *box, uint64_t seed, uint32_t block,
                                          uint32_t sample, uint32_t epoch, int h, int w, int rows,
                                          int columns, const double area[2],
                                          const double log_ratio[2])
{
    for (uint32_t i = 0; i < RT_DRAW_TRIES; i++) {
        uint32_t bits[4];
        rt_philox(bits, seed, block + i, RT_PURPOSE_AUGMENT, sample, epoch);
        const double size = (double)h * w * draw_between(bits[0], area[0], area[1]);
        const double ratio = exp(draw_between(bits[1], log_ratio[0], log_ratio[1]));
        const int height = draw_side(size / ratio), width = draw_side(size * ratio);
        if (height < 1 || width < 1 || height > rows || width > columns)
            continue;
        box->top = draw_below(bits[2], h - height + 1);
        box->left = draw_below(bits[3], w - width + 1);
        box->bottom = box->top + height;
        box->right = box->left + width;
        return true;
    }
    return false;
}

/* The largest box in the middle whose ratio is within the bounds. */
static inline RT_EVERYWHERE RtBox draw_centre(int h, int w, const double log_ratio[2])
{
    const double least = exp(log_ratio[0]), most = exp(log_ratio[1]);
    int height = h, width = w;
    if (w < h * least)
        height = rt_clamp_int((int)(w / least + 0.5), 1, h);
    else if (w > h * most)
        width = rt_clamp_int((int)(h * most + 0.5), 1, w);
    const int top = (h - height) / 2, left = (w - width) / 2;
    const RtBox box = {top, top + height, left, left + width};
    return box;
}

static inline RT_EVERYWHERE void draw_turn(Draw *d, const uint32_t *bits, const Augment *a)
{
    const double turn = a->degrees * 0.017453292519943295;
    const double angle = draw_between(bits[1], -turn, turn);
    const double factor = draw_between(bits[2], 1 - a->zoom, 1 + a->zoom);
    d->sine = sin(angle) / factor;
    d->cosine = cos(angle) / factor;
}

static inline RT_EVERYWHERE Draw rt_draw(uint64_t seed, int64_t epoch_index, uint32_t sample, int h,
                                         int w, const Augment *a)
{
    const uint32_t epoch = (uint32_t)epoch_index;
    uint32_t move[4], look[4], more[4];
    Draw d;
    rt_philox(move, seed, 0, RT_PURPOSE_AUGMENT, sample, epoch);
    rt_philox(look, seed, 1, RT_PURPOSE_AUGMENT, sample, epoch);
    d.dy = draw_below(move[0], 2 * a->shift + 1) - a->shift;
    d.dx = draw_below(move[1], 2 * a->shift + 1) - a->shift;
    d.flip = a->flip && move[2] >> 31;
    d.factor = (real)(1 + a->brightness * (2 * (move[3] * 2.3283064365386963e-10) - 1));
    d.top = draw_below(look[0], h) - a->cutout / 2;
    d.left = draw_below(look[1], w) - a->cutout / 2;
    d.bottom = d.top + a->cutout;
    d.right = d.left + a->cutout;
    rt_philox(more, seed, 2, RT_PURPOSE_AUGMENT, sample, epoch);
    d.upside = a->upside && more[0] >> 31;
    d.sine = 0, d.cosine = 1;
    if (a->degrees > 0 || a->zoom > 0)
        draw_turn(&d, more, a);
    d.erased.top = d.erased.bottom = d.erased.left = d.erased.right = 0;
    if (a->erase > 0 && more[3] * 2.3283064365386963e-10 < a->erase)
        draw_box(&d.erased, seed, RT_DRAW_ERASE, sample, epoch, h, w, h - 1, w - 1, a->erase_area,
                 a->erase_ratio);
    rt_philox(more, seed, 3, RT_PURPOSE_AUGMENT, sample, epoch);
    d.contrast = draw_between(more[0], 1 - a->contrast, 1 + a->contrast);
    d.saturation = draw_between(more[1], 1 - a->saturation, 1 + a->saturation);
    d.hue = draw_between(more[2], -a->hue, a->hue);
    d.crop.top = d.crop.left = 0, d.crop.bottom = h, d.crop.right = w;
    if (a->crop_area[1] > 0 && !draw_box(&d.crop, seed, RT_DRAW_CROP, sample, epoch, h, w, h, w,
                                         a->crop_area, a->crop_ratio))
        d.crop = draw_centre(h, w, a->crop_ratio);
    return d;
}

/* Whether the place of a pixel can lie between two stored pixels. */
static inline RT_EVERYWHERE bool rt_interpolates(const Augment *a)
{
    return a->degrees > 0 || a->zoom > 0 || a->crop_area[1] > 0;
}

/* The place (*y, *x) that pixel (i, j) comes from; false: it is a new pixel. */
static inline RT_EVERYWHERE bool rt_place(double *y, double *x, const Draw *d, const Augment *a,
                                          int h, int w, int i, int j)
{
    double v = (d->upside ? h - 1 - i : i) + d->dy, u = (d->flip ? w - 1 - j : j) + d->dx;
    if (a->degrees > 0 || a->zoom > 0) {
        const double cy = 0.5 * (h - 1), cx = 0.5 * (w - 1), down = v - cy, along = u - cx;
        v = cy + (d->sine * along + d->cosine * down);
        u = cx + (d->cosine * along - d->sine * down);
    }
    const bool inside = v >= -0.5 && v < h - 0.5 && u >= -0.5 && u < w - 0.5;
    v = rt_clamp(v, 0, h - 1), u = rt_clamp(u, 0, w - 1);
    if (a->crop_area[1] > 0) {
        const double height = d->crop.bottom - d->crop.top, width = d->crop.right - d->crop.left;
        v = d->crop.top + (v + 0.5) * (height / h) - 0.5;
        u = d->crop.left + (u + 0.5) * (width / w) - 0.5;
        v = rt_clamp(v, d->crop.top, d->crop.bottom - 1);
        u = rt_clamp(u, d->crop.left, d->crop.right - 1);
    }
    *y = v, *x = u;
    return inside || a->edge;
}

/* The index of the stored pixel nearest to that place; -1: it is a new pixel. */
static inline RT_EVERYWHERE int64_t rt_nearest(const Draw *d, const Augment *a, int h, int w, int i,
                                               int j)
{
    double y, x;
    const bool inside = rt_place(&y, &x, d, a, h, w, i, j);
    return inside ? (int64_t)(int)(y + 0.5) * w + (int)(x + 0.5) : -1;
}

/* ---- mixtures of two samples */

/* The other sample is that at place `other` of the batch; own: the weight of the sample itself.
 * cut: the other sample's pixels are those of the box; else it has the rest of the weight. */
typedef struct RtMix {
    int other;
    double own;
    bool cut;
    RtBox box;
} RtMix;

static inline RT_EVERYWHERE bool rt_mixes(const Augment *a)
{
    return a->mixup > 0 || a->cutmix > 0;
}

/* A number from 0 to 1 of distribution Beta(alpha, alpha): (1 + t / sqrt(1 + t^2)) / 2, where
 * t = sqrt(u^(-1 / alpha) - 1) cos(2 pi v) is Student's t with 2 alpha degrees of freedom, divided
 * by sqrt(2 alpha). */
static inline RT_EVERYWHERE double draw_beta(uint32_t u_bits, uint32_t v_bits, double alpha)
{
    const double u = (u_bits + 0.5) * 2.3283064365386963e-10,
                 v = (v_bits + 0.5) * 2.3283064365386963e-10, c = cos(6.283185307179586 * v),
                 square = (exp(-log(u) / alpha) - 1) * c * c, half = 0.5 / sqrt(1 + 1 / square);
    return c < 0 ? 0.5 - half : 0.5 + half;
}

/* The box around pixel (y, x) with a share of the area of h x w, inside of the image. */
static inline RT_EVERYWHERE RtBox draw_patch(int y, int x, double area, int h, int w)
{
    const double side = sqrt(area);
    const int height = (int)(side * h + 0.5), width = (int)(side * w + 0.5);
    const int top = y - height / 2, left = x - width / 2;
    const RtBox box = {rt_clamp_int(top, 0, h), rt_clamp_int(top + height, 0, h),
                       rt_clamp_int(left, 0, w), rt_clamp_int(left + width, 0, w)};
    return box;
}

static inline RT_EVERYWHERE RtMix rt_mix(uint64_t seed, int64_t epoch_index, uint32_t sample, int h,
                                         int w, const Augment *a)
{
    const uint32_t epoch = (uint32_t)epoch_index;
    uint32_t pair[4], more[4];
    RtMix m;
    rt_philox(pair, seed, RT_DRAW_MIX, RT_PURPOSE_AUGMENT, sample, epoch);
    rt_philox(more, seed, RT_DRAW_MIX + 1, RT_PURPOSE_AUGMENT, sample, epoch);
    m.other = draw_below(pair[0], a->among);
    m.cut = a->cutmix > 0 && (a->mixup == 0 || pair[1] >> 31);
    m.box.top = m.box.bottom = m.box.left = m.box.right = 0;
    m.own = 1;
    if (pair[2] * 2.3283064365386963e-10 >= (m.cut ? a->cutmix_p : a->mixup_p))
        return m;
    m.own = draw_beta(more[0], more[1], m.cut ? a->cutmix : a->mixup);
    if (!m.cut)
        return m;
    m.box = draw_patch(draw_below(more[2], h), draw_below(more[3], w), 1 - m.own, h, w);
    m.own = 1 - (double)(m.box.bottom - m.box.top) * (m.box.right - m.box.left) / ((double)h * w);
    return m;
}

/* The place in the batch of the sample whose label has more weight, or less weight. */
static inline RT_EVERYWHERE int rt_mix_place(const RtMix *m, int place, bool less)
{
    return (m->own < 0.5) == less ? place : m->other;
}

#endif
