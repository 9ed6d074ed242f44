/* test_image.c -- normalization and augmentation, compared pixel by pixel with their definition. */
#include "kernel_test.h"

#include "cpu/image.h"

enum { C = 3, H = 11, W = 13, STORED = 6, PLACES = 4, COUNT = C * H * W };

static uint8_t stored_u8[STORED * COUNT];
static float stored_f32[STORED * COUNT];
static double stored_f64[STORED * COUNT];
static const uint32_t order[PLACES] = {5, 0, 3, 1};

static Rt stored(int type, int64_t epoch)
{
    static const void *const data[3] = {stored_u8, stored_f32, stored_f64};
    static const int size[3] = {1, 4, 8};
    for (int i = 0; i < STORED * COUNT; i++)
        stored_u8[i] = (uint8_t)(i * 37 + i / 7), stored_f32[i] = (float)i / 7,
        stored_f64[i] = i / 3.0;
    return (Rt){.x = data[type],
                .x_stride = (int64_t)COUNT * size[type],
                .x_type = type,
                .x_scale = 1 / 255.0,
                .index = order,
                .seed = 7,
                .epoch = epoch};
}

/* The expected value of pixel (k, i, j) of the sample. */
static real expected(const Rt *r, uint32_t sample, const real *mean, Image m, Augment a, Draw d,
                     int k, int i, int j)
{
    const char *row = (const char *)r->x + sample * r->x_stride;
    int from_i = i + d.dy, from_j = (d.flip ? W - 1 - j : j) + d.dx;
    if (a.cutout && i >= d.top && i < d.bottom && j >= d.left && j < d.right)
        return 0;
    if (a.edge) {
        from_i = from_i < 0 ? 0 : from_i > H - 1 ? H - 1 : from_i;
        from_j = from_j < 0 ? 0 : from_j > W - 1 ? W - 1 : from_j;
    }
    if (from_i < 0 || from_i >= H || from_j < 0 || from_j >= W)
        return 0;
    const int64_t at = (k * H + from_i) * W + from_j;
    const real x = r->x_type == RT_U8
                       ? (real)((const uint8_t *)row)[at] * ((real)r->x_scale * d.factor)
                       : input_at(r, row, at) * d.factor;
    return (x - (mean ? mean[at] : (real)m.mean[k])) * (m.std[k] > 0 ? (real)(1 / m.std[k]) : 1);
}

static void check_images(const real *y, bool last, const Rt *r, const real *mean, Image m,
                         Augment a, bool drawn)
{
    for (int s = 0; s < 2; s++) {
        const uint32_t sample = order[1 + s];
        const Draw d = drawn ? image_draw(r, sample, m, a) : (Draw){.factor = 1};
        for (int k = 0; k < C; k++)
            for (int i = 0; i < H; i++)
                for (int j = 0; j < W; j++) {
                    const int at = last ? (i * W + j) * C + k : (k * H + i) * W + j;
                    REQUIRE(y[s * COUNT + at] == expected(r, sample, mean, m, a, d, k, i, j), "sample %d, number %d", s, at);
                }
    }
}

/* The definition in double: half pixels at both ends, the edge repeated outside. */
static double stretched(const Rt *r, const char *row, int k, int i, int j, int h, int w)
{
    const double y = fmax((i + 0.5) * r->x_height / h - 0.5, 0);
    const double x = fmax((j + 0.5) * r->x_width / w - 0.5, 0);
    double sum = 0;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            const int from_i = (int)y + a < r->x_height ? (int)y + a : r->x_height - 1;
            const int from_j = (int)x + b < r->x_width ? (int)x + b : r->x_width - 1;
            const double fy = y - floor(y), fx = x - floor(x);
            sum += (a ? fy : 1 - fy) * (b ? fx : 1 - fx) *
                   (double)input_at(r, row, (k * r->x_height + from_i) * r->x_width + from_j);
        }
    return sum;
}

