/* test_norm.c -- batch norm: against sums in double, fast against plain, combined slices and
 * shards. */
#include "kernel_test.h"

#include "cpu/batch_norm.h"
#include "cpu/group_norm.h"
#include "cpu/layer_norm.h"

static const BatchNorm sizes[] = {{1, 1, 1, 0, 0},   {3, 1, 7, 0, 0},   {2, 17, 9, 0, 0},
                                  {4, 64, 36, 0, 0}, {1, 100, 1, 0, 0}, {3, 2100, 2, 0, 0}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* x of every channel: far from 0, so that a sum of squares would cancel. */
static real *shifted(BatchNorm s, int seed)
{
    const int64_t count = (int64_t)s.n * s.c * s.hw;
    real *x = random_buffer(count, seed);
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] * (real)0.5 + (real)(i / s.hw % s.c % 7) * 20;
    return x;
}

/* (2, C) moments of one channel over `parts` chunks stored (n, c, hw), in double. */
static void reference(double *mean, double *m2, real *const *x, int parts, BatchNorm s, int c)
{
    const int64_t rows = (int64_t)s.n * s.hw;
    *mean = *m2 = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int p = 0; p < parts; p++)
            for (int64_t i = 0; i < rows; i++) {
                const double v = x[p][(i / s.hw * s.c + c) * s.hw + i % s.hw];
                if (pass == 0)
                    *mean += v / (double)(rows * parts);
                else
                    *m2 += (v - *mean) * (v - *mean);
            }
}

/* Two chunks a slice, three slices: moments, then statistics of all. */
START_TEST(statistics)
{
    const BatchNorm s = sizes[_i];
    enum { SLICES = 3, CHUNKS = 2 };
    real *x[SLICES * CHUNKS], *moments[2], *t[2];
    const int64_t rows = (int64_t)s.n * s.hw, slice_bytes = (int64_t)sizeof(real) * 2 * s.c;
    for (int k = 0; k < 2; k++)
        moments[k] = zero_buffer(SLICES * 2 * s.c), t[k] = buffer(2 * s.c);
    for (int i = 0; i < SLICES * CHUNKS; i++) {
        x[i] = shifted(s, i);
        real *last = swap_last(x[i], s.n, s.c, s.hw);
        const int64_t at = (int64_t)(i / CHUNKS) * 2 * s.c;
        batch_moments_plain(moments[0] + at, x[i], i % CHUNKS * s.n, s);
        batch_moments(moments[1] + at, last, i % CHUNKS * s.n, s);
        free(last);
    }
    check_close(moments[1], moments[0], SLICES * 2 * s.c, "batch_moments");
    for (int k = 0; k < 2; k++) {
        batch_statistics(t[k], (const char *)moments[k], slice_bytes, SLICES, 0, 1, CHUNKS * rows,
                         (real)1e-5, s.c);
        check_guard(t[k], 2 * s.c * (int64_t)sizeof(real), "batch_statistics");
    }
    for (int c = 0; c < s.c; c++) {
        double mean, m2;
        reference(&mean, &m2, x, SLICES * CHUNKS, s, c);
        const double rstd = 1 / sqrt(m2 / (double)(rows * SLICES * CHUNKS) + 1e-5);
        for (int k = 0; k < 2; k++) {
            ck_assert_double_eq_tol(t[k][c], mean, 25 * TOLERANCE * (1 + fabs(mean)));
            ck_assert_double_eq_tol(t[k][s.c + c], rstd, 25 * TOLERANCE * rstd);
        }
    }
    for (int i = 0; i < SLICES * CHUNKS; i++)
        free(x[i]);
    release(4, moments[0], moments[1], t[0], t[1]);
}
END_TEST

