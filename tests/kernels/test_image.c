/* test_image.c -- normalization and augmentation, compared pixel by pixel with their definition. */
#include "kernel_test.h"

#include "cpu/image.h"

enum { C = 3, H = 11, W = 13, STORED = 6, COUNT = C * H * W };

static uint8_t stored_u8[STORED * COUNT];
static float stored_f32[STORED * COUNT];
static double stored_f64[STORED * COUNT];
static const uint32_t order[4] = {5, 0, 3, 1};

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

int main(void)
{
    TCase *t = tcase_create("image");
    tcase_add_loop_test(t, images, 0, sizeof augment / sizeof *augment);
    tcase_add_loop_test(t, resized, 0, 5);
    tcase_add_test(t, draws);
    return run_suite(t, "samples on their way in");
}