START_TEST(resized)
{
    static const int size[][2] = {{11, 13}, {22, 39}, {299, 17}, {5, 4}, {1, 1}};
    const int h = size[_i][0], w = size[_i][1], count = C * h * w;
    const Image m =
        {.c = C, .h = h, .w = w, .resize = true, .mean = {0.4, 0.5, 0.6}, .std = {2, 1, 3}};
    real *y = buffer(count), *want = buffer(count);
    for (int type = RT_U8; type <= RT_F64; type++)
        for (int last = 0; last < 2; last++) {
            Rt r = stored(type, 0);
            r.x_height = H, r.x_width = W;
            for (int k = 0; k < C; k++)
                for (int i = 0; i < h; i++)
                    for (int j = 0; j < w; j++)
                        want[last ? (i * w + j) * C + k : (k * h + i) * w + j] =
                            (real)((stretched(&r, (const char *)r.x + order[1] * r.x_stride, k, i,
                                              j, h, w) -
                                    m.mean[k]) /
                                   m.std[k]);
            rt_input_normalized(y, &r, 1, 1, last, NULL, m);
            check_close(y, want, count, "an image stretched");
            check_guard(y, count * (int64_t)sizeof(real), "an image stretched");
        }
    release(2, y, want);
}
END_TEST

static const Augment augment[] = {{.shift = 4},
                                  {.shift = 3, .edge = true, .flip = true},
                                  {.flip = true},
                                  {.cutout = 5},
                                  {.brightness = 0.5},
                                  {.shift = 11, .flip = true, .cutout = 4, .brightness = 0.2}};

START_TEST(images)
{
    const Image plain = {.c = C, .h = H, .w = W};
    const Image channel = {.c = C, .h = H, .w = W, .mean = {0.4, 0.5, 0.6}, .std = {0.2, 1, 0.3}};
    real *mean = random_buffer(COUNT, 3), *y = buffer(2 * COUNT);
    for (int type = RT_U8; type <= RT_F64; type++)
        for (int epoch = 0; epoch < 4; epoch++)
            for (int last = 0; last < 2; last++) {
                const Rt r = stored(type, epoch);
                rt_input_augmented(y, &r, 1, 2, last, NULL, channel, augment[_i]);
                check_images(y, last, &r, NULL, channel, augment[_i], true);
                rt_input_augmented(y, &r, 1, 2, last, mean, plain, augment[_i]);
                check_images(y, last, &r, mean, plain, augment[_i], true);
                rt_input_normalized(y, &r, 1, 2, last, mean, plain);
                check_images(y, last, &r, mean, plain, (Augment){0}, false);
                rt_input_normalized(y, &r, 1, 2, last, NULL, channel);
                check_images(y, last, &r, NULL, channel, (Augment){0}, false);
            }
    check_guard(y, 2 * COUNT * (int64_t)sizeof(real), "rt_input_augmented");
    release(2, mean, y);
}
END_TEST

/* Each offset, both mirrorings and each position of the cutout are equally frequent; another epoch has other draws. */
START_TEST(draws)
{
    enum { SAMPLES = 9000 };
    const Image m = {.c = C, .h = H, .w = W};
    const Augment a = {.shift = 4, .flip = true, .cutout = 3, .brightness = 0.25};
    Rt r = stored(RT_U8, 0), next = stored(RT_U8, 1);
    int dy[9] = {0}, dx[9] = {0}, flips = 0, top[H] = {0}, same = 0;
    double sum = 0, least = 2, most = 0;
    for (uint32_t s = 0; s < SAMPLES; s++) {
        const Draw d = image_draw(&r, s, m, a), e = image_draw(&next, s, m, a);
        dy[d.dy + 4]++, dx[d.dx + 4]++, flips += d.flip, top[d.top + 1]++;
        sum += d.factor, least = d.factor < least ? d.factor : least,
                         most = d.factor > most ? d.factor : most;
        same += d.dy == e.dy && d.dx == e.dx && d.top == e.top && d.left == e.left;
        ck_assert_int_eq(d.bottom - d.top, 3);
        ck_assert_int_eq(d.right - d.left, 3);
    }
    for (int i = 0; i < 9; i++) { /* expected 1000, standard deviation 30 */
        ck_assert_int_lt(abs(dy[i] - SAMPLES / 9), 150);
        ck_assert_int_lt(abs(dx[i] - SAMPLES / 9), 150);
    }
    for (int i = 0; i < H; i++)
        ck_assert_int_lt(abs(top[i] - SAMPLES / H), 150);
    ck_assert_int_lt(abs(flips - SAMPLES / 2), 250);
    ck_assert_int_lt(same, 20);
    ck_assert(least >= 0.75 && least < 0.76 && most <= 1.25 && most > 1.24);
    ck_assert(sum / SAMPLES > 0.99 && sum / SAMPLES < 1.01);
}
END_TEST

