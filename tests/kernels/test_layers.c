/* test_layers.c -- pooling, resizing, dropout, normal numbers, input and the elementwise update. */
#include "kernel_test.h"

#include "cpu/along.h"
#include "cpu/dropout.h"
#include "cpu/input.h"
#include "cpu/normal.h"
#include "cpu/pool.h"
#include "cpu/resize.h"
#include "cpu/update.h"

/* -------------------------------------------------------------------------------------- pooling */
static const Pool pools[] = {
    /* n  c  h  w  r  s  stride pad  oh ow count_pad ldy */
    {2, 3, 6, 6, 2, 2, 2, 2, 0, 0, 3, 3, 0, 0},  {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0},
    {2, 17, 7, 9, 3, 3, 2, 2, 1, 1, 4, 5, 0, 0}, {1, 33, 5, 4, 3, 2, 1, 1, 1, 0, 5, 3, 1, 0},
    {3, 20, 8, 8, 3, 3, 1, 2, 0, 1, 6, 4, 1, 0}, {1, 5, 3, 3, 2, 2, 1, 1, 3, 3, 8, 8, 0, 0},
    {1, 40, 4, 4, 2, 2, 3, 3, 0, 0, 1, 1, 0, 0},
};
enum { POOLS = sizeof pools / sizeof pools[0] };

START_TEST(pooling)
{
    const Pool p = pools[_i];
    const int64_t nx = (int64_t)p.n * p.c * p.h * p.w, ny = (int64_t)p.n * p.c * p.oh * p.ow;
    const int hw = p.h * p.w, cells = p.oh * p.ow;
    real *x = random_buffer(nx, 1), *dy = random_buffer(ny, 2), *xl = buffer(nx), *dyl = buffer(ny);
    for (int64_t i = 0; i < nx; i += 3)
        x[i] = 0.5f; /* many equals */
    hwc_from_chw(xl, x, p.n, p.c, hw);
    hwc_from_chw(dyl, dy, p.n, p.c, cells);
    for (int kind = 0; kind < 2; kind++) {
        real *y = buffer(ny), *yl = buffer(ny), *yr = buffer(ny), *dx = buffer(nx),
             *dxl = buffer(nx), *dxr = buffer(nx);
        if (kind == 0) {
            max_pool_plain(y, x, p);
            max_pool(yl, xl, p);
            max_pool_dx_plain(dx, x, dy, p);
            max_pool_dx(dxl, xl, dyl, p);
        } else {
            avg_pool_plain(y, x, p);
            avg_pool(yl, xl, p);
            avg_pool_dx_plain(dx, dy, p);
            avg_pool_dx(dxl, dyl, p);
        }
        check_guard(yl, ny * (int64_t)sizeof(real), "pool");
        check_guard(dxl, nx * (int64_t)sizeof(real), "pool_dx");
        chw_from_hwc(yr, yl, p.n, p.c, cells);
        chw_from_hwc(dxr, dxl, p.n, p.c, hw);
        check_close(yr, y, ny, kind ? "avg_pool" : "max_pool");
        check_close(dxr, dx, nx, kind ? "avg_pool_dx" : "max_pool_dx");
        double by_y = 0, by_x = 0; /* linear in the values that count */
        for (int64_t i = 0; i < ny; i++)
            by_y += (double)y[i] * dy[i];
        for (int64_t i = 0; i < nx; i++)
            by_x += (double)x[i] * dx[i];
        const double allowed = TOLERANCE * (double)ny;
        ck_assert_double_eq_tol(by_x, by_y, allowed);
        release(6, y, yl, yr, dx, dxl, dxr);
    }
    release(4, x, dy, xl, dyl);
}
END_TEST

/* y and dy as parts of wider rows: the same bits, and nothing is written between the rows. */
START_TEST(pooling_apart)
{
    const Pool p = pools[_i];
    Pool wide = p;
    wide.ldy = p.c + 21;
    const int64_t nx = (int64_t)p.n * p.c * p.h * p.w, rows = (int64_t)p.n * p.oh * p.ow;
    real *x = random_buffer(nx, 1), *dy = random_buffer(rows * p.c, 2), *y = buffer(rows * p.c),
         *dx[2] = {buffer(nx), buffer(nx)}, *yw = spread(NULL, rows, p.c, wide.ldy),
         *dyw = spread(dy, rows, p.c, wide.ldy);
    for (int kind = 0; kind < 2; kind++) {
        if (kind == 0) {
            max_pool(y, x, p), max_pool(yw, x, wide);
            max_pool_dx(dx[0], x, dy, p), max_pool_dx(dx[1], x, dyw, wide);
        } else {
            avg_pool(y, x, p), avg_pool(yw, x, wide);
            avg_pool_dx(dx[0], dy, p), avg_pool_dx(dx[1], dyw, wide);
        }
        check_spread(yw, y, rows, p.c, wide.ldy, kind ? "avg_pool" : "max_pool");
        check_same(dx[1], dx[0], nx * (int64_t)sizeof(real), kind ? "avg_pool_dx" : "max_pool_dx");
    }
    check_guard(yw, rows * wide.ldy * (int64_t)sizeof(real), "pool");
    release(7, x, dy, y, dx[0], dx[1], yw, dyw);
}
END_TEST

