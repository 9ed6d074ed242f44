/* test_layers.c -- pooling, losses, dropout, input and the elementwise update. */
#include "kernel_test.h"

#include "cpu/dropout.h"
#include "cpu/input.h"
#include "cpu/loss.h"
#include "cpu/pool.h"
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

/* --------------------------------------------------------------------------------------- losses */
static void labels_of(int32_t *label, int n, int k)
{
    for (int i = 0; i < n; i++)
        label[i] = (i * 7 + 3) % k;
}

START_TEST(losses)
{
    static const int widths[] = {1, 2, 10, 16, 17, 33, 1000};
    const int n = 5, k = widths[_i];
    const int64_t count = (int64_t)n * k;
    real *x = random_buffer(count, 1), *t = random_buffer(count, 2), *dloss = random_buffer(n, 3);
    real *a = buffer(count), *b = buffer(count), *la = buffer(n), *lb = buffer(n);
    int32_t label[5];
    labels_of(label, n, k);
    for (int64_t i = 0; i < count; i++)
        x[i] *= 8;

    softmax_plain(a, x, n, k);
    softmax(b, x, n, k);
    check_close(b, a, count, "softmax");
    softmax_dx_plain(a, t, x, n, k);
    softmax_dx(b, t, x, n, k);
    check_close(b, a, count, "softmax_dx");
    softmax_cross_entropy_plain(la, x, label, n, k);
    softmax_cross_entropy(lb, x, label, n, k);
    check_close(lb, la, n, "softmax_cross_entropy");
    softmax_cross_entropy_dx_plain(a, x, label, dloss, n, k);
    softmax_cross_entropy_dx(b, x, label, dloss, n, k);
    check_close(b, a, count, "softmax_cross_entropy_dx");
    mse_plain(la, x, t, n, k);
    mse(lb, x, t, n, k);
    check_close(lb, la, n, "mse");
    mse_dx_plain(a, x, t, dloss, n, k);
    mse_dx(b, x, t, dloss, n, k);
    check_close(b, a, count, "mse_dx");
    l2_plain(la, x, n, k);
    l2(lb, x, n, k);
    check_close(lb, la, n, "l2");
    l2_dx_plain(a, x, dloss, n, k);
    l2_dx(b, x, dloss, n, k);
    check_close(b, a, count, "l2_dx");
    release(7, x, t, dloss, a, b, la, lb);
}
END_TEST

/* Smoothing: the cross entropy with q = (1 - s) onehot + s / K, and dloss (softmax - q). */
START_TEST(smoothing)
{
    enum { N = 5, MOST = 33 };
    static const int widths[] = {2, 10, 16, 33};
    const int k = widths[_i];
    const double s = 0.1;
    real *x = random_buffer(N * MOST, 1), *dloss = random_buffer(N, 3);
    real *y = buffer(N), *dx = buffer(N * k), *want = buffer(N), *dwant = buffer(N * k);
    int32_t label[N];
    labels_of(label, N, k);
    for (int i = 0; i < N; i++) {
        double sum = 0, loss = 0;
        for (int j = 0; j < k; j++)
            sum += exp((double)x[i * k + j]);
        for (int j = 0; j < k; j++) {
            const double p = exp((double)x[i * k + j]) / sum, q = (1 - s) * (j == label[i]) + s / k;
            loss -= q * log(p);
            dwant[i * k + j] = (real)((double)dloss[i] * (p - q));
        }
        want[i] = (real)loss;
    }
    softmax_cross_entropy_smooth(y, x, label, N, k, (real)s);
    check_close(y, want, N, "softmax_cross_entropy_smooth");
    softmax_cross_entropy_smooth_plain(y, x, label, N, k, (real)s);
    check_close(y, want, N, "softmax_cross_entropy_smooth_plain");
    softmax_cross_entropy_dx_smooth(dx, x, label, dloss, N, k, (real)s);
    check_close(dx, dwant, N * k, "softmax_cross_entropy_dx_smooth");
    softmax_cross_entropy_dx_smooth_plain(dx, x, label, dloss, N, k, (real)s);
    check_close(dx, dwant, N * k, "softmax_cross_entropy_dx_smooth_plain");
    release(6, x, dloss, y, dx, want, dwant);
}
END_TEST

