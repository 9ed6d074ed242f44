/* lenet.cu -- made by tenon from models/lenet.tn; change the model, not this file.
 *
 *   431,080 parameters, 13.18 MFLOP a sample forward and backward (textbook count)
 *   batch 128 = 1 shard of 128 samples
 *   memory: parameters 1.73 MB, optimizer states 1.73 MB, packed weights 0 bytes,
 *           1.73 MB a shard (lower bound 1.73 MB), 18.4 MB scratch (lower bound 18.4 MB), workspace 10.5 MB
 *   for sm_90; a step takes 21 launches; each library call counts as one
 */
#include "rt.h"
#include "cuda/kernels.cuh"

enum { SHARD = 128, CHUNK = SHARD, SLICES = 1 };

/* Addresses in GPU memory: parameters, scratch, values of a shard, sums of a shard. */
#define FIXED(type, at) ((type *)(r->fixed + (at)))
#define LOCAL(type, at) ((type *)(t + (at)))
#define BATCH(type, at, bytes) ((type *)(shard + (at)))
#define PARTIAL(type, at, bytes) ((type *)(shard + (at)))

enum { /* offsets into `fixed`: parameters and optimizer states */
    CONV1_WEIGHT                 =          0,   /* (20, 1, 5, 5) */
    CONV1_WEIGHT_STATE0          =    1725120,
    CONV1_BIAS                   =       2112,   /* (20) */
    CONV1_BIAS_STATE0            =    1727232,
    CONV2_WEIGHT                 =       2304,   /* (50, 20, 5, 5) */
    CONV2_WEIGHT_STATE0          =    1727424,
    CONV2_BIAS                   =     102400,   /* (50) */
    CONV2_BIAS_STATE0            =    1827520,
    DENSE1_WEIGHT                =     102720,   /* (500, 800) */
    DENSE1_WEIGHT_STATE0         =    1827840,
    DENSE1_BIAS                  =    1702784,   /* (500) */
    DENSE1_BIAS_STATE0           =    3427904,
    DENSE2_WEIGHT                =    1704896,   /* (10, 500) */
    DENSE2_WEIGHT_STATE0         =    3430016,
    DENSE2_BIAS                  =    1724992,   /* (10) */
    DENSE2_BIAS_STATE0           =    3450112,
};

enum { /* offsets into the region of a shard: values that a later phase reads */
    DDENSE2_BIAS                 =    1724992,   /* (10), one per slice */
    DDENSE2_WEIGHT               =    1700160,   /* (10, 500), one per slice */
    DDENSE1_BIAS                 =    1720256,   /* (500), one per slice */
    DDENSE1_WEIGHT               =          0,   /* (500, 800), one per slice */
    DCONV2_BIAS                  =    1724480,   /* (50), one per slice */
    DCONV2_WEIGHT                =    1600064,   /* (50, 20, 5, 5), one per slice */
    DCONV1_BIAS                  =    1724800,   /* (20), one per slice */
    DCONV1_WEIGHT                =    1722368,   /* (20, 1, 5, 5), one per slice */
};

enum { /* offsets into the region of a thread: values of one chunk */
    IMAGE                        =   18022784,   /* (N, 1, 28, 28) */
    CONV1                        =          0,   /* (N, 20, 24, 24) */
    H                            =   15073536,   /* (N, 20, 12, 12) */
    CONV2                        =   11796608,   /* (N, 50, 8, 8) */
    H_2                          =    5898304,   /* (N, 50, 4, 4) */
    DENSE1                       =    6717632,   /* (N, 500) */
    DENSE2                       =   18424256,   /* (N, 10) */
    LABEL                        =    6307968,   /* (N) */
    SOFTMAX_CROSS_ENTROPY        =   18429440,   /* (N) */
    ACCURACY                     =   18430016,   /* (N) */
    DDENSE2                      =    7229760,   /* (N, 10) */
    DH                           =    6973696,   /* (N, 500) */
    D_DENSE_DX                   =    6307968,   /* (N, 800) */
    D_MAX_POOL_DX                =   13435072,   /* (N, 50, 8, 8) */
    DH_2                         =   16548160,   /* (N, 20, 12, 12) */
    D_MAX_POOL_DX_2              =    5898304,   /* (N, 20, 24, 24) */
};

enum { /* evaluation: offsets into the region of a thread: values of one chunk */
    TEST_IMAGE                   =    5898304,   /* (N, 1, 28, 28) */
    TEST_CONV1                   =          0,   /* (N, 20, 24, 24) */
    TEST_H                       =    5898304,   /* (N, 20, 12, 12) */
    TEST_CONV2                   =          0,   /* (N, 50, 8, 8) */
    TEST_H_2                     =    1638464,   /* (N, 50, 4, 4) */
    TEST_DENSE1                  =          0,   /* (N, 500) */
    TEST_DENSE2                  =     256064,   /* (N, 10) */
    TEST_LABEL                   =          0,   /* (N) */
    TEST_SOFTMAX_CROSS_ENTROPY   =        576,   /* (N) */
    TEST_ACCURACY                =       1152,   /* (N) */
};

/* One row for each parameter: offsets of its sum in a shard and in the gradients, of its weights and its states; their number;
 * the blocks of all rows before it; factors of the recipe's learning rate and decay. */
static RT_TABLE UpdateRow update_rows[] = {
    {DDENSE2_BIAS, 0, DENSE2_BIAS, DENSE2_BIAS_STATE0, -1, 10, 0, 1, 0}, /* dense2.bias */
    {DDENSE2_WEIGHT, 64, DENSE2_WEIGHT, DENSE2_WEIGHT_STATE0, -1, 5000, 1, 1, 1}, /* dense2.weight */
    {DDENSE1_BIAS, 20096, DENSE1_BIAS, DENSE1_BIAS_STATE0, -1, 500, 6, 1, 0}, /* dense1.bias */
    {DDENSE1_WEIGHT, 22144, DENSE1_WEIGHT, DENSE1_WEIGHT_STATE0, -1, 400000, 7, 1, 1}, /* dense1.weight */
    {DCONV2_BIAS, 1622144, CONV2_BIAS, CONV2_BIAS_STATE0, -1, 50, 398, 1, 0}, /* conv2.bias */
    {DCONV2_WEIGHT, 1622400, CONV2_WEIGHT, CONV2_WEIGHT_STATE0, -1, 25000, 399, 1, 1}, /* conv2.weight */
    {DCONV1_BIAS, 1722432, CONV1_BIAS, CONV1_BIAS_STATE0, -1, 20, 424, 1, 0}, /* conv1.bias */
    {DCONV1_WEIGHT, 1722560, CONV1_WEIGHT, CONV1_WEIGHT_STATE0, -1, 500, 425, 1, 1}, /* conv1.weight */
};