/* The definition: the first of equal maxima gets the gradient; padding never wins and does not count. */
START_TEST(pool_rules)
{
    const Pool p = {1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 2, 2, 0, 0};
    const real x[4] = {-1, -2, -3, -4}, one[4] = {1, 1, 1, 1}, equal[4] = {5, 5, 5, 5};
    const Pool whole = {1, 1, 2, 2, 2, 2, 2, 2, 0, 0, 1, 1, 0, 0};
    real y[4], dx[4];
    max_pool_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == x[i]);
    avg_pool_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == x[i]);
    max_pool_dx_plain(dx, equal, one, whole);
    ck_assert(dx[0] == 1 && dx[1] == 0 && dx[2] == 0 && dx[3] == 0);
    max_pool_dx(dx, equal, one, whole);
    ck_assert(dx[0] == 1 && dx[1] == 0 && dx[2] == 0 && dx[3] == 0);
}
END_TEST

typedef struct Largest {
    int n, c, hw;
    real *x, *dy, *y, *dx;
} Largest;
static void share_largest(void *arg)
{
    const Largest *q = arg;
    global_max_pool(q->y, q->x, q->n, q->c, q->hw);
    global_max_pool_dx(q->dx, q->x, q->dy, q->n, q->c, q->hw);
}

START_TEST(global_maximum)
{
    const int n = 3, hw = _i % 4 ? 35 : 1, c = _i;
    const int64_t nx = (int64_t)n * c * hw, ny = (int64_t)n * c, size = (int64_t)sizeof(real);
    real *x = random_buffer(nx, 1), *y = buffer(ny), *dy = random_buffer(ny, 2), *dx = buffer(nx);
    for (int64_t i = 0; i < nx; i += 2)
        x[i] = (real)(i % 3 ? 2 : -2); /* many equals, often the largest */
    Largest q = {n, c, hw, swap_last(x, n, c, hw), dy, buffer(ny), buffer(nx)};
    global_max_pool_plain(y, x, n, c, hw);
    global_max_pool_dx_plain(dx, x, dy, n, c, hw);
    share_largest(&q);
    real *dxr = swap_last(q.dx, n, hw, c);
    check_same(q.y, y, ny * size, "global_max_pool");
    check_same(dxr, dx, nx * size, "global_max_pool_dx");
    check_guard(q.y, ny * size, "global_max_pool");
    check_guard(q.dx, nx * size, "global_max_pool_dx");
    Largest team = {n, c, hw, q.x, dy, buffer(ny), buffer(nx)};
    as_team(2, share_largest, &team);
    check_same(team.y, q.y, ny * size, "global_max_pool in a team");
    check_same(team.dx, q.dx, nx * size, "global_max_pool_dx in a team");
    release(10, x, y, dy, dx, q.x, q.y, q.dx, dxr, team.y, team.dx);
}
END_TEST

START_TEST(global_average)
{
    const int n = 3, hw = 35, c = _i;
    const int64_t nx = (int64_t)n * c * hw, ny = (int64_t)n * c;
    real *x = random_buffer(nx, 1), *xl = buffer(nx), *y = buffer(ny), *yl = buffer(ny),
         *dy = random_buffer(ny, 2);
    real *dx = buffer(nx), *dxl = buffer(nx), *dxr = buffer(nx);
    hwc_from_chw(xl, x, n, c, hw);
    global_avg_pool_plain(y, x, n, c, hw);
    global_avg_pool(yl, xl, n, c, hw);
    check_close(yl, y, ny, "global_avg_pool");
    global_avg_pool_dx_plain(dx, dy, n, c, hw);
    global_avg_pool_dx(dxl, dy, n, c, hw);
    chw_from_hwc(dxr, dxl, n, c, hw);
    check_close(dxr, dx, nx, "global_avg_pool_dx");
    release(8, x, xl, y, yl, dy, dx, dxl, dxr);
}
END_TEST

