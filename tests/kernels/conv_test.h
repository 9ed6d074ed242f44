/* conv_test.h -- what the tests of convolutions share: sizes, plain kernels, layouts, packed weights. */
#ifndef CONV_TEST_H
#define CONV_TEST_H
#include "kernel_test.h"

#include "cpu/conv_pack.h"

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

static inline int64_t count_x(Conv c)
{
    return (int64_t)c.n * c.c * c.h * c.w;
}
static inline int64_t count_w(Conv c)
{
    return (int64_t)c.o * (c.c / c.groups) * c.r * c.s;
}
static inline int64_t count_y(Conv c)
{
    return (int64_t)c.n * c.o * c.oh * c.ow;
}
static RT_SEPARATE void plain_forward(real *y, const real *x, const real *w, Conv c)
{
    conv2d_plain(y, x, w, c);
}
static RT_SEPARATE void plain_dx(real *dx, const real *w, const real *dy, Conv c)
{
    conv2d_dx_plain(dx, w, dy, c);
}
static RT_SEPARATE void plain_dw(real *dw, const real *x, const real *dy, Conv c)
{
    conv2d_dw_plain(dw, x, dy, c);
}

static inline real *last(const real *x, int n, int c, int hw)
{
    return swap_last(x, n, c, hw);
}
static inline real *rows(const real *x, int n, int c, int hw)
{
    return swap_last(x, n, hw, c);
}
static inline real *weights_last(const real *w, Conv c)
{
    return swap_last(w, c.o, c.c / c.groups, c.r * c.s);
}
static inline real *weights_rows(const real *w, Conv c)
{
    return swap_last(w, c.o, c.r * c.s, c.c / c.groups);
}

/* Packed by three units, as threads would. */
typedef enum Order { ORDER_FORWARD, ORDER_BACK, ORDER_POOL_DX } Order;
static inline real *packed(const real *w, Conv c, Order order)
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

static inline void add_bias(real *y, const real *bias, int n, int o, int hw)
{
    for (int64_t i = 0; i < (int64_t)n * o * hw; i++)
        y[i] += bias[i / hw % o];
}

#endif