/* ---- kernels: sizes are literals, so nvcc specialises each ---- */

constexpr int rt_input_1_blocks = each_blocks(100352);
KERNEL rt_input_1(real *y, const Rt *r, int first)
{
    rt_input(y, r, first, 128, 784);
}

SIZE Conv conv2d_1_size()
{
    return Conv{ .n = 128, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1,
        .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24 };
}
constexpr int conv2d_1_blocks = conv2d_blocks(conv2d_1_size());
DEVICE void conv2d_1_body(real *y, const real *a, const real *b)
{
    conv2d(y, a, b, conv2d_1_size());
}
KERNEL conv2d_1(real *y, const real *a, const real *b)
{
    conv2d_1_body(y, a, b);
}

SIZE Conv tanh_1_size()
{
    return Conv{ .n = 128, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1,
        .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24 };
}
constexpr int tanh_1_blocks = conv2d_blocks(tanh_1_size());
DEVICE void tanh_1_body(real *y, const real *a, const real *b)
{
    conv2d_results(tanh_1_size(), [=](unsigned at, int) {
        const int i = at / 11520, j = at / 576 % 20, k = at % 576;
        y[i * 11520 + j * 576 + k] = s_tanh((a[i * 11520 + j * 576 + k] + b[j]));
    });
}

constexpr int conv2d_tanh_1_blocks = most(conv2d_1_blocks, tanh_1_blocks);
KERNEL conv2d_tanh_1(real *a, const real *b, const real *c, const real *d)
{
    conv2d_1_body(a, b, c);
    tanh_1_body(a, a, d);
}

SIZE Pool max_pool_1_size()
{
    return Pool{ .n = 128, .c = 20, .h = 24, .w = 24, .r = 2, .s = 2, .stride_h = 2, .stride_w = 2,
        .oh = 12, .ow = 12 };
}
constexpr int max_pool_1_blocks = max_pool_blocks(max_pool_1_size());
KERNEL max_pool_1(real *y, const real *a)
{
    max_pool(y, a, max_pool_1_size());
}

SIZE Conv conv2d_parts_1_size()
{
    return Conv{ .n = 128, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1,
        .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8 };
}
constexpr int conv2d_parts_1_blocks = conv2d_parts_blocks(conv2d_parts_1_size(), RT_TILE_32_128, 2);
KERNEL conv2d_parts_1(real *part, const real *a, const real *b)
{
    conv2d_parts(part, a, b, conv2d_parts_1_size(), RT_TILE_32_128, 2);
}

constexpr int parts_join_1_blocks = each_blocks(409600);
DEVICE void parts_join_1_body(real *y, const real *part)
{
    parts_join(y, part, 409600, 2, true);
}
KERNEL parts_join_1(real *y, const real *part)
{
    parts_join_1_body(y, part);
}

constexpr int tanh_2_blocks = each_blocks(409600);
DEVICE void tanh_2_body(real *y, const real *a, const real *b)
{
    FOR_EACH(at, 409600) {
        const int i = at / 3200, j = at / 64 % 50, k = at % 64;
        y[i * 3200 + j * 64 + k] = s_tanh((a[i * 3200 + j * 64 + k] + b[j]));
    }
}

constexpr int parts_join_tanh_1_blocks = most(parts_join_1_blocks, tanh_2_blocks);
KERNEL parts_join_tanh_1(real *a, const real *part, const real *c)
{
    parts_join_1_body(a, part);
    tanh_2_body(a, a, c);
}

SIZE Pool max_pool_2_size()
{
    return Pool{ .n = 128, .c = 50, .h = 8, .w = 8, .r = 2, .s = 2, .stride_h = 2, .stride_w = 2,
        .oh = 4, .ow = 4 };
}
constexpr int max_pool_2_blocks = max_pool_blocks(max_pool_2_size());
KERNEL max_pool_2(real *y, const real *a)
{
    max_pool(y, a, max_pool_2_size());
}

SIZE Dense dense_parts_1_size()
{
    return Dense{ .n = 128, .k = 800, .o = 500 };
}
constexpr int dense_parts_1_blocks = dense_parts_blocks(dense_parts_1_size(), RT_TILE_32_32, 4);
KERNEL dense_parts_1(real *part, const real *a, const real *b)
{
    dense_parts(part, a, b, dense_parts_1_size(), RT_TILE_32_32, 4);
}

constexpr int parts_join_2_blocks = each_blocks(64000);
DEVICE void parts_join_2_body(real *y, const real *part)
{
    parts_join(y, part, 64000, 4, true);
}
KERNEL parts_join_2(real *y, const real *part)
{
    parts_join_2_body(y, part);
}

constexpr int tanh_3_blocks = each_blocks(64000);
DEVICE void tanh_3_body(real *y, const real *a, const real *b)
{
    FOR_EACH(at, 64000) {
        const int i = at / 500, j = at % 500;
        y[i * 500 + j] = s_tanh((a[i * 500 + j] + b[j]));
    }
}
KERNEL tanh_3(real *y, const real *a, const real *b)
{
    tanh_3_body(y, a, b);
}

constexpr int parts_join_tanh_2_blocks = most(parts_join_2_blocks, tanh_3_blocks);
KERNEL parts_join_tanh_2(real *a, const real *part, const real *c)
{
    parts_join_2_body(a, part);
    tanh_3_body(a, a, c);
}

SIZE Dense dense_parts_2_size()
{
    return Dense{ .n = 128, .k = 500, .o = 10 };
}
constexpr int dense_parts_2_blocks = dense_parts_blocks(dense_parts_2_size(), RT_TILE_16_16, 4);
KERNEL dense_parts_2(real *part, const real *a, const real *b)
{
    dense_parts(part, a, b, dense_parts_2_size(), RT_TILE_16_16, 4);
}

constexpr int parts_join_3_blocks = each_blocks(1280);
DEVICE void parts_join_3_body(real *y, const real *part)
{
    parts_join(y, part, 1280, 4, true);
}
KERNEL parts_join_3(real *y, const real *part)
{
    parts_join_3_body(y, part);
}

constexpr int bias_1_blocks = each_blocks(1280);
DEVICE void bias_1_body(real *y, const real *a, const real *b)
{
    FOR_EACH(at, 1280) {
        const int i = at / 10, j = at % 10;
        y[i * 10 + j] = (a[i * 10 + j] + b[j]);
    }
}
KERNEL bias_1(real *y, const real *a, const real *b)
{
    bias_1_body(y, a, b);
}

constexpr int rt_labels_1_blocks = each_blocks(128);
DEVICE void rt_labels_1_body(int32_t *y, const Rt *r, int first)
{
    rt_labels(y, r, first, 128, 1);
}
KERNEL rt_labels_1(int32_t *y, const Rt *r, int first)
{
    rt_labels_1_body(y, r, first);
}

