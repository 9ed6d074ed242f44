/* test_winograd.c -- Winograd's convolutions against plain ones: borders, odd sizes, few and many
 * channels, pooling, gradients of the images and of the weights. */
#include "kernel_test.h"

#include "cpu/winograd_dw.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* write is no size */
/* clang-format off */
static const Conv shapes[] = {
    /* n  c   h   w   o  r  s  stride  pad   dil  g  oh  ow pool */
    {3, 20, 12, 12, 50, 5, 5, 1, 1, 0, 0, 1, 1, 1, 8, 8, 2},       /* LeNet */
    {2, 20, 14, 14, 50, 5, 5, 1, 1, 2, 2, 1, 1, 1, 14, 14, 2},     /* LeNet, same */
    {1, 1, 5, 5, 1, 5, 5, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0},           /* one output */
    {2, 3, 1, 1, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0},           /* 8 of 9 taps outside */
    {3, 17, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 9, 7, 2},         /* odd sizes */
    {1, 64, 6, 6, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 6, 6, 2},
    {1, 16, 8, 11, 100, 3, 3, 1, 1, 0, 0, 1, 1, 1, 6, 9, 2},
    {1, 130, 5, 4, 20, 3, 3, 1, 1, 2, 2, 1, 1, 1, 7, 6, 2},        /* largest padding */
    {1, 520, 4, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 5, 2},         /* most of the scratch */
    {2, 4, 13, 6, 10, 5, 5, 1, 1, 4, 3, 1, 1, 1, 17, 8, 2},
    {2, 70, 30, 26, 130, 3, 3, 1, 1, 1, 1, 1, 1, 1, 30, 26, 2},    /* blocks of channels and tiles */
    {2, 200, 9, 8, 190, 3, 3, 1, 1, 1, 1, 1, 1, 1, 9, 8, 2},       /* filters from beyond the L2 */
    {1, 3, 2, 3, 4, 3, 3, 1, 1, 4, 5, 1, 1, 1, 8, 11, 2},          /* pad > kernel */
};
/* clang-format on */
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Without --deep, doubles leave out shapes of more than eight million products: these need four
 * fifths of the time of plain loops, and vectors in f32 test them. */
static bool left_out(Conv c)
{
    const int64_t products = (int64_t)c.n * c.c * c.o * c.oh * c.ow * c.r * c.s;
    return sizeof(real) == sizeof(double) && rounds_step() > 1 && products > 8000000;
}

static int64_t count_of(Conv c, char what)
{
    return what == 'x'   ? (int64_t)c.n * c.c * c.h * c.w
           : what == 'w' ? (int64_t)c.o * c.c * c.r * c.s
           : what == 'y' ? (int64_t)c.n * c.o * c.oh * c.ow
                         : (int64_t)c.n * c.o * (c.oh / 2) * (c.ow / 2);
}

static REFERENCE void plain_forward(real *y, const real *x, const real *w, Conv c)
{
    conv2d_plain(y, x, w, c);
}
static REFERENCE void plain_dx(real *dx, const real *w, const real *dy, Conv c)
{
    conv2d_dx_plain(dx, w, dy, c);
}
static REFERENCE void plain_dw(double *dw, const real *x, const real *dy, Conv c)
{
    CONV_PLAIN_EACH(c, dw[at_w] += (double)dy[at_y] * (double)x[at_x]);
}

/* F(4x4) has 3-4 times the error in f32, and so another bound. */
static void check_near(const real *got, const real *expect, int64_t n, int m, const char *what)
{
    double d = 0, s = 1e-300;
    for (int64_t i = 0; i < n; i++) {
        d += ((double)got[i] - expect[i]) * ((double)got[i] - expect[i]);
        s += (double)expect[i] * expect[i];
    }
    const double distance = sqrt(d / s), bound = TOLERANCE * (m == 4 ? 5 : 1);
    ck_assert_msg(distance <= bound, "%s with m = %d: distance %g, bound %g", what, m, distance,
                  bound);
}

static real *packed(const real *w, Conv c, int m, bool dx)
{
    const int64_t count = dx ? WINO_DX_COUNT(c, m) : WINO_COUNT(c, m);
    real *u = buffer(count);
    for (int unit = 0; unit < 3; unit++)
        (dx ? wino_pack_dx : wino_pack)(u, w, c, m, unit, 3);
    check_guard(u, count * (int64_t)sizeof(real), "wino_pack");
    for (int64_t i = 0; i < count; i++)
        REQUIRE(u[i] == u[i], "packed weight %d was not written", (int)i);
    return u;
}