#ifdef RT_DOUBLE
/* Central differences of a loss of one row, at every element. */
typedef void (*Loss)(real *loss, const real *x);
enum { ROW = 19 };
static real target[ROW];
static const int32_t row_label[1] = {4};
static void loss_cross_entropy(real *loss, const real *x)
{
    softmax_cross_entropy(loss, x, row_label, 1, ROW);
}
static void loss_mse(real *loss, const real *x)
{
    mse(loss, x, target, 1, ROW);
}
static void loss_l2(real *loss, const real *x)
{
    l2(loss, x, 1, ROW);
}
static void loss_softmax(real *loss, const real *x)
{
    real y[ROW];
    softmax(y, x, 1, ROW);
    *loss = 0;
    for (int i = 0; i < ROW; i++)
        *loss += y[i] * target[i];
}

static void check_gradient(Loss f, real *x, const real *dx, const char *what)
{
    for (int i = 0; i < ROW; i++) {
        const real at = x[i], h = 1e-5;
        real up, down;
        x[i] = at + h, f(&up, x);
        x[i] = at - h, f(&down, x);
        x[i] = at;
        ck_assert_msg(fabs((up - down) / (2 * h) - dx[i]) < 1e-9, "%s: element %d", what, i);
    }
}

START_TEST(differences)
{
    real *x = random_buffer(ROW, 1), *y = buffer(ROW), *dx = buffer(ROW);
    const real one[1] = {1};
    for (int i = 0; i < ROW; i++)
        target[i] = noise(2, i);
    softmax_cross_entropy_dx(dx, x, row_label, one, 1, ROW);
    check_gradient(loss_cross_entropy, x, dx, "softmax_cross_entropy");
    mse_dx(dx, x, target, one, 1, ROW);
    check_gradient(loss_mse, x, dx, "mse");
    l2_dx(dx, x, one, 1, ROW);
    check_gradient(loss_l2, x, dx, "l2");
    softmax(y, x, 1, ROW);
    softmax_dx(dx, y, target, 1, ROW);
    check_gradient(loss_softmax, x, dx, "softmax");
    release(3, x, y, dx);
}
END_TEST
#endif

START_TEST(large_logits)
{
    const real x[3] = {1000, -1000, 999};
    const int32_t label[1] = {0};
    real loss, plain, y[3];
    softmax_cross_entropy(&loss, x, label, 1, 3);
    softmax_cross_entropy_plain(&plain, x, label, 1, 3);
    ck_assert_double_eq_tol((double)loss, log1p(exp(-1)), 1e-6);
    ck_assert_double_eq_tol((double)plain, log1p(exp(-1)), 1e-6);
    softmax(y, x, 1, 3);
    ck_assert(y[1] == 0 && isfinite(y[0]));
    const real nan[3] = {1, NAN, 2}; /* must not be hidden by the maximum */
    softmax_cross_entropy(&loss, nan, label, 1, 3);
    ck_assert(isnan(loss));
}
END_TEST

START_TEST(counting)
{
    const real x[8 + 2 * V] = {1, 3, 3, 0, 5, 1, 2, 5}; /* kernels read whole vectors */
    const int32_t first[2] = {1, 0}, second[2] = {2, 3};
    real correct[2], hot[8];
    accuracy(correct, x, first, 2, 4);
    ck_assert(correct[0] == 1 && correct[1] == 1);
    accuracy(correct, x, second, 2, 4);
    ck_assert(correct[0] == 0 && correct[1] == 0);
    one_hot(hot, second, 2, 4);
    for (int i = 0; i < 8; i++)
        ck_assert(hot[i] == (i == 2 || i == 7));
}
END_TEST

