/* test_conv.c -- fast convolution kernels against plain ones, for sizes that fill no vector or
 * tile. */
#include "kernel_test.h"

#include "cpu/conv_dw_update.h"
#include "cpu/conv_pool_dw.h"
#include "cpu/conv_pool_dx.h"
#include "cpu/conv_pool_forward.h"
#include "cpu/pool.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* write is no size */
/* clang-format off */
static const Conv shapes[] = {
    /* n  c   h   w   o  r  s  stride  pad   dil  g  oh  ow pool */
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0},
    {2, 3, 1, 1, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0},           /* 8 of 9 taps outside */
    {1, 1, 28, 28, 20, 5, 5, 1, 1, 0, 0, 1, 1, 1, 24, 24, 2},      /* LeNet */
    {3, 20, 12, 12, 50, 5, 5, 1, 1, 0, 0, 1, 1, 1, 8, 8, 2},
    {1, 1, 28, 28, 20, 5, 5, 1, 1, 2, 2, 1, 1, 1, 28, 28, 2},      /* LeNet, same */
    {2, 20, 14, 14, 50, 5, 5, 1, 1, 2, 2, 1, 1, 1, 14, 14, 2},
    {3, 17, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 9, 7, 2},         /* the pool drops a row */
    {2, 5, 8, 9, 7, 3, 3, 2, 2, 0, 0, 1, 1, 1, 4, 5, 2},           /* same: odd one at the end */
    {1, 4, 11, 10, 6, 3, 2, 2, 3, 1, 0, 1, 1, 1, 6, 3, 2},
    {2, 6, 10, 10, 8, 3, 3, 1, 1, 2, 2, 2, 2, 1, 10, 10, 2},       /* dilated */
    {1, 4, 9, 9, 4, 2, 3, 2, 1, 1, 3, 3, 2, 1, 4, 11, 2},
    {2, 3, 9, 8, 4, 1, 1, 3, 2, 0, 0, 1, 1, 1, 3, 4, 2},           /* pixels in no window */
    {2, 8, 7, 7, 12, 3, 3, 1, 1, 1, 1, 1, 1, 4, 7, 7, 2},          /* groups */
    {1, 34, 5, 5, 66, 3, 3, 1, 1, 1, 1, 1, 1, 2, 5, 5, 2},
    {2, 6, 6, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 6, 6, 6, 2},           /* depthwise */
    {1, 2, 3, 3, 3, 2, 2, 1, 1, 4, 5, 1, 1, 1, 10, 12, 2},         /* pad larger than the kernel */
    {1, 64, 6, 6, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 6, 6, 2},
    {2, 32, 5, 4, 96, 1, 1, 1, 1, 0, 0, 1, 1, 1, 5, 4, 2},         /* 1x1 kernel */
    {1, 3, 23, 19, 16, 7, 7, 2, 2, 3, 3, 1, 1, 1, 12, 10, 2},
    {17, 1, 12, 11, 20, 5, 5, 1, 1, 0, 0, 1, 1, 1, 8, 7, 2},       /* more samples than lanes */
    {16, 3, 9, 10, 37, 3, 5, 1, 1, 1, 2, 1, 1, 1, 9, 10, 2},       /* patches of 45 taps */
    {18, 2, 13, 11, 19, 3, 3, 2, 2, 1, 1, 2, 1, 1, 6, 6, 2},
    {2, 12, 10, 9, 9, 3, 4, 1, 1, 0, 1, 1, 1, 1, 8, 8, 2},         /* a second copy of odd columns */
    {1, 36, 40, 40, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 40, 40, 2},      /* frames in bands */
    {1, 16, 9, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 9, 9, 2},
    {1, 160, 30, 30, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 30, 30, 2},     /* padded copy in bands */
    {1, 3, 30, 30, 160, 3, 3, 1, 1, 1, 1, 1, 1, 1, 30, 30, 0},     /* and of dy */
    {1, 3000, 3, 13, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 3, 13, 2},      /* no band fits */
    {3, 40, 4, 4, 19, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 4, 2},         /* weights tap by tap */
    {5, 70, 2, 3, 300, 3, 3, 1, 1, 1, 1, 1, 1, 1, 2, 3, 2},        /* more outputs than a block */
    {9, 36, 8, 8, 20, 3, 3, 2, 2, 1, 1, 1, 1, 1, 4, 4, 2},         /* more positions than a block */
    {2, 32, 5, 4, 34, 3, 3, 1, 2, 2, 1, 2, 1, 2, 5, 2, 2},         /* in groups, dilated */
    {2, 3, 20, 19, 70, 7, 7, 2, 2, 3, 3, 1, 1, 1, 10, 10, 2},      /* few channels: two panels */
    {2, 2, 9, 9, 32, 3, 5, 1, 1, 0, 3, 2, 1, 1, 5, 11, 2},
    {3, 260, 9, 20, 24, 1, 1, 1, 1, 0, 0, 1, 1, 1, 9, 20, 2},      /* 1x1, more than a block */
    {3, 270, 9, 20, 300, 1, 1, 1, 1, 0, 0, 1, 1, 1, 9, 20, 2},     /* and wide: copied, in blocks in both directions */
    {2, 140, 23, 22, 40, 1, 1, 2, 2, 0, 0, 1, 1, 1, 12, 11, 2},
    {1, 800, 3, 3, 700, 1, 1, 1, 1, 0, 0, 1, 1, 1, 3, 3, 2},       /* weights from beyond the L2 */
    {1, 200, 22, 21, 40, 2, 2, 1, 1, 0, 0, 1, 1, 1, 21, 20, 2},    /* not padded, in bands */
    {1, 3, 3, 13, 3000, 3, 3, 1, 1, 1, 1, 1, 1, 1, 3, 13, 2},
    {3, 6, 6, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 6, 6, 6, 0},           /* depthwise, lanes of channels */
    {1, 17, 9, 20, 17, 3, 3, 1, 1, 1, 1, 1, 1, 17, 9, 20, 0},
    {2, 40, 9, 8, 40, 3, 3, 2, 2, 0, 0, 1, 1, 40, 5, 4, 0},        /* same: odd one at the end */
    {1, 33, 7, 6, 33, 5, 5, 1, 1, 2, 2, 1, 1, 33, 7, 6, 0},        /* more sums than registers */
    {2, 5, 9, 8, 5, 3, 2, 2, 3, 2, 1, 2, 1, 5, 5, 3, 0},
    {1, 3, 3, 4, 3, 2, 2, 1, 1, 4, 5, 1, 1, 3, 10, 12, 0},         /* pad larger than the kernel */
    {3, 19, 1, 1, 19, 3, 3, 1, 1, 1, 1, 1, 1, 19, 1, 1, 0},
    {2, 2, 70, 90, 2, 3, 3, 2, 1, 1, 1, 1, 1, 2, 35, 90, 0},       /* planes in bands */
    {1, 8, 3, 5, 8, 1, 13, 1, 1, 0, 6, 1, 1, 8, 3, 5, 0},          /* a row of taps too long */
    {9, 20, 2, 2, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 2, 2, 0},         /* tiles across samples */
    {3, 12, 7, 7, 35, 3, 3, 2, 2, 1, 1, 1, 1, 1, 4, 4, 0},
    {2, 70, 50, 40, 34, 3, 3, 2, 1, 1, 1, 1, 1, 1, 25, 40, 0},     /* bands of rows */
    {2, 34, 25, 40, 70, 2, 3, 2, 2, 0, 1, 1, 1, 1, 12, 20, 0},     /* bands of rows of dx */
    {2, 24, 9, 9, 40, 3, 3, 3, 3, 1, 1, 2, 2, 1, 3, 3, 0},         /* phases of a dilated kernel */
    {2, 16, 8, 8, 20, 3, 3, 2, 2, 2, 2, 2, 2, 1, 4, 4, 0},         /* rows in no window */
};
/* clang-format on */
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static int64_t count_x(Conv c)
{
    return (int64_t)c.n * c.c * c.h * c.w;
}
static int64_t count_w(Conv c)
{
    return (int64_t)c.o * (c.c / c.groups) * c.r * c.s;
}
static int64_t count_y(Conv c)
{
    return (int64_t)c.n * c.o * c.oh * c.ow;
}
static int64_t count_pooled(Conv c)
{
    return (int64_t)c.n * c.o * (c.oh / 2) * (c.ow / 2);
}