/* ---- the definitions of all augmentations, in double, a pixel at a time */

/* Where the pixel comes from, from the last change to the first; false: it is a new pixel.  *near: the place is so close to the
 * border of the image that rounding decides. */
static bool place_of(const Draw *d, const Augment *a, int h, int w, int i, int j, double *y,
                     double *x, bool *near)
{
    double v = d->upside ? h - 1 - i : i, u = d->flip ? w - 1 - j : j;
    v += d->dy, u += d->dx;
    if (a->degrees > 0 || a->zoom > 0) {
        const double cy = (h - 1) / 2.0, cx = (w - 1) / 2.0;
        const double factor = 1 / hypot(d->sine, d->cosine), angle = atan2(d->sine, d->cosine);
        const double down = v - cy, along = u - cx;
        v = cy + (sin(angle) * along + cos(angle) * down) / factor;
        u = cx + (cos(angle) * along - sin(angle) * down) / factor;
    }
    const double edge[4] = {v + 0.5, h - 0.5 - v, u + 0.5, w - 0.5 - u};
    bool inside = true;
    *near = false;
    for (int k = 0; k < 4; k++)
        inside &= edge[k] > 0, *near |= fabs(edge[k]) < 1e-9;
    v = fmin(fmax(v, 0), h - 1), u = fmin(fmax(u, 0), w - 1);
    if (a->crop_area[1] > 0) {
        v = d->crop.top + (v + 0.5) * (d->crop.bottom - d->crop.top) / h - 0.5;
        u = d->crop.left + (u + 0.5) * (d->crop.right - d->crop.left) / w - 0.5;
        v = fmin(fmax(v, d->crop.top), d->crop.bottom - 1);
        u = fmin(fmax(u, d->crop.left), d->crop.right - 1);
    }
    *y = v, *x = u;
    return inside || a->edge;
}

/* The number at a place, bilinear; outside, the edge is repeated. */
static double between(const double *plane, int h, int w, double y, double x)
{
    double sum = 0;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            const int i = (int)floor(y) + a, j = (int)floor(x) + b;
            const double share = (a ? y - floor(y) : 1 - (y - floor(y))) *
                                 (b ? x - floor(x) : 1 - (x - floor(x)));
            sum += share * plane[(i < h ? i : h - 1) * w + (j < w ? j : w - 1)];
        }
    return sum;
}

/* Hue, saturation and value, as in the definition of HSV, and back. */
static void turn_hue(double *v, double share)
{
    const double most = fmax(v[0], fmax(v[1], v[2])), least = fmin(v[0], fmin(v[1], v[2]));
    const double chroma = most - least;
    if (chroma == 0)
        return;
    double hue = most == v[0]   ? (v[1] - v[2]) / chroma / 6
                 : most == v[1] ? ((v[2] - v[0]) / chroma + 2) / 6
                                : ((v[0] - v[1]) / chroma + 4) / 6;
    hue = hue + share - floor(hue + share);
    const double part = hue * 6 - floor(hue * 6), p = least, q = most - part * chroma,
                 t = least + part * chroma;
    const double table[6][3] = {{most, t, p}, {q, most, p}, {p, most, t},
                                {p, q, most}, {t, p, most}, {most, p, q}};
    for (int k = 0; k < 3; k++)
        v[k] = table[(int)floor(hue * 6) % 6][k];
}

static double grey_of(const double *v)
{
    return 0.2989 * v[0] + 0.587 * v[1] + 0.114 * v[2];
}