/* ------------------------------------------------------------------------------------- resizing */
static const Resize resizes[] = {
    /* n  c  h  w  oh ow: by 2, by odd numbers, smaller, from and to one pixel, more readers than RT_RESIZE_TAPS */
    {2, 17, 4, 5, 8, 10, 0, false}, {1, 3, 5, 7, 11, 9, 0, false}, {2, 33, 7, 6, 3, 2, 0, false},
    {1, 1, 1, 1, 5, 3, 0, false},   {3, 5, 4, 3, 1, 1, 0, false},  {1, 20, 2, 3, 41, 13, 0, false},
    {1, 16, 9, 5, 9, 5, 0, false},
};
enum { RESIZES = sizeof resizes / sizeof resizes[0] };

typedef struct Resized {
    Resize p;
    real *x, *dy, *y, *dx;
} Resized;
static void share_resize(void *arg)
{
    const Resized *q = arg;
    resize(q->y, q->x, q->p);
    resize_dx(q->dx, q->dy, q->p);
}

START_TEST(resizing)
{
    Resize p = resizes[_i / 2];
    p.bilinear = _i % 2;
    const int hw = p.h * p.w, cells = p.oh * p.ow;
    const int64_t nx = (int64_t)p.n * p.c * hw, rows = (int64_t)p.n * cells, ny = rows * p.c;
    real *x = random_buffer(nx, 1), *dy = random_buffer(ny, 2), *y = buffer(ny), *dx = buffer(nx);
    Resized q = {p, swap_last(x, p.n, p.c, hw), swap_last(dy, p.n, p.c, cells), buffer(ny),
                 buffer(nx)};
    resize_plain(y, x, p);
    resize_dx_plain(dx, dy, p);
    share_resize(&q);
    real *yr = swap_last(q.y, p.n, cells, p.c), *dxr = swap_last(q.dx, p.n, hw, p.c);
    check_guard(q.y, ny * (int64_t)sizeof(real), "resize");
    check_guard(q.dx, nx * (int64_t)sizeof(real), "resize_dx");
    check_close(yr, y, ny, "resize");
    check_close(dxr, dx, nx, "resize_dx");

    Resized team = {p, q.x, q.dy, buffer(ny), buffer(nx)}; /* the same bits, in parts */
    as_team(_i % 3 ? 3 : 7, share_resize, &team);
    check_same(team.y, q.y, ny * (int64_t)sizeof(real), "resize in a team");
    check_same(team.dx, q.dx, nx * (int64_t)sizeof(real), "resize_dx in a team");

    Resized wide = {p, q.x, NULL, NULL,
                    buffer(nx)}; /* the same bits, with y and dy in wider rows */
    wide.p.ldy = p.c + 21;
    wide.y = spread(NULL, rows, p.c, wide.p.ldy), wide.dy = spread(q.dy, rows, p.c, wide.p.ldy);
    share_resize(&wide);
    check_spread(wide.y, q.y, rows, p.c, wide.p.ldy, "resize");
    check_same(wide.dx, q.dx, nx * (int64_t)sizeof(real), "resize_dx with rows apart");
    release(8, x, dy, y, dx, q.x, q.dy, q.y, q.dx);
    release(7, yr, dxr, team.y, team.dx, wide.y, wide.dy, wide.dx);
}
END_TEST

/* By the definition: corners keep their numbers, the pixels between them are at quarters. */
START_TEST(resize_rules)
{
    const real x[2] = {4, 8}, by[4] = {4, 5, 7, 8}, nearest[4] = {4, 4, 8, 8},
               one[4] = {1, 2, 4, 8};
    Resize p = {1, 1, 1, 2, 1, 4, 0, true};
    real y[4], dx[2];
    resize_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == by[i]);
    resize_dx_plain(dx, one, p);
    ck_assert(dx[0] == (real)3.5 && dx[1] == (real)11.5);
    p.bilinear = false;
    resize_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == nearest[i]);
    resize_dx_plain(dx, one, p);
    ck_assert(dx[0] == 3 && dx[1] == 12);
}
END_TEST

