/* test_conv.c -- fast convolution kernels against plain ones, for sizes that fill no vector or
 * tile. */
#include "conv_test.h"

#include "cpu/conv_forward.h"

ONCE void conv2d_once(real *y, const real *x, const real *p, const real *bias, Conv c)
{
    conv2d(y, x, p, bias, v_relu, c);
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
    conv2d_once(y, xl, p, bias, c);
    check_guard(y, count_y(c) * (int64_t)sizeof(real), "conv2d");
    real *yr = rows(y, c.n, c.o, c.oh * c.ow);
    check_close(yr, expect, count_y(c), "conv2d");
    if (!CONV_DEPTHWISE(c)) { /* the same with room between the rows */
        Conv wide = c;
        wide.ldy = c.o + 21;
        const int64_t positions = (int64_t)c.n * c.oh * c.ow;
        real *yw = spread(NULL, positions, c.o, wide.ldy);
        conv2d_once(yw, xl, p, bias, wide);
        check_spread(yw, y, positions, c.o, wide.ldy, "conv2d");
        check_guard(yw, positions * wide.ldy * (int64_t)sizeof(real), "conv2d, wide");
        release(1, yw);
    }
    release(9, x, w, bias, expect, y, xl, wl, p, yr);
}
END_TEST

/* Threads that share a convolution: the bits of one thread. */
typedef struct Shared {
    Conv c;
    real *x, *p, *bias, *y;
} Shared;
static void share_conv(void *arg)
{
    const Shared *s = arg;
    conv2d_once(s->y, s->x, s->p, s->bias, s->c);
}

START_TEST(teams)
{
    const Conv c = shapes[_i];
    const int64_t each = sizeof(real);
    real *w = random_buffer(count_w(c), 2);
    Shared s[2];
    for (int i = 0; i < 2; i++)
        s[i] = (Shared){c, random_buffer(count_x(c), 1), packed(w, c, ORDER_FORWARD),
                        random_buffer(c.o, 3), buffer(count_y(c))};
    share_conv(&s[0]);
    as_team(_i % 3 ? 3 : 7, share_conv, &s[1]);
    check_same(s[1].y, s[0].y, count_y(c) * each, "conv2d by a team");
    check_guard(s[1].y, count_y(c) * each, "conv2d by a team");
    for (int i = 0; i < 2; i++)
        release(4, s[i].x, s[i].p, s[i].bias, s[i].y);
    release(1, w);
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

int main(void)
{
    TCase *t = tcase_create("conv");
    add_rounds(t, forward, 0, SHAPES);
    add_rounds(t, teams, 0, SHAPES);
    add_rounds(t, wide_packed, 0, 2);
    return run_suite(t, "convolution kernels");
}
