/* mlp.cu -- made by tenon from models/mlp.tn; change the model, not this file.
 *
 *   109,386 parameters, 454.4 kFLOP a sample forward and backward (textbook count)
 *   batch 128 = 1 shard of 128 samples
 *   memory: parameters 438 kB, optimizer states 438 kB, packed weights 0 bytes,
 *           438 kB a shard (lower bound 438 kB), 610 kB scratch (lower bound 610 kB), workspace 1.57 MB,
 *           samples of two steps 803 kB
 *   for sm_90; a step takes 10 launches; each library call counts as one
 */
#define RT_PERSISTENT /* many steps are one launch */
#define RT_OWNED 6 /* rows of update_rows: parameters that can stay on the chip */
#include "rt.h"
#include "cuda/kernels.cuh"
#include "cuda/persistent.cuh"

enum { SHARD = 128, CHUNK = SHARD, SLICES = 1 };

/* Addresses in GPU memory: parameters, scratch, values of a shard, sums of a shard. */
#define FIXED(type, at) ((type *)(fixed_of(r) + (at)))
#define LOCAL(type, at) ((type *)(t + (at)))
#define BATCH(type, at, bytes) ((type *)(shard + (at)))
#define PARTIAL(type, at, bytes) ((type *)(shard + (at)))

enum { /* offsets into `fixed`: parameters and optimizer states */
    DENSE1_WEIGHT                =          0,   /* (128, 784) */
    DENSE1_WEIGHT_STATE0         =     437952,
    DENSE1_BIAS                  =     401472,   /* (128) */
    DENSE1_BIAS_STATE0           =     839424,
    DENSE2_WEIGHT                =     402048,   /* (64, 128) */
    DENSE2_WEIGHT_STATE0         =     840000,
    DENSE2_BIAS                  =     434880,   /* (64) */
    DENSE2_BIAS_STATE0           =     872832,
    DENSE3_WEIGHT                =     435200,   /* (10, 64) */
    DENSE3_WEIGHT_STATE0         =     873152,
    DENSE3_BIAS                  =     437824,   /* (10) */
    DENSE3_BIAS_STATE0           =     875776,
};

enum { /* offsets into the region of a shard: values that a later phase reads */
    DDENSE3_BIAS                 =     437824,   /* (10), one per slice */
    DDENSE3_WEIGHT               =     434304,   /* (10, 64), one per slice */
    DDENSE2_BIAS                 =     437504,   /* (64), one per slice */
    DDENSE2_WEIGHT               =     401472,   /* (64, 128), one per slice */
    DDENSE1_BIAS                 =     436928,   /* (128), one per slice */
    DDENSE1_WEIGHT               =          0,   /* (128, 784), one per slice */
};

enum { /* offsets into the region of a thread: values of one chunk */
    IMAGE                        =          0,   /* (N, 1, 28, 28) */
    DENSE1                       =     401472,   /* (N, 128) */
    DENSE2                       =     532672,   /* (N, 64) */
    DENSE3                       =     598336,   /* (N, 10) */
    LABEL                        =     467072,   /* (N) */
    SOFTMAX_CROSS_ENTROPY        =     608704,   /* (N) */
    ACCURACY                     =     609280,   /* (N) */
    DDENSE3                      =     603520,   /* (N, 10) */
    DH                           =     565504,   /* (N, 64) */
    DH_2                         =     467072,   /* (N, 128) */
};

enum { /* evaluation: offsets into the region of a thread: values of one chunk */
    TEST_IMAGE                   =          0,   /* (N, 1, 28, 28) */
    TEST_DENSE1                  =     401472,   /* (N, 128) */
    TEST_DENSE2                  =          0,   /* (N, 64) */
    TEST_DENSE3                  =      32832,   /* (N, 10) */
    TEST_LABEL                   =          0,   /* (N) */
    TEST_SOFTMAX_CROSS_ENTROPY   =        576,   /* (N) */
    TEST_ACCURACY                =       1152,   /* (N) */
};

/* One row for each parameter: offsets of its sum in a shard and in the gradients, of its weights and its states; their number;
 * the blocks of all rows before it; factors of the recipe's learning rate and decay. */
static RT_TABLE UpdateRow update_rows[] = {
    {DDENSE3_BIAS, 0, DENSE3_BIAS, DENSE3_BIAS_STATE0, -1, 10, 0, 1, 0}, /* dense3.bias */
    {DDENSE3_WEIGHT, 64, DENSE3_WEIGHT, DENSE3_WEIGHT_STATE0, -1, 640, 1, 1, 1}, /* dense3.weight */
    {DDENSE2_BIAS, 2624, DENSE2_BIAS, DENSE2_BIAS_STATE0, -1, 64, 2, 1, 0}, /* dense2.bias */
    {DDENSE2_WEIGHT, 2880, DENSE2_WEIGHT, DENSE2_WEIGHT_STATE0, -1, 8192, 3, 1, 1}, /* dense2.weight */
    {DDENSE1_BIAS, 35648, DENSE1_BIAS, DENSE1_BIAS_STATE0, -1, 128, 11, 1, 0}, /* dense1.bias */
    {DDENSE1_WEIGHT, 36160, DENSE1_WEIGHT, DENSE1_WEIGHT_STATE0, -1, 100352, 12, 1, 1}, /* dense1.weight */
};

/* ---- kernels: sizes are literals, so nvcc specialises each ---- */

constexpr int rt_input_1_blocks = each_blocks(100352);
DEVICE void rt_input_1_body(real *y, const Rt *r, int first)
{
    rt_input(y, r, first, 128, 784);
}
STAGE rt_input_1_stage(real *y, const Rt *r, int first)
{
    rt_input_1_body(y, r, first);
}
KERNEL rt_input_1(real *y, const Rt *r, int first)
{
    rt_input_1_body(y, r, first);
}