/* A stored sample in double, without brightness, and its size. */
typedef struct Stored {
    int h, w;
    double plane[C][COUNT];
} Stored;

static void store(Stored *t, const Rt *r, uint32_t sample, bool resize)
{
    const char *row = (const char *)r->x + sample * r->x_stride;
    t->h = resize ? r->x_height : H, t->w = resize ? r->x_width : W;
    for (int k = 0; k < C; k++)
        for (int i = 0; i < t->h * t->w; i++)
            t->plane[k][i] = (double)input_at(r, row, k * t->h * t->w + i);
}

/* All channels of pixel (i, j) of the augmented sample; false: the pixel is too near to a border. */
static bool augmented(double *v, const Stored *t, const real *mean, Image m, Augment a,
                      const Draw *d, int i, int j)
{
    double y, x, grey = 0, off[C];
    bool near;
    const bool known = place_of(d, &a, m.h, m.w, i, j, &y, &x, &near);
    const bool cut = (a.cutout && i >= d->top && i < d->bottom && j >= d->left && j < d->right) ||
                     (i >= d->erased.top && i < d->erased.bottom && j >= d->erased.left &&
                      j < d->erased.right);
    for (int k = 0; k < C; k++) {
        double plane[COUNT];
        for (int e = 0; e < m.h * m.w; e++)
            plane[e] = mean ? (double)mean[k * m.h * m.w + e] : m.mean[k];
        off[k] = between(plane, m.h, m.w, y, x);
    }
    y = fmin(fmax((y + 0.5) * t->h / m.h - 0.5, 0), t->h - 1);
    x = fmin(fmax((x + 0.5) * t->w / m.w - 0.5, 0), t->w - 1);
    for (int e = 0; e < t->h * t->w; e++) {
        const double pixel[C] = {t->plane[0][e], t->plane[1][e], t->plane[2][e]};
        grey += (double)d->factor * grey_of(pixel) / (t->h * t->w);
    }
    for (int k = 0; k < C; k++)
        v[k] = (double)d->factor * between(t->plane[k], t->h, t->w, y, x);
    for (int k = 0; k < C && a.contrast > 0; k++)
        v[k] = d->contrast * v[k] + (1 - d->contrast) * grey;
    const double own = grey_of(v);
    for (int k = 0; k < C && a.saturation > 0; k++)
        v[k] = d->saturation * v[k] + (1 - d->saturation) * own;
    if (a.hue > 0)
        turn_hue(v, d->hue);
    for (int k = 0; k < C; k++)
        v[k] = cut || !known ? 0 : (v[k] - off[k]) / (m.std[k] > 0 ? m.std[k] : 1);
    return !near;
}

#define THIRDS {log(3.0 / 4), log(4.0 / 3)}
static int changes(Augment *a)
{
    const Augment all[] = {
        {.upside = true},
        {.shift = 3, .flip = true, .upside = true, .erase = 1, .erase_area = {0.1, 0.4}, .erase_ratio = {-1, 1}},
        {.degrees = 30},
        {.degrees = 180, .zoom = 0.5, .edge = true, .shift = 2, .flip = true},
        {.zoom = 0.3, .shift = 2, .cutout = 3},
        {.crop_area = {0.08, 1}, .crop_ratio = THIRDS},
        {.crop_area = {0.9, 1}, .crop_ratio = {log(2), log(3)}}, /* no try fits: the middle */
        {.crop_area = {0.2, 0.5}, .crop_ratio = THIRDS, .degrees = 20, .upside = true, .flip = true},
        {.contrast = 0.5, .shift = 2},
        {.saturation = 1, .upside = true},
        {.hue = 0.5},
        {.brightness = 0.3, .contrast = 0.4, .saturation = 0.5, .hue = 0.2, .flip = true},
        {.brightness = 0.3, .contrast = 0.4, .saturation = 0.5, .hue = 0.2, .degrees = 15, .zoom = 0.1,
         .crop_area = {0.3, 1}, .crop_ratio = THIRDS, .erase = 0.5, .erase_area = {0.02, 0.33},
         .erase_ratio = {log(0.3), log(3.3)}},
    };
    memcpy(a, all, sizeof all);
    return sizeof all / sizeof *all;
}
enum { CHANGES = 13 };