static REFERENCE void plain_forward(real *y, const real *x, const real *w, Conv c)
{
    conv2d_plain(y, x, w, c);
}
static REFERENCE void plain_dx(real *dx, const real *w, const real *dy, Conv c)
{
    conv2d_dx_plain(dx, w, dy, c);
}
static REFERENCE void plain_dw(real *dw, const real *x, const real *dy, Conv c)
{
    conv2d_dw_plain(dw, x, dy, c);
}

static real *last(const real *x, int n, int c, int hw)
{
    return swap_last(x, n, c, hw);
}
static real *rows(const real *x, int n, int c, int hw)
{
    return swap_last(x, n, hw, c);
}
static real *weights_last(const real *w, Conv c)
{
    return swap_last(w, c.o, c.c / c.groups, c.r * c.s);
}
static real *weights_rows(const real *w, Conv c)
{
    return swap_last(w, c.o, c.r * c.s, c.c / c.groups);
}

/* Packed by three units, as threads would. */
typedef enum Order { ORDER_FORWARD, ORDER_BACK, ORDER_POOL_DX } Order;
static real *packed(const real *w, Conv c, Order order)
{
    const int64_t count = order == ORDER_FORWARD ? CONV_PACK_COUNT(c)
                          : order == ORDER_BACK  ? CONV_PACK_BACK_COUNT(c)
                                                 : CONV_PACK_DX_COUNT(c);
    real *p = buffer(count);
    for (int unit = 0; unit < 3; unit++)
        if (order == ORDER_FORWARD)
            conv2d_pack(p, w, c, unit, 3);
        else if (order == ORDER_BACK)
            conv2d_pack_back(p, w, c, unit, 3);
        else
            conv2d_pack_dx(p, w, c, unit, 3);
    check_guard(p, count * (int64_t)sizeof(real), "pack");
    for (int64_t i = 0; i < count; i++)
        REQUIRE(p[i] == p[i], "packed weight %d was not written", (int)i);
    if (order == ORDER_FORWARD && !CONV_DEPTHWISE(c)) {
        real *plain = buffer(count);
        conv2d_pack_plain(plain, w, c);
        check_same(plain, p, count * (int64_t)sizeof(real), "conv2d_pack");
        release(1, plain);
    }
    return p;
}