constexpr int parts_join_bias_rt_labels_1_blocks = most(parts_join_3_blocks, bias_1_blocks, rt_labels_1_blocks);
KERNEL parts_join_bias_rt_labels_1(real *a, const real *part, const real *c, int32_t *d, const Rt *e, int first)
{
    parts_join_3_body(a, part);
    bias_1_body(a, a, c);
    rt_labels_1_body(d, e, first);
}

constexpr int softmax_cross_entropy_1_blocks = softmax_cross_entropy_blocks(128, 10);
DEVICE void softmax_cross_entropy_1_body(real *y, const real *a, const int32_t *b)
{
    softmax_cross_entropy(y, a, b, 128, 10);
}
KERNEL softmax_cross_entropy_1(real *y, const real *a, const int32_t *b)
{
    softmax_cross_entropy_1_body(y, a, b);
}

constexpr int accuracy_1_blocks = accuracy_blocks(128, 10);
DEVICE void accuracy_1_body(real *y, const real *a, const int32_t *b)
{
    accuracy(y, a, b, 128, 10);
}
KERNEL accuracy_1(real *y, const real *a, const int32_t *b)
{
    accuracy_1_body(y, a, b);
}

constexpr int softmax_cross_entropy_dx_1_blocks = softmax_cross_entropy_dx_blocks(128, 10);
DEVICE void softmax_cross_entropy_dx_1_body(real *y, const real *a, const int32_t *b)
{
    softmax_cross_entropy_dx(y, a, b, Constant{(real)0.0078125}, 128, 10);
}

constexpr int softmax_cross_entropy_accuracy_more_1_blocks = most(softmax_cross_entropy_1_blocks, accuracy_1_blocks, softmax_cross_entropy_dx_1_blocks);
KERNEL softmax_cross_entropy_accuracy_more_1(real *a, const real *b, const int32_t *c, real *d, real *e)
{
    softmax_cross_entropy_1_body(a, b, c);
    accuracy_1_body(d, b, c);
    softmax_cross_entropy_dx_1_body(e, b, c);
}

constexpr int rt_metric_1_blocks = 1;
DEVICE void rt_metric_1_body(const Rt *r, int unit, int metric, int first, const real *a)
{
    rt_metric(r, unit, metric, first, 128, a);
}

constexpr int sum_to_1_blocks = sum_blocks(10);
DEVICE void sum_to_1_body(real *y, const real *a)
{
    block_sums(10, 128, [=](int at, int of) {
        const int j = at;
        const int i = of;
        return a[i * 10 + j];
    }, [=](int at, real sum) {
        const int j = at;
        y[j] = sum;
    });
}

SIZE Dense dense_dx_1_size()
{
    return Dense{ .n = 128, .k = 500, .o = 10 };
}
constexpr int dense_dx_1_blocks = dense_dx_blocks(dense_dx_1_size());
DEVICE void dense_dx_1_body(real *y, const real *a, const real *b)
{
    dense_dx(y, a, b, dense_dx_1_size());
}

SIZE Dense dense_dw_1_size()
{
    return Dense{ .n = 128, .k = 500, .o = 10 };
}
constexpr int dense_dw_1_blocks = dense_dw_blocks(dense_dw_1_size());
DEVICE void dense_dw_1_body(real *y, const real *a, const real *b)
{
    dense_dw(y, a, b, dense_dw_1_size(), true);
}

SIZE Dense tanh_d_1_size()
{
    return Dense{ .n = 128, .k = 500, .o = 10 };
}
constexpr int tanh_d_1_blocks = dense_dx_blocks(tanh_d_1_size());
DEVICE void tanh_d_1_body(real *y, const real *a, const real *b)
{
    dense_dx_results(tanh_d_1_size(), [=](unsigned i, int) {
        y[i] = a[i] * (1 - b[i] * b[i]);
    });
}

constexpr int rt_metric_sum_to_dense_dx_dense_dw_tanh_d_1_blocks = most(rt_metric_1_blocks, sum_to_1_blocks, dense_dx_1_blocks, dense_dw_1_blocks, tanh_d_1_blocks);
KERNEL rt_metric_sum_to_dense_dx_dense_dw_tanh_d_1(const Rt *a, int unit, int metric, int first, const real *e, int f, const real *g, real *h, const real *i, real *j, const real *k, real *l, const real *m)
{
    rt_metric_1_body(a, unit, metric, first, e);
    rt_metric_1_body(a, unit, f, first, g);
    sum_to_1_body(h, i);
    dense_dx_1_body(j, k, i);
    dense_dw_1_body(l, m, i);
    tanh_d_1_body(j, j, m);
}

constexpr int sum_to_2_blocks = sum_blocks(500);
DEVICE void sum_to_2_body(real *y, const real *a)
{
    block_sums(500, 128, [=](int at, int of) {
        const int j = at;
        const int i = of;
        return a[i * 500 + j];
    }, [=](int at, real sum) {
        const int j = at;
        y[j] = sum;
    });
}

SIZE Dense dense_dx_parts_1_size()
{
    return Dense{ .n = 128, .k = 800, .o = 500 };
}
constexpr int dense_dx_parts_1_blocks = dense_dx_parts_blocks(dense_dx_parts_1_size(), RT_TILE_32_32, 4);
DEVICE void dense_dx_parts_1_body(real *part, const real *a, const real *b)
{
    dense_dx_parts(part, a, b, dense_dx_parts_1_size(), RT_TILE_32_32, 4);
}

SIZE Dense dense_dw_2_size()
{
    return Dense{ .n = 128, .k = 800, .o = 500 };
}
constexpr int dense_dw_2_blocks = dense_dw_blocks(dense_dw_2_size());
DEVICE void dense_dw_2_body(real *y, const real *a, const real *b)
{
    dense_dw(y, a, b, dense_dw_2_size(), true);
}

constexpr int sum_to_dense_dx_parts_dense_dw_1_blocks = most(sum_to_2_blocks, dense_dx_parts_1_blocks, dense_dw_2_blocks);
KERNEL sum_to_dense_dx_parts_dense_dw_1(real *a, const real *b, real *part, const real *d, real *e, const real *f)
{
    sum_to_2_body(a, b);
    dense_dx_parts_1_body(part, d, b);
    dense_dw_2_body(e, f, b);
}

constexpr int parts_join_4_blocks = each_blocks(102400);
KERNEL parts_join_4(real *y, const real *part)
{
    parts_join(y, part, 102400, 4, true);
}