/* y holds two samples of m.h x m.w. */
static void check_changed(const real *y, bool last, const Rt *r, const real *mean, Image m,
                          Augment a)
{
    static Stored t;
    const double bound = sizeof(real) == 4 ? 2e-4 : 1e-9;
    const int size = m.h * m.w;
    int left_out = 0;
    for (int s = 0; s < 2; s++) {
        const Draw d = image_draw(r, order[1 + s], m, a);
        store(&t, r, order[1 + s], m.resize);
        for (int i = 0; i < m.h; i++)
            for (int j = 0; j < m.w; j++) {
                double v[C];
                if (!augmented(v, &t, mean, m, a, &d, i, j)) {
                    left_out++;
                    continue;
                }
                for (int k = 0; k < C; k++) {
                    const int at = last ? (i * m.w + j) * C + k : k * size + i * m.w + j;
                    REQUIRE(fabs((double)y[s * C * size + at] - v[k]) <= bound * (1 + fabs(v[k])),
                            "sample %d, channel %d, pixel %d %d: %g and %g", s, k, i, j,
                            (double)y[s * C * size + at], v[k]);
                }
            }
    }
    ck_assert_int_lt(left_out, size / 8);
}

START_TEST(changed)
{
    static Augment list[CHANGES];
    ck_assert_int_eq(changes(list), CHANGES);
    const Augment a = list[_i];
    const Image channel = {.c = C, .h = H, .w = W, .mean = {0.4, 0.5, 0.6}, .std = {2, 1, 3}};
    const Image plain = {.c = C, .h = H, .w = W};
    Image other = {.c = C, .h = 17, .w = 9, .resize = true};
    real *mean = random_buffer(COUNT, 3), *y = buffer(2 * COUNT), *z = buffer(2 * C * 17 * 9);
    for (int type = RT_U8; type <= RT_F64; type++)
        for (int epoch = 0; epoch < 4; epoch++)
            for (int last = 0; last < 2; last++) {
                Rt r = stored(type, epoch);
                rt_input_augmented(y, &r, 1, 2, last, NULL, channel, a);
                check_changed(y, last, &r, NULL, channel, a);
                rt_input_augmented(y, &r, 1, 2, last, mean, plain, a);
                check_changed(y, last, &r, mean, plain, a);
                r.x_height = H, r.x_width = W;
                rt_input_augmented(z, &r, 1, 2, last, NULL, other, a);
                check_changed(z, last, &r, NULL, other, a);
            }
    check_guard(y, 2 * COUNT * (int64_t)sizeof(real), "rt_input_augmented");
    check_guard(z, 2 * C * 17 * 9 * (int64_t)sizeof(real), "rt_input_augmented, resized");
    release(3, mean, y, z);
}
END_TEST

/* ---- targets */