/* -------------------------------------------------------------------------------------- dropout */
START_TEST(dropout_mask)
{
    static const int widths[] = {1, 3, 4, 31, 64, 130, 512};
    const int n = 3, k = widths[_i];
    const uint32_t index[6] = {9, 8, 70000, 3, 11, 2};
    const Rt r = {.seed = 0x123456789abcdefull, .epoch = 3, .index = index};
    real *x = random_buffer((int64_t)n * k, 1), *a = buffer((int64_t)n * k),
         *b = buffer((int64_t)n * k);
    dropout_plain(a, x, &r, 2, 1, 0.25f, n, k);
    dropout(b, x, &r, 2, 1, 0.25f, n, k);
    check_same(a, b, (int64_t)n * k * (int64_t)sizeof(real), "dropout");
    check_guard(b, (int64_t)n * k * (int64_t)sizeof(real), "dropout");
    dropout_dx(b, x, &r, 2, 1, 0.25f, n, k);
    check_same(a, b, (int64_t)n * k * (int64_t)sizeof(real), "dropout_dx");

    /* sample 2 alone, as in another division of the batch */
    dropout(b, x + 2 * k, &r, 2, 3, 0.25f, 1, k);
    check_same(a + 2 * k, b, k * (int64_t)sizeof(real), "dropout of another chunk");
    release(3, x, a, b);
}
END_TEST

/* ------------------------------------------------------------------------------ cumsum, argmax */
static const struct {
    int outer, k, inner;
} along_shapes[] = {{1, 1, 1},  {7, 5, 1}, {4, 300, 1}, {3, 6, 37},
                    {2, 1, 16}, {5, 9, 3}, {1, 40, 64}};

typedef struct AlongCall {
    int i; /* of along_shapes */
    bool back;
    real *x, *sums, *best;
} AlongCall;

static void share_along(void *arg)
{
    const AlongCall *q = arg;
    const int outer = along_shapes[q->i].outer, k = along_shapes[q->i].k,
              inner = along_shapes[q->i].inner;
    cumsum(q->sums, q->x, outer, k, inner, q->back);
    argmax(q->best, q->x, outer, k, inner);
}

START_TEST(running_sums)
{
    const int outer = along_shapes[_i].outer, k = along_shapes[_i].k,
              inner = along_shapes[_i].inner;
    const int64_t count = (int64_t)outer * k * inner, bytes = count * (int64_t)sizeof(real);
    real *x = random_buffer(count, 3), *a = buffer(count), *b = buffer(count);
    for (int back = 0; back < 2; back++) {
        cumsum_plain(a, x, outer, k, inner, back);
        cumsum(b, x, outer, k, inner, back);
        check_same(a, b, bytes, "cumsum");
        check_guard(b, bytes, "cumsum");
        const real sum = x[0] + (k > 1 ? x[inner] : 0);
        ck_assert(back || k < 2 || a[inner] == sum);
        AlongCall q = {_i, back, x, buffer(count), buffer(count)};
        as_team(3, share_along, &q);
        check_same(b, q.sums, bytes, "cumsum of a team");
        argmax(b, x, outer, k, inner);
        check_same(b, q.best, bytes / k, "argmax of a team");
        release(2, q.sums, q.best);
    }
    release(3, x, a, b);
}
END_TEST

START_TEST(indices_of_maxima)
{
    const int outer = along_shapes[_i].outer, k = along_shapes[_i].k,
              inner = along_shapes[_i].inner;
    const int64_t places = (int64_t)outer * inner, bytes = places * (int64_t)sizeof(real);
    real *x = random_buffer(places * k, 4), *a = buffer(places), *b = buffer(places);
    for (int64_t i = 0; i < places * k; i++)
        x[i] = (real)(int)(4 * x[i]); /* equal numbers: the first of them counts */
    argmax_plain(a, x, outer, k, inner);
    argmax(b, x, outer, k, inner);
    check_same(a, b, bytes, "argmax");
    check_guard(b, bytes, "argmax");
    for (int64_t j = 0; j < k; j++) {
        const int64_t best = (int64_t)a[0];
        ck_assert(j < best ? x[j * inner] < x[best * inner] : x[j * inner] <= x[best * inner]);
    }
    release(3, x, a, b);
}
END_TEST

/* --------------------------------------------------------------------------------- normal_like */
START_TEST(normal_numbers)
{
    static const int widths[] = {1, 3, 4, 31, 64, 130, 512};
    const int n = 3, k = widths[_i];
    const uint32_t index[6] = {9, 8, 70000, 3, 11, 2};
    const Rt r = {.seed = 0x123456789abcdefull, .epoch = 3, .index = index},
             other = {.seed = 5, .epoch = 4, .index = index};
    real *a = buffer((int64_t)n * k), *b = buffer((int64_t)n * k), *c = buffer((int64_t)n * k);
    normal_like_plain(a, &r, 2, 1, true, n, k);
    normal_like(b, &r, 2, 1, true, n, k);
    check_close(a, b, (int64_t)n * k, "normal_like");
    check_guard(b, (int64_t)n * k * (int64_t)sizeof(real), "normal_like");

    /* sample 2 alone, as in another division of the batch */
    normal_like(c, &r, 2, 3, true, 1, k);
    check_same(b + 2 * k, c, k * (int64_t)sizeof(real), "normal_like of another chunk");

    normal_like(c, &other, 2, 1, true, n, k);
    ck_assert(memcmp(b, c, sizeof(real)) != 0);
    normal_like(b, &r, 2, 1, false, n, k);
    normal_like(c, &other, 2, 1, false, n, k);
    check_same(b, c, (int64_t)n * k * (int64_t)sizeof(real), "an evaluation with another seed");
    release(3, a, b, c);
}
END_TEST

