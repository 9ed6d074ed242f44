/* test_loss.c -- losses, accuracies and their gradients: formulas, labels, ties, positions, teams. */
#include "kernel_test.h"

#include "cpu/loss.h"
#include "cpu/mask_loss.h"
#include "cpu/robust_loss.h"

static void labels_of(int32_t *label, int n, int k)
{
    for (int i = 0; i < n; i++)
        label[i] = (i * 7 + 3) % k;
}

/* The losses of numbers with one signature, for tables. */
typedef void NumberLoss(real *loss, const real *x, const real *t, int n, int k);
typedef void NumberLossDx(real *dx, const real *x, const real *t, const real *dloss, int n, int k);

/* The kernels of a loss that has a parameter, and of one of its gradients: name and name_plain. */
#define WITH_PARAMETER(name, kernel, value)                                                        \
    static void name(real *loss, const real *x, const real *t, int n, int k)                       \
    {                                                                                              \
        kernel(loss, x, t, n, k, (real)value);                                                     \
    }                                                                                              \
    static void name##_plain(real *loss, const real *x, const real *t, int n, int k)               \
    {                                                                                              \
        kernel##_plain(loss, x, t, n, k, (real)value);                                             \
    }
#define WITH_PARAMETER_DX(name, kernel, value)                                                     \
    static void name(real *dx, const real *x, const real *t, const real *dloss, int n, int k)      \
    {                                                                                              \
        kernel(dx, x, t, dloss, n, k, (real)value);                                                \
    }                                                                                              \
    static void name##_plain(real *dx, const real *x, const real *t, const real *dloss, int n,     \
                             int k)                                                                \
    {                                                                                              \
        kernel##_plain(dx, x, t, dloss, n, k, (real)value);                                        \
    }
WITH_PARAMETER(huber_15, huber, 1.5)
WITH_PARAMETER_DX(huber_15_dx, huber_dx, 1.5)
/* Masks of truths from 0 to 1: the gradient for the target is tested as that for the output. */
WITH_PARAMETER(mask_25, sigmoid_cross_entropy_numbers, 2.5)
WITH_PARAMETER_DX(mask_25_dx, sigmoid_cross_entropy_numbers_dx, 2.5)
WITH_PARAMETER_DX(mask_25_dt, sigmoid_cross_entropy_numbers_dt, 2.5)

static const struct {
    const char *name;
    NumberLoss *loss, *plain;
    NumberLossDx *dx, *dx_plain;
} number_losses[] = {{"mse", mse, mse_plain, mse_dx, mse_dx_plain},
                     {"l1", l1, l1_plain, l1_dx, l1_dx_plain},
                     {"huber", huber_15, huber_15_plain, huber_15_dx, huber_15_dx_plain},
                     {"masks", mask_25, mask_25_plain, mask_25_dx, mask_25_dx_plain},
                     {"masks, target", mask_25, mask_25_plain, mask_25_dt, mask_25_dt_plain}};
/* Counts, whose values are equal to the bit. */
static const struct {
    const char *name;
    NumberLoss *count, *plain;
} number_counts[] = {{"numbers_accuracy", numbers_accuracy, numbers_accuracy_plain},
                     {"mask_overlap", mask_overlap, mask_overlap_plain},
                     {"mask_union", mask_union, mask_union_plain}};

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
    for (size_t i = 0; i < sizeof number_losses / sizeof *number_losses; i++) {
        number_losses[i].plain(la, x, t, n, k);
        number_losses[i].loss(lb, x, t, n, k);
        check_close(lb, la, n, number_losses[i].name);
        number_losses[i].dx_plain(a, x, t, dloss, n, k);
        number_losses[i].dx(b, x, t, dloss, n, k);
        check_close(b, a, count, number_losses[i].name);
    }
    for (size_t i = 0; i < sizeof number_counts / sizeof *number_counts; i++) {
        number_counts[i].plain(la, x, t, n, k);
        number_counts[i].count(lb, x, t, n, k);
        check_same(lb, la, n * (int64_t)sizeof *la, number_counts[i].name);
    }
    l2_plain(la, x, n, k);
    l2(lb, x, n, k);
    check_close(lb, la, n, "l2");
    l2_dx_plain(a, x, dloss, n, k);
    l2_dx(b, x, dloss, n, k);
    check_close(b, a, count, "l2_dx");
    release(7, x, t, dloss, a, b, la, lb);
}
END_TEST