static void forward(Conv c, int m)
{
    const int64_t ny = count_of(c, 'y');
    real *x = random_buffer(count_of(c, 'x'), 1), *w = random_buffer(count_of(c, 'w'), 2),
         *bias = random_buffer(c.o, 3), *expect = buffer(ny), *y = buffer(ny);
    plain_forward(expect, x, w, c);
    for (int64_t i = 0; i < ny; i++)
        expect[i] = s_relu(expect[i] + bias[i / (c.oh * c.ow) % c.o]);
    real *xl = swap_last(x, c.n, c.c, c.h * c.w), *wl = swap_last(w, c.o, c.c, c.r * c.s),
         *u = packed(wl, c, m, false);
    conv2d_winograd(y, xl, u, bias, v_relu, c, m);
    check_guard(y, ny * (int64_t)sizeof(real), "conv2d_winograd");
    real *yr = swap_last(y, c.n, c.oh * c.ow, c.o);
    check_near(yr, expect, ny, m, "conv2d_winograd");
    release(9, x, w, bias, expect, y, xl, wl, u, yr);
}

/* Compared with the direct kernel, which test_conv.c compares with the plain ones: the values are close, and the index is that
 * of a corner that is the largest within rounding. */
static void pooled(Conv c, int m)
{
    const int64_t np = count_of(c, 'p'), ny = count_of(c, 'y');
    real *x = random_buffer(count_of(c, 'x'), 1), *w = random_buffer(count_of(c, 'w'), 2);
    real *full = buffer(ny), *y = buffer(np), *expect = buffer(np);
    uint8_t *index = buffer_bytes(np);
    real *u = packed(w, c, m, false);
    conv2d_winograd(full, x, u, NULL, v_identity, c, m);
    conv2d_winograd_pool(y, index, x, u, NULL, v_identity, c, m);
    check_guard(y, np * (int64_t)sizeof(real), "conv2d_winograd_pool");
    check_guard(index, np, "conv2d_winograd_pool's index");
    for (int64_t i = 0; i < np; i++) {
        const int64_t o = i % c.o, px = i / c.o % (c.ow / 2),
                      py = i / c.o / (c.ow / 2) % (c.oh / 2), n = i / c.o / (c.ow / 2) / (c.oh / 2);
        REQUIRE(index[i] <= 3, "index %d", index[i]);
        expect[i] = -INFINITY;
        for (int k = 0; k < 4; k++) {
            const real v = full[((n * c.oh + 2 * py + k / 2) * c.ow + 2 * px + k % 2) * c.o + o];
            expect[i] = v > expect[i] ? v : expect[i];
            if (k == index[i])
                REQUIRE(v == y[i], "the index does not point at the value");
        }
    }
    ck_assert(memcmp(y, expect, (size_t)np * sizeof(real)) == 0);
    release(7, x, w, full, y, expect, index, u);
}

static void backward(Conv c, int m)
{
    const int64_t nx = count_of(c, 'x');
    real *x = random_buffer(nx, 1), *w = random_buffer(count_of(c, 'w'), 2),
         *dy = random_buffer(count_of(c, 'y'), 4), *expect = buffer(nx), *dx = buffer(nx);
    plain_dx(expect, w, dy, c);
    for (int64_t i = 0; i < nx; i++)
        expect[i] *= 1 - x[i] * x[i];
    real *xl = swap_last(x, c.n, c.c, c.h * c.w), *wl = swap_last(w, c.o, c.c, c.r * c.s),
         *dyl = swap_last(dy, c.n, c.o, c.oh * c.ow), *u = packed(wl, c, m, true);
    conv2d_winograd_dx(dx, u, dyl, d_tanh, xl, c, m);
    check_guard(dx, nx * (int64_t)sizeof(real), "conv2d_winograd_dx");
    real *dxr = swap_last(dx, c.n, c.h * c.w, c.c);
    check_near(dxr, expect, nx, m, "conv2d_winograd_dx");
    release(10, x, w, dy, expect, dx, xl, wl, dyl, u, dxr);
}