START_TEST(targets)
{
    static Augment list[CHANGES];
    static int32_t label[STORED * H * W + 2], got[2 * H * W];
    real *number = buffer(STORED * (COUNT + 2)), *y = buffer(2 * COUNT);
    changes(list);
    const Augment a = list[_i];
    const Image m = {.c = C, .h = H, .w = W};
    for (int i = 0; i < STORED * H * W + 2; i++)
        label[i] = i % 7 - 1;
    for (int i = 0; i < STORED * (COUNT + 2); i++)
        number[i] = (real)(i % 31) / 3;
    for (int epoch = 0; epoch < 4; epoch++) {
        Rt r = stored(RT_F32, epoch);
        r.label = label, r.label_type = RT_I32, r.label_stride = H * W * (int64_t)sizeof *label;
        rt_labels_moved(got, &r, 1, 2, 8, H, W, a, -5);
        r.label = number, r.label_stride = (COUNT + 2) * (int64_t)sizeof(real);
        for (int nearest = 0; nearest < 2; nearest++) {
            rt_target_moved(y, &r, 1, 2, 2 * (int)sizeof(real), C, H, W, a, nearest);
            for (int s = 0; s < 2; s++) {
                const uint32_t sample = order[1 + s];
                const Draw d = image_draw(&r, sample, m, a);
                for (int i = 0; i < H; i++)
                    for (int j = 0; j < W; j++) {
                        double v, u;
                        bool near;
                        const bool known = place_of(&d, &a, H, W, i, j, &v, &u, &near);
                        const double half = fmax(fabs(v - floor(v) - 0.5), 0);
                        const double other = fabs(u - floor(u) - 0.5);
                        if (near || half < 1e-9 || other < 1e-9)
                            continue;
                        const int from = (int)floor(v + 0.5) * W + (int)floor(u + 0.5);
                        ck_assert_int_eq(got[(s * H + i) * W + j],
                                         known ? label[2 + (int)sample * H * W + from] : -5);
                        for (int k = 0; k < C; k++) {
                            const real *own = number + sample * (COUNT + 2) + 2 + k * H * W;
                            double plane[H * W];
                            for (int e = 0; e < H * W; e++)
                                plane[e] = (double)own[e];
                            const double want = !known    ? 0
                                                : nearest ? plane[from]
                                                          : between(plane, H, W, v, u);
                            ck_assert(fabs((double)y[(s * C + k) * H * W + i * W + j] - want) < 1e-4);
                        }
                    }
            }
        }
        r.label = NULL; /* as in predict */
        rt_labels_moved(got, &r, 1, 2, 0, H, W, a, -5);
        rt_target_moved(y, &r, 1, 2, 0, C, H, W, a, false);
        for (int i = 0; i < 2 * H * W; i++)
            ck_assert(got[i] == 0 && y[i] == 0);
    }
    check_guard(y, 2 * COUNT * (int64_t)sizeof(real), "rt_target_moved");
    release(2, number, y);
}
END_TEST

/* Bounds and frequencies of the numbers that the further augmentations draw. */
START_TEST(further_draws)
{
    enum { SAMPLES = 4000 };
    const Image m = {.c = C, .h = 40, .w = 50};
    const Augment a = {.upside = true, .degrees = 30, .zoom = 0.2, .contrast = 0.4, .saturation = 0.5, .hue = 0.1,
                       .crop_area = {0.25, 0.5}, .crop_ratio = THIRDS,
                       .erase = 0.25, .erase_area = {0.05, 0.2}, .erase_ratio = {-log(3), -log(2)}};
    const Rt r = stored(RT_U8, 0);
    int upside = 0, erased = 0, wide = 0;
    double angle = 0, factor = 0, area = 0, contrast = 0, least = 9, most = 0;
    for (uint32_t s = 0; s < SAMPLES; s++) {
        const Draw d = image_draw(&r, s, m, a);
        const double turn = atan2(d.sine, d.cosine) * 180 / 3.14159265358979,
                     size = 1 / hypot(d.sine, d.cosine);
        const int h = d.crop.bottom - d.crop.top, w = d.crop.right - d.crop.left;
        const double share = (double)h * w / (m.h * m.w), ratio = (double)w / h;
        ck_assert(fabs(turn) <= 30 && size >= 0.8 && size <= 1.2);
        ck_assert(d.crop.top >= 0 && d.crop.bottom <= m.h && d.crop.left >= 0 && d.crop.right <= m.w);
        ck_assert(share > 0.23 && share < 0.53 && ratio > 0.7 && ratio < 1.4); /* whole pixels */
        ck_assert(fabs(d.contrast - 1) <= 0.4 && fabs(d.saturation - 1) <= 0.5 && fabs(d.hue) <= 0.1);
        const int high = d.erased.bottom - d.erased.top, broad = d.erased.right - d.erased.left;
        ck_assert(high < m.h && broad < m.w && d.erased.top >= 0 && d.erased.bottom <= m.h && d.erased.right <= m.w);
        ck_assert(high == 0 || (high * broad > 0.04 * 2000 && high * broad < 0.22 * 2000));
        ck_assert(high == 0 || ((double)high / broad > 1.75 && (double)high / broad < 3.4)); /* whole pixels */
        upside += d.upside, erased += high > 0, wide += w > h;
        angle += turn, factor += size, area += share, contrast += d.contrast;
        least = fmin(least, size), most = fmax(most, size);
    }
    ck_assert_int_lt(abs(upside - SAMPLES / 2), 160);
    ck_assert_int_lt(abs(erased - SAMPLES / 4), 140);
    ck_assert_int_lt(abs(wide - SAMPLES / 2), 400); /* less often where width and height are equal */
    ck_assert(fabs(angle / SAMPLES) < 1.5 && fabs(factor / SAMPLES - 1) < 0.01);
    ck_assert(fabs(area / SAMPLES - 0.375) < 0.02 && fabs(contrast / SAMPLES - 1) < 0.02);
    ck_assert(least < 0.81 && most > 1.19);
}
END_TEST