START_TEST(fast_is_plain)
{
    const BatchNorm s = sizes[_i];
    const int64_t count = (int64_t)s.n * s.c * s.hw;
    real *x = random_buffer(count, 1), *dy = random_buffer(count, 2), *w = random_buffer(s.c, 3),
         *b = random_buffer(s.c, 4), *t = random_buffer(2 * s.c, 5), *var = random_buffer(s.c, 6);
    real *xl = swap_last(x, s.n, s.c, s.hw), *dyl = swap_last(dy, s.n, s.c, s.hw);
    real *y = buffer(count), *yl = buffer(count), *dw = zero_buffer(s.c), *dwl = zero_buffer(s.c);
    for (int c = 0; c < s.c; c++)
        var[c] = var[c] * var[c] + (real)0.1;

    batch_norm_plain(y, x, w, b, t, s);
    batch_norm(yl, xl, w, b, t, NULL, v_identity, s);
    real *back = swap_last(yl, s.n, s.hw, s.c);
    check_guard(yl, count * (int64_t)sizeof(real), "batch_norm");
    check_close(back, y, count, "batch_norm");
    free(back);

    batch_norm(yl, xl, w, b, t, dyl, v_relu, s);
    back = swap_last(yl, s.n, s.hw, s.c);
    for (int64_t i = 0; i < count; i++)
        y[i] = y[i] + dy[i] > 0 ? y[i] + dy[i] : 0;
    check_close(back, y, count, "batch_norm with a residual and relu");
    free(back);

    batch_norm_test_plain(y, x, w, b, t, var, (real)1e-3, s);
    batch_norm_test(yl, xl, w, b, t, var, v_identity, (real)1e-3, s);
    back = swap_last(yl, s.n, s.hw, s.c);
    check_close(back, y, count, "batch_norm_test");
    free(back);

    batch_norm_dw_plain(dw, dy, x, t, s);
    batch_norm_dw(dwl, dyl, xl, t, s);
    check_close(dwl, dw, s.c, "batch_norm_dw");

    batch_norm_dx_plain(y, dy, x, w, t, dw, b, 1000, s);
    batch_norm_dx(yl, dyl, xl, w, t, dw, b, 1000, s);
    check_guard(yl, count * (int64_t)sizeof(real), "batch_norm_dx");
    back = swap_last(yl, s.n, s.hw, s.c);
    check_close(back, y, count, "batch_norm_dx");
    release(13, back, x, dy, w, b, t, var, xl, dyl, y, yl, dw, dwl);
}
END_TEST

/* Threads that share each kernel: the bits of one thread. */
typedef struct Shared {
    BatchNorm s;
    real *x, *dy, *w, *b, *t, *moments, *y, *dx, *dw;
} Shared;
static void share_norm(void *arg)
{
    const Shared *q = arg;
    batch_moments(q->moments, q->x, 0, q->s);
    batch_norm(q->y, q->x, q->w, q->b, q->t, NULL, v_relu, q->s);
    batch_norm_dw(q->dw, q->dy, q->x, q->t, q->s);
    TEAM_BARRIER;
    batch_norm_dx(q->dx, q->dy, q->x, q->w, q->t, q->dw, q->b, 1000, q->s);
}

START_TEST(teams)
{
    const BatchNorm s = sizes[_i];
    const int64_t count = (int64_t)s.n * s.c * s.hw, each = sizeof(real);
    Shared q[2];
    for (int i = 0; i < 2; i++)
        q[i] = (Shared){s,
                        random_buffer(count, 1),
                        random_buffer(count, 2),
                        random_buffer(s.c, 3),
                        random_buffer(s.c, 4),
                        random_buffer(2 * s.c, 5),
                        zero_buffer(2 * s.c),
                        buffer(count),
                        buffer(count),
                        zero_buffer(s.c)};
    share_norm(&q[0]);
    as_team(_i % 2 ? 3 : 7, share_norm, &q[1]);
    check_same(q[1].moments, q[0].moments, 2 * s.c * each, "batch_moments by a team");
    check_same(q[1].y, q[0].y, count * each, "batch_norm by a team");
    check_same(q[1].dw, q[0].dw, s.c * each, "batch_norm_dw by a team");
    check_same(q[1].dx, q[0].dx, count * each, "batch_norm_dx by a team");
    for (int i = 0; i < 2; i++)
        release(9, q[i].x, q[i].dy, q[i].w, q[i].b, q[i].t, q[i].moments, q[i].y, q[i].dx, q[i].dw);
}
END_TEST