SIZE Pool max_pool_dx_1_size()
{
    return Pool{ .n = 128, .c = 50, .h = 8, .w = 8, .r = 2, .s = 2, .stride_h = 2, .stride_w = 2,
        .oh = 4, .ow = 4 };
}
constexpr int max_pool_dx_1_blocks = max_pool_dx_blocks(max_pool_dx_1_size());
DEVICE void max_pool_dx_1_at(unsigned at, real *y, const real *a, const real *b)
{
    max_pool_dx_at(at, y, a, b, max_pool_dx_1_size());
}

constexpr int tanh_d_2_blocks = each_blocks(409600);
DEVICE void tanh_d_2_at(unsigned i, real *y, const real *a, const real *b)
{
    y[i] = a[i] * (1 - b[i] * b[i]);
}

constexpr int max_pool_dx_tanh_d_1_blocks = most(max_pool_dx_1_blocks, tanh_d_2_blocks);
KERNEL max_pool_dx_tanh_d_1(real *a, const real *b, const real *c)
{
    FOR_EACH(at, 409600) {
        max_pool_dx_1_at(at, a, b, c);
        tanh_d_2_at(at, a, a, b);
    }
}

constexpr int sum_to_3_blocks = sum_blocks(50);
DEVICE void sum_to_3_body(real *y, const real *a)
{
    block_sums(50, 8192, [=](int at, int of) {
        const int j = at;
        const int i = of / 64, k = of % 64;
        return a[i * 3200 + j * 64 + k];
    }, [=](int at, real sum) {
        const int j = at;
        y[j] = sum;
    });
}

SIZE Conv conv2d_dx_parts_1_size()
{
    return Conv{ .n = 128, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1,
        .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8 };
}
constexpr int conv2d_dx_parts_1_blocks = conv2d_dx_parts_blocks(conv2d_dx_parts_1_size(), RT_TILE_32_128, 2);
DEVICE void conv2d_dx_parts_1_body(real *part, const real *a, const real *b)
{
    conv2d_dx_parts(part, a, b, conv2d_dx_parts_1_size(), RT_TILE_32_128, 2);
}

SIZE Conv conv2d_dw_parts_1_size()
{
    return Conv{ .n = 128, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1,
        .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8 };
}
constexpr int conv2d_dw_parts_1_blocks = conv2d_dw_parts_blocks(conv2d_dw_parts_1_size(), RT_TILE_32_128, 32);
DEVICE void conv2d_dw_parts_1_body(real *part, const real *a, const real *b)
{
    conv2d_dw_parts(part, a, b, conv2d_dw_parts_1_size(), RT_TILE_32_128, 32);
}

constexpr int sum_to_conv2d_dx_parts_conv2d_dw_parts_1_blocks = most(sum_to_3_blocks, conv2d_dx_parts_1_blocks) + conv2d_dw_parts_1_blocks;
KERNEL sum_to_conv2d_dx_parts_conv2d_dw_parts_1(real *a, const real *b, real *part, const real *d, real *e, const real *f)
{
    sum_to_3_body(a, b);
    conv2d_dx_parts_1_body(part, d, b);
    conv2d_dw_parts_1_body(e, f, b);
}

constexpr int parts_join_5_blocks = each_blocks(368640);
DEVICE void parts_join_5_body(real *y, const real *part)
{
    parts_join(y, part, 368640, 2, true);
}

constexpr int parts_join_6_blocks = each_blocks(25000);
DEVICE void parts_join_6_body(real *y, const real *part)
{
    parts_join(y, part, 25000, 32, true);
}

constexpr int parts_join_7_blocks = most(parts_join_5_blocks, parts_join_6_blocks);
KERNEL parts_join_7(real *a, const real *part, real *c, const real *d)
{
    parts_join_5_body(a, part);
    parts_join_6_body(c, d);
}

SIZE Pool max_pool_dx_2_size()
{
    return Pool{ .n = 128, .c = 20, .h = 24, .w = 24, .r = 2, .s = 2, .stride_h = 2, .stride_w = 2,
        .oh = 12, .ow = 12 };
}
constexpr int max_pool_dx_2_blocks = max_pool_dx_blocks(max_pool_dx_2_size());
DEVICE void max_pool_dx_2_at(unsigned at, real *y, const real *a, const real *b)
{
    max_pool_dx_at(at, y, a, b, max_pool_dx_2_size());
}

constexpr int tanh_d_3_blocks = each_blocks(1474560);
DEVICE void tanh_d_3_at(unsigned i, real *y, const real *a, const real *b)
{
    y[i] = a[i] * (1 - b[i] * b[i]);
}

constexpr int max_pool_dx_tanh_d_2_blocks = most(max_pool_dx_2_blocks, tanh_d_3_blocks);
KERNEL max_pool_dx_tanh_d_2(real *a, const real *b, const real *c)
{
    FOR_EACH(at, 1474560) {
        max_pool_dx_2_at(at, a, b, c);
        tanh_d_3_at(at, a, a, b);
    }
}

constexpr int sum_to_parts_1_blocks = 240;
DEVICE void sum_to_parts_1_body(real *part, const real *a)
{
    block_sum_parts(part, 20, 73728, 12, [=](int at, int of) {
        const int j = at;
        const int i = of / 576, k = of % 576;
        return a[i * 11520 + j * 576 + k];
    });
}

SIZE Conv conv2d_dw_parts_2_size()
{
    return Conv{ .n = 128, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1,
        .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24 };
}
constexpr int conv2d_dw_parts_2_blocks = conv2d_dw_parts_blocks(conv2d_dw_parts_2_size(), RT_TILE_32_32, 256);
DEVICE void conv2d_dw_parts_2_body(real *part, const real *a, const real *b)
{
    conv2d_dw_parts(part, a, b, conv2d_dw_parts_2_size(), RT_TILE_32_32, 256);
}

constexpr int sum_to_parts_conv2d_dw_parts_1_blocks = most(sum_to_parts_1_blocks, conv2d_dw_parts_2_blocks);
KERNEL sum_to_parts_conv2d_dw_parts_1(real *part, const real *b, real *c, const real *d)
{
    sum_to_parts_1_body(part, b);
    conv2d_dw_parts_2_body(c, d, b);
}

constexpr int parts_join_8_blocks = each_blocks(20);
DEVICE void parts_join_8_body(real *y, const real *part)
{
    parts_join(y, part, 20, 12, true);
}

constexpr int parts_join_9_blocks = each_blocks(500);
DEVICE void parts_join_9_body(real *y, const real *part)
{
    parts_join(y, part, 500, 256, true);
}

constexpr int parts_join_10_blocks = most(parts_join_8_blocks, parts_join_9_blocks);
KERNEL parts_join_10(real *a, const real *part, real *c, const real *d)
{
    parts_join_8_body(a, part);
    parts_join_9_body(c, d);
}