/* Moments and tails of 200,000 numbers, within five standard deviations of such an estimate. */
START_TEST(normal_moments)
{
    enum { K = 200000 };
    const uint32_t index[1] = {5};
    const Rt r = {.seed = 1, .index = index};
    real *y = buffer(K);
    double sum[5] = {0}, tail = 0, pairs = 0;
    normal_like(y, &r, 0, 0, true, 1, K);
    for (int i = 0; i < K; i++) {
        const double v = (double)y[i];
        for (int m = 1; m < 5; m++)
            sum[m] += pow(v, m) / K;
        tail += (fabs(v) > 3) / (double)K;
        pairs += i > 0 ? v * (double)y[i - 1] / K : 0;
    }
    const double five = 5 / sqrt(K);
    ck_assert_double_lt(fabs(sum[1]), five);
    ck_assert_double_lt(fabs(sum[2] - 1), five * sqrt(2));
    ck_assert_double_lt(fabs(sum[3]), five * sqrt(15));
    ck_assert_double_lt(fabs(sum[4] - 3), five * sqrt(96));
    ck_assert_double_lt(fabs(tail - 0.0026998), five * sqrt(0.0027));
    ck_assert_double_lt(fabs(pairs), five);
    release(1, y);
}
END_TEST

START_TEST(dropout_rate)
{
    enum { K = 20000 };
    const uint32_t index[1] = {5};
    const Rt r = {.seed = 1, .index = index};
    real *x = buffer(K), *y = buffer(K), *z = buffer(K);
    int kept = 0, same = 0;
    for (int i = 0; i < K; i++)
        x[i] = 1;
    dropout(y, x, &r, 0, 0, 0.2f, 1, K);
    dropout(z, x, &r, 1, 0, 0.2f, 1, K);
    for (int i = 0; i < K; i++) {
        ck_assert(y[i] == 0 || fabs((double)y[i] - 1.25) < 1e-6);
        kept += y[i] != 0;
        same += (y[i] != 0) == (z[i] != 0);
    }
    ck_assert_int_gt(kept, 15800); /* 16000 +- 3.5 sigma */
    ck_assert_int_lt(kept, 16200);
    ck_assert_int_lt(same, K * 0.70); /* independent masks agree on 0.68 */
    dropout(y, x, &r, 0, 0, 0, 1, K);
    check_same(y, x, K * sizeof(real), "dropout of rate 0");
    release(3, x, y, z);
}
END_TEST

/* ---------------------------------------------------------------------------------------- input */
START_TEST(input)
{
    const int c = _i ? 3 : 1, hw = 21, stored = 5;
    uint8_t bytes[5 * 3 * 21];
    float floats[5 * 3 * 21];
    double doubles[5 * 3 * 21];
    const int32_t label[5] = {10, 11, 12, 13, 14};
    const uint32_t index[4] = {4, 0, 3, 1};
    for (int i = 0; i < stored * c * hw; i++)
        bytes[i] = (uint8_t)(i * 37), floats[i] = (float)i / 7, doubles[i] = i / 3.0;
    const void *data[3] = {bytes, floats, doubles};
    static const int size[3] = {1, 4, 8};
    for (int type = RT_U8; type <= RT_F64; type++) {
        const Rt r = {.x = data[type],
                      .x_stride = (int64_t)c * hw * size[type],
                      .x_type = type,
                      .x_scale = 1 / 255.0,
                      .label = label,
                      .label_stride = sizeof *label,
                      .label_type = RT_I32,
                      .index = index};
        real *y = buffer(2 * c * hw), *l = buffer(2 * c * hw), *rows = buffer(2 * c * hw);
        int32_t got[2];
        rt_input(y, &r, 1, 2, c, hw, false);
        rt_input(l, &r, 1, 2, c, hw, true);
        check_guard(y, 2 * c * hw * (int64_t)sizeof(real), "rt_input");
        for (int i = 0; i < 2 * c * hw; i++) {
            const int at = (int)index[1 + i / (c * hw)] * c * hw + i % (c * hw);
            const real want = type == RT_U8    ? (real)bytes[at] * (real)(1 / 255.0)
                              : type == RT_F32 ? (real)floats[at]
                                               : (real)doubles[at];
            ck_assert(y[i] == want);
        }
        chw_from_hwc(rows, l, 2, c, hw);
        check_same(rows, y, 2 * c * hw * (int64_t)sizeof(real), "rt_input, channels last");
        rt_labels(got, &r, 1, 2, 1);
        ck_assert(got[0] == 10 && got[1] == 13);
        release(3, y, l, rows);
    }
}
END_TEST