static void add_bias(real *y, const real *bias, int n, int o, int hw)
{
    for (int64_t i = 0; i < (int64_t)n * o * hw; i++)
        y[i] += bias[i / hw % o];
}

START_TEST(forward)
{
    const Conv c = shapes[_i];
    real *x = random_buffer(count_x(c), 1), *w = random_buffer(count_w(c), 2),
         *bias = random_buffer(c.o, 3);
    real *expect = buffer(count_y(c)), *y = buffer(count_y(c));
    plain_forward(expect, x, w, c);
    add_bias(expect, bias, c.n, c.o, c.oh * c.ow);
    for (int64_t i = 0; i < count_y(c); i++)
        expect[i] = s_relu(expect[i]);

    real *xl = last(x, c.n, c.c, c.h * c.w), *wl = weights_last(w, c),
         *p = packed(wl, c, ORDER_FORWARD);
    conv2d(y, xl, p, bias, v_relu, c);
    check_guard(y, count_y(c) * (int64_t)sizeof(real), "conv2d");
    real *yr = rows(y, c.n, c.o, c.oh * c.ow);
    check_close(yr, expect, count_y(c), "conv2d");
    if (!CONV_DEPTHWISE(c)) { /* the same with room between the rows */
        Conv wide = c;
        wide.ldy = c.o + 21;
        const int64_t positions = (int64_t)c.n * c.oh * c.ow;
        real *yw = spread(NULL, positions, c.o, wide.ldy);
        conv2d(yw, xl, p, bias, v_relu, wide);
        check_spread(yw, y, positions, c.o, wide.ldy, "conv2d");
        check_guard(yw, positions * wide.ldy * (int64_t)sizeof(real), "conv2d, wide");
        release(1, yw);
    }
    release(9, x, w, bias, expect, y, xl, wl, p, yr);
}
END_TEST