constexpr int tanh_4_blocks = pack_blocks(1474560);
KERNEL tanh_4(real *y, const real *a, const real *b)
{
    each_pack(1474560, [=](unsigned at, auto y, auto a) {
        const int i = at / 11520, j = at / 576 % 20, k = at % 576;
        y[i * 11520 + j * 576 + k] = s_tanh((a[i * 11520 + j * 576 + k] + b[j]));
    }, y, a);
}

constexpr int tanh_5_blocks = pack_blocks(409600);
KERNEL tanh_5(real *y, const real *a, const real *b)
{
    each_pack(409600, [=](unsigned at, auto y, auto a) {
        const int i = at / 3200, j = at / 64 % 50, k = at % 64;
        y[i * 3200 + j * 64 + k] = s_tanh((a[i * 3200 + j * 64 + k] + b[j]));
    }, y, a);
}

constexpr int update_1_blocks = 426;
KERNEL update_1(const Rt *r, bool from_grad)
{
    update(r, update_rows, 8, 426, from_grad, 0, update_sgd);
}

constexpr int softmax_cross_entropy_accuracy_1_blocks = most(softmax_cross_entropy_1_blocks, accuracy_1_blocks);
KERNEL softmax_cross_entropy_accuracy_1(real *a, const real *b, const int32_t *c, real *d)
{
    softmax_cross_entropy_1_body(a, b, c);
    accuracy_1_body(d, b, c);
}

constexpr int rt_output_1_blocks = each_blocks(1280);
DEVICE void rt_output_1_body(const Rt *r, int first, const real *a)
{
    rt_output(r, first, 128, 10, a);
}

constexpr int rt_metric_rt_output_1_blocks = most(rt_metric_1_blocks, rt_output_1_blocks);
KERNEL rt_metric_rt_output_1(const Rt *a, int unit, int metric, int first, const real *e, int f, const real *g, const real *h)
{
    rt_metric_1_body(a, unit, metric, first, e);
    rt_metric_1_body(a, unit, f, first, g);
    rt_output_1_body(a, first, h);
}

#define WORKSPACE (t + 18430720) /* of the libraries: the end of the scratch */
#define APART(type) ((type *)(WORKSPACE + 0)) /* gradients of filters before conversion to f32; partial sums */

/* ---- the step: launches in order; a phase begins when the previous one is complete ---- */

/* Forward, loss and backward of one shard. */
static void train_slice(const Rt *r, char *t, int unit)
{
    char *const shard = r->shard + unit * r->shard_bytes;
    const int first = (r->first_shard + unit) * SHARD;

    (void)shard, (void)first, (void)t;

    /* lenet.tn:7  model lenet(image: f32[1, 28, 28], classes: int = 10) { */
    /* input image: (N, 1, 28, 28) */
    LAUNCH(rt_input_1, LOCAL(real, IMAGE), r->there, first);

    /* lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
    /* conv2d conv1: (N, 1, 28, 28) -> (N, 20, 24, 24)   576.0 kFLOP a sample */
    /* tanh conv1: (N, 20, 24, 24) -> (N, 20, 24, 24) */
    LAUNCH(conv2d_tanh_1, LOCAL(real, CONV1), LOCAL(real, IMAGE), FIXED(real, CONV1_WEIGHT),
        FIXED(real, CONV1_BIAS));
    /* max_pool h: (N, 20, 24, 24) -> (N, 20, 12, 12) */
    LAUNCH(max_pool_1, LOCAL(real, H), LOCAL(real, CONV1));

    /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
    /* conv2d conv2: (N, 20, 12, 12) -> (N, 50, 8, 8)   3.20 MFLOP a sample */
    LAUNCH(conv2d_parts_1, APART(real) + 256, LOCAL(real, H), FIXED(real, CONV2_WEIGHT));
    /* tanh conv2: (N, 50, 8, 8) -> (N, 50, 8, 8) */
    LAUNCH(parts_join_tanh_1, LOCAL(real, CONV2), APART(real) + 256, FIXED(real, CONV2_BIAS));
    /* max_pool h: (N, 50, 8, 8) -> (N, 50, 4, 4) */
    LAUNCH(max_pool_2, LOCAL(real, H_2), LOCAL(real, CONV2));

    /* lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
    /* dense dense1: (N, 800) -> (N, 500)   800.0 kFLOP a sample */
    LAUNCH(dense_parts_1, APART(real) + 819456, LOCAL(real, H_2), FIXED(real, DENSE1_WEIGHT));
    /* tanh h: (N, 500) -> (N, 500) */
    LAUNCH(parts_join_tanh_2, LOCAL(real, DENSE1), APART(real) + 819456, FIXED(real, DENSE1_BIAS));

    /* lenet.tn:11  return dense(h, classes) */
    /* dense dense2: (N, 500) -> (N, 10)   10.0 kFLOP a sample */
    LAUNCH(dense_parts_2, APART(real) + 1075456, LOCAL(real, DENSE1), FIXED(real, DENSE2_WEIGHT));
    /* bias dense2: (N, 10) -> (N, 10) */

    /* lenet.tn:16  loss      = softmax_cross_entropy */
    /* label label: (N) */
    LAUNCH(parts_join_bias_rt_labels_1, LOCAL(real, DENSE2), APART(real) + 1075456,
        FIXED(real, DENSE2_BIAS), LOCAL(int32_t, LABEL), r->there, first);
    /* softmax_cross_entropy dense2: (N, 10) -> (N) */
    /* accuracy dense2: (N, 10) -> (N) */
    /* softmax_cross_entropy_dx ddense2: (N, 10) -> (N, 10) */
    LAUNCH(softmax_cross_entropy_accuracy_more_1, LOCAL(real, SOFTMAX_CROSS_ENTROPY),
        LOCAL(real, DENSE2), LOCAL(int32_t, LABEL), LOCAL(real, ACCURACY), LOCAL(real, DDENSE2));
    /* loss */
    /* accuracy */

    /* backward of lenet.tn:11  return dense(h, classes) */
    /* sum_to ddense2.bias: (N, 10) -> (10) */
    /* dense_dx dh: (N, 10) -> (N, 500)   10.0 kFLOP a sample */
    /* dense_dw ddense2.weight: (N, 500) -> (10, 500)   10.0 kFLOP a sample */

    /* backward of lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
    /* tanh_d ddense1: (N, 500) -> (N, 500) */
    LAUNCH(rt_metric_sum_to_dense_dx_dense_dw_tanh_d_1, r->there, unit, 0, first,
        LOCAL(real, SOFTMAX_CROSS_ENTROPY), 1, LOCAL(real, ACCURACY),
        PARTIAL(real, DDENSE2_BIAS, 128), LOCAL(real, DDENSE2), LOCAL(real, DH),
        FIXED(real, DENSE2_WEIGHT), PARTIAL(real, DDENSE2_WEIGHT, 20096), LOCAL(real, DENSE1));
    /* sum_to ddense1.bias: (N, 500) -> (500) */
    /* dense_dx dense1: (N, 500) -> (N, 800)   800.0 kFLOP a sample */
    /* dense_dw ddense1.weight: (N, 800) -> (500, 800)   800.0 kFLOP a sample */
    LAUNCH(sum_to_dense_dx_parts_dense_dw_1, PARTIAL(real, DDENSE1_BIAS, 2112), LOCAL(real, DH),
        APART(real) + 256, FIXED(real, DENSE1_WEIGHT), PARTIAL(real, DDENSE1_WEIGHT, 1600064),
        LOCAL(real, H_2));
    LAUNCH(parts_join_4, LOCAL(real, D_DENSE_DX), APART(real) + 256);

    /* backward of lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
    /* max_pool_dx conv2: (N, 50, 8, 8) -> (N, 50, 8, 8) */
    /* tanh_d dconv2: (N, 50, 8, 8) -> (N, 50, 8, 8) */
    LAUNCH(max_pool_dx_tanh_d_1, LOCAL(real, D_MAX_POOL_DX), LOCAL(real, CONV2),
        LOCAL(real, D_DENSE_DX));
    /* sum_to dconv2.bias: (N, 50, 8, 8) -> (50) */
    /* conv2d_dx dh: (N, 50, 8, 8) -> (N, 20, 12, 12)   3.20 MFLOP a sample */
    /* conv2d_dw dconv2.weight: (N, 20, 12, 12) -> (50, 20, 5, 5)   3.20 MFLOP a sample */
    LAUNCH(sum_to_conv2d_dx_parts_conv2d_dw_parts_1, PARTIAL(real, DCONV2_BIAS, 320),
        LOCAL(real, D_MAX_POOL_DX), APART(real) + 1080576, FIXED(real, CONV2_WEIGHT),
        APART(real) + 1817856, LOCAL(real, H));
    LAUNCH(parts_join_7, LOCAL(real, DH_2), APART(real) + 1080576,
        PARTIAL(real, DCONV2_WEIGHT, 100096), APART(real) + 1817856);

    /* backward of lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
    /* max_pool_dx conv1: (N, 20, 24, 24) -> (N, 20, 24, 24) */
    /* tanh_d dconv1: (N, 20, 24, 24) -> (N, 20, 24, 24) */
    LAUNCH(max_pool_dx_tanh_d_2, LOCAL(real, D_MAX_POOL_DX_2), LOCAL(real, CONV1),
        LOCAL(real, DH_2));
    /* sum_to dconv1.bias: (N, 20, 24, 24) -> (20) */
    /* conv2d_dw dconv1.weight: (N, 1, 28, 28) -> (20, 1, 5, 5)   576.0 kFLOP a sample */
    LAUNCH(sum_to_parts_conv2d_dw_parts_1, APART(real), LOCAL(real, D_MAX_POOL_DX_2),
        APART(real) + 256, LOCAL(real, IMAGE));
    LAUNCH(parts_join_10, PARTIAL(real, DCONV1_BIAS, 192), APART(real),
        PARTIAL(real, DCONV1_WEIGHT, 2112), APART(real) + 256);
}