/* ---- mixtures of two samples */

/* Whether the pixel belongs to the other sample alone; *own: the weight of the own one. */
static bool foreign(const RtMix *mix, int i, int j, double *own)
{
    const RtBox b = mix->box;
    *own = mix->own;
    if (mix->cut)
        *own = !(i >= b.top && i < b.bottom && j >= b.left && j < b.right);
    return *own == 0;
}

/* Mixed samples are mixtures of the augmented samples; targets and weights are those of both. */
START_TEST(mixtures)
{
    static const Augment list[] = {
        {.flip = true, .shift = 2, .mixup = 0.5, .mixup_p = 0.8, .among = PLACES},
        {.contrast = 0.4, .degrees = 20, .cutmix = 1, .cutmix_p = 0.9, .among = PLACES},
        {.erase = 0.5, .erase_area = {0.1, 0.3}, .erase_ratio = {-1, 1}, .mixup = 2, .mixup_p = 1,
         .cutmix = 0.3, .cutmix_p = 1, .among = PLACES}};
    static int32_t label[STORED + 2], more[PLACES], less[PLACES];
    const Augment a = list[_i];
    const Image m = {.c = C, .h = H, .w = W, .mean = {0.4, 0.5, 0.6}, .std = {0.2, 1, 0.3}};
    real *apart = buffer(PLACES * COUNT), *y = buffer(PLACES * COUNT), *weight = buffer(PLACES),
         *number = random_buffer(STORED * 3, 8), *got = buffer(PLACES * 3);
    int mixed = 0, swapped = 0;
    for (int i = 0; i < STORED + 2; i++)
        label[i] = 100 + i;
    for (int type = RT_U8; type <= RT_F64; type++)
        for (int epoch = 0; epoch < 8; epoch++)
            for (int last = 0; last < 2; last++) {
                Rt r = stored(type, epoch);
                rt_input_augmented(apart, &r, 0, PLACES, last, NULL, m, a);
                rt_input_mixed(y, &r, 0, PLACES, last, NULL, m, a);
                r.label = label, r.label_type = RT_I32, r.label_stride = sizeof *label;
                rt_labels_mixed(more, &r, 0, PLACES, 4, H, W, a, false);
                rt_labels_mixed(less, &r, 0, PLACES, 4, H, W, a, true);
                rt_mix_weight(weight, &r, 0, PLACES, H, W, a);
                r.label = number, r.label_stride = 3 * sizeof *number;
                rt_target_mixed(got, &r, 0, PLACES, 0, 3, H, W, a, true);
                for (int s = 0; s < PLACES; s++) {
                    const RtMix mix = rt_mix(r.seed, r.epoch, order[s], H, W, &a);
                    double sum = 0, own;
                    ck_assert(mix.other >= 0 && mix.other < PLACES);
                    for (int at = 0; at < COUNT; at++) {
                        const int pixel = last ? at / C : at % (H * W);
                        const double p = (double)apart[s * COUNT + at],
                                     q = (double)apart[mix.other * COUNT + at];
                        const bool all = foreign(&mix, pixel / W, pixel % W, &own);
                        const double want = all ? q : own * p + (1 - own) * q;
                        sum += own;
                        ck_assert(fabs((double)y[s * COUNT + at] - want) < 1e-5 * (1 + fabs(want)));
                    }
                    sum /= COUNT;
                    const int first = sum >= 0.5 ? s : mix.other, second = sum >= 0.5 ? mix.other : s;
                    ck_assert(fabs((double)weight[s] - fmax(sum, 1 - sum)) < 1e-6);
                    mixed += sum > 0 && sum < 1, swapped += sum < 0.5;
                    if (fabs(sum - 0.5) < 1e-9)
                        continue;
                    ck_assert_int_eq(more[s], 101 + (int)order[first]);
                    ck_assert_int_eq(less[s], 101 + (int)order[second]);
                    for (int k = 0; k < 3; k++)
                        ck_assert(got[s * 3 + k] == number[3 * order[second] + (uint32_t)k]);
                }
            }
    ck_assert(mixed > 20 && swapped > 5);
    check_guard(y, PLACES * COUNT * (int64_t)sizeof(real), "rt_input_mixed");
    release(5, apart, y, weight, number, got);
}
END_TEST