/* Adds to the given numbers.  Compared with sums in double, because the reference in f32 has an error of the same size. */
static void weights(Conv c, int m)
{
    const int64_t nw = count_of(c, 'w'), nx = count_of(c, 'x'), ny = count_of(c, 'y');
    real *x = random_buffer(nx, 1), *dy = random_buffer(ny, 4), *expect = buffer(nw),
         *first = random_buffer(nw, 5);
    double *sum = calloc((size_t)nw, sizeof *sum);
    ck_assert_ptr_nonnull(sum);
    plain_dw(sum, x, dy, c);
    for (int64_t i = 0; i < nw; i++)
        expect[i] = (real)(sum[i] + (double)first[i]);
    real *xl = swap_last(x, c.n, c.c, c.h * c.w), *dyl = swap_last(dy, c.n, c.o, c.oh * c.ow),
         *dw = swap_last(first, c.o, c.c, c.r * c.s);
    conv2d_winograd_dw(dw, xl, dyl, c, m);
    check_guard(dw, nw * (int64_t)sizeof(real), "conv2d_winograd_dw");
    real *dwr = swap_last(dw, c.o, c.r * c.s, c.c);
    check_near(dwr, expect, nw, m, "conv2d_winograd_dw");
    c.write = true;
    for (int64_t i = 0; i < nw; i++) {
        expect[i] = (real)sum[i];
        dw[i] = (real)NAN;
    }
    conv2d_winograd_dw(dw, xl, dyl, c, m);
    real *written = swap_last(dw, c.o, c.r * c.s, c.c);
    check_near(written, expect, nw, m, "conv2d_winograd_dw, written");
    free(sum);
    release(9, written, x, dy, expect, first, xl, dyl, dw, dwr);
}

/* Threads that share each kernel: the bits of one thread. */
typedef struct Shared {
    Conv c;
    int m;
    real *x, *u, *ud, *dy, *y, *dx, *dw;
} Shared;
static bool goes_back(Conv c, int m)
{
    Conv transposed = c;
    transposed.c = c.o;
    return WINO_FITS(transposed, m) && c.pad_h < c.r && c.pad_w < c.s;
}
static void share_winograd(void *arg)
{
    const Shared *s = arg;
    if (WINO_FITS(s->c, s->m))
        conv2d_winograd(s->y, s->x, s->u, NULL, v_relu, s->c, s->m);
    if (goes_back(s->c, s->m))
        conv2d_winograd_dx(s->dx, s->ud, s->dy, d_tanh, s->x, s->c, s->m);
    conv2d_winograd_dw(s->dw, s->x, s->dy, s->c, s->m);
}

START_TEST(teams)
{
    const Conv c = shapes[_i / 2];
    const int m = _i % 2 ? 4 : 2;
    const int64_t nw = count_of(c, 'w'), nx = count_of(c, 'x'), ny = count_of(c, 'y');
    real *w = random_buffer(nw, 2);
    Shared s[2];
    if ((c.r == 5 && m == 4) || left_out(c)) {
        release(1, w);
        return;
    }
    for (int i = 0; i < 2; i++)
        s[i] = (Shared){c,
                        m,
                        random_buffer(nx, 1),
                        packed(w, c, m, false),
                        packed(w, c, m, true),
                        random_buffer(ny, 4),
                        zero_buffer(ny),
                        zero_buffer(nx),
                        random_buffer(nw, 5)};
    share_winograd(&s[0]);
    as_team(_i % 3 ? 3 : 7, share_winograd, &s[1]);
    check_same(s[1].y, s[0].y, ny * (int64_t)sizeof(real), "conv2d_winograd by a team");
    check_same(s[1].dx, s[0].dx, nx * (int64_t)sizeof(real), "conv2d_winograd_dx by a team");
    check_same(s[1].dw, s[0].dw, nw * (int64_t)sizeof(real), "conv2d_winograd_dw by a team");
    for (int i = 0; i < 2; i++)
        release(7, s[i].x, s[i].u, s[i].ud, s[i].dy, s[i].y, s[i].dx, s[i].dw);
    release(1, w);
}
END_TEST

START_TEST(all)
{
    const Conv c = shapes[_i / 2];
    const int m = _i % 2 ? 4 : 2;
    if ((c.r == 5 && m == 4) || left_out(c))
        return;
    Conv transposed = c;
    transposed.c = c.o;
    if (WINO_FITS(c, m))
        forward(c, m);
    if (WINO_FITS(transposed, m) && c.pad_h < c.r && c.pad_w < c.s)
        backward(c, m);
    weights(c, m);
    if (WINO_FITS(c, m) && c.oh >= 2 && c.ow >= 2)
        pooled(c, m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("winograd");
    TCase *t = tcase_create("shapes");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, all, 0, 2 * SHAPES);
    tcase_add_loop_test(t, teams, 0, 2 * SHAPES);
    suite_add_tcase(s, t);
    return suite_run(s);
}