/* After a loss that is not finite: the forward pass again, up to the first value that is not. */
static int nonfinite_0(const Rt *r, char *t, int unit)
{
    char *const shard = r->shard + unit * r->shard_bytes;
    const int first = (r->first_shard + unit) * SHARD;

    (void)shard, (void)first, (void)t;

    /* lenet.tn:7  model lenet(image: f32[1, 28, 28], classes: int = 10) { */
    /* input image: (N, 1, 28, 28) */
    LAUNCH(rt_input_1, LOCAL(real, IMAGE), r->there, first);
    if (!rt_cuda_finite(LOCAL(real, IMAGE), 100352))
        return 0;

    /* lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
    /* conv2d conv1: (N, 1, 28, 28) -> (N, 20, 24, 24)   576.0 kFLOP a sample */
    LAUNCH(conv2d_1, LOCAL(real, CONV1), LOCAL(real, IMAGE), FIXED(real, CONV1_WEIGHT));
    if (!rt_cuda_finite(LOCAL(real, CONV1), 1474560))
        return 1;
    /* tanh conv1: (N, 20, 24, 24) -> (N, 20, 24, 24) */
    LAUNCH(tanh_4, LOCAL(real, CONV1), LOCAL(real, CONV1), FIXED(real, CONV1_BIAS));
    if (!rt_cuda_finite(LOCAL(real, CONV1), 1474560))
        return 2;
    /* max_pool h: (N, 20, 24, 24) -> (N, 20, 12, 12) */
    LAUNCH(max_pool_1, LOCAL(real, H), LOCAL(real, CONV1));
    if (!rt_cuda_finite(LOCAL(real, H), 368640))
        return 3;

    /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
    /* conv2d conv2: (N, 20, 12, 12) -> (N, 50, 8, 8)   3.20 MFLOP a sample */
    LAUNCH(conv2d_parts_1, APART(real) + 128256, LOCAL(real, H),
        FIXED(real, CONV2_WEIGHT)); LAUNCH(parts_join_1, LOCAL(real, CONV2), APART(real) + 128256);
    if (!rt_cuda_finite(LOCAL(real, CONV2), 409600))
        return 4;
    /* tanh conv2: (N, 50, 8, 8) -> (N, 50, 8, 8) */
    LAUNCH(tanh_5, LOCAL(real, CONV2), LOCAL(real, CONV2), FIXED(real, CONV2_BIAS));
    if (!rt_cuda_finite(LOCAL(real, CONV2), 409600))
        return 5;
    /* max_pool h: (N, 50, 8, 8) -> (N, 50, 4, 4) */
    LAUNCH(max_pool_2, LOCAL(real, H_2), LOCAL(real, CONV2));
    if (!rt_cuda_finite(LOCAL(real, H_2), 102400))
        return 6;

    /* lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
    /* dense dense1: (N, 800) -> (N, 500)   800.0 kFLOP a sample */
    LAUNCH(dense_parts_1, APART(real) + 947456, LOCAL(real, H_2),
        FIXED(real, DENSE1_WEIGHT)); LAUNCH(parts_join_2, LOCAL(real, DENSE1),
        APART(real) + 947456);
    if (!rt_cuda_finite(LOCAL(real, DENSE1), 64000))
        return 7;
    /* tanh h: (N, 500) -> (N, 500) */
    LAUNCH(tanh_3, LOCAL(real, DENSE1), LOCAL(real, DENSE1), FIXED(real, DENSE1_BIAS));
    if (!rt_cuda_finite(LOCAL(real, DENSE1), 64000))
        return 8;

    /* lenet.tn:11  return dense(h, classes) */
    /* dense dense2: (N, 500) -> (N, 10)   10.0 kFLOP a sample */
    LAUNCH(dense_parts_2, APART(real) + 256, LOCAL(real, DENSE1),
        FIXED(real, DENSE2_WEIGHT)); LAUNCH(parts_join_3, LOCAL(real, DENSE2), APART(real) + 256);
    if (!rt_cuda_finite(LOCAL(real, DENSE2), 1280))
        return 9;
    /* bias dense2: (N, 10) -> (N, 10) */
    LAUNCH(bias_1, LOCAL(real, DENSE2), LOCAL(real, DENSE2), FIXED(real, DENSE2_BIAS));
    if (!rt_cuda_finite(LOCAL(real, DENSE2), 1280))
        return 10;

    /* lenet.tn:16  loss      = softmax_cross_entropy */
    /* label label: (N) */
    LAUNCH(rt_labels_1, LOCAL(int32_t, LABEL), r->there, first);
    /* softmax_cross_entropy dense2: (N, 10) -> (N) */
    LAUNCH(softmax_cross_entropy_1, LOCAL(real, SOFTMAX_CROSS_ENTROPY), LOCAL(real, DENSE2),
        LOCAL(int32_t, LABEL));
    if (!rt_cuda_finite(LOCAL(real, SOFTMAX_CROSS_ENTROPY), 128))
        return 11;
    /* accuracy dense2: (N, 10) -> (N) */
    LAUNCH(accuracy_1, LOCAL(real, ACCURACY), LOCAL(real, DENSE2), LOCAL(int32_t, LABEL));
    if (!rt_cuda_finite(LOCAL(real, ACCURACY), 128))
        return 12;
    return -1;
}