/* x and y as parts of wider rows: the same bits, and nothing is written between the rows. */
START_TEST(rows_apart)
{
    const BatchNorm s = sizes[_i];
    const int64_t rows = (int64_t)s.n * s.hw, count = rows * s.c, ldx = s.c + 5, ldy = s.c + 19;
    BatchNorm wide = s;
    wide.ldx = (int)ldx, wide.ldy = (int)ldy;
    real *x = random_buffer(count, 1), *dy = random_buffer(count, 2), *w = random_buffer(s.c, 3),
         *b = random_buffer(s.c, 4), *xw = spread(x, rows, s.c, ldx);
    real *moments[2], *dw[2], *y = buffer(count), *yw = spread(NULL, rows, s.c, ldy),
                              *var = random_buffer(s.c, 6), *dxw = buffer(count);
    for (int k = 0; k < 2; k++) {
        moments[k] = zero_buffer(2 * s.c), dw[k] = zero_buffer(s.c);
        batch_moments(moments[k], k ? xw : x, 0, k ? wide : s);
    }
    check_same(moments[1], moments[0], 2 * s.c * (int64_t)sizeof(real), "batch_moments");
    batch_norm(y, x, w, b, moments[0], NULL, v_relu, s);
    batch_norm(yw, xw, w, b, moments[0], NULL, v_relu, wide);
    check_spread(yw, y, rows, s.c, ldy, "batch_norm");
    for (int c = 0; c < s.c; c++)
        var[c] = var[c] * var[c] + (real)0.1;
    batch_norm_test(y, x, w, b, w, var, v_relu, (real)1e-3, s);
    batch_norm_test(yw, xw, w, b, w, var, v_relu, (real)1e-3, wide);
    check_spread(yw, y, rows, s.c, ldy, "batch_norm_test");
    for (int k = 0; k < 2; k++)
        batch_norm_dw(dw[k], dy, k ? xw : x, moments[0], k ? wide : s);
    check_same(dw[1], dw[0], s.c * (int64_t)sizeof(real), "batch_norm_dw");
    batch_norm_dx(y, dy, x, w, moments[0], dw[0], b, 1000, s);
    batch_norm_dx(dxw, dy, xw, w, moments[0], dw[0], b, 1000, wide);
    check_same(dxw, y, count * (int64_t)sizeof(real), "batch_norm_dx");
    check_guard(yw, rows * ldy * (int64_t)sizeof(real), "batch_norm");
    release(13, x, dy, w, b, xw, y, yw, var, dxw, moments[0], moments[1], dw[0], dw[1]);
}
END_TEST

/* The folded filter gives the normalised result of the filter; units divide the outputs. */
START_TEST(folded)
{
    enum { O = 5, EACH = 7, UNITS = 3 };
    real *x = random_buffer(EACH, 1), *w = random_buffer(O * EACH, 2), *c = random_buffer(O, 3),
         *scale = random_buffer(O, 4), *shift = random_buffer(O, 5), *mean = random_buffer(O, 6),
         *var = random_buffer(O, 7), *y = zero_buffer(O), *want = buffer(O), *got = buffer(O),
         *folded = buffer(O * EACH), *b = buffer(O);
    for (int o = 0; o < O; o++)
        var[o] = var[o] * var[o] + (real)0.1;
    for (int with = 0; with < 2; with++) {
        for (int unit = 0; unit < UNITS; unit++)
            batch_fold(folded, w, scale, var, (real)1e-3, O, EACH, unit, UNITS);
        batch_fold_bias(b, scale, shift, mean, var, with ? c : NULL, (real)1e-3, O);
        for (int o = 0; o < O; o++) {
            y[o] = with ? c[o] : 0, got[o] = b[o];
            for (int i = 0; i < EACH; i++)
                y[o] += w[o * EACH + i] * x[i], got[o] += folded[o * EACH + i] * x[i];
        }
        batch_norm_test_plain(want, y, scale, shift, mean, var, (real)1e-3,
                              (BatchNorm){1, O, 1, 0, 0});
        check_close(got, want, O, "batch_fold");
        check_guard(folded, O * EACH * (int64_t)sizeof(real), "batch_fold");
        check_guard(b, O * (int64_t)sizeof(real), "batch_fold_bias");
    }
    release(12, x, w, c, scale, shift, mean, var, y, want, got, folded, b);
}
END_TEST

#ifdef RT_DOUBLE
/* dx and dw are the derivatives of the whole layer: statistics and all.  In f64. */
static double layer(const real *x, const real *w, const real *b, const real *g, BatchNorm s)
{
    const int64_t count = (int64_t)s.n * s.c * s.hw;
    real *moments = zero_buffer(2 * s.c), *t = buffer(2 * s.c), *y = buffer(count);
    double sum = 0;
    batch_moments(moments, x, 0, s);
    batch_statistics(t, (const char *)moments, 0, 1, 0, 1, (int64_t)s.n * s.hw, (real)1e-2, s.c);
    batch_norm(y, x, w, b, t, NULL, v_identity, s);
    for (int64_t i = 0; i < count; i++)
        sum += (double)y[i] * (double)g[i];
    release(3, moments, t, y);
    return sum;
}