SIZE Dense dense_parts_1_size()
{
    return Dense{ .n = 128, .k = 784, .o = 128 };
}
constexpr int dense_parts_1_blocks = dense_parts_blocks(dense_parts_1_size(), RT_TILE_32_32, 8);
DEVICE void dense_parts_1_body(real *part, const real *a, const real *b)
{
    dense_parts(part, a, b, dense_parts_1_size(), RT_TILE_32_32, 8);
}
STAGE dense_parts_1_stage(real *part, const real *a, const real *b)
{
    dense_parts_1_body(part, a, b);
}
KERNEL dense_parts_1(real *part, const real *a, const real *b)
{
    dense_parts_1_body(part, a, b);
}

constexpr int parts_join_1_blocks = each_blocks(16384);
DEVICE void parts_join_1_body(real *y, const real *part)
{
    parts_join(y, part, 16384, 8, true);
}
STAGE parts_join_1_stage(real *y, const real *part)
{
    parts_join_1_body(y, part);
}
KERNEL parts_join_1(real *y, const real *part)
{
    parts_join_1_body(y, part);
}

constexpr int relu_1_blocks = each_blocks(16384);
DEVICE void relu_1_body(real *y, const real *a, const real *b)
{
    FOR_EACH(at, 16384) {
        const int i = at / 128, j = at % 128;
        y[i * 128 + j] = s_relu((a[i * 128 + j] + b[j]));
    }
}
STAGE relu_1_stage(real *y, const real *a, const real *b)
{
    relu_1_body(y, a, b);
}
KERNEL relu_1(real *y, const real *a, const real *b)
{
    relu_1_body(y, a, b);
}

constexpr int parts_join_relu_1_blocks = most(parts_join_1_blocks, relu_1_blocks);
KERNEL parts_join_relu_1(real *a, const real *part, const real *c)
{
    parts_join_1_body(a, part);
    relu_1_body(a, a, c);
}

SIZE Dense dense_1_size()
{
    return Dense{ .n = 128, .k = 128, .o = 64 };
}
constexpr int dense_1_blocks = dense_blocks(dense_1_size());
DEVICE void dense_1_body(real *y, const real *a, const real *b)
{
    dense(y, a, b, dense_1_size());
}
STAGE dense_1_stage(real *y, const real *a, const real *b)
{
    dense_1_body(y, a, b);
}
KERNEL dense_1(real *y, const real *a, const real *b)
{
    dense_1_body(y, a, b);
}

SIZE Dense relu_2_size()
{
    return Dense{ .n = 128, .k = 128, .o = 64 };
}
constexpr int relu_2_blocks = dense_blocks(relu_2_size());
DEVICE void relu_2_body(real *y, const real *a, const real *b)
{
    dense_results(relu_2_size(), [=](unsigned at, int) {
        const int i = at / 64, j = at % 64;
        y[i * 64 + j] = s_relu((a[i * 64 + j] + b[j]));
    });
}
STAGE relu_2_stage(real *y, const real *a, const real *b)
{
    relu_2_body(y, a, b);
}

constexpr int dense_relu_1_blocks = most(dense_1_blocks, relu_2_blocks);
KERNEL dense_relu_1(real *a, const real *b, const real *c, const real *d)
{
    dense_1_body(a, b, c);
    relu_2_body(a, a, d);
}

SIZE Dense dense_2_size()
{
    return Dense{ .n = 128, .k = 64, .o = 10 };
}
constexpr int dense_2_blocks = dense_blocks(dense_2_size());
DEVICE void dense_2_body(real *y, const real *a, const real *b)
{
    dense(y, a, b, dense_2_size());
}
STAGE dense_2_stage(real *y, const real *a, const real *b)
{
    dense_2_body(y, a, b);
}
KERNEL dense_2(real *y, const real *a, const real *b)
{
    dense_2_body(y, a, b);
}

SIZE Dense bias_1_size()
{
    return Dense{ .n = 128, .k = 64, .o = 10 };
}
constexpr int bias_1_blocks = dense_blocks(bias_1_size());
DEVICE void bias_1_body(real *y, const real *a, const real *b)
{
    dense_results(bias_1_size(), [=](unsigned at, int) {
        const int i = at / 10, j = at % 10;
        y[i * 10 + j] = (a[i * 10 + j] + b[j]);
    });
}
STAGE bias_1_stage(real *y, const real *a, const real *b)
{
    bias_1_body(y, a, b);
}

constexpr int rt_labels_1_blocks = each_blocks(128);
DEVICE void rt_labels_1_body(int32_t *y, const Rt *r, int first)
{
    rt_labels(y, r, first, 128, 1);
}
STAGE rt_labels_1_stage(int32_t *y, const Rt *r, int first)
{
    rt_labels_1_body(y, r, first);
}
KERNEL rt_labels_1(int32_t *y, const Rt *r, int first)
{
    rt_labels_1_body(y, r, first);
}

constexpr int dense_bias_rt_labels_1_blocks = most(dense_2_blocks, bias_1_blocks, rt_labels_1_blocks);
KERNEL dense_bias_rt_labels_1(real *a, const real *b, const real *c, const real *d, int32_t *e, const Rt *f, int first)
{
    dense_2_body(a, b, c);
    bias_1_body(a, a, d);
    rt_labels_1_body(e, f, first);
}