/* Sums over shards in the fixed tree, and the update of all parameters; no update if the loss is not finite. */
static void train_gradient(const Rt *r, char *t, int unit)
{
    (void)t, (void)unit;
    LAUNCH(update_1, r->there, false);
}

/* The update from gradients that ranks have added, bucket by bucket. */
static void train_update(const Rt *r, char *t, int unit)
{
    (void)t, (void)unit;
    LAUNCH(update_1, r->there, true);
}

/* Forward of one shard of an evaluation batch. */
static void test_slice(const Rt *r, char *t, int unit)
{
    char *const shard = r->shard + unit * r->shard_bytes;
    const int first = (r->first_shard + unit) * SHARD;

    (void)shard, (void)first, (void)t;

    /* lenet.tn:7  model lenet(image: f32[1, 28, 28], classes: int = 10) { */
    /* input image: (N, 1, 28, 28) */
    LAUNCH(rt_input_1, LOCAL(real, TEST_IMAGE), r->there, first);

    /* lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
    /* conv2d conv1: (N, 1, 28, 28) -> (N, 20, 24, 24)   576.0 kFLOP a sample */
    /* tanh conv1: (N, 20, 24, 24) -> (N, 20, 24, 24) */
    LAUNCH(conv2d_tanh_1, LOCAL(real, TEST_CONV1), LOCAL(real, TEST_IMAGE),
        FIXED(real, CONV1_WEIGHT), FIXED(real, CONV1_BIAS));
    /* max_pool h: (N, 20, 24, 24) -> (N, 20, 12, 12) */
    LAUNCH(max_pool_1, LOCAL(real, TEST_H), LOCAL(real, TEST_CONV1));

    /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
    /* conv2d conv2: (N, 20, 12, 12) -> (N, 50, 8, 8)   3.20 MFLOP a sample */
    LAUNCH(conv2d_parts_1, APART(real) + 5376, LOCAL(real, TEST_H), FIXED(real, CONV2_WEIGHT));
    /* tanh conv2: (N, 50, 8, 8) -> (N, 50, 8, 8) */
    LAUNCH(parts_join_tanh_1, LOCAL(real, TEST_CONV2), APART(real) + 5376, FIXED(real, CONV2_BIAS));
    /* max_pool h: (N, 50, 8, 8) -> (N, 50, 4, 4) */
    LAUNCH(max_pool_2, LOCAL(real, TEST_H_2), LOCAL(real, TEST_CONV2));

    /* lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
    /* dense dense1: (N, 800) -> (N, 500)   800.0 kFLOP a sample */
    LAUNCH(dense_parts_1, APART(real) + 824576, LOCAL(real, TEST_H_2), FIXED(real, DENSE1_WEIGHT));
    /* tanh h: (N, 500) -> (N, 500) */
    LAUNCH(parts_join_tanh_2, LOCAL(real, TEST_DENSE1), APART(real) + 824576,
        FIXED(real, DENSE1_BIAS));

    /* lenet.tn:11  return dense(h, classes) */
    /* dense dense2: (N, 500) -> (N, 10)   10.0 kFLOP a sample */
    LAUNCH(dense_parts_2, APART(real) + 256, LOCAL(real, TEST_DENSE1), FIXED(real, DENSE2_WEIGHT));
    /* bias dense2: (N, 10) -> (N, 10) */

    /* lenet.tn:16  loss      = softmax_cross_entropy */
    /* label label: (N) */
    LAUNCH(parts_join_bias_rt_labels_1, LOCAL(real, TEST_DENSE2), APART(real) + 256,
        FIXED(real, DENSE2_BIAS), LOCAL(int32_t, TEST_LABEL), r->there, first);
    /* softmax_cross_entropy dense2: (N, 10) -> (N) */
    /* accuracy dense2: (N, 10) -> (N) */
    LAUNCH(softmax_cross_entropy_accuracy_1, LOCAL(real, TEST_SOFTMAX_CROSS_ENTROPY),
        LOCAL(real, TEST_DENSE2), LOCAL(int32_t, TEST_LABEL), LOCAL(real, TEST_ACCURACY));
    /* loss */
    /* accuracy */
    LAUNCH(rt_metric_rt_output_1, r->there, unit, 0, first, LOCAL(real, TEST_SOFTMAX_CROSS_ENTROPY),
        1, LOCAL(real, TEST_ACCURACY), LOCAL(real, TEST_DENSE2));
}

static const RtPhase train[] = {
    {.run = train_slice, .per_slice = true, .count = 0, .from_grad = false, .what = "forward and backward of a shard"},
    {.run = train_gradient, .per_slice = false, .count = 1, .from_grad = false, .what = "sum gradients, update", .to_grad = true},
    {.run = train_update, .per_slice = false, .count = 1, .from_grad = true, .what = "update"},
};

static const RtPhase test[] = {
    {.run = test_slice, .per_slice = true, .count = 0, .from_grad = false, .what = "forward of a shard"},
};