START_TEST(gradients)
{
    const BatchNorm s = {3, 5, 4, 0, 0};
    enum { COUNT = 60, C = 5 };
    real *x = random_buffer(COUNT, 1), *g = random_buffer(COUNT, 2), *w = random_buffer(C, 3),
         *b = random_buffer(C, 4), *moments = zero_buffer(2 * C), *t = buffer(2 * C),
         *dw = zero_buffer(C), *db = zero_buffer(C), *dx = buffer(COUNT);
    batch_moments(moments, x, 0, s);
    batch_statistics(t, (const char *)moments, 0, 1, 0, 1, 12, 1e-2, C);
    batch_norm_dw(dw, g, x, t, s);
    for (int i = 0; i < COUNT; i++)
        db[i % C] += g[i];
    batch_norm_dx(dx, g, x, w, t, dw, db, 12, s);
    for (int i = 0; i < COUNT + 2 * C; i++) {
        real *p = i < COUNT ? x + i : i < COUNT + C ? w + i - COUNT : b + i - COUNT - C;
        const real d = i < COUNT ? dx[i] : i < COUNT + C ? dw[i - COUNT] : db[i - COUNT - C];
        const real at = *p, h = 1e-5;
        *p = at + h;
        const double up = layer(x, w, b, g, s);
        *p = at - h;
        const double down = layer(x, w, b, g, s);
        *p = at;
        ck_assert_double_eq_tol((up - down) / (2 * h), d, 1e-7);
    }
    release(9, x, g, w, b, moments, t, dw, db, dx);
}
END_TEST
#endif

/* Averages over shards are the same for any number of processes. */
START_TEST(averages)
{
    enum { C = 19, SHARDS = 4, SLICES = 2, ROWS = 6 };
    const int64_t slice_bytes = 2 * C * (int64_t)sizeof(real), shard_bytes = SLICES * slice_bytes;
    real *moments = random_buffer(SHARDS * SLICES * 2 * C, 1);
    real *mean[2], *var[2], *grad = zero_buffer(2 * 2 * C);
    for (int i = 0; i < SHARDS * SLICES * 2 * C; i++)
        moments[i] = moments[i] * moments[i];
    for (int k = 0; k < 2; k++)
        mean[k] = random_buffer(C, 2), var[k] = random_buffer(C, 3);
    Rt r = {.shards = SHARDS, .shard_bytes = shard_bytes};
    batch_record(&r, 0, 1, 0, mean[0], var[0], (const char *)moments, slice_bytes, SLICES, ROWS,
                 SHARDS, (real)0.9, C);
    for (int g = 0; g < 2; g++) { /* two groups of two shards, then their sum */
        r.shards = 2, r.grad = (char *)(grad + g * 2 * C);
        for (int unit = 0; unit < 2; unit++)
            batch_record(&r, unit, 2, 0, NULL, NULL, (const char *)moments + g * 2 * shard_bytes,
                         slice_bytes, SLICES, ROWS, SHARDS, (real)0.9, C);
    }
    for (int i = 0; i < 2 * C; i++)
        grad[i] = grad[i] + grad[2 * C + i];
    r.grad = (char *)grad;
    batch_record_grad(&r, 0, 1, 0, mean[1], var[1], SHARDS, (real)0.9, C);
    check_same(mean[0], mean[1], C * sizeof(real), "running mean");
    check_same(var[0], var[1], C * sizeof(real), "running variance");
    release(6, moments, mean[0], mean[1], var[0], var[1], grad);
}
END_TEST

/* Statistics of the whole batch, computed from those of each shard, equal those of all slices together; so do the averages, in
 * a fused update and in an update after a reduction. */