/* Rows of reals by the index of the batch; zeros where there are none.  A team gives the same. */
enum { TARGET_N = 5, TARGET_K = 19 };
typedef struct Targets {
    Rt r, blind;
    real y[TARGET_N * TARGET_K], none[TARGET_N * TARGET_K];
} Targets;

static void all_targets(void *arg)
{
    Targets *t = arg;
    rt_target(t->y, &t->r, 1, TARGET_N, TARGET_K);
    rt_target(t->none, &t->blind, 1, TARGET_N, TARGET_K);
}

START_TEST(targets)
{
    static const uint32_t index[TARGET_N + 1] = {0, 3, 1, 1, 0, 2};
    real *rows = random_buffer(4 * TARGET_K, 1);
    Targets one = {.blind.index = index}, team;
    one.r = (Rt){.label = rows, .label_stride = TARGET_K * sizeof(real), .index = index};
    all_targets(&one);
    for (int i = 0; i < TARGET_N * TARGET_K; i++) {
        ck_assert(one.y[i] == rows[(int)index[1 + i / TARGET_K] * TARGET_K + i % TARGET_K]);
        ck_assert(one.none[i] == 0);
    }
    for (int threads = 2; threads < 8; threads++) {
        team = (Targets){.r = one.r, .blind = one.blind};
        memset(team.none, 0xff, sizeof team.none);
        as_team(threads, all_targets, &team);
        check_same(team.y, one.y, sizeof one.y, "rt_target of a team");
        check_same(team.none, one.none, sizeof one.none, "no target, of a team");
    }
    release(1, rows);
}
END_TEST

/* The threads of a team divide the samples. */
enum { TEXT_N = 6, TEXT_T = 5 };
typedef struct Texts {
    Rt r, blind; /* blind: without labels */
    int32_t y[TEXT_N * TEXT_T], label[TEXT_N * TEXT_T], none[TEXT_N * TEXT_T];
} Texts;

static void all_texts(void *arg)
{
    Texts *t = arg;
    rt_tokens(t->y, &t->r, 1, TEXT_N, TEXT_T);
    rt_labels(t->label, &t->r, 1, TEXT_N, TEXT_T);
    rt_labels(t->none, &t->blind, 1, TEXT_N, TEXT_T);
}

START_TEST(tokens_in_teams)
{
    static const int counts[] = {1, 2, 3, 7, 16};
    static const uint8_t text[] = {7, 1, 2, 3, 4, 5, 6, 0, 9, 255, 8, 2};
    static const uint32_t index[TEXT_N + 1] = {0, 2, 6, 1, 0, 5, 3};
    int wrong = 0;
    Texts one = {.blind.index = index};
    one.r = (Rt){.x = text,
                 .x_stride = 1,
                 .x_type = RT_U8,
                 .vocab = 9,
                 .wrong = &wrong,
                 .index = index,
                 .label = text + 1,
                 .label_stride = 1,
                 .label_type = RT_U8};
    Texts team = one;
    all_texts(&one);
    ck_assert_int_eq(wrong, 1);
    for (int i = 0; i < 5; i++) {
        memset(team.y, 0xff, sizeof team.y + sizeof team.label + sizeof team.none);
        wrong = 0;
        as_team(counts[i], all_texts, &team);
        ck_assert_int_eq(wrong, 1);
        ck_assert_mem_eq(team.y, one.y, sizeof one.y + sizeof one.label + sizeof one.none);
    }
}
END_TEST