START_TEST(backward)
{
    const Conv c = shapes[_i];
    real *x = random_buffer(count_x(c), 1), *w = random_buffer(count_w(c), 2),
         *dy = random_buffer(count_y(c), 4);
    real *dx = buffer(count_x(c)), *dw = random_buffer(count_w(c), 5);
    real *xl = last(x, c.n, c.c, c.h * c.w), *wl = weights_last(w, c),
         *dyl = last(dy, c.n, c.o, c.oh * c.ow);
    real *p = packed(wl, c, ORDER_BACK), *dxl = buffer(count_x(c)), *dwl = weights_last(dw, c);

    plain_dx(dx, w, dy, c);
    for (int64_t i = 0; i < count_x(c); i++)
        dx[i] *= 1 - x[i] * x[i];
    conv2d_dx(dxl, p, dyl, d_tanh, xl, c);
    check_guard(dxl, count_x(c) * (int64_t)sizeof(real), "conv2d_dx");
    real *dxr = rows(dxl, c.n, c.c, c.h * c.w);
    check_close(dxr, dx, count_x(c), "conv2d_dx");

    plain_dw(dw, x, dy, c);
    conv2d_dw(dwl, xl, dyl, c);
    check_guard(dwl, count_w(c) * (int64_t)sizeof(real), "conv2d_dw");
    real *dwr = weights_rows(dwl, c);
    check_close(dwr, dw, count_w(c), "conv2d_dw");

    Conv write = c; /* writing over NaN equals adding to zeros */
    write.write = true;
    real *zeros = zero_buffer(count_w(c)), *written = buffer(count_w(c));
    conv2d_dw(zeros, xl, dyl, c);
    conv2d_dw(written, xl, dyl, write);
    check_same(written, zeros, count_w(c) * (int64_t)sizeof(real), "conv2d_dw, written");
    check_guard(written, count_w(c) * (int64_t)sizeof(real), "conv2d_dw, written");
    release(15, zeros, written, x, w, dy, dx, dw, xl, wl, dyl, p, dxl, dwl, dxr, dwr);
}
END_TEST

static Pool pool_of(Conv c)
{
    return (Pool){c.n, c.o, c.oh, c.ow, 2, 2, 2, 2, 0, 0, c.oh / 2, c.ow / 2, 0};
}

/* Makes zeros of the upper half of each channel, as in images of digits. */
static void blank(real *x, Conv c)
{
    for (int i = 0; i < c.n * c.c; i++, x += c.h * c.w)
        memset(x, 0, sizeof(real) * (size_t)(c.h / 2 * c.w));
}

START_TEST(pooled)
{
    const Conv c = shapes[_i % SHAPES];
    if (c.pool != 2)
        return;
    const int cells = (c.oh / 2) * (c.ow / 2);
    real *x = random_buffer(count_x(c), 1), *w = random_buffer(count_w(c), 2),
         *bias = random_buffer(c.o, 3);
    real *full = buffer(count_y(c)), *expect = buffer(count_pooled(c)),
         *y = buffer(count_pooled(c));
    if (_i >= SHAPES)
        blank(x, c);
    plain_forward(full, x, w, c);
    add_bias(full, bias, c.n, c.o, c.oh * c.ow);
    max_pool_plain(expect, full, pool_of(c));
    for (int64_t i = 0; i < count_pooled(c); i++)
        expect[i] = s_tanh(expect[i]);

    real *xl = last(x, c.n, c.c, c.h * c.w), *wl = weights_last(w, c),
         *p = packed(wl, c, ORDER_FORWARD);
    uint8_t *index = buffer_bytes(count_pooled(c));
    conv2d_pool(y, index, xl, p, bias, v_tanh, c);
    check_guard(y, count_pooled(c) * (int64_t)sizeof(real), "conv2d_pool");
    check_guard(index, count_pooled(c), "conv2d_pool's index");
    real *yr = rows(y, c.n, c.o, cells);
    check_close(yr, expect, count_pooled(c), "conv2d_pool");

    /* the gradient through the whole image before pooling, with its zeros */
    real *dp = random_buffer(count_pooled(c), 4), *dy = buffer(count_y(c));
    for (int64_t i = 0; i < count_pooled(c) && _i >= SHAPES; i++)
        dp[i] = i % 7 % 2 ? dp[i] : 0;
    real *dpl = last(dp, c.n, c.o, cells);
    real *dx = buffer(count_x(c)), *dxl = buffer(count_x(c)), *dw = random_buffer(count_w(c), 5);
    real *dwl = weights_last(dw, c), *pd = packed(wl, c, ORDER_POOL_DX);
    max_pool_dx_plain(dy, full, dp, pool_of(c));
    plain_dx(dx, w, dy, c);
    plain_dw(dw, x, dy, c);
    for (int64_t i = 0; i < count_x(c); i++)
        dx[i] = x[i] > 0 ? dx[i] : 0;
    conv2d_pool_dx(dxl, pd, dpl, index, d_relu, xl, c);
    check_guard(dxl, count_x(c) * (int64_t)sizeof(real), "conv2d_pool_dx");
    conv2d_pool_dw(dwl, xl, dpl, index, c);
    check_guard(dwl, count_w(c) * (int64_t)sizeof(real), "conv2d_pool_dw");
    real *dxr = rows(dxl, c.n, c.c, c.h * c.w), *dwr = weights_rows(dwl, c);
    check_close(dxr, dx, count_x(c), "conv2d_pool_dx");
    check_close(dwr, dw, count_w(c), "conv2d_pool_dw");
    release(11, x, w, bias, full, expect, y, xl, wl, p, index, yr);
    release(10, dp, dpl, dy, dx, dxl, dw, dwl, pd, dxr, dwr);
}
END_TEST