START_TEST(of_all_shards)
{
    enum { C = 19, SHARDS = 5, SLICES = 3, HW = 4, SAMPLES = 2, ROWS = SAMPLES * HW };
    const BatchNorm s = {SAMPLES, C, HW, 0, 0};
    const int64_t slice_bytes = 2 * C * (int64_t)sizeof(real);
    real *x = shifted((BatchNorm){SHARDS * SLICES * SAMPLES, C, HW, 0, 0}, 1);
    real *moments = zero_buffer(SHARDS * SLICES * 2 * C), *known = buffer(SHARDS * 2 * C);
    real *t = buffer(2 * C), *all = zero_buffer(2 * C), *want = buffer(2 * C);
    real *mean[2], *var[2];
    for (int i = 0; i < SHARDS * SLICES; i++) {
        batch_moments(moments + i * 2 * C, x + i * ROWS * C, 0, s);
        batch_moments(all, x + i * ROWS * C, i * SAMPLES, s);
    }
    for (int i = 0; i < SHARDS; i++)
        batch_known(known + i * 2 * C, (const char *)(moments + i * SLICES * 2 * C), slice_bytes,
                    SLICES, ROWS, C);
    batch_statistics(t, (const char *)known, 0, 1, slice_bytes, SHARDS, SLICES * ROWS, (real)1e-3,
                     C);
    batch_statistics(want, (const char *)all, 0, 1, 0, 1, SHARDS * SLICES * ROWS, (real)1e-3, C);
    check_guard(known, SHARDS * slice_bytes, "batch_known");
    for (int c = 0; c < 2 * C; c++)
        ck_assert_double_eq_tol(t[c], want[c], 25 * TOLERANCE * (1 + fabs(want[c])));
    for (int k = 0; k < 2; k++) {
        Rt r = {.shards = 1, .grad = k ? (char *)all : NULL};
        mean[k] = random_buffer(C, 2), var[k] = random_buffer(C, 3);
        for (int unit = 0; unit < 2; unit++) {
            batch_record_known(&r, unit, 2, k, mean[k], var[k], (const char *)known, SHARDS,
                               SLICES * ROWS, (real)0.75, C);
            batch_record_known(&r, unit, 2, !k, NULL, NULL, NULL, SHARDS, SLICES * ROWS, (real)0.75,
                               C); /* the other phase does not change them */
        }
    }
    check_same(mean[0], mean[1], C * sizeof(real), "running mean of the batch");
    check_same(var[0], var[1], C * sizeof(real), "running variance of the batch");
    real *was = random_buffer(C, 2);
    for (int c = 0; c < C; c++)
        ck_assert_double_eq_tol(mean[0][c], 0.75 * was[c] + 0.25 * t[c],
                                25 * TOLERANCE * (1 + fabs(t[c])));
    release(11, x, moments, known, t, all, want, mean[0], mean[1], var[0], var[1], was);
}
END_TEST

/* ------------------------------------------------------------------------- channels far from 0
 *
 * A channel's mean is up to RATIO standard deviations from 0.  Its numbers and its mean are then rounded by UNIT deviations, and
 * results may differ by a few UNITs from those of long double, for any number of rows.  The formula "sum of squares minus square
 * of the sum" would have an error of RATIO UNITs.  (RATIO in f64 gives the same UNIT as in f32.) */
#ifdef RT_DOUBLE
static const double RATIO = 1000.0 * (1 << 29);
#else
static const double RATIO = 1000;
#endif
static const double UNIT = 6e-5, DEVIATION = 0.57735; /* of uniform numbers in (-1, 1) */
enum { FEW = 10, VERY_FEW = 4 };                      /* units */

/* Bounds for means, and for y.  The plain form adds all rows of a chunk one by one, and each addition loses digits. */
static int few_of(bool fast, int64_t rows)
{
    return fast ? FEW : FEW + (int)(rows / 400);
}

typedef struct Far {
    BatchNorm s; /* of a chunk */
    int chunks, slices, shards;
} Far;
static const Far far[] = {{{4, 1, 5, 0, 0}, 2, 3, 2},    {{5, 17, 9, 0, 0}, 1, 1, 3},
                          {{4, 64, 36, 0, 0}, 2, 2, 2},  {{16, 100, 1, 0, 0}, 2, 1, 1},
                          {{6, 2100, 2, 0, 0}, 1, 2, 2}, {{4, 3, 12544, 0, 0}, 1, 1, 2},
                          {{2, 16, 1024, 0, 0}, 4, 1, 2}};
enum { FARS = sizeof far / sizeof far[0] };

/* rows x columns; columns take turns: RATIO deviations below 0, at 0, above */
static real *far_buffer(int64_t rows, int64_t columns, bool by_row, int seed)
{
    real *x = buffer(rows * columns);
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t turn = by_row ? i / columns : i % columns;
        x[i] = (real)((double)(turn % 3 - 1) * RATIO * DEVIATION + noise(seed, i));
    }
    return x;
}

/* The expected results for a channel, or for a row. */
typedef struct Exact {
    long double mean, variance, rstd, dw, db, size; /* size: sum of |dy| */
} Exact;

static Exact exact_of(const real *x, const real *dy, int64_t n, int64_t step, long double epsilon)
{
    Exact e = {0};
    for (int64_t i = 0; i < n; i++)
        e.mean += x[i * step] / (long double)n;
    for (int64_t i = 0; i < n; i++)
        e.variance += (x[i * step] - e.mean) * (x[i * step] - e.mean) / (long double)n;
    e.rstd = 1 / sqrtl(e.variance + epsilon);
    for (int64_t i = 0; i < n; i++) {
        e.db += dy[i * step], e.size += fabsl((long double)dy[i * step]);
        e.dw += dy[i * step] * (x[i * step] - e.mean) * e.rstd;
    }
    return e;
}