constexpr int softmax_cross_entropy_1_blocks = softmax_cross_entropy_blocks(128, 10);
DEVICE void softmax_cross_entropy_1_body(real *y, const real *a, const int32_t *b)
{
    softmax_cross_entropy(y, a, b, 128, 10);
}
STAGE softmax_cross_entropy_1_stage(real *y, const real *a, const int32_t *b)
{
    softmax_cross_entropy_1_body(y, a, b);
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
STAGE accuracy_1_stage(real *y, const real *a, const int32_t *b)
{
    accuracy_1_body(y, a, b);
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
STAGE softmax_cross_entropy_dx_1_stage(real *y, const real *a, const int32_t *b)
{
    softmax_cross_entropy_dx_1_body(y, a, b);
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
STAGE rt_metric_1_stage(const Rt *r, int unit, int metric, int first, const real *a)
{
    rt_metric_1_body(r, unit, metric, first, a);
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
STAGE sum_to_1_stage(real *y, const real *a)
{
    sum_to_1_body(y, a);
}

SIZE Dense dense_dx_1_size()
{
    return Dense{ .n = 128, .k = 64, .o = 10 };
}
constexpr int dense_dx_1_blocks = dense_dx_blocks(dense_dx_1_size());
DEVICE void dense_dx_1_body(real *y, const real *a, const real *b)
{
    dense_dx(y, a, b, dense_dx_1_size());
}
STAGE dense_dx_1_stage(real *y, const real *a, const real *b)
{
    dense_dx_1_body(y, a, b);
}

SIZE Dense dense_dw_1_size()
{
    return Dense{ .n = 128, .k = 64, .o = 10 };
}
constexpr int dense_dw_1_blocks = dense_dw_blocks(dense_dw_1_size());
DEVICE void dense_dw_1_body(real *y, const real *a, const real *b)
{
    dense_dw(y, a, b, dense_dw_1_size(), true);
}
STAGE dense_dw_1_stage(real *y, const real *a, const real *b)
{
    dense_dw_1_body(y, a, b);
}

SIZE Dense relu_d_1_size()
{
    return Dense{ .n = 128, .k = 64, .o = 10 };
}
constexpr int relu_d_1_blocks = dense_dx_blocks(relu_d_1_size());
DEVICE void relu_d_1_body(real *y, const real *a, const real *b)
{
    dense_dx_results(relu_d_1_size(), [=](unsigned i, int) {
        y[i] = s_select_gt(b[i], (real)0, a[i], (real)0);
    });
}
STAGE relu_d_1_stage(real *y, const real *a, const real *b)
{
    relu_d_1_body(y, a, b);
}

constexpr int rt_metric_sum_to_dense_dx_dense_dw_relu_d_1_blocks = most(rt_metric_1_blocks, sum_to_1_blocks, dense_dx_1_blocks, dense_dw_1_blocks, relu_d_1_blocks);
KERNEL rt_metric_sum_to_dense_dx_dense_dw_relu_d_1(const Rt *a, int unit, int metric, int first, const real *e, int f, const real *g, real *h, const real *i, real *j, const real *k, real *l, const real *m)
{
    rt_metric_1_body(a, unit, metric, first, e);
    rt_metric_1_body(a, unit, f, first, g);
    sum_to_1_body(h, i);
    dense_dx_1_body(j, k, i);
    dense_dw_1_body(l, m, i);
    relu_d_1_body(j, j, m);
}

constexpr int sum_to_2_blocks = sum_blocks(64);
DEVICE void sum_to_2_body(real *y, const real *a)
{
    block_sums(64, 128, [=](int at, int of) {
        const int j = at;
        const int i = of;
        return a[i * 64 + j];
    }, [=](int at, real sum) {
        const int j = at;
        y[j] = sum;
    });
}
STAGE sum_to_2_stage(real *y, const real *a)
{
    sum_to_2_body(y, a);
}

SIZE Dense dense_dx_2_size()
{
    return Dense{ .n = 128, .k = 128, .o = 64 };
}
constexpr int dense_dx_2_blocks = dense_dx_blocks(dense_dx_2_size());
DEVICE void dense_dx_2_body(real *y, const real *a, const real *b)
{
    dense_dx(y, a, b, dense_dx_2_size());
}
STAGE dense_dx_2_stage(real *y, const real *a, const real *b)
{
    dense_dx_2_body(y, a, b);
}

SIZE Dense dense_dw_2_size()
{
    return Dense{ .n = 128, .k = 128, .o = 64 };
}
constexpr int dense_dw_2_blocks = dense_dw_blocks(dense_dw_2_size());
DEVICE void dense_dw_2_body(real *y, const real *a, const real *b)
{
    dense_dw(y, a, b, dense_dw_2_size(), true);
}
STAGE dense_dw_2_stage(real *y, const real *a, const real *b)
{
    dense_dw_2_body(y, a, b);
}

SIZE Dense relu_d_2_size()
{
    return Dense{ .n = 128, .k = 128, .o = 64 };
}
constexpr int relu_d_2_blocks = dense_dx_blocks(relu_d_2_size());
DEVICE void relu_d_2_body(real *y, const real *a, const real *b)
{
    dense_dx_results(relu_d_2_size(), [=](unsigned i, int) {
        y[i] = s_select_gt(b[i], (real)0, a[i], (real)0);
    });
}
STAGE relu_d_2_stage(real *y, const real *a, const real *b)
{
    relu_d_2_body(y, a, b);
}

constexpr int sum_to_dense_dx_dense_dw_relu_d_1_blocks = most(sum_to_2_blocks, dense_dx_2_blocks, dense_dw_2_blocks, relu_d_2_blocks);
KERNEL sum_to_dense_dx_dense_dw_relu_d_1(real *a, const real *b, real *c, const real *d, real *e, const real *f)
{
    sum_to_2_body(a, b);
    dense_dx_2_body(c, d, b);
    dense_dw_2_body(e, f, b);
    relu_d_2_body(c, c, f);
}

constexpr int sum_to_3_blocks = sum_blocks(128);
DEVICE void sum_to_3_body(real *y, const real *a)
{
    block_sums(128, 128, [=](int at, int of) {
        const int j = at;
        const int i = of;
        return a[i * 128 + j];
    }, [=](int at, real sum) {
        const int j = at;
        y[j] = sum;
    });
}
STAGE sum_to_3_stage(real *y, const real *a)
{
    sum_to_3_body(y, a);
}

SIZE Dense dense_dw_3_size()
{
    return Dense{ .n = 128, .k = 784, .o = 128 };
}
constexpr int dense_dw_3_blocks = dense_dw_blocks(dense_dw_3_size());
DEVICE void dense_dw_3_body(real *y, const real *a, const real *b)
{
    dense_dw(y, a, b, dense_dw_3_size(), true);
}

constexpr int sum_to_dense_dw_1_blocks = most(sum_to_3_blocks, dense_dw_3_blocks);
KERNEL sum_to_dense_dw_1(real *a, const real *b, real *c, const real *d)
{
    sum_to_3_body(a, b);
    dense_dw_3_body(c, d, b);
}

constexpr int relu_3_blocks = each_blocks(8192);
KERNEL relu_3(real *y, const real *a, const real *b)
{
    FOR_EACH(at, 8192) {
        const int i = at / 64, j = at % 64;
        y[i * 64 + j] = s_relu((a[i * 64 + j] + b[j]));
    }
}

constexpr int bias_2_blocks = each_blocks(1280);
KERNEL bias_2(real *y, const real *a, const real *b)
{
    FOR_EACH(at, 1280) {
        const int i = at / 10, j = at % 10;
        y[i * 10 + j] = (a[i * 10 + j] + b[j]);
    }
}

constexpr int update_1_blocks = 110;
KERNEL update_1(const Rt *r, bool from_grad)
{
    update(r, update_rows, 6, 110, from_grad, 0, update_sgd);
}

SIZE DenseOwn dense_dw_own_1_size()
{
    return DenseOwn{Dense{ .n = 128, .k = 784, .o = 128 }};
}
STAGE dense_dw_own_1_stage(const Rt *r, int at, const real *a, const real *b)
{
    dense_dw_own(r, &update_rows[5], at, 1, 0, a, b, dense_dw_own_1_size(), update_sgd);
}

SIZE SumOwn own_1_size()
{
    return SumOwn{10};
}
STAGE own_1_stage(OwnWhat what, const Rt *r, int at)
{
    own(what, r, &update_rows[0], at, 1, 1, 0, own_1_size(), update_sgd);
}

SIZE DenseOwn own_2_size()
{
    return DenseOwn{Dense{ .n = 128, .k = 64, .o = 10 }};
}
STAGE own_2_stage(OwnWhat what, const Rt *r, int at)
{
    own(what, r, &update_rows[1], at, 1, 1, 0, own_2_size(), update_sgd);
}

SIZE SumOwn own_3_size()
{
    return SumOwn{64};
}
STAGE own_3_stage(OwnWhat what, const Rt *r, int at)
{
    own(what, r, &update_rows[2], at, 1, 1, 0, own_3_size(), update_sgd);
}

SIZE DenseOwn own_4_size()
{
    return DenseOwn{Dense{ .n = 128, .k = 128, .o = 64 }};
}
STAGE own_4_stage(OwnWhat what, const Rt *r, int at)
{
    own(what, r, &update_rows[3], at, 1, 1, 0, own_4_size(), update_sgd);
}

SIZE SumOwn own_5_size()
{
    return SumOwn{128};
}
STAGE own_5_stage(OwnWhat what, const Rt *r, int at)
{
    own(what, r, &update_rows[4], at, 1, 1, 0, own_5_size(), update_sgd);
}

SIZE DenseOwn own_6_size()
{
    return DenseOwn{Dense{ .n = 128, .k = 784, .o = 128 }};
}
STAGE own_6_stage(OwnWhat what, const Rt *r, int at)
{
    own(what, r, &update_rows[5], at, 1, 1, 0, own_6_size(), update_sgd);
}

constexpr int dense_bias_1_blocks = most(dense_2_blocks, bias_1_blocks);
KERNEL dense_bias_1(real *a, const real *b, const real *c, const real *d)
{
    dense_2_body(a, b, c);
    bias_1_body(a, a, d);
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

#define WORKSPACE (t + 1412864) /* of the libraries: the end of the scratch */
#define APART(type) ((type *)(WORKSPACE + 0)) /* gradients of filters before conversion to f32; partial sums */

/* ---- the step: launches in order; a phase begins when the previous one is complete ---- */

/* Forward, loss and backward of one shard. */
static void train_slice(const Rt *r, char *t, int unit)
{
    char *const shard = r->shard + unit * r->shard_bytes;
    const int first = (r->first_shard + unit) * SHARD;

    (void)shard, (void)first, (void)t;

    /* mlp.tn:7  model mlp(image: f32[1, 28, 28], classes: int = 10) { */
    /* input image: (N, 1, 28, 28) */
    LAUNCH(rt_input_1, LOCAL(real, IMAGE), r->there, first);

    /* mlp.tn:8  h = flatten(image) |> dense(128) |> relu */
    /* dense dense1: (N, 784) -> (N, 128)   200.7 kFLOP a sample */
    LAUNCH(dense_parts_1, APART(real) + 256, LOCAL(real, IMAGE), FIXED(real, DENSE1_WEIGHT));
    /* relu h: (N, 128) -> (N, 128) */
    LAUNCH(parts_join_relu_1, LOCAL(real, DENSE1), APART(real) + 256, FIXED(real, DENSE1_BIAS));

    /* mlp.tn:9  h = dense(h, 64) |> relu */
    /* dense dense2: (N, 128) -> (N, 64)   16.4 kFLOP a sample */
    /* relu h: (N, 64) -> (N, 64) */
    LAUNCH(dense_relu_1, LOCAL(real, DENSE2), LOCAL(real, DENSE1), FIXED(real, DENSE2_WEIGHT),
        FIXED(real, DENSE2_BIAS));

    /* mlp.tn:10  return dense(h, classes) */
    /* dense dense3: (N, 64) -> (N, 10)   1.3 kFLOP a sample */
    /* bias dense3: (N, 10) -> (N, 10) */

    /* mlp.tn:15  loss      = softmax_cross_entropy */
    /* label label: (N) */
    LAUNCH(dense_bias_rt_labels_1, LOCAL(real, DENSE3), LOCAL(real, DENSE2),
        FIXED(real, DENSE3_WEIGHT), FIXED(real, DENSE3_BIAS), LOCAL(int32_t, LABEL), r->there,
        first);
    /* softmax_cross_entropy dense3: (N, 10) -> (N) */
    /* accuracy dense3: (N, 10) -> (N) */
    /* softmax_cross_entropy_dx ddense3: (N, 10) -> (N, 10) */
    LAUNCH(softmax_cross_entropy_accuracy_more_1, LOCAL(real, SOFTMAX_CROSS_ENTROPY),
        LOCAL(real, DENSE3), LOCAL(int32_t, LABEL), LOCAL(real, ACCURACY), LOCAL(real, DDENSE3));
    /* loss */
    /* accuracy */

    /* backward of mlp.tn:10  return dense(h, classes) */
    /* sum_to ddense3.bias: (N, 10) -> (10) */
    /* dense_dx dh: (N, 10) -> (N, 64)   1.3 kFLOP a sample */
    /* dense_dw ddense3.weight: (N, 64) -> (10, 64)   1.3 kFLOP a sample */

    /* backward of mlp.tn:9  h = dense(h, 64) |> relu */
    /* relu_d ddense2: (N, 64) -> (N, 64) */
    LAUNCH(rt_metric_sum_to_dense_dx_dense_dw_relu_d_1, r->there, unit, 0, first,
        LOCAL(real, SOFTMAX_CROSS_ENTROPY), 1, LOCAL(real, ACCURACY),
        PARTIAL(real, DDENSE3_BIAS, 128), LOCAL(real, DDENSE3), LOCAL(real, DH),
        FIXED(real, DENSE3_WEIGHT), PARTIAL(real, DDENSE3_WEIGHT, 2624), LOCAL(real, DENSE2));
    /* sum_to ddense2.bias: (N, 64) -> (64) */
    /* dense_dx dh: (N, 64) -> (N, 128)   16.4 kFLOP a sample */
    /* dense_dw ddense2.weight: (N, 128) -> (64, 128)   16.4 kFLOP a sample */

    /* backward of mlp.tn:8  h = flatten(image) |> dense(128) |> relu */
    /* relu_d ddense1: (N, 128) -> (N, 128) */
    LAUNCH(sum_to_dense_dx_dense_dw_relu_d_1, PARTIAL(real, DDENSE2_BIAS, 320), LOCAL(real, DH),
        LOCAL(real, DH_2), FIXED(real, DENSE2_WEIGHT), PARTIAL(real, DDENSE2_WEIGHT, 32832),
        LOCAL(real, DENSE1));
    /* sum_to ddense1.bias: (N, 128) -> (128) */
    /* dense_dw ddense1.weight: (N, 784) -> (128, 784)   200.7 kFLOP a sample */
    LAUNCH(sum_to_dense_dw_1, PARTIAL(real, DDENSE1_BIAS, 576), LOCAL(real, DH_2),
        PARTIAL(real, DDENSE1_WEIGHT, 401472), LOCAL(real, IMAGE));
}

/* After a loss that is not finite: the forward pass again, up to the first value that is not. */
static int nonfinite_0(const Rt *r, char *t, int unit)
{
    char *const shard = r->shard + unit * r->shard_bytes;
    const int first = (r->first_shard + unit) * SHARD;

    (void)shard, (void)first, (void)t;

    /* mlp.tn:7  model mlp(image: f32[1, 28, 28], classes: int = 10) { */
    /* input image: (N, 1, 28, 28) */
    LAUNCH(rt_input_1, LOCAL(real, IMAGE), r->there, first);
    if (!rt_cuda_finite(LOCAL(real, IMAGE), 100352))
        return 0;

    /* mlp.tn:8  h = flatten(image) |> dense(128) |> relu */
    /* dense dense1: (N, 784) -> (N, 128)   200.7 kFLOP a sample */
    LAUNCH(dense_parts_1, APART(real) + 131328, LOCAL(real, IMAGE),
        FIXED(real, DENSE1_WEIGHT)); LAUNCH(parts_join_1, LOCAL(real, DENSE1),
        APART(real) + 131328);
    if (!rt_cuda_finite(LOCAL(real, DENSE1), 16384))
        return 1;
    /* relu h: (N, 128) -> (N, 128) */
    LAUNCH(relu_1, LOCAL(real, DENSE1), LOCAL(real, DENSE1), FIXED(real, DENSE1_BIAS));
    if (!rt_cuda_finite(LOCAL(real, DENSE1), 16384))
        return 2;

    /* mlp.tn:9  h = dense(h, 64) |> relu */
    /* dense dense2: (N, 128) -> (N, 64)   16.4 kFLOP a sample */
    LAUNCH(dense_1, LOCAL(real, DENSE2), LOCAL(real, DENSE1), FIXED(real, DENSE2_WEIGHT));
    if (!rt_cuda_finite(LOCAL(real, DENSE2), 8192))
        return 3;
    /* relu h: (N, 64) -> (N, 64) */
    LAUNCH(relu_3, LOCAL(real, DENSE2), LOCAL(real, DENSE2), FIXED(real, DENSE2_BIAS));
    if (!rt_cuda_finite(LOCAL(real, DENSE2), 8192))
        return 4;

    /* mlp.tn:10  return dense(h, classes) */
    /* dense dense3: (N, 64) -> (N, 10)   1.3 kFLOP a sample */
    LAUNCH(dense_2, LOCAL(real, DENSE3), LOCAL(real, DENSE2), FIXED(real, DENSE3_WEIGHT));
    if (!rt_cuda_finite(LOCAL(real, DENSE3), 1280))
        return 5;
    /* bias dense3: (N, 10) -> (N, 10) */
    LAUNCH(bias_2, LOCAL(real, DENSE3), LOCAL(real, DENSE3), FIXED(real, DENSE3_BIAS));
    if (!rt_cuda_finite(LOCAL(real, DENSE3), 1280))
        return 6;

    /* mlp.tn:15  loss      = softmax_cross_entropy */
    /* label label: (N) */
    LAUNCH(rt_labels_1, LOCAL(int32_t, LABEL), r->there, first);
    /* softmax_cross_entropy dense3: (N, 10) -> (N) */
    LAUNCH(softmax_cross_entropy_1, LOCAL(real, SOFTMAX_CROSS_ENTROPY), LOCAL(real, DENSE3),
        LOCAL(int32_t, LABEL));
    if (!rt_cuda_finite(LOCAL(real, SOFTMAX_CROSS_ENTROPY), 128))
        return 7;
    /* accuracy dense3: (N, 10) -> (N) */
    LAUNCH(accuracy_1, LOCAL(real, ACCURACY), LOCAL(real, DENSE3), LOCAL(int32_t, LABEL));
    if (!rt_cuda_finite(LOCAL(real, ACCURACY), 128))
        return 8;
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

    /* mlp.tn:7  model mlp(image: f32[1, 28, 28], classes: int = 10) { */
    /* input image: (N, 1, 28, 28) */
    LAUNCH(rt_input_1, LOCAL(real, TEST_IMAGE), r->there, first);

    /* mlp.tn:8  h = flatten(image) |> dense(128) |> relu */
    /* dense dense1: (N, 784) -> (N, 128)   200.7 kFLOP a sample */
    LAUNCH(dense_parts_1, APART(real) + 256, LOCAL(real, TEST_IMAGE), FIXED(real, DENSE1_WEIGHT));
    /* relu h: (N, 128) -> (N, 128) */
    LAUNCH(parts_join_relu_1, LOCAL(real, TEST_DENSE1), APART(real) + 256,
        FIXED(real, DENSE1_BIAS));

    /* mlp.tn:9  h = dense(h, 64) |> relu */
    /* dense dense2: (N, 128) -> (N, 64)   16.4 kFLOP a sample */
    /* relu h: (N, 64) -> (N, 64) */
    LAUNCH(dense_relu_1, LOCAL(real, TEST_DENSE2), LOCAL(real, TEST_DENSE1),
        FIXED(real, DENSE2_WEIGHT), FIXED(real, DENSE2_BIAS));

    /* mlp.tn:10  return dense(h, classes) */
    /* dense dense3: (N, 64) -> (N, 10)   1.3 kFLOP a sample */
    /* bias dense3: (N, 10) -> (N, 10) */
    LAUNCH(dense_bias_1, LOCAL(real, TEST_DENSE3), LOCAL(real, TEST_DENSE2),
        FIXED(real, DENSE3_WEIGHT), FIXED(real, DENSE3_BIAS));

    /* mlp.tn:15  loss      = softmax_cross_entropy */
    /* label label: (N) */
    LAUNCH(rt_labels_1, LOCAL(int32_t, TEST_LABEL), r->there, first);
    /* softmax_cross_entropy dense3: (N, 10) -> (N) */
    /* accuracy dense3: (N, 10) -> (N) */
    LAUNCH(softmax_cross_entropy_accuracy_1, LOCAL(real, TEST_SOFTMAX_CROSS_ENTROPY),
        LOCAL(real, TEST_DENSE3), LOCAL(int32_t, TEST_LABEL), LOCAL(real, TEST_ACCURACY));
    /* loss */
    /* accuracy */
    LAUNCH(rt_metric_rt_output_1, r->there, unit, 0, first, LOCAL(real, TEST_SOFTMAX_CROSS_ENTROPY),
        1, LOCAL(real, TEST_ACCURACY), LOCAL(real, TEST_DENSE3));
}

/* ---- many steps in one launch: 29 stages and 8 barriers a step, up to 64 steps a launch ----
 *
 * Predicted for an H200, not measured: 12 us as 10 launches; as one launch 15 us by all blocks that fit,
 * 15 us by one cluster of 16; the program uses all blocks that fit on the GPU.
 * Weights and states of 6 of 6 parameters stay on the chip through a launch: 8.0 KB a block.
 */

/* Weights and states that stay on the chip during a launch if there is room: a row for each row of update_rows. */
static const OwnLayout own_layouts[RT_OWNED] = {
    own_layout(own_1_size(), 1), /* dense3.bias */
    own_layout(own_2_size(), 1), /* dense3.weight */
    own_layout(own_3_size(), 1), /* dense2.bias */
    own_layout(own_4_size(), 1), /* dense2.weight */
    own_layout(own_5_size(), 1), /* dense1.bias */
    own_layout(own_6_size(), 1), /* dense1.weight */
};
DEVICE void owned(OwnWhat what, const Rt *r, const Chip &chip)
{
    (void)what, (void)r, (void)chip;
    own_1_stage(what, r, chip.at[0]);
    own_2_stage(what, r, chip.at[1]);
    own_3_stage(what, r, chip.at[2]);
    own_4_stage(what, r, chip.at[3]);
    own_5_stage(what, r, chip.at[4]);
    own_6_stage(what, r, chip.at[5]);
}

/* Samples have two buffers after the scratch, used in turn: those of a step are gathered at the end of the previous step. */
#define SAMPLES(type, at) ((type *)(t + (609856 + (odd ? 401408 : 0))))
DEVICE void gather(const Rt *r, bool odd)
{
    const Scratch t = {r};
    const int first = r->first_shard * SHARD;

    (void)t, (void)first, (void)odd;
    rt_input_1_stage(SAMPLES(real, IMAGE), r, first);
}

/* Forward, loss and backward of one shard. */
DEVICE void slice(const Rt *r, int unit, bool odd, unsigned *arrived, const Chip &chip)
{
    const Scratch t = {r};
    const Region shard = {r, unit};
    const int first = (r->first_shard + unit) * SHARD;

    (void)t, (void)shard, (void)first, (void)odd, (void)chip;
    grid_barrier(arrived);

    /* mlp.tn:8  h = flatten(image) |> dense(128) |> relu */
    /* dense dense1: (N, 784) -> (N, 128)   200.7 kFLOP a sample */
    dense_parts_1_stage(APART(real) + 262400, SAMPLES(real, IMAGE), FIXED(real, DENSE1_WEIGHT));
    grid_barrier(arrived);
    parts_join_1_stage(LOCAL(real, DENSE1), APART(real) + 262400);
    /* relu h: (N, 128) -> (N, 128) */
    relu_1_stage(LOCAL(real, DENSE1), LOCAL(real, DENSE1), FIXED(real, DENSE1_BIAS));
    grid_barrier(arrived);

    /* mlp.tn:9  h = dense(h, 64) |> relu */
    /* dense dense2: (N, 128) -> (N, 64)   16.4 kFLOP a sample */
    dense_1_stage(LOCAL(real, DENSE2), LOCAL(real, DENSE1), FIXED(real, DENSE2_WEIGHT));
    /* relu h: (N, 64) -> (N, 64) */
    relu_2_stage(LOCAL(real, DENSE2), LOCAL(real, DENSE2), FIXED(real, DENSE2_BIAS));
    grid_barrier(arrived);

    /* mlp.tn:10  return dense(h, classes) */
    /* dense dense3: (N, 64) -> (N, 10)   1.3 kFLOP a sample */
    dense_2_stage(LOCAL(real, DENSE3), LOCAL(real, DENSE2), FIXED(real, DENSE3_WEIGHT));
    /* bias dense3: (N, 10) -> (N, 10) */
    bias_1_stage(LOCAL(real, DENSE3), LOCAL(real, DENSE3), FIXED(real, DENSE3_BIAS));

    /* mlp.tn:15  loss      = softmax_cross_entropy */
    /* label label: (N) */
    rt_labels_1_stage(LOCAL(int32_t, LABEL), r, first);
    grid_barrier(arrived);
    /* softmax_cross_entropy dense3: (N, 10) -> (N) */
    softmax_cross_entropy_1_stage(LOCAL(real, SOFTMAX_CROSS_ENTROPY), LOCAL(real, DENSE3),
        LOCAL(int32_t, LABEL));
    /* accuracy dense3: (N, 10) -> (N) */
    accuracy_1_stage(LOCAL(real, ACCURACY), LOCAL(real, DENSE3), LOCAL(int32_t, LABEL));
    /* softmax_cross_entropy_dx ddense3: (N, 10) -> (N, 10) */
    softmax_cross_entropy_dx_1_stage(LOCAL(real, DDENSE3), LOCAL(real, DENSE3),
        LOCAL(int32_t, LABEL));
    grid_barrier(arrived);
    rt_metric_1_stage(r, unit, 0, first, LOCAL(real, SOFTMAX_CROSS_ENTROPY)); /* loss */
    rt_metric_1_stage(r, unit, 1, first, LOCAL(real, ACCURACY)); /* accuracy */

    /* backward of mlp.tn:10  return dense(h, classes) */
    /* sum_to ddense3.bias: (N, 10) -> (10) */
    sum_to_1_stage(PARTIAL(real, DDENSE3_BIAS, 128), LOCAL(real, DDENSE3));
    /* dense_dx dh: (N, 10) -> (N, 64)   1.3 kFLOP a sample */
    dense_dx_1_stage(LOCAL(real, DH), FIXED(real, DENSE3_WEIGHT), LOCAL(real, DDENSE3));
    /* dense_dw ddense3.weight: (N, 64) -> (10, 64)   1.3 kFLOP a sample */
    dense_dw_1_stage(PARTIAL(real, DDENSE3_WEIGHT, 2624), LOCAL(real, DENSE2),
        LOCAL(real, DDENSE3));

    /* backward of mlp.tn:9  h = dense(h, 64) |> relu */
    /* relu_d ddense2: (N, 64) -> (N, 64) */
    relu_d_1_stage(LOCAL(real, DH), LOCAL(real, DH), LOCAL(real, DENSE2));
    grid_barrier(arrived);
    /* sum_to ddense2.bias: (N, 64) -> (64) */
    sum_to_2_stage(PARTIAL(real, DDENSE2_BIAS, 320), LOCAL(real, DH));
    /* dense_dx dh: (N, 64) -> (N, 128)   16.4 kFLOP a sample */
    dense_dx_2_stage(LOCAL(real, DH_2), FIXED(real, DENSE2_WEIGHT), LOCAL(real, DH));
    /* dense_dw ddense2.weight: (N, 128) -> (64, 128)   16.4 kFLOP a sample */
    dense_dw_2_stage(PARTIAL(real, DDENSE2_WEIGHT, 32832), LOCAL(real, DENSE1), LOCAL(real, DH));

    /* backward of mlp.tn:8  h = flatten(image) |> dense(128) |> relu */
    /* relu_d ddense1: (N, 128) -> (N, 128) */
    relu_d_2_stage(LOCAL(real, DH_2), LOCAL(real, DH_2), LOCAL(real, DENSE1));
    grid_barrier(arrived);
    /* sum_to ddense1.bias: (N, 128) -> (128) */
    sum_to_3_stage(PARTIAL(real, DDENSE1_BIAS, 576), LOCAL(real, DH_2));
    /* dense_dw ddense1.weight: (N, 784) -> (128, 784)   200.7 kFLOP a sample */
    dense_dw_own_1_stage(r, chip.at[5], SAMPLES(real, IMAGE), LOCAL(real, DH_2));
}

/* One step, by all blocks.  Its first stages touch no data of the last stages of the previous step, or wait at a barrier. */
DEVICE void train_step(const Rt *r, const Rt *next, bool odd, unsigned *arrived, const Chip &chip)
{
    const Scratch t = {r};

    (void)t, (void)next, (void)odd, (void)chip;
    slice(r, 0, odd, arrived, chip);

    /* sums over shards in the fixed tree, and the update of all parameters */
    own_1_stage(OWN_UPDATE, r, chip.at[0]); /* dense3.bias */
    own_2_stage(OWN_UPDATE, r, chip.at[1]); /* dense3.weight */
    own_3_stage(OWN_UPDATE, r, chip.at[2]); /* dense2.bias */
    own_4_stage(OWN_UPDATE, r, chip.at[3]); /* dense2.weight */
    own_5_stage(OWN_UPDATE, r, chip.at[4]); /* dense1.bias */
    if (next)
        gather(next, !odd);
}

/* n steps.  A step whose loss is not finite updates nothing and is the last. */
KERNEL_OF_STEPS train_steps(const Rt *first, int64_t stride, int n, unsigned *arrived, const Chip chip)
{
    owned(OWN_FETCH, first, chip);
    gather(first, false);
    for (int i = 0; i < n; i++) {
        const Rt *r = step_of(first, stride, i);
        train_step(r, i + 1 < n ? step_of(first, stride, i + 1) : nullptr, i % 2, arrived, chip);
        if (!update_allowed(r, 0))
            break;
    }
    owned(OWN_PUT, first, chip);
}

static void train_launch(const Rt *first, int64_t stride, int n, unsigned *arrived)
{
    LAUNCH_STEPS(train_steps, 0, own_layouts, first, stride, n, arrived);
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
    "image (mlp.tn:7)",
    "dense1 (mlp.tn:8)",
    "h (mlp.tn:8)",
    "dense2 (mlp.tn:9)",
    "h (mlp.tn:9)",
    "dense3 (mlp.tn:10)",
    "dense3 (mlp.tn:10)",
    "softmax_cross_entropy (mlp.tn:15)",
    "accuracy (mlp.tn:15)",
};

static int (*const nonfinite[])(const Rt *r, char *t, int unit) = {nonfinite_0};

/* ---- parameters: shape in files (first line), layout in memory (second line) ---- */

static const RtParam params[] = {
    {.name = "dense1.weight", .rank = 2, .dim = {128, 784},
     .naxis = 2, .axis = {{128, 128, 0, 784}, {784, 784, 0, 1}}, .count_memory = 100352,
     .offset = DENSE1_WEIGHT, .state = {DENSE1_WEIGHT_STATE0, -1}, .fan_in = 784, .fan_out = 128,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "dense1.bias", .rank = 1, .dim = {128},
     .naxis = 1, .axis = {{128, 128, 0, 1}}, .count_memory = 128,
     .offset = DENSE1_BIAS, .state = {DENSE1_BIAS_STATE0, -1}, .fan_in = 128, .fan_out = 128,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "dense2.weight", .rank = 2, .dim = {64, 128},
     .naxis = 2, .axis = {{64, 64, 0, 128}, {128, 128, 0, 1}}, .count_memory = 8192,
     .offset = DENSE2_WEIGHT, .state = {DENSE2_WEIGHT_STATE0, -1}, .fan_in = 128, .fan_out = 64,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "dense2.bias", .rank = 1, .dim = {64},
     .naxis = 1, .axis = {{64, 64, 0, 1}}, .count_memory = 64,
     .offset = DENSE2_BIAS, .state = {DENSE2_BIAS_STATE0, -1}, .fan_in = 64, .fan_out = 64,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "dense3.weight", .rank = 2, .dim = {10, 64},
     .naxis = 2, .axis = {{10, 10, 0, 64}, {64, 64, 0, 1}}, .count_memory = 640,
     .offset = DENSE3_WEIGHT, .state = {DENSE3_WEIGHT_STATE0, -1}, .fan_in = 64, .fan_out = 10,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "dense3.bias", .rank = 1, .dim = {10},
     .naxis = 1, .axis = {{10, 10, 0, 1}}, .count_memory = 10,
     .offset = DENSE3_BIAS, .state = {DENSE3_BIAS_STATE0, -1}, .fan_in = 10, .fan_out = 10,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
};

static const RtSum sums[] = {
    {.offset = 0, .count = 10, .param = 5},
    {.offset = 64, .count = 640, .param = 4},
    {.offset = 2624, .count = 64, .param = 3},
    {.offset = 2880, .count = 8192, .param = 2},
    {.offset = 35648, .count = 128, .param = 1},
    {.offset = 36160, .count = 100352, .param = 0},
};

/* ---- buckets of gradients, which ranks add beside the backward pass: complete after train[ready]; updated before train[due] of the next step ---- */

static const RtBucket buckets[] = {
    /* 0: dense3.bias .. dense1.weight */
    {.offset = 0, .bytes = 437568, .ready = 0, .due = 0,
     .units = 1,
     .updates = 1},
};

static const char *const data_dirs[] = {NULL};

const RtProgram rt_program = {
    .model = "mlp", .source = "models/mlp.tn", .source_hash = "5c3fec2d38c2330d",
    .compiler = "tenon 0.1.0", .flags = "--kernels persistent", .target = "cuda", .cpu = "sm_90", .isa = RT_ISA_ANY, .real_bytes = sizeof(real),
    .batch = 128, .shards = 1, .slices = SLICES, .chunk = CHUNK,
    .parameters = 109386, .flops_per_sample = 454400,
    .fixed_bytes = 875904, .shard_bytes = 437952, .thread_bytes = 2986752, .grad_bytes = 437568, .fused_update = true,
    .input_rank = 3, .input_dim = {1, 28, 28}, .classes = 10, .labels = 1, .outputs = 10, .softmax_output = true,
    .nmetric = 2, .metric = {"loss", "accuracy"},
    .param = params, .nparam = 6, .sum = sums, .nsum = 6, .ngradient = 6,
    .bucket = buckets, .nbucket = 1,
    .train = train, .ntrain = sizeof train / sizeof *train, .test = test, .ntest = sizeof test / sizeof *test,
    .recipe = {
        .data = "mnist", .samples = 0, .test_samples = 0, .x_scale = 0.0039215686274509803,
        .optimizer = RT_SGD, .lr = 0.050000000000000003, .momentum = 0.90000000000000002, .weight_decay = 0.0001, .rho = 0,
        .beta1 = 0, .beta2 = 0, .eps = 0, .clip_norm = 0, .clip_value = 0, .nesterov = false,
        .schedule = RT_SCHED_STEP, .nat = 1, .at = {10}, .factor = 0.10000000000000001, .power = 0, .end = 0, .warmup = 0,
        .epochs = 12, .seed = 1,
        .expect_metric = "test_accuracy", .expect_op = ">=", .expect_value = 0.97499999999999998,
    },
    .layer = layers, .nlayer = sizeof layers / sizeof *layers, .nonfinite = nonfinite, .nforward = sizeof nonfinite / sizeof *nonfinite,
    .data_dirs = data_dirs, .device = &rt_cuda,
    .steps = train_launch, .steps_most = 64, .steps_how = "all blocks that fit on the GPU",
};

int main(int argc, char **argv)
{
    return rt_main(&rt_program, argc, argv);
}