/* Few different numbers: several are the largest, and the first of them must win. */
START_TEST(counting_ties)
{
    for (int k = 1; k < 80; k += k < 20 ? 1 : 7) {
        enum { N = 40 };
        real *x = buffer(N * k), correct[N], plain[N];
        int32_t label[N];
        for (int i = 0; i < N * k; i++)
            x[i] = (real)(int)(3 * noise(k, i));
        for (int i = 0; i < N; i++)
            label[i] = (int32_t)((noise(k + 1, i) + 1) / 2 * k);
        accuracy(correct, x, label, N, k);
        accuracy_plain(plain, x, label, N, k);
        check_same(correct, plain, sizeof correct, "accuracy");
        free(x);
    }
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

/* A class for each position: the result is that of the single rows; a position without a class adds nothing. */
START_TEST(losses_of_positions)
{
    enum { N = 3, T = 5, K = 19, ALL = N * T * K };
    const real dloss[N] = {1, (real)-0.5, 2}, scored = (real)3.75;
    int32_t label[N * T];
    real *x = random_buffer(ALL, 5), *dx = buffer(ALL), *want = buffer(ALL), *loss = buffer(N),
         *right = buffer(N), *sum = buffer(N), *hits = buffer(N);
    for (int i = 0; i < N * T; i++)
        label[i] = i % 4 == 2 ? -1 : i * 7 % K;
    softmax_cross_entropy_each(loss, x, label, scored, N, T, K);
    softmax_cross_entropy_dx_each(dx, x, label, dloss, scored, N, T, K);
    accuracy_each(right, x, label, scored, N, T, K);
    memset(want, 0, ALL * sizeof *want);
    for (int i = 0; i < N; i++) {
        sum[i] = hits[i] = 0;
        for (int j = i * T; j < (i + 1) * T; j++) {
            real one, hit;
            const real each = dloss[i] / scored;
            if (label[j] < 0)
                continue;
            softmax_cross_entropy_plain(&one, x + j * K, label + j, 1, K);
            accuracy_plain(&hit, x + j * K, label + j, 1, K);
            softmax_cross_entropy_dx_plain(want + j * K, x + j * K, label + j, &each, 1, K);
            sum[i] += one / scored, hits[i] += hit / scored;
        }
    }
    check_close(loss, sum, N, "softmax_cross_entropy_each");
    check_close(right, hits, N, "accuracy_each");
    check_close(dx, want, ALL, "softmax_cross_entropy_dx_each");
    release(7, x, dx, want, loss, right, sum, hits);
}
END_TEST

/* The threads of a team divide the samples or positions: the bits are those of one thread. */
enum { LOSS_N = 5, LOSS_T = 7, LOSS_K = 19, LOSS_ROWS = LOSS_N * LOSS_T };
typedef struct Losses {
    real *x, *t, *dloss, loss[8][LOSS_ROWS], *dx[5];
    int32_t *label;
} Losses;

static void all_losses(void *arg)
{
    Losses *l = arg;
    const real smoothing = (real)0.1;
    softmax_cross_entropy(l->loss[0], l->x, l->label, LOSS_ROWS, LOSS_K);
    softmax_cross_entropy_smooth(l->loss[1], l->x, l->label, LOSS_ROWS, LOSS_K, smoothing);
    accuracy(l->loss[2], l->x, l->label, LOSS_ROWS, LOSS_K);
    mse(l->loss[3], l->x, l->t, LOSS_ROWS, LOSS_K);
    l2(l->loss[4], l->x, LOSS_ROWS, LOSS_K);
    softmax_cross_entropy_each(l->loss[5], l->x, l->label, 3.75, LOSS_N, LOSS_T, LOSS_K);
    accuracy_each(l->loss[6], l->x, l->label, 3.75, LOSS_N, LOSS_T, LOSS_K);
    softmax_cross_entropy_smooth_each(l->loss[7], l->x, l->label, 3.75, LOSS_N, LOSS_T, LOSS_K,
                                      smoothing);
    softmax_cross_entropy_dx(l->dx[0], l->x, l->label, l->dloss, LOSS_ROWS, LOSS_K);
    softmax_cross_entropy_dx_smooth(l->dx[1], l->x, l->label, l->dloss, LOSS_ROWS, LOSS_K,
                                    smoothing);
    mse_dx(l->dx[2], l->x, l->t, l->dloss, LOSS_ROWS, LOSS_K);
    l2_dx(l->dx[3], l->x, l->dloss, LOSS_ROWS, LOSS_K);
    softmax_cross_entropy_dx_each(l->dx[4], l->x, l->label, l->dloss, 3.75, LOSS_N, LOSS_T,
                                  LOSS_K);
}

START_TEST(losses_in_teams)
{
    const int counts[] = {1, 2, 3, 7, 16};
    real *x = random_buffer(LOSS_ROWS * LOSS_K, 5), *t = random_buffer(LOSS_ROWS * LOSS_K, 6),
         *dloss = random_buffer(LOSS_ROWS, 7);
    int32_t label[LOSS_ROWS];
    Losses one = {.x = x, .t = t, .dloss = dloss, .label = label}, team = one;
    for (int i = 0; i < LOSS_ROWS; i++)
        label[i] = i * 7 % LOSS_K;
    for (int i = 0; i < 5; i++)
        one.dx[i] = buffer(LOSS_ROWS * LOSS_K), team.dx[i] = buffer(LOSS_ROWS * LOSS_K);
    all_losses(&one);
    for (int i = 0; i < 5; i++) {
        memset(team.loss, 0xff, sizeof team.loss);
        for (int j = 5; j < 8; j++) /* these have a number for each sample, not for each position */
            memcpy(team.loss[j], one.loss[j], sizeof team.loss[j]),
                memset(team.loss[j], 0xff, LOSS_N * sizeof(real));
        for (int j = 0; j < 5; j++)
            memset(team.dx[j], 0xff, LOSS_ROWS * LOSS_K * sizeof(real));
        as_team(counts[i], all_losses, &team);
        check_same(team.loss[0], one.loss[0], sizeof one.loss, "losses of a team");
        for (int j = 0; j < 5; j++)
            check_same(team.dx[j], one.dx[j], LOSS_ROWS * LOSS_K * (int64_t)sizeof(real),
                       "gradients of a team");
    }
    for (int i = 0; i < 5; i++)
        release(2, one.dx[i], team.dx[i]);
    release(3, x, t, dloss);
}
END_TEST

/* Against the formula in double, with numbers whose exponentials overflow. */
START_TEST(yes_or_no)
{
    enum { N = 7 };
    const real x[N] = {0, 1, -1, 30, -30, 1000, -1000}, dloss[N] = {1, 2, 1, 1, 1, 1, 1};
    real loss[N], dx[N], right[N];
    for (int truth = 0; truth < 2; truth++) {
        int32_t label[N];
        for (int i = 0; i < N; i++)
            label[i] = truth;
        sigmoid_cross_entropy(loss, x, label, N);
        sigmoid_cross_entropy_dx(dx, x, label, dloss, N);
        binary_accuracy(right, x, label, N);
        for (int i = 0; i < N; i++) {
            const double z = truth ? -(double)x[i] : (double)x[i],
                         want = z > 40 ? z : log1p(exp(z)), share = 1 / (1 + exp(-(double)x[i]));
            ck_assert(fabs((double)loss[i] - want) < 1e-6 * (1 + want));
            ck_assert(fabs((double)dx[i] - (share - truth) * (double)dloss[i]) < 1e-6);
            ck_assert(right[i] == ((x[i] > 0) == truth));
        }
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
    tcase_add_loop_test(t, losses, 0, 7);
    tcase_add_loop_test(t, smoothing, 0, 4);
#ifdef RT_DOUBLE
    tcase_add_test(t, differences);
#endif
    tcase_add_test(t, large_logits);
    tcase_add_test(t, counting);
    tcase_add_test(t, counting_ties);
    tcase_add_loop_test(t, dropout_mask, 0, 7);
    tcase_add_test(t, dropout_rate);
    tcase_add_loop_test(t, input, 0, 2);
    tcase_add_test(t, tokens);
    tcase_add_test(t, losses_of_positions);
    tcase_add_test(t, losses_in_teams);
    tcase_add_test(t, yes_or_no);
    tcase_add_test(t, reduce);
    tcase_add_loop_test(t, formulas, 0, 5);
    tcase_add_test(t, norm);
    return run_suite(t, "layer kernels");
}