static void check_off(const char *what, real got, long double want, long double size, int units)
{
    const double off = (double)(fabsl(got - want) / size) / UNIT;
    ck_assert_msg(off <= units, "%s is %.9g, not %.9Lg: %.3g units off", what, (double)got, want,
                  off);
}

/* Statistics t of n rows of x (rows, C), and the statistics from chunks of s.n * s.hw rows. */
static void check_far(bool fast, BatchNorm s, const real *t, const real *x, const real *dy,
                      int64_t n)
{
    const int64_t rows = (int64_t)s.n * s.hw, count = rows * s.c;
    const BatchNorm flat = {(int)rows, s.c, 1, 0, 0};
    real *w = random_buffer(s.c, 3), *b = random_buffer(s.c, 4), *y = buffer(count),
         *dx = buffer(count), *dw = zero_buffer(s.c), *db = buffer(s.c), *mean = buffer(s.c),
         *var = buffer(s.c), *test = buffer(count);
    Exact *e = malloc(sizeof *e * (size_t)s.c);
    for (int c = 0; c < s.c; c++) {
        e[c] = exact_of(x + c, dy + c, n, s.c, 1e-5L);
        db[c] = (real)e[c].db, mean[c] = (real)e[c].mean, var[c] = (real)e[c].variance;
    }
    for (int64_t at = 0; at < n; at += rows)
        (fast ? batch_norm_dw : batch_norm_dw_plain)(dw, dy + at * s.c, x + at * s.c, t,
                                                     fast ? s : flat);
    if (fast) {
        batch_norm(y, x, w, b, t, NULL, v_identity, s);
        batch_norm_test(test, x, w, b, mean, var, v_identity, (real)1e-5, s);
        batch_norm_dx(dx, dy, x, w, t, dw, db, n, s);
    } else {
        batch_norm_plain(y, x, w, b, t, flat);
        batch_norm_test_plain(test, x, w, b, mean, var, (real)1e-5, flat);
        batch_norm_dx_plain(dx, dy, x, w, t, dw, db, n, flat);
    }
    for (int c = 0; c < s.c; c++) {
        check_off("the mean", t[c], e[c].mean, 1 / e[c].rstd, few_of(fast, rows));
        check_off("rstd", t[s.c + c], e[c].rstd, e[c].rstd, VERY_FEW);
        check_off("dw", dw[c], e[c].dw, e[c].size, VERY_FEW);
    }
    for (int64_t i = 0; i < count; i++) {
        const int c = (int)(i % s.c);
        const long double xhat = (x[i] - e[c].mean) * e[c].rstd;
        check_off("y", y[i], xhat * w[c] + b[c], 1, few_of(fast, rows));
        check_off("y of a test", test[i], xhat * w[c] + b[c], 1, VERY_FEW);
        check_off("dx", dx[i], w[c] * e[c].rstd * (dy[i] - e[c].db / n - xhat * e[c].dw / n),
                  e[c].rstd, VERY_FEW);
    }
    free(e);
    release(9, w, b, y, dx, dw, db, mean, var, test);
}

/* Running averages: of shards' own statistics, or of the whole batch's. */
static void check_far_averages(bool fast, bool sync, const real *mean, const real *var,
                               const real *x, Far f)
{
    const int64_t n = (int64_t)f.s.n * f.s.hw * f.chunks * f.slices * (sync ? f.shards : 1);
    const int parts = sync ? 1 : f.shards, C = f.s.c;
    for (int c = 0; c < C; c++) {
        long double m = 0, v = 0;
        for (int i = 0; i < parts; i++) {
            const Exact e = exact_of(x + i * n * C + c, x, n, C, 0);
            m += e.mean / parts, v += e.variance * n / (n - 1) / parts;
        }
        check_off("the running mean", mean[c], m, sqrtl(v), few_of(fast, (int64_t)f.s.n * f.s.hw));
        check_off("the running variance", var[c], v, v, VERY_FEW);
    }
}