/* Errors of both kinds, by hand; equal numbers have the loss 0 and no gradient. */
START_TEST(robust_losses)
{
    const real x[4] = {1, -3, 2, 0.5f}, t[4] = {1, 1, 1.5f, 0.25f}, one[1] = {2};
    const real d1[4] = {0, -0.5f, 0.5f, 0.5f}, dh[4] = {0, -0.5f, 0.25f, 0.125f};
    real y[1], dx[4];
    l1(y, x, t, 1, 4);
    ck_assert(y[0] == (real)((4 + 0.5 + 0.25) / 4));
    l1_dx(dx, x, t, one, 1, 4);
    ck_assert_mem_eq(dx, d1, sizeof dx);
    huber(y, x, t, 1, 4, 1);
    ck_assert(y[0] == (real)((3.5 + 0.125 + 0.03125) / 4));
    huber_dx(dx, x, t, one, 1, 4, 1);
    ck_assert_mem_eq(dx, dh, sizeof dx);
}
END_TEST

/* Masks by hand: predictions of all four kinds, and logits whose exponentials overflow. */
START_TEST(masks)
{
    enum { K = 6 };
    static const double weights[] = {1, 3};
    const real x[K] = {2, -1, 1000, -1000, 0.5f, -3}, t[K] = {1, 1, 1, 0, 0, 0.25f}, one[1] = {2};
    for (int w = 0; w < 2; w++) {
        const double more = weights[w] - 1;
        double want = 0;
        real y[1], dx[K], dt[K];
        sigmoid_cross_entropy_numbers(y, x, t, 1, K, (real)weights[w]);
        sigmoid_cross_entropy_numbers_dx(dx, x, t, one, 1, K, (real)weights[w]);
        sigmoid_cross_entropy_numbers_dt(dt, x, t, one, 1, K, (real)weights[w]);
        for (int i = 0; i < K; i++) {
            const double v = (double)x[i], truth = (double)t[i], s = 1 / (1 + exp(-v));
            const double no = v > 40 ? v : log1p(exp(v)), yes = -v > 40 ? -v : log1p(exp(-v));
            want += (1 + more) * truth * yes + (1 - truth) * no;
            ck_assert(fabs((double)dx[i] - (s - truth + more * truth * (s - 1)) / 3) < 1e-6);
            ck_assert(fabs((double)dt[i] - (more * yes - v) / 3) < 1e-4 * (1 + fabs(v)));
        }
        ck_assert(fabs((double)y[0] - want / K) < 1e-6 * want);
    }
    real right[1], overlap[1], either[1];
    numbers_accuracy(right, x, t, 1, K);
    mask_overlap(overlap, x, t, 1, K);
    mask_union(either, x, t, 1, K);
    ck_assert(right[0] == (real)4 / 6 && overlap[0] == 2 && either[0] == 4);
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
static void loss_l1(real *loss, const real *x)
{
    l1(loss, x, target, 1, ROW);
}
static void loss_huber(real *loss, const real *x)
{
    huber(loss, x, target, 1, ROW, 0.3);
}
static void loss_mask(real *loss, const real *x)
{
    mask_25(loss, x, target, 1, ROW);
}
static void loss_mask_target(real *loss, const real *t)
{
    mask_25(loss, target, t, 1, ROW);
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
    l1_dx(dx, x, target, one, 1, ROW);
    check_gradient(loss_l1, x, dx, "l1");
    huber_dx(dx, x, target, one, 1, ROW, 0.3);
    check_gradient(loss_huber, x, dx, "huber");
    mask_25_dx(dx, x, target, one, 1, ROW);
    check_gradient(loss_mask, x, dx, "masks");
    mask_25_dt(dx, target, x, one, 1, ROW);
    check_gradient(loss_mask_target, x, dx, "masks, target");
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

/* An output of NaN is right for no label. */
START_TEST(counting_nan)
{
    enum { N = 3, MOST = 40 };
    for (int k = 2; k < MOST; k += k < 20 ? 1 : 7)
        for (int bad = 0; bad < k; bad++)
            for (int label = 0; label < k; label++) {
                real x[N * MOST + 2 * V], correct[N], plain[N];
                int32_t labels[N];
                for (int i = 0; i < N * k; i++) /* row 0: one NaN; 1: all; 2: none */
                    x[i] = i / k == 1 || i == bad ? (real)NAN : (real)(i % k == label);
                for (int i = 0; i < N; i++)
                    labels[i] = label;
                accuracy(correct, x, labels, N, k);
                accuracy_plain(plain, x, labels, N, k);
                ck_assert(correct[0] == 0 && correct[1] == 0 && correct[2] == 1);
                ck_assert(plain[0] == 0 && plain[1] == 0 && plain[2] == 1);
            }
    const real x[6 + 2 * V] = {NAN, NAN, 1, -1, NAN, 2}, t[6 + 2 * V] = {0, 1, 1, 0, 0, 0};
    const int32_t label[5] = {0, 1, 1, 0, 0};
    real right[5], y[1], plain[1];
    binary_accuracy(right, x, label, 5);
    ck_assert(right[0] == 0 && right[1] == 0 && right[2] == 1 && right[3] == 1 && right[4] == 0);
    numbers_accuracy(y, x, t, 1, 6);
    numbers_accuracy_plain(plain, x, t, 1, 6);
    ck_assert(y[0] == (real)2 / 6 && plain[0] == y[0]);
    mask_overlap(y, x, t, 1, 6);
    ck_assert(y[0] == 1);
    mask_union(y, x, t, 1, 6);
    mask_union_plain(plain, x, t, 1, 6);
    ck_assert(y[0] == 5 && plain[0] == 5);
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

/* Weights of classes: the sum of weighted rows; equal weights give the kernels without weights. */
START_TEST(weighted_positions)
{
    enum { N = 3, T = 5, K = 19, ALL = N * T * K };
    const real dloss[N] = {1, (real)-0.5, 2};
    int32_t label[N * T];
    ClassWeights w = {{0}};
    real *x = random_buffer(ALL, 5), *dx = buffer(ALL), *want = buffer(ALL), *loss = buffer(N),
         *sum = buffer(N);
    for (int i = 0; i < N * T; i++)
        label[i] = i % 4 == 2 ? -1 : i * 7 % K;
    for (int c = 0; c < K; c++)
        w.of[c] = 0.25 * (c % 5);
    softmax_cross_entropy_weighted_each(loss, x, label, 2.5, N, T, K, w);
    softmax_cross_entropy_dx_weighted_each(dx, x, label, dloss, 2.5, N, T, K, w);
    memset(want, 0, ALL * sizeof *want);
    for (int i = 0; i < N; i++) {
        sum[i] = 0;
        for (int j = i * T; j < (i + 1) * T; j++) {
            real one;
            const real share = label[j] < 0 ? 0 : (real)(w.of[label[j]] / 2.5),
                       each = dloss[i] * share;
            if (label[j] < 0)
                continue;
            softmax_cross_entropy_plain(&one, x + j * K, label + j, 1, K);
            softmax_cross_entropy_dx_plain(want + j * K, x + j * K, label + j, &each, 1, K);
            sum[i] += one * share;
        }
    }
    check_close(loss, sum, N, "softmax_cross_entropy_weighted_each");
    check_close(dx, want, ALL, "softmax_cross_entropy_dx_weighted_each");
    softmax_cross_entropy_weighted_plain_each(loss, x, label, 2.5, N, T, K, w);
    softmax_cross_entropy_dx_weighted_plain_each(dx, x, label, dloss, 2.5, N, T, K, w);
    check_close(loss, sum, N, "softmax_cross_entropy_weighted_plain_each");
    check_close(dx, want, ALL, "softmax_cross_entropy_dx_weighted_plain_each");
    release(5, x, dx, want, loss, sum);
}
END_TEST

/* The threads of a team divide the samples or positions: the bits are those of one thread. */
enum { LOSS_N = 5, LOSS_T = 7, LOSS_K = 19, LOSS_ROWS = LOSS_N * LOSS_T };
typedef struct Losses {
    real *x, *t, *dloss, loss[16][LOSS_ROWS], *dx[11];
    int32_t *label, *yes;
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
    softmax_cross_entropy_dx_each(l->dx[4], l->x, l->label, l->dloss, 3.75, LOSS_N, LOSS_T, LOSS_K);
    sigmoid_cross_entropy(l->loss[8], l->x, l->yes, LOSS_ROWS);
    binary_accuracy(l->loss[9], l->x, l->yes, LOSS_ROWS);
    one_hot(l->dx[5], l->label, LOSS_ROWS, LOSS_K);
    sigmoid_cross_entropy_dx(l->dx[6], l->x, l->yes, l->dloss, LOSS_ROWS);
    l1(l->loss[10], l->x, l->t, LOSS_ROWS, LOSS_K);
    huber(l->loss[11], l->x, l->t, LOSS_ROWS, LOSS_K, (real)0.5);
    l1_dx(l->dx[7], l->x, l->t, l->dloss, LOSS_ROWS, LOSS_K);
    huber_dx(l->dx[8], l->x, l->t, l->dloss, LOSS_ROWS, LOSS_K, (real)0.5);
    mask_25(l->loss[12], l->x, l->t, LOSS_ROWS, LOSS_K);
    for (int i = 0; i < 3; i++)
        number_counts[i].count(l->loss[13 + i], l->x, l->t, LOSS_ROWS, LOSS_K);
    mask_25_dx(l->dx[9], l->x, l->t, l->dloss, LOSS_ROWS, LOSS_K);
    mask_25_dt(l->dx[10], l->x, l->t, l->dloss, LOSS_ROWS, LOSS_K);
}

START_TEST(losses_in_teams)
{
    const int counts[] = {1, 2, 3, 7, 16};
    real *x = random_buffer(LOSS_ROWS * LOSS_K, 5), *t = random_buffer(LOSS_ROWS * LOSS_K, 6),
         *dloss = random_buffer(LOSS_ROWS, 7);
    int32_t label[LOSS_ROWS], yes[LOSS_ROWS];
    Losses one = {.x = x, .t = t, .dloss = dloss, .label = label, .yes = yes}, team = one;
    for (int i = 0; i < LOSS_ROWS; i++)
        label[i] = i * 7 % LOSS_K, yes[i] = i / 3 % 2;
    for (int i = 0; i < 11; i++)
        one.dx[i] = buffer(LOSS_ROWS * LOSS_K), team.dx[i] = buffer(LOSS_ROWS * LOSS_K);
    all_losses(&one);
    for (int i = 0; i < 5; i++) {
        memset(team.loss, 0xff, sizeof team.loss);
        for (int j = 5; j < 8; j++) /* these have a number for each sample, not for each position */
            memcpy(team.loss[j], one.loss[j], sizeof team.loss[j]),
                memset(team.loss[j], 0xff, LOSS_N * sizeof(real));
        for (int j = 0; j < 11; j++)
            memset(team.dx[j], 0xff, LOSS_ROWS * (j != 6 ? LOSS_K : 1) * sizeof(real));
        as_team(counts[i], all_losses, &team);
        check_same(team.loss[0], one.loss[0], sizeof one.loss, "losses of a team");
        for (int j = 0; j < 11; j++)
            check_same(team.dx[j], one.dx[j], LOSS_ROWS * LOSS_K * (int64_t)sizeof(real),
                       "gradients of a team");
    }
    for (int i = 0; i < 11; i++)
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

int main(void)
{
    TCase *t = tcase_create("losses");
    tcase_add_loop_test(t, losses, 0, 7);
    tcase_add_loop_test(t, smoothing, 0, 4);
    tcase_add_test(t, robust_losses);
    tcase_add_test(t, masks);
#ifdef RT_DOUBLE
    tcase_add_test(t, differences);
#endif
    tcase_add_test(t, large_logits);
    tcase_add_test(t, counting);
    tcase_add_test(t, counting_nan);
    tcase_add_test(t, counting_ties);
    tcase_add_test(t, losses_of_positions);
    tcase_add_test(t, weighted_positions);
    tcase_add_test(t, losses_in_teams);
    tcase_add_test(t, yes_or_no);
    return run_suite(t, "loss kernels");
}