/* Threads that share each kernel of a convolution: the bits of one thread. */
typedef struct Shared {
    Conv c;
    real *x, *p, *pb, *pd, *bias, *dy, *dp, *y, *dx, *dw, *written, *pooled, *pooled_dx, *pooled_dw;
    uint8_t *index;
} Shared;
static void share_conv(void *arg)
{
    const Shared *s = arg;
    Conv write = s->c;
    write.write = true;
    conv2d(s->y, s->x, s->p, s->bias, v_relu, s->c);
    conv2d_dx(s->dx, s->pb, s->dy, d_tanh, s->x, s->c);
    conv2d_dw(s->dw, s->x, s->dy, s->c);
    conv2d_dw(s->written, s->x, s->dy, write);
    if (s->c.pool != 2)
        return;
    conv2d_pool(s->pooled, s->index, s->x, s->p, s->bias, v_tanh, s->c);
    TEAM_BARRIER;
    conv2d_pool_dx(s->pooled_dx, s->pd, s->dp, s->index, d_relu, s->x, s->c);
    conv2d_pool_dw(s->pooled_dw, s->x, s->dp, s->index, s->c);
}

START_TEST(teams)
{
    const Conv c = shapes[_i];
    const int64_t each = sizeof(real);
    real *w = random_buffer(count_w(c), 2);
    Shared s[2];
    for (int i = 0; i < 2; i++) {
        const Shared in = {c,
                           random_buffer(count_x(c), 1),
                           packed(w, c, ORDER_FORWARD),
                           packed(w, c, ORDER_BACK),
                           packed(w, c, ORDER_POOL_DX),
                           random_buffer(c.o, 3),
                           random_buffer(count_y(c), 4),
                           random_buffer(count_pooled(c), 5),
                           buffer(count_y(c)),
                           buffer(count_x(c)),
                           random_buffer(count_w(c), 6),
                           buffer(count_w(c)),
                           buffer(count_pooled(c)),
                           buffer(count_x(c)),
                           random_buffer(count_w(c), 7),
                           buffer_bytes(count_pooled(c))};
        s[i] = in;
    }
    share_conv(&s[0]);
    as_team(_i % 3 ? 3 : 7, share_conv, &s[1]);
    check_same(s[1].y, s[0].y, count_y(c) * each, "conv2d by a team");
    check_same(s[1].dx, s[0].dx, count_x(c) * each, "conv2d_dx by a team");
    check_same(s[1].dw, s[0].dw, count_w(c) * each, "conv2d_dw by a team");
    check_same(s[1].written, s[0].written, count_w(c) * each, "conv2d_dw, written, by a team");
    check_guard(s[1].y, count_y(c) * each, "conv2d by a team");
    check_guard(s[1].dx, count_x(c) * each, "conv2d_dx by a team");
    check_guard(s[1].dw, count_w(c) * each, "conv2d_dw by a team");
    if (c.pool == 2) {
        check_same(s[1].pooled, s[0].pooled, count_pooled(c) * each, "conv2d_pool by a team");
        check_same(s[1].index, s[0].index, count_pooled(c), "conv2d_pool's index by a team");
        check_same(s[1].pooled_dx, s[0].pooled_dx, count_x(c) * each, "conv2d_pool_dx by a team");
        check_same(s[1].pooled_dw, s[0].pooled_dw, count_w(c) * each, "conv2d_pool_dw by a team");
    }
    for (int i = 0; i < 2; i++)
        release(15, s[i].x, s[i].p, s[i].pb, s[i].pd, s[i].bias, s[i].dy, s[i].dp, s[i].y, s[i].dx,
                s[i].dw, s[i].written, s[i].pooled, s[i].pooled_dx, s[i].pooled_dw, s[i].index);
    release(1, w);
}
END_TEST