/* Windows of a text, three tokens apart, and a token later their labels; padding is token 0 and label -1. */
START_TEST(tokens)
{
    const uint8_t u8[] = {7, 1, 2, 3, 4, 5, 6, 0, 9, 255, 8};
    uint16_t u16[11];
    int32_t i32[11];
    int64_t i64[11];
    const uint32_t index[3] = {2, 0, 1};
    for (int i = 0; i < 11; i++)
        u16[i] = u8[i], i32[i] = u8[i], i64[i] = u8[i];
    u16[9] = UINT16_MAX, i32[9] = i64[9] = -1;
    const void *data[4] = {u8, u16, i32, i64};
    static const int type[4] = {RT_U8, RT_U16, RT_I32, RT_I64}, size[4] = {1, 2, 4, 8};
    for (int k = 0; k < 4; k++) {
        const Rt r = {.x = data[k],
                      .x_stride = 3 * size[k],
                      .x_type = type[k],
                      .vocab = 256,
                      .label = (const char *)data[k] + size[k],
                      .label_stride = 3 * size[k],
                      .label_type = type[k],
                      .index = index};
        const int32_t padding = k == 0 ? 255 : 0, unscored = k == 0 ? 255 : -1;
        const int32_t x[12] = {6, 0, 9, padding, 7, 1, 2, 3, 3, 4, 5, 6},
                      y[12] = {0, 9, unscored, 8, 1, 2, 3, 4, 4, 5, 6, 0};
        int32_t got[12];
        rt_tokens(got, &r, 0, 3, 4);
        ck_assert_mem_eq(got, x, sizeof x);
        rt_labels(got, &r, 0, 3, 4);
        ck_assert_mem_eq(got, y, sizeof y);
        rt_tokens(got, &r, 1, 2, 4);
        ck_assert_mem_eq(got, x + 4, sizeof x - 4 * sizeof *x);
        Rt few = r; /* a token outside of the vocabulary is never looked up */
        int wrong = 0;
        few.vocab = 7, few.wrong = &wrong;
        rt_tokens(got, &few, 0, 3, 4);
        for (int i = 0; i < 12; i++)
            ck_assert_int_eq(got[i], x[i] < 7 ? x[i] : 0);
        ck_assert_int_eq(wrong, 1);
    }
    int32_t none[4] = {1, 1, 1, 1};
    rt_labels(none, &(Rt){.index = index}, 0, 2, 2);
    ck_assert(none[0] == 0 && none[3] == 0);
}
END_TEST

/* --------------------------------------------------------------------------------------- update */
static real tree_by_hand(const real *item, int n)
{
    if (n == 1)
        return item[0];
    int left = 1;
    while (2 * left < n)
        left *= 2;
    return tree_by_hand(item, left) + tree_by_hand(item + left, n - left);
}

/* Slices are added inside shards, shards in the tree; any number of units; nothing is written after the last element. */
START_TEST(reduce)
{
    enum { SHARDS = 6, SLICES = 3, COUNT = 101 };
    const int64_t slice_bytes = 512 * sizeof(real), shard_bytes = 2048 * sizeof(real);
    char *memory = buffer_bytes(SHARDS * shard_bytes);
    for (int i = 0; i < SHARDS * 2048; i++)
        ((real *)memory)[i] = (real)noise(1, i);
    const RtOpt o = {.lr = 0.1f, .decay = 0.5f, .momentum = 0.9f};
    const Rt r = {.shards = SHARDS, .shard_bytes = shard_bytes, .opt = o};
    static const Factors factors[] = {{1, 0}, {1, 1}, {0.5f, 3}};
    for (int k = 0; k < 3; k++)
        for (int units = 1; units <= 9; units += 4) {
            real *w = random_buffer(COUNT, 2), *v = random_buffer(COUNT, 3),
                 *w0 = copy_buffer(w, COUNT);
            real *v0 = copy_buffer(v, COUNT), *g = buffer(COUNT), *w1 = copy_buffer(w, COUNT),
                 *v1 = copy_buffer(v, COUNT);
            const Factors f = factors[k];
            Rt apart = r;
            apart.grad = (char *)g;
            for (int u = 0; u < units; u++)
                reduce_update(&r, u, units, 0, w, v, NULL, memory, slice_bytes, SLICES, COUNT, f,
                              update_sgd);
            for (int u = 0; u < units; u++)
                reduce_update(&apart, u, units, 0, NULL, NULL, NULL, memory, slice_bytes, SLICES,
                              COUNT, f, update_sgd);
            for (int u = 0; u < units; u++)
                grad_update(&apart, u, units, 0, w1, v1, NULL, COUNT, f, update_sgd);
            for (int i = 0; i < COUNT; i++) {
                real shard[SHARDS];
                for (int s = 0; s < SHARDS; s++) {
                    real slice[SLICES];
                    for (int j = 0; j < SLICES; j++)
                        slice[j] = ((const real *)(memory + s * shard_bytes + j * slice_bytes))[i];
                    shard[s] = tree_by_hand(slice, SLICES);
                }
                const real sum = tree_by_hand(shard, SHARDS);
                ck_assert(g[i] == sum);
                const double d = (double)sum + 0.5 * (double)f.decay * (double)w0[i],
                             m = 0.9 * (double)v0[i] + d;
                ck_assert_double_eq_tol((double)v[i], m, 2e-6);
                ck_assert_double_eq_tol((double)w[i], (double)w0[i] - 0.1 * (double)f.lr * m, 2e-6);
            }
            check_same(w, w1, COUNT * sizeof(real), "grad_update");
            check_same(v, v1, COUNT * sizeof(real), "grad_update's state");
            check_guard(w, COUNT * (int64_t)sizeof(real), "reduce_update");
            check_guard(v, COUNT * (int64_t)sizeof(real), "reduce_update's state");
            check_guard(g, COUNT * (int64_t)sizeof(real), "reduce_update's sum");
            release(7, w, v, w0, v0, g, w1, v1);
        }
    free(memory);
}
END_TEST

