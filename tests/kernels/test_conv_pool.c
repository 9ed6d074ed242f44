/* test_conv_pool.c -- convolutions with a fused max-pool, and their gradients, against plain ones. */
#include "conv_test.h"
#include "literal/test_conv_pool.h"

#include "cpu/conv_pool_dw.h"
#include "cpu/conv_pool_dx.h"
#include "cpu/conv_pool_forward.h"
#include "cpu/pool.h"

ONCE void conv2d_pool_once(real *y, uint8_t *index, const real *x, const real *p,
                           const real *bias, Conv c)
{
    conv2d_pool(y, index, x, p, bias, v_tanh, c);
}
ONCE void conv2d_pool_dx_once(real *dx, const real *p, const real *dy, const uint8_t *index,
                              const real *y, Conv c)
{
    conv2d_pool_dx(dx, p, dy, index, d_relu, y, c);
}
ONCE void conv2d_pool_dw_once(real *dw, const real *x, const real *dy, const uint8_t *index,
                              Conv c)
{
    conv2d_pool_dw(dw, x, dy, index, c);
}

static int64_t count_pooled(Conv c)
{
    return (int64_t)c.n * c.o * (c.oh / 2) * (c.ow / 2);
}

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
    conv2d_pool_once(y, index, xl, p, bias, c);
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
    conv2d_pool_dx_once(dxl, pd, dpl, index, xl, c);
    check_guard(dxl, count_x(c) * (int64_t)sizeof(real), "conv2d_pool_dx");
    conv2d_pool_dw_once(dwl, xl, dpl, index, c);
    check_guard(dwl, count_w(c) * (int64_t)sizeof(real), "conv2d_pool_dw");
    real *dxr = rows(dxl, c.n, c.c, c.h * c.w), *dwr = weights_rows(dwl, c);
    check_close(dxr, dx, count_x(c), "conv2d_pool_dx");
    check_close(dwr, dw, count_w(c), "conv2d_pool_dw");
    release(11, x, w, bias, full, expect, y, xl, wl, p, index, yr);
    release(10, dp, dpl, dy, dx, dxl, dw, dwl, pd, dxr, dwr);
}
END_TEST

/* Threads that share each kernel: the bits of one thread. */
typedef struct Shared {
    Conv c;
    real *x, *p, *pd, *bias, *dy, *y, *dx, *dw;
    uint8_t *index;
} Shared;
static void share_pooled(void *arg)
{
    const Shared *s = arg;
    conv2d_pool_once(s->y, s->index, s->x, s->p, s->bias, s->c);
    TEAM_BARRIER;
    conv2d_pool_dx_once(s->dx, s->pd, s->dy, s->index, s->x, s->c);
    conv2d_pool_dw_once(s->dw, s->x, s->dy, s->index, s->c);
}

START_TEST(teams)
{
    const Conv c = shapes[_i];
    if (c.pool != 2)
        return;
    const int64_t each = sizeof(real);
    real *w = random_buffer(count_w(c), 2);
    Shared s[2];
    for (int i = 0; i < 2; i++)
        s[i] = (Shared){c,
                        random_buffer(count_x(c), 1),
                        packed(w, c, ORDER_FORWARD),
                        packed(w, c, ORDER_POOL_DX),
                        random_buffer(c.o, 3),
                        random_buffer(count_pooled(c), 5),
                        buffer(count_pooled(c)),
                        buffer(count_x(c)),
                        random_buffer(count_w(c), 7),
                        buffer_bytes(count_pooled(c))};
    share_pooled(&s[0]);
    as_team(_i % 3 ? 3 : 7, share_pooled, &s[1]);
    check_same(s[1].y, s[0].y, count_pooled(c) * each, "conv2d_pool by a team");
    check_same(s[1].index, s[0].index, count_pooled(c), "conv2d_pool's index by a team");
    check_same(s[1].dx, s[0].dx, count_x(c) * each, "conv2d_pool_dx by a team");
    check_same(s[1].dw, s[0].dw, count_w(c) * each, "conv2d_pool_dw by a team");
    for (int i = 0; i < 2; i++)
        release(9, s[i].x, s[i].p, s[i].pd, s[i].bias, s[i].dy, s[i].y, s[i].dx, s[i].dw,
                s[i].index);
    release(1, w);
}
END_TEST

/* Sizes known to the compiler change the code, never the bits. */
START_TEST(literal_sizes)
{
    const Conv c = _i == 0 ? (Conv)LITERAL_1 : (Conv)LITERAL_2;
    real *w = random_buffer(count_w(c), 2);
    const PooledInput in = {random_buffer(count_x(c), 1), w,
                            packed(w, c, ORDER_FORWARD),  packed(w, c, ORDER_POOL_DX),
                            random_buffer(c.o, 3),        random_buffer(count_pooled(c), 4)};
    Pooled q[2];
    for (int i = 0; i < 2; i++)
        q[i] = (Pooled){buffer(count_pooled(c)), buffer(count_x(c)), zero_buffer(count_w(c)),
                        buffer_bytes(count_pooled(c))};
    conv2d_pool_once(q[0].y, q[0].index, in.x, in.p, in.bias, c);
    conv2d_pool_dx_once(q[0].dx, in.pd, in.dy, q[0].index, in.x, c);
    conv2d_pool_dw_once(q[0].dw, in.x, in.dy, q[0].index, c);
    if (_i == 0)
        literal_1(q[1], in);
    else
        literal_2(q[1], in);
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
    conv2d_pool_once(y, index, x, p, bias, c);
    check_guard(y, count_pooled(c) * bytes, "conv2d_pool");
    check_guard(index, count_pooled(c), "conv2d_pool's index");
    for (int n = 0, all = c.n; n < all; n++) {
        c.n = 1;
        conv2d_pool_once(one, which, x + n * count_x(c), p, bias, c);
        check_same(one, y + n * each, each * bytes, "conv2d_pool");
        check_same(which, index + n * each, each, "conv2d_pool's index");
    }
    release(8, x, w, bias, p, y, one, index, which);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("conv_pool");
    add_rounds(t, pooled, 0, 2 * SHAPES);
    add_rounds(t, teams, 0, SHAPES);
    add_rounds(t, literal_sizes, 0, 2);
    add_rounds(t, samples_apart, 0, 20);
    return run_suite(t, "convolutions with a max-pool");
}