/* Sizes known to the compiler change the code, never the bits. */
static const Conv conv1 = {3, 1, 28, 28, 20, 5, 5, 1, 1, 0, 0, 1, 1, 1, 24, 24, 2};
#define CONV1                                                                                      \
    (Conv)                                                                                         \
    {                                                                                              \
        .n = 3, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1,   \
        .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24, .pool = 2                         \
    }
static const Conv conv2 = {3, 20, 14, 14, 50, 5, 5, 1, 1, 2, 2, 1, 1, 1, 14, 14, 2};
#define CONV2                                                                                      \
    (Conv)                                                                                         \
    {                                                                                              \
        .n = 3, .c = 20, .h = 14, .w = 14, .o = 50, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1,  \
        .pad_h = 2, .pad_w = 2, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 14, .ow = 14, .pool = 2 \
    }

typedef struct Pooled {
    real *y, *dx, *dw;
    uint8_t *index;
} Pooled;
typedef struct PooledInput {
    real *x, *w, *p, *pd, *bias, *dy;
} PooledInput;
#define RUN_POOLED(name, c)                                                                        \
    static void __attribute__((noinline)) name(Pooled q, PooledInput in)                           \
    {                                                                                              \
        conv2d_pool(q.y, q.index, in.x, in.p, in.bias, v_tanh, c);                                 \
        conv2d_pool_dx(q.dx, in.pd, in.dy, q.index, d_tanh, in.x, c);                              \
        conv2d_pool_dw(q.dw, in.x, in.dy, q.index, c);                                             \
    }
static Conv general;
RUN_POOLED(run_general, general)
RUN_POOLED(run_conv1, CONV1)
RUN_POOLED(run_conv2, CONV2)

START_TEST(literal_sizes)
{
    const Conv c = general = _i == 0 ? conv1 : conv2;
    real *w = random_buffer(count_w(c), 2);
    const PooledInput in = {random_buffer(count_x(c), 1), w,
                            packed(w, c, ORDER_FORWARD),  packed(w, c, ORDER_POOL_DX),
                            random_buffer(c.o, 3),        random_buffer(count_pooled(c), 4)};
    Pooled q[2];
    for (int i = 0; i < 2; i++)
        q[i] = (Pooled){buffer(count_pooled(c)), buffer(count_x(c)), zero_buffer(count_w(c)),
                        buffer_bytes(count_pooled(c))};
    run_general(q[0], in);
    if (_i == 0)
        run_conv1(q[1], in);
    else
        run_conv2(q[1], in);
    const int64_t bytes = sizeof(real);
    check_same(q[0].y, q[1].y, count_pooled(c) * bytes, "conv2d_pool");
    check_same(q[0].index, q[1].index, count_pooled(c), "conv2d_pool's index");
    check_same(q[0].dx, q[1].dx, count_x(c) * bytes, "conv2d_pool_dx");
    check_same(q[0].dw, q[1].dw, count_w(c) * bytes, "conv2d_pool_dw");
    release(6, in.x, in.w, in.p, in.pd, in.bias, in.dy);
    for (int i = 0; i < 2; i++)
        release(4, q[i].y, q[i].dx, q[i].dw, q[i].index);
}
END_TEST