/* Three steps of each rule against the formulas in double. */
START_TEST(formulas)
{
    const RtOpt o = {.lr = 0.1f,
                     .decay = 0.01f,
                     .momentum = 0.9f,
                     .rho = 0.8f,
                     .beta1 = 0.7f,
                     .beta2 = 0.9f,
                     .eps = 0.25f,
                     .bias1 = 0.5f,
                     .bias2 = 0.125f,
                     .nesterov = _i == 1};
    const double allowed = sizeof(real) == 8 ? 1e-14 : 1e-6;
    real w[V], s0[V] = {0}, s1[V] = {0};
    double x = 0.75, a = 0, b = 0;
    const double lr = (double)o.lr, decay = (double)o.decay, m = (double)o.momentum,
                 rho = (double)o.rho;
    const double b1 = (double)o.beta1, b2 = (double)o.beta2, eps = (double)o.eps;
    v_store(w, v_set((real)x));
    for (int step = 0; step < 3; step++) {
        double g = 0.5 - 0.4 * step;
        const vec gv = v_set((real)g);
        if (_i < 2) {
            update_sgd(w, s0, NULL, gv, &o);
            g += decay * x, a = m * a + g, x -= lr * (_i ? g + m * a : a);
        } else if (_i == 2) {
            update_rmsprop(w, s0, s1, gv, &o);
            g += decay * x, a = rho * a + (1 - rho) * g * g, b = m * b + g / (sqrt(a) + eps),
                            x -= lr * b;
        } else if (_i == 5) {
            update_adagrad(w, s0, NULL, gv, &o);
            g += decay * x, a += g * g, x -= lr * g / (sqrt(a) + eps);
        } else if (_i == 6) {
            const double c = b1 * a + (1 - b1) * g;
            update_lion(w, s0, NULL, gv, &o);
            x -= lr * decay * x, x -= lr * (c > 0 ? 1 : c < 0 ? -1 : 0);
            a = b2 * a + (1 - b2) * g;
        } else {
            if (_i == 3)
                update_adam(w, s0, s1, gv, &o), g += decay * x;
            else
                update_adamw(w, s0, s1, gv, &o), x -= lr * decay * x;
            a = b1 * a + (1 - b1) * g, b = b2 * b + (1 - b2) * g * g;
            x -= lr * (a / 0.5) / (sqrt(b / 0.125) + eps);
        }
        for (int i = 0; i < V; i++)
            ck_assert_double_eq_tol((double)w[i], x, allowed);
    }
}
END_TEST

START_TEST(norm)
{
    real g[4] = {3, 0, 4, 12};
    const Rt r = {.grad = (char *)g};
    ck_assert_double_eq(grad_norm(&r, sizeof g), 13);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("layers");
    tcase_add_loop_test(t, pooling, 0, POOLS);
    tcase_add_loop_test(t, pooling_apart, 0, POOLS);
    tcase_add_test(t, pool_rules);
    tcase_add_loop_test(t, global_average, 1, 40);
    tcase_add_loop_test(t, global_maximum, 1, 40);
    tcase_add_loop_test(t, resizing, 0, 2 * RESIZES);
    tcase_add_test(t, resize_rules);
    tcase_add_loop_test(t, dropout_mask, 0, 7);
    tcase_add_loop_test(t, running_sums, 0, 7);
    tcase_add_loop_test(t, indices_of_maxima, 0, 7);
    tcase_add_loop_test(t, normal_numbers, 0, 7);
    tcase_add_test(t, normal_moments);
    tcase_add_test(t, dropout_rate);
    tcase_add_loop_test(t, input, 0, 2);
    tcase_add_test(t, tokens);
    tcase_add_test(t, tokens_in_teams);
    tcase_add_test(t, targets);
    tcase_add_test(t, reduce);
    tcase_add_loop_test(t, formulas, 0, 7);
    tcase_add_test(t, norm);
    return run_suite(t, "layer kernels");
}