START_TEST(far_from_zero)
{
    const Far f = far[_i];
    const BatchNorm s = f.s;
    const int C = s.c, slices = f.slices * f.shards;
    const int64_t rows = (int64_t)s.n * s.hw, of_slice = rows * f.chunks,
                  of_shard = of_slice * f.slices, n = of_shard * f.shards,
                  slice_bytes = 2 * C * (int64_t)sizeof(real);
    real *x = far_buffer(n, C, false, 1), *dy = random_buffer(n * C, 2),
         *known = buffer(f.shards * 2 * C), *t = buffer(2 * C), *mean = buffer(C), *var = buffer(C);
    Rt r = {.shards = f.shards, .shard_bytes = f.slices * slice_bytes};
    for (int fast = 0; fast < 2; fast++) {
        real *moments = zero_buffer((int64_t)slices * 2 * C);
        const char *first = (const char *)moments;
        for (int p = 0; p < slices * f.chunks; p++) {
            real *turned = fast ? copy_buffer(x + p * rows * C, rows * C)
                                : swap_last(x + p * rows * C, s.n, s.hw, C);
            (fast ? batch_moments : batch_moments_plain)(moments + p / f.chunks * 2 * C, turned,
                                                         p % f.chunks * s.n, s);
            free(turned);
        }
        for (int i = 0; i < f.shards; i++) {
            const char *shard = first + i * f.slices * slice_bytes;
            batch_statistics(t, shard, slice_bytes, f.slices, 0, 1, of_slice, (real)1e-5, C);
            batch_known(known + i * 2 * C, shard, slice_bytes, f.slices, of_slice, C);
            check_far(fast, s, t, x + i * of_shard * C, dy + i * of_shard * C, of_shard);
        }
        batch_statistics(t, (const char *)known, 0, 1, slice_bytes, f.shards, of_shard, (real)1e-5,
                         C);
        check_far(fast, s, t, x, dy, n);
        for (int sync = 0; sync < 2; sync++) {
            memset(mean, 0, sizeof(real) * (size_t)C), memset(var, 0, sizeof(real) * (size_t)C);
            if (sync)
                batch_record_known(&r, 0, 1, false, mean, var, (const char *)known, f.shards,
                                   of_shard, 0, C);
            else
                batch_record(&r, 0, 1, 0, mean, var, first, slice_bytes, f.slices, of_slice,
                             f.shards, 0, C);
            check_far_averages(fast, sync, mean, var, x, f);
        }
        free(moments);
    }
    release(6, x, dy, known, t, mean, var);
}
END_TEST

/* A filter's results are RATIO deviations from 0, by its first number; folded with the mean into weights and a bias. */
START_TEST(far_folded)
{
    enum { EACH = 9, TRIES = 50 };
    real *w = random_buffer(EACH, 1), *folded = buffer(EACH), b, scale = (real)1.5,
         shift = (real)0.25, mean, var;
    w[0] = (real)(RATIO * DEVIATION);
    mean = w[0], var = (real)(DEVIATION * DEVIATION);
    batch_fold(folded, w, &scale, &var, (real)1e-5, 1, EACH, 0, 1);
    batch_fold_bias(&b, &scale, &shift, &mean, &var, NULL, (real)1e-5, 1);
    for (int k = 0; k < TRIES; k++) {
        real y = b;
        long double want = 0;
        for (int i = 0; i < EACH; i++) {
            const real x = i ? (real)noise(k + 2, i) : 1;
            y += folded[i] * x, want += (long double)w[i] * x;
        }
        check_off("a folded filter", y, (want - mean) * scale / sqrtl(var + 1e-5L) + shift, 1, FEW);
    }
    release(2, w, folded);
}
END_TEST

/* layer_norm: rows RATIO deviations from 0. */
START_TEST(far_rows)
{
    static const int sizes[] = {5, 64, 100, 1000, 4096, 50000};
    const int k = sizes[_i], rows = 6;
    const LayerNorm l = {.rows = rows, .k = k, .center = true, .epsilon = 1e-5};
    real *x = far_buffer(rows, k, true, 1), *dy = random_buffer(rows * k, 2),
         *w = random_buffer(k, 3), *b = random_buffer(k, 4), *g = buffer(rows * k),
         *y = buffer(rows * k), *dx = buffer(rows * k);
    for (int i = 0; i < rows * k; i++)
        g[i] = dy[i] * w[i % k];
    for (int fast = 0; fast < 2; fast++) {
        real *dw = zero_buffer(k);
        (fast ? layer_norm : layer_norm_plain)(y, x, w, b, l);
        (fast ? layer_norm_dx : layer_norm_dx_plain)(dx, dy, x, w, l);
        (fast ? layer_norm_dw : layer_norm_dw_plain)(dw, dy, x, l);
        Exact e[6];
        for (int i = 0; i < rows; i++)
            e[i] = exact_of(x + i * k, g + i * k, k, 1, 1e-5L);
        for (int j = 0; j < k; j++) {
            long double sum = 0, size = 0;
            for (int i = 0; i < rows; i++) {
                const int at = i * k + j;
                const long double xhat = (x[at] - e[i].mean) * e[i].rstd;
                sum += dy[at] * xhat, size += fabsl((long double)dy[at]);
                check_off("layer_norm", y[at], xhat * w[j] + b[j], 1, FEW);
                check_off("layer_norm_dx", dx[at],
                          e[i].rstd * (g[at] - e[i].db / k - xhat * e[i].dw / k), e[i].rstd,
                          VERY_FEW);
            }
            check_off("layer_norm_dw", dw[j], sum, size, FEW);
        }
        free(dw);
    }
    release(7, x, dy, w, b, g, y, dx);
}
END_TEST