/* Filters so large that packing streams past the caches; for dx, a packed 1x1 filter is the transposed one. */
START_TEST(wide_packed)
{
    const int o = 520 + 32 * _i, inputs = 513;
    const Conv c = {.n = 1, .c = inputs, .h = 1, .w = 1, .o = o, .r = 1, .s = 1, .groups = 1},
               turned = {.n = 1, .c = o, .h = 1, .w = 1, .o = inputs, .r = 1, .s = 1, .groups = 1};
    real *w = random_buffer(count_w(c), 1), *t = swap_last(w, 1, o, inputs);
    real *p = packed(w, c, ORDER_FORWARD), *back = packed(w, c, ORDER_BACK);
    real *plain = buffer(CONV_PACK_BACK_COUNT(c));
    conv2d_pack_plain(plain, t, turned);
    check_same(plain, back, CONV_PACK_BACK_COUNT(c) * (int64_t)sizeof(real), "conv2d_pack_back");
    release(5, w, t, p, back, plain);
}
END_TEST

/* A sample alone and with others, which may then share vectors: the same bits. */
START_TEST(samples_apart)
{
    Conv c = {19, 1, 13, 12, 20, 5, 5, 1, 1, 2, 2, 1, 1, 1, 13, 12, 2};
    c.o += _i;
    const int64_t each = count_pooled(c) / c.n, bytes = sizeof(real);
    real *x = random_buffer(count_x(c), 1), *w = random_buffer(count_w(c), 2),
         *bias = random_buffer(c.o, 3), *p = packed(w, c, false);
    real *y = buffer(count_pooled(c)), *one = buffer(each);
    uint8_t *index = buffer_bytes(count_pooled(c)), *which = buffer_bytes(each);
    conv2d_pool(y, index, x, p, bias, v_tanh, c);
    check_guard(y, count_pooled(c) * bytes, "conv2d_pool");
    check_guard(index, count_pooled(c), "conv2d_pool's index");
    for (int n = 0, all = c.n; n < all; n++) {
        c.n = 1;
        conv2d_pool(one, which, x + n * count_x(c), p, bias, v_tanh, c);
        check_same(one, y + n * each, each * bytes, "conv2d_pool");
        check_same(which, index + n * each, each, "conv2d_pool's index");
    }
    release(8, x, w, bias, p, y, one, index, which);
}
END_TEST

/* <dy, conv(x, w)> = <dx, x> = <dw, w>, because the convolution is bilinear. */
START_TEST(adjoint)
{
    const Conv c = shapes[_i];
    real *x = random_buffer(count_x(c), 1), *w = random_buffer(count_w(c), 2),
         *dy = random_buffer(count_y(c), 4);
    real *y = buffer(count_y(c)), *dx = buffer(count_x(c)), *dw = zero_buffer(count_w(c));
    double by_y = 0, by_x = 0, by_w = 0, size = 0;
    plain_forward(y, x, w, c);
    plain_dx(dx, w, dy, c);
    plain_dw(dw, x, dy, c);
    for (int64_t i = 0; i < count_y(c); i++)
        by_y += (double)y[i] * dy[i], size += fabs((double)y[i] * dy[i]);
    for (int64_t i = 0; i < count_x(c); i++)
        by_x += (double)dx[i] * x[i];
    for (int64_t i = 0; i < count_w(c); i++)
        by_w += (double)dw[i] * w[i];
    ck_assert_double_eq_tol(by_x, by_y, TOLERANCE * size);
    ck_assert_double_eq_tol(by_w, by_y, TOLERANCE * size);
    release(6, x, w, dy, y, dx, dw);
}
END_TEST

/* ---- sums over all shards in squares, with the update inside */

static const RtOpt momentum = {.lr = 0.1f, .decay = 0.01f, .momentum = 0.9f, .clip_value = 0.75f};

/* x and dy of all shards, in the layout of the fast kernels; dw: the sum by the plain kernel, adjacent pairs first. */
typedef struct Shards {
    char *memory;
    int64_t bytes, dy; /* of a shard; from its x to its dy */
    real *dw;
} Shards;