/* Weights have the moments of their distribution, and places are equally frequent. */
START_TEST(mixed_draws)
{
    enum { SAMPLES = 40000, AMONG = 8 };
    static const double alpha[] = {0.2, 0.5, 1, 2, 8};
    const double e = alpha[_i];
    const Augment a = {.mixup = e, .mixup_p = 0.75, .among = AMONG},
                  b = {.mixup = 1, .mixup_p = 1, .cutmix = e, .cutmix_p = 1, .among = AMONG};
    int place[AMONG] = {0}, alone = 0, cut = 0;
    double mean = 0, second = 0, fourth = 0;
    for (uint32_t s = 0; s < SAMPLES; s++) {
        const RtMix mix = rt_mix(5, 3, s, 40, 50, &a), box = rt_mix(5, 3, s, 40, 50, &b);
        const int height = box.box.bottom - box.box.top, width = box.box.right - box.box.left;
        const double d = mix.own - 0.5, share = (double)(height * width) / (40 * 50);
        place[mix.other]++;
        alone += mix.own == 1 && e > 0.4, cut += box.cut;
        mean += d, second += d * d, fourth += d * d * d * d;
        ck_assert(mix.own >= 0 && mix.own <= 1 && !mix.cut);
        ck_assert(height >= 0 && width >= 0 && box.box.top >= 0 && box.box.left >= 0);
        ck_assert(!box.cut || (box.box.bottom <= 40 && box.box.right <= 50 &&
                               fabs(box.own - (1 - share)) < 1e-12));
    }
    /* a quarter is not mixed: 1/2, 1/4 and 1/16 */
    const double v = 1 / (4 * (2 * e + 1)), w = 3 / (16 * (2 * e + 1) * (2 * e + 3));
    ck_assert(fabs(mean / SAMPLES - 0.25 * 0.5) < 0.01);
    ck_assert(fabs(second / SAMPLES - (0.75 * v + 0.25 / 4)) < 0.003);
    ck_assert(fabs(fourth / SAMPLES - (0.75 * w + 0.25 / 16)) < 0.001);
    ck_assert(e < 0.4 || abs(alone - SAMPLES / 4) < 500);
    ck_assert_int_lt(abs(cut - SAMPLES / 2), 600);
    for (int i = 0; i < AMONG; i++)
        ck_assert_int_lt(abs(place[i] - SAMPLES / AMONG), 400);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("image");
    tcase_add_loop_test(t, images, 0, sizeof augment / sizeof *augment);
    tcase_add_loop_test(t, resized, 0, 5);
    tcase_add_test(t, draws);
    tcase_add_loop_test(t, changed, 0, CHANGES);
    tcase_add_loop_test(t, targets, 0, CHANGES);
    tcase_add_test(t, further_draws);
    tcase_add_loop_test(t, mixtures, 0, 3);
    tcase_add_loop_test(t, mixed_draws, 0, 5);
    return run_suite(t, "samples on their way in");
}