/* group_norm: groups of less than a vector, of a vector and a rest, one group, one for each channel;
 * fast and plain kernels agree, and a team has the same bits. */
static const GroupNorm groups[] = {
    /* n c hw groups last epsilon */
    {2, 6, 12, 3, false, 1e-5},  {1, 40, 9, 2, false, 1e-5}, {3, 17, 5, 1, false, 1e-3},
    {2, 33, 8, 33, false, 1e-5}, {5, 64, 1, 4, true, 1e-5},  {2, 20, 7, 5, true, 1e-5},
};
enum { GROUPS = sizeof groups / sizeof groups[0] };

typedef struct Grouped {
    GroupNorm p;
    real *x, *dy, *w, *b, *y, *dx;
} Grouped;
static void share_groups(void *arg)
{
    const Grouped *q = arg;
    real *scratch = buffer(GROUP_NORM_ROOM(q->p));
    group_norm(q->y, q->x, q->w, q->b, scratch, q->p);
    group_norm_dx(q->dx, q->dy, q->x, q->w, scratch, q->p);
    check_guard(scratch, GROUP_NORM_ROOM(q->p) * (int64_t)sizeof(real), "scratch of group_norm");
    free(scratch);
}

START_TEST(grouped)
{
    const GroupNorm p = groups[_i];
    const int64_t count = (int64_t)p.n * p.c * p.hw, bytes = count * (int64_t)sizeof(real);
    real *x = random_buffer(count, 1), *dy = random_buffer(count, 2), *y = buffer(count),
         *dx = buffer(count);
    for (int64_t i = 0; i < count; i++)
        x[i] += 3; /* a mean that is large beside the deviation */
    Grouped q =
        {p, x, dy, random_buffer(p.c, 3), random_buffer(p.c, 4), buffer(count), buffer(count)};
    if (!p.last)
        q.x = swap_last(x, p.n, p.c, p.hw), q.dy = swap_last(dy, p.n, p.c, p.hw);
    group_norm_plain(y, x, q.w, q.b, NULL, p);
    group_norm_dx_plain(dx, dy, x, q.w, NULL, p);
    share_groups(&q);
    check_guard(q.y, bytes, "group_norm");
    check_guard(q.dx, bytes, "group_norm_dx");
    real *yr = p.last ? copy_buffer(q.y, count) : swap_last(q.y, p.n, p.hw, p.c),
         *dxr = p.last ? copy_buffer(q.dx, count) : swap_last(q.dx, p.n, p.hw, p.c);
    check_close(yr, y, count, "group_norm");
    check_close(dxr, dx, count, "group_norm_dx");
    Grouped team = {p, q.x, q.dy, q.w, q.b, buffer(count), buffer(count)};
    as_team(3, share_groups, &team);
    check_same(team.y, q.y, bytes, "group_norm by a team");
    check_same(team.dx, q.dx, bytes, "group_norm_dx by a team");
    if (!p.last)
        release(2, q.x, q.dy);
    release(12, x, dy, y, dx, q.w, q.b, q.y, q.dx, yr, dxr, team.y, team.dx);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("norm");
    tcase_add_loop_test(t, far_from_zero, 0, FARS);
    tcase_add_test(t, far_folded);
    tcase_add_loop_test(t, far_rows, 0, 6);
    tcase_add_loop_test(t, statistics, 0, SIZES);
    tcase_add_loop_test(t, fast_is_plain, 0, SIZES);
    tcase_add_loop_test(t, teams, 0, SIZES);
    tcase_add_loop_test(t, rows_apart, 0, SIZES);
    tcase_add_loop_test(t, grouped, 0, GROUPS);
    tcase_add_test(t, folded);
#ifdef RT_DOUBLE
    tcase_add_test(t, gradients);
#endif
    tcase_add_test(t, averages);
    tcase_add_test(t, of_all_shards);
    return run_suite(t, "norm");
}