static Shards shards_of(Conv c, int shards)
{
    Shards q = {.dy = (count_x(c) + 15) / 16 * 16 * (int64_t)sizeof(real)};
    real *part[8];
    q.bytes = q.dy + (count_y(c) + 31) / 16 * 16 * (int64_t)sizeof(real);
    q.memory = buffer_bytes(shards * q.bytes);
    for (int s = 0; s < shards; s++) {
        real *x = random_buffer(count_x(c), 10 + s), *dy = random_buffer(count_y(c), 20 + s),
             *xl = last(x, c.n, c.c, c.h * c.w), *dyl = last(dy, c.n, c.o, c.oh * c.ow);
        part[s] = zero_buffer(count_w(c));
        plain_dw(part[s], x, dy, c);
        memcpy(q.memory + s * q.bytes, xl, sizeof(real) * (size_t)count_x(c));
        memcpy(q.memory + s * q.bytes + q.dy, dyl, sizeof(real) * (size_t)count_y(c));
        release(4, x, dy, xl, dyl);
    }
    for (int step = 1; step < shards; step *= 2)
        for (int s = 0; s + step < shards; s += 2 * step)
            for (int64_t i = 0; i < count_w(c); i++)
                part[s][i] += part[s + step][i];
    q.dw = part[0];
    for (int s = 1; s < shards; s++)
        release(1, part[s]);
    return q;
}

/* Runs all units for shards first .. first + count - 1; with grad only the sums. */
static void run_squares(const Shards *q, Conv c, int first, int count, real *grad, real *w,
                        real *s0)
{
    const Rt r = {.shard = q->memory + first * q->bytes,
                  .shard_bytes = q->bytes,
                  .shards = count,
                  .opt = momentum,
                  .grad = (char *)grad};
    for (int unit = CONV_DW_UNITS(c.o, c.c, c.r * c.s); unit-- > 0;)
        conv2d_dw_update(&r, unit, 0, w, s0, NULL, r.shard, r.shard + q->dy, (Factors){1, 1},
                         update_sgd, c);
}

START_TEST(squares)
{
    static const int counts[] = {1, 2, 3, 8};
    const Conv c = shapes[_i];
    const int64_t bytes = count_w(c) * (int64_t)sizeof(real);
    if (c.groups > 1 || c.n * c.oh * c.ow > TAPS_POSITIONS)
        return;
    for (int i = 0; i < 4; i++) {
        Shards q = shards_of(c, counts[i]);
        real *sum = buffer(count_w(c)), *w = random_buffer(count_w(c), 6),
             *s0 = random_buffer(count_w(c), 7), *w_hand = copy_buffer(w, count_w(c)),
             *s0_hand = copy_buffer(s0, count_w(c));
        run_squares(&q, c, 0, counts[i], sum, NULL, NULL);
        check_guard(sum, bytes, "sums in squares");
        real *rows_of_sum = weights_rows(sum, c);
        check_close(rows_of_sum, q.dw, count_w(c), "sums in squares");
        run_squares(&q, c, 0, counts[i], NULL, w, s0);
        for (int64_t k = 0; k < count_w(c); k++)
            update_lanes(w_hand + k, s0_hand + k, NULL, v_set(sum[k]), &momentum, update_sgd, 1);
        check_same(w, w_hand, bytes, "conv2d_dw_update");
        check_same(s0, s0_hand, bytes, "conv2d_dw_update's state");
        check_guard(w, bytes, "conv2d_dw_update");
        check_guard(s0, bytes, "conv2d_dw_update's state");
        if (counts[i] % 2 == 0) { /* two ranks */
            real *a = buffer(count_w(c)), *b = buffer(count_w(c));
            run_squares(&q, c, 0, counts[i] / 2, a, NULL, NULL);
            run_squares(&q, c, counts[i] / 2, counts[i] / 2, b, NULL, NULL);
            for (int64_t k = 0; k < count_w(c); k++)
                a[k] += b[k];
            check_same(a, sum, bytes, "sums in squares of two ranks");
            release(2, a, b);
        }
        release(8, q.memory, q.dw, sum, w, s0, w_hand, s0_hand, rows_of_sum);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("conv");
    add_rounds(t, forward, 0, SHAPES);
    add_rounds(t, teams, 0, SHAPES);
    add_rounds(t, backward, 0, SHAPES);
    add_rounds(t, pooled, 0, 2 * SHAPES);
    add_rounds(t, squares, 0, SHAPES);
    add_rounds(t, adjoint, 0, SHAPES);
    add_rounds(t, literal_sizes, 0, 2);
    add_rounds(t, samples_apart, 0, 20);
    add_rounds(t, wide_packed, 0, 2);
    return run_suite(t, "convolution kernels");
}