static const char *const layers[] = {
    "image (lenet.tn:7)",
    "conv1 (lenet.tn:8)",
    "tanh (lenet.tn:8)",
    "h (lenet.tn:8)",
    "conv2 (lenet.tn:9)",
    "tanh (lenet.tn:9)",
    "h (lenet.tn:9)",
    "dense1 (lenet.tn:10)",
    "h (lenet.tn:10)",
    "dense2 (lenet.tn:11)",
    "dense2 (lenet.tn:11)",
    "softmax_cross_entropy (lenet.tn:16)",
    "accuracy (lenet.tn:16)",
};

static int (*const nonfinite[])(const Rt *r, char *t, int unit) = {nonfinite_0};

/* ---- parameters: shape in files (first line), layout in memory (second line) ---- */

static const RtParam params[] = {
    {.name = "conv1.weight", .rank = 4, .dim = {20, 1, 5, 5},
     .naxis = 4, .axis = {{20, 20, 0, 25}, {1, 1, 0, 25}, {5, 5, 0, 5}, {5, 5, 0, 1}}, .count_memory = 500,
     .offset = CONV1_WEIGHT, .state = {CONV1_WEIGHT_STATE0, -1}, .fan_in = 25, .fan_out = 500,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "conv1.bias", .rank = 1, .dim = {20},
     .naxis = 1, .axis = {{20, 20, 0, 1}}, .count_memory = 20,
     .offset = CONV1_BIAS, .state = {CONV1_BIAS_STATE0, -1}, .fan_in = 20, .fan_out = 20,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "conv2.weight", .rank = 4, .dim = {50, 20, 5, 5},
     .naxis = 4, .axis = {{50, 50, 0, 500}, {20, 20, 0, 25}, {5, 5, 0, 5}, {5, 5, 0, 1}}, .count_memory = 25000,
     .offset = CONV2_WEIGHT, .state = {CONV2_WEIGHT_STATE0, -1}, .fan_in = 500, .fan_out = 1250,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "conv2.bias", .rank = 1, .dim = {50},
     .naxis = 1, .axis = {{50, 50, 0, 1}}, .count_memory = 50,
     .offset = CONV2_BIAS, .state = {CONV2_BIAS_STATE0, -1}, .fan_in = 50, .fan_out = 50,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "dense1.weight", .rank = 2, .dim = {500, 800},
     .naxis = 2, .axis = {{500, 500, 0, 800}, {800, 800, 0, 1}}, .count_memory = 400000,
     .offset = DENSE1_WEIGHT, .state = {DENSE1_WEIGHT_STATE0, -1}, .fan_in = 800, .fan_out = 500,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "dense1.bias", .rank = 1, .dim = {500},
     .naxis = 1, .axis = {{500, 500, 0, 1}}, .count_memory = 500,
     .offset = DENSE1_BIAS, .state = {DENSE1_BIAS_STATE0, -1}, .fan_in = 500, .fan_out = 500,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "dense2.weight", .rank = 2, .dim = {10, 500},
     .naxis = 2, .axis = {{10, 10, 0, 500}, {500, 500, 0, 1}}, .count_memory = 5000,
     .offset = DENSE2_WEIGHT, .state = {DENSE2_WEIGHT_STATE0, -1}, .fan_in = 500, .fan_out = 10,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "dense2.bias", .rank = 1, .dim = {10},
     .naxis = 1, .axis = {{10, 10, 0, 1}}, .count_memory = 10,
     .offset = DENSE2_BIAS, .state = {DENSE2_BIAS_STATE0, -1}, .fan_in = 10, .fan_out = 10,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
};

static const RtSum sums[] = {
    {.offset = 0, .count = 10, .param = 7},
    {.offset = 64, .count = 5000, .param = 6},
    {.offset = 20096, .count = 500, .param = 5},
    {.offset = 22144, .count = 400000, .param = 4},
    {.offset = 1622144, .count = 50, .param = 3},
    {.offset = 1622400, .count = 25000, .param = 2},
    {.offset = 1722432, .count = 20, .param = 1},
    {.offset = 1722560, .count = 500, .param = 0},
};

/* ---- buckets of gradients, which ranks add beside the backward pass: complete after train[ready]; updated before train[due] of the next step ---- */

static const RtBucket buckets[] = {
    /* 0: dense2.bias .. conv1.weight */
    {.offset = 0, .bytes = 1724608, .ready = 0, .due = 0,
     .units = 1,
     .updates = 1},
};

static const char *const data_dirs[] = {NULL};

const RtProgram rt_program = {
    .model = "lenet", .source = "models/lenet.tn", .source_hash = "5bdae5c3c785ac48",
    .compiler = "tenon 0.1.0", .flags = "", .target = "cuda", .cpu = "sm_90", .isa = RT_ISA_ANY, .real_bytes = sizeof(real),
    .batch = 128, .shards = 1, .slices = SLICES, .chunk = CHUNK,
    .parameters = 431080, .flops_per_sample = 13182000,
    .fixed_bytes = 3450240, .shard_bytes = 1725120, .thread_bytes = 28902144, .grad_bytes = 1724608, .fused_update = true,
    .input_rank = 3, .input_dim = {1, 28, 28}, .classes = 10, .labels = 1, .outputs = 10, .softmax_output = true,
    .nmetric = 2, .metric = {"loss", "accuracy"},
    .param = params, .nparam = 8, .sum = sums, .nsum = 8, .ngradient = 8,
    .bucket = buckets, .nbucket = 1,
    .train = train, .ntrain = sizeof train / sizeof *train, .test = test, .ntest = sizeof test / sizeof *test,
    .recipe = {
        .data = "mnist", .samples = 0, .test_samples = 0, .x_scale = 0.0039215686274509803,
        .optimizer = RT_SGD, .lr = 0.050000000000000003, .momentum = 0.90000000000000002, .weight_decay = 0.0001, .rho = 0,
        .beta1 = 0, .beta2 = 0, .eps = 0, .clip_norm = 0, .clip_value = 0, .nesterov = false,
        .schedule = RT_SCHED_STEP, .nat = 1, .at = {10}, .factor = 0.10000000000000001, .power = 0, .end = 0, .warmup = 0,
        .epochs = 12, .seed = 1,
        .expect_metric = "test_accuracy", .expect_op = ">=", .expect_value = 0.98999999999999999,
    },
    .layer = layers, .nlayer = sizeof layers / sizeof *layers, .nonfinite = nonfinite, .nforward = sizeof nonfinite / sizeof *nonfinite,
    .data_dirs = data_dirs, .device = &rt_cuda,
    .steps_most = 16, .steps_how = "a CUDA graph",
};

int main(int argc, char **argv)
{
    return rt_main(&rt_program, argc, argv);
}
