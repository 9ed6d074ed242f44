/* lenet.c -- made by tenon from models/lenet.tn; change the model, not this file.
 *
 *   431,080 parameters, 13.18 MFLOP a sample forward and backward (textbook count)
 *   batch 128 = 8 shards of 16 samples; a shard = 1 slice of 16, a slice = 1 chunk of 16
 *   memory: parameters 1.78 MB, optimizer states 1.78 MB, packed weights 312 kB,
 *           566 kB a shard (lower bound 566 kB), 281 kB a thread (lower bound 281 kB)
 */
#include "rt.h"

enum { CHUNK = 16, SLICE = 16, SLICES = 1, SHARD = 16 };

#define KERNEL RT_FLATTEN __attribute__((noinline))    /* compiled once for all calls */
#define FIXED(type, at) ((type *)(r->fixed + (at)))
#define LOCAL(type, at) ((type *)(t + (at)))
#define OWN(type, at)   ((type *)(rt_team.own ? rt_team.own : t + (at)))
#define BATCH(type, at, bytes) ((type *)(shard + (at) + (int64_t)row * (bytes)))
#define PARTIAL(type, at, bytes) ((type *)(shard + (at) + (int64_t)slice * (bytes)))

enum { /* offsets into `fixed`: parameters and optimizer states */
    CONV1_WEIGHT                 =          0,   /* (20, 1, 5, 5) */
    CONV1_WEIGHT_STATE0          =    1775488,
    CONV1_BIAS                   =       2112,   /* (20) */
    CONV1_BIAS_STATE0            =    1777600,
    CONV2_WEIGHT                 =       2304,   /* (50, 20, 5, 5) */
    CONV2_WEIGHT_STATE0          =    1777792,
    CONV2_BIAS                   =     102400,   /* (50) */
    CONV2_BIAS_STATE0            =    1877888,
    DENSE1_WEIGHT                =     102720,   /* (500, 800) */
    DENSE1_WEIGHT_STATE0         =    1878208,
    DENSE1_BIAS                  =    1741184,   /* (500) */
    DENSE1_BIAS_STATE0           =    3516672,
    DENSE2_WEIGHT                =    1743296,   /* (10, 500) */
    DENSE2_WEIGHT_STATE0         =    3518784,
    DENSE2_BIAS                  =    1775360,   /* (10) */
    DENSE2_BIAS_STATE0           =    3550848,
};

enum { /* offsets into `fixed`: computed from parameters in each step */
    CONV1_WEIGHT_PACKED          =    3550976,   /* (800) */
    CONV2_WEIGHT_PACKED          =    3554240,   /* (46080) */
    DENSE2_WEIGHT_TRANSPOSED     =    3738624,   /* (5120) */
    CONV2_WEIGHT_PACKED_DX       =    3759168,   /* (26000) */
};

enum { /* offsets into the region of a shard: values that a later phase reads */
    IMAGE                        =     387008,   /* (N, 1, 28, 28), of all samples of a shard */
    CONV1                        =          0,   /* (N, 20, 12, 12), of all samples of a shard */
    CONV1_INDEX                  =     437248,   /* (N, 20, 12, 12), of all samples of a shard */
    CONV2                        =     284480,   /* (N, 50, 4, 4), of all samples of a shard */
    CONV2_INDEX                  =     547520,   /* (N, 50, 4, 4), of all samples of a shard */
    DENSE1                       =     483392,   /* (N, 500), of all samples of a shard */
    DDENSE2                      =     564608,   /* (N, 10), of all samples of a shard */
    DDENSE2_BIAS                 =     565824,   /* (10), one per slice */
    DH                           =     515456,   /* (N, 500), of all samples of a shard */
    DDENSE1_BIAS                 =     560384,   /* (500), one per slice */
    D_DENSE_DX                   =     335744,   /* (N, 800), of all samples of a shard */
    DCONV2_BIAS                  =     565312,   /* (50), one per slice */
    DCONV2_WEIGHT                =     184384,   /* (50, 20, 5, 5), one per slice */
    DCONV1_BIAS                  =     565632,   /* (20), one per slice */
    DCONV1_WEIGHT                =     562496,   /* (20, 1, 5, 5), one per slice */
};

enum { /* offsets into the region of a thread: values of one chunk */
    DENSE2                       =          0,   /* (N, 10) */
    LABEL                        =        704,   /* (N) */
    SOFTMAX_CROSS_ENTROPY        =        832,   /* (N) */
    ACCURACY                     =        960,   /* (N) */
    DH_2                         =          0,   /* (N, 20, 12, 12) */
};

enum { /* evaluation: offsets into `fixed`: computed from parameters in each step */
    TEST_CONV1_WEIGHT_PACKED     =    3550976,   /* (800) */
    TEST_CONV2_WEIGHT_PACKED     =    3554240,   /* (46080) */
};

enum { /* evaluation: offsets into the region of a thread: values of one chunk */
    TEST_IMAGE                   =     184384,   /* (N, 1, 28, 28) */
    TEST_CONV1                   =          0,   /* (N, 20, 12, 12) */
    TEST_CONV2                   =     184384,   /* (N, 50, 4, 4) */
    TEST_DENSE1                  =     235648,   /* (N, 500) */
    TEST_DENSE2                  =     267712,   /* (N, 10) */
    TEST_LABEL                   =     235648,   /* (N) */
    TEST_SOFTMAX_CROSS_ENTROPY   =     235776,   /* (N) */
    TEST_ACCURACY                =     235904,   /* (N) */
    TEST_CONV1_INDEX             =     234624,   /* (N, 20, 12, 12) */
    TEST_CONV2_INDEX             =     235648,   /* (N, 50, 4, 4) */
};

/* ---- kernels: sizes are literals, so the C compiler specialises each ---- */

static KERNEL void conv2d_pack_1(real *y, const real *a, int unit)
{
    conv2d_pack(y, a, (Conv){ .n = 16, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24, .pool = 2 }, unit, 64);
}

static KERNEL void wino_pack_1(real *y, const real *a, int unit)
{
    wino_pack(y, a, (Conv){ .n = 16, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8, .pool = 2 }, 2, unit, 64);
}

static KERNEL void dense_transpose_1(real *y, const real *a, int unit)
{
    dense_transpose(y, a, (Dense){ .n = 16, .k = 500, .o = 10 }, unit, 64);
}

static KERNEL void conv2d_pack_dx_1(real *y, const real *a, int unit)
{
    conv2d_pack_dx(y, a, (Conv){ .n = 16, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8, .pool = 2 }, unit, 64);
}

static KERNEL void conv2d_pool_1(real *y, uint8_t *side, const real *a, const real *b, const real *c)
{
    conv2d_pool(y, side, a, b, c, v_tanh, (Conv){ .n = 16, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24, .pool = 2 });
}

static KERNEL void conv2d_winograd_pool_1(real *y, uint8_t *side, const real *a, const real *b, const real *c)
{
    conv2d_winograd_pool(y, side, a, b, c, v_tanh, (Conv){ .n = 16, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8, .pool = 2 }, 2);
}

static KERNEL void dense_wide_1(real *y, const real *a, const real *b, const real *c, const Rt *r, int unit)
{
    dense_wide(y, a, b, c, v_tanh, (Dense){ .n = SHARD, .k = 800, .o = 500 }, r, unit);
}

static KERNEL void dense_1(real *y, const real *a, const real *b, const real *c)
{
    dense(y, a, b, c, v_identity, (Dense){ .n = 16, .k = 500, .o = 10 });
}

static KERNEL void softmax_cross_entropy_1(real *y, const real *a, const int32_t *b)
{
    softmax_cross_entropy(y, a, b, 16, 10);
}

static KERNEL void accuracy_1(real *y, const real *a, const int32_t *b)
{
    accuracy(y, a, b, 16, 10);
}

static KERNEL void softmax_cross_entropy_dx_1(real *y, const real *a, const int32_t *b)
{
    static const real k2[16] = {[0 ... 15] = 0.0078125};
    softmax_cross_entropy_dx(y, a, b, k2, 16, 10);
}

static KERNEL void sum_to_1(real *y, const real *a)
{
    channel_sum(y, a, 16, 10);
}

static KERNEL void dense_dx_transposed_1(real *y, const real *a, const real *b, const real *c)
{
    dense_dx_transposed(y, a, b, d_tanh, c, (Dense){ .n = 16, .k = 500, .o = 10 });
}

static KERNEL void sum_to_2(real *y, const real *a)
{
    channel_sum(y, a, 16, 500);
}

static KERNEL void dense_wide_dx_1(real *y, const real *a, const real *b, const real *c, const Rt *r, int unit)
{
    dense_wide_dx(y, a, b, d_tanh, c, (Dense){ .n = SHARD, .k = 800, .o = 500 }, r, unit);
}

static KERNEL void sum_to_3(real *y, const real *a)
{
    channel_sum(y, a, 256, 50);
}

static KERNEL void conv2d_pool_dx_1(real *y, const real *a, const real *b, const uint8_t *c, const real *d)
{
    conv2d_pool_dx(y, a, b, c, d_tanh, d, (Conv){ .n = 16, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8, .pool = 2 });
}

static KERNEL void conv2d_pool_dw_1(real *y, const real *a, const real *b, const uint8_t *c)
{
    conv2d_pool_dw(y, a, b, c, (Conv){ .n = 16, .c = 20, .h = 12, .w = 12, .o = 50, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 8, .ow = 8, .pool = 2 });
}

static KERNEL void sum_to_4(real *y, const real *a)
{
    channel_sum(y, a, 2304, 20);
}

static KERNEL void conv2d_pool_dw_2(real *y, const real *a, const real *b, const uint8_t *c)
{
    conv2d_pool_dw(y, a, b, c, (Conv){ .n = 16, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24, .pool = 2 });
}

static KERNEL void reduce_update_1(const Rt *r, int unit, int units, int64_t grad, real *w, real *s0, real *s1, int64_t count, const char *sums, int64_t slice_bytes)
{
    reduce_update(r, unit, units, grad, w, s0, s1, sums, slice_bytes, SLICES, count, (Factors){ .lr = 1, .decay = 0 }, update_sgd);
}

static KERNEL void dense_dw_update_1(const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, const char *x, const char *dy)
{
    dense_dw_update(r, unit, grad, w, s0, s1, x, dy, SHARD, (Factors){ .lr = 1, .decay = 1 }, update_sgd, (Dense){ .n = SHARD, .k = 500, .o = 10 });
}

static KERNEL void dense_dw_update_2(const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, const char *x, const char *dy)
{
    dense_dw_update(r, unit, grad, w, s0, s1, x, dy, SHARD, (Factors){ .lr = 1, .decay = 1 }, update_sgd, (Dense){ .n = SHARD, .k = 800, .o = 500 });
}

static KERNEL void reduce_update_2(const Rt *r, int unit, int units, int64_t grad, real *w, real *s0, real *s1, int64_t count, const char *sums, int64_t slice_bytes)
{
    reduce_update(r, unit, units, grad, w, s0, s1, sums, slice_bytes, SLICES, count, (Factors){ .lr = 1, .decay = 1 }, update_sgd);
}

static KERNEL void grad_update_1(const Rt *r, int unit, int units, int64_t grad, real *w, real *s0, real *s1, int64_t count)
{
    grad_update(r, unit, units, grad, w, s0, s1, count, (Factors){ .lr = 1, .decay = 0 }, update_sgd);
}

static KERNEL void grad_update_2(const Rt *r, int unit, int units, int64_t grad, real *w, real *s0, real *s1, int64_t count)
{
    grad_update(r, unit, units, grad, w, s0, s1, count, (Factors){ .lr = 1, .decay = 1 }, update_sgd);
}

static KERNEL void dense_2(real *y, const real *a, const real *b, const real *c)
{
    dense(y, a, b, c, v_tanh, (Dense){ .n = 16, .k = 800, .o = 500 });
}

/* ---- the step: phases with a barrier between two ---- */

/* Once in each step: what depends only on parameters. */
static void train_prepare(const Rt *r, char *t, int unit)
{
    (void)t;

    /* lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
    /* (800) */
    conv2d_pack_1(FIXED(real, CONV1_WEIGHT_PACKED), FIXED(real, CONV1_WEIGHT), unit); TICK(0);

    /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
    /* (46080) */
    wino_pack_1(FIXED(real, CONV2_WEIGHT_PACKED), FIXED(real, CONV2_WEIGHT), unit); TICK(1);

    /* lenet.tn:11  return dense(h, classes) */
    /* (5120) */
    dense_transpose_1(FIXED(real, DENSE2_WEIGHT_TRANSPOSED), FIXED(real, DENSE2_WEIGHT),
        unit); TICK(2);

    /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
    /* (26000) */
    conv2d_pack_dx_1(FIXED(real, CONV2_WEIGHT_PACKED_DX), FIXED(real, CONV2_WEIGHT), unit); TICK(3);
}

/* Forward, loss and backward of one slice, a chunk at a time: part 1 of 3. */
static RT_FLATTEN void train_slice_1(const Rt *r, char *t, int unit)
{
    const int slice = unit % SLICES;
    char *const shard = r->shard + unit / SLICES * r->shard_bytes;

    (void)shard;
    (void)t;
    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {
        const int first = (r->first_shard + unit / SLICES) * SHARD + row;
        (void)first;

        /* lenet.tn:7  model lenet(image: f32[1, 28, 28], classes: int = 10) { */
        /* (N, 1, 28, 28) */
        rt_input(BATCH(real, IMAGE, 3136), r, first, CHUNK, 1, 784, true); TEAM_BARRIER; TICK(4);

        /* lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
        /* (N, 1, 28, 28) -> (N, 20, 12, 12)
         *   samples in lanes, pooled before tanh   576.0 kFLOP a sample, 60 % of peak expected */
        conv2d_pool_1(BATCH(real, CONV1, 11520), BATCH(uint8_t, CONV1_INDEX, 2880),
            BATCH(real, IMAGE, 3136), FIXED(real, CONV1_WEIGHT_PACKED),
            FIXED(real, CONV1_BIAS)); TEAM_BARRIER; TICK(5);

        /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
        /* (N, 20, 12, 12) -> (N, 50, 4, 4)
         *   Winograd F(2x2, 5x5), pooled before tanh   3.20 MFLOP a sample, 145 % of peak expected */
        conv2d_winograd_pool_1(BATCH(real, CONV2, 3200), BATCH(uint8_t, CONV2_INDEX, 800),
            BATCH(real, CONV1, 11520), FIXED(real, CONV2_WEIGHT_PACKED),
            FIXED(real, CONV2_BIAS)); TICK(6);
    }
}

/* After a loss that is not finite: the forward pass again, up to the first value that is not finite. */
static int nonfinite_0(const Rt *r, char *t, int unit)
{
    const int slice = unit % SLICES;
    char *const shard = r->shard + unit / SLICES * r->shard_bytes;

    (void)shard;
    (void)t;
    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {
        const int first = (r->first_shard + unit / SLICES) * SHARD + row;
        (void)first;
        rt_input(BATCH(real, IMAGE, 3136), r, first, CHUNK, 1, 784, true);
        if (!rt_finite(BATCH(real, IMAGE, 3136), CHUNK * 784))
            return 0;
        conv2d_pool_1(BATCH(real, CONV1, 11520), BATCH(uint8_t, CONV1_INDEX, 2880), BATCH(real, IMAGE, 3136), FIXED(real, CONV1_WEIGHT_PACKED), FIXED(real, CONV1_BIAS));
        if (!rt_finite(BATCH(real, CONV1, 11520), CHUNK * 2880))
            return 1;
        conv2d_winograd_pool_1(BATCH(real, CONV2, 3200), BATCH(uint8_t, CONV2_INDEX, 800), BATCH(real, CONV1, 11520), FIXED(real, CONV2_WEIGHT_PACKED), FIXED(real, CONV2_BIAS));
        if (!rt_finite(BATCH(real, CONV2, 3200), CHUNK * 800))
            return 2;
    }
    return -1;
}

/* All samples at once.  A unit is a few panels of the weights; pointers point to the first sample of the first shard. */
static void train_wide_1(const Rt *r, char *t, int unit)
{
    enum { row = 0 };
    char *const shard = r->shard;

    (void)t;

    /* lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
    /* (N, 800) -> (N, 500)   all samples at once   800.0 kFLOP a sample, 85 % of peak expected */
    dense_wide_1(BATCH(real, DENSE1, 2000), BATCH(real, CONV2, 3200), FIXED(real, DENSE1_WEIGHT),
        FIXED(real, DENSE1_BIAS), r, unit); TICK(7);
}

/* Forward, loss and backward of one slice, a chunk at a time: part 2 of 3. */
static RT_FLATTEN void train_slice_2(const Rt *r, char *t, int unit)
{
    const int slice = unit % SLICES;
    char *const shard = r->shard + unit / SLICES * r->shard_bytes;

    (void)shard;
    (void)t;
    rt_team_clear(PARTIAL(real, DDENSE2_BIAS, 128), 128);
    rt_team_clear(PARTIAL(real, DDENSE1_BIAS, 2112), 2112);
    TEAM_BARRIER;
    TICK(8);
    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {
        const int first = (r->first_shard + unit / SLICES) * SHARD + row;
        (void)first;

        /* lenet.tn:11  return dense(h, classes) */
        /* (N, 500) -> (N, 10)   10.0 kFLOP a sample, 62 % of peak expected */
        dense_1(LOCAL(real, DENSE2), BATCH(real, DENSE1, 2000), FIXED(real, DENSE2_WEIGHT),
            FIXED(real, DENSE2_BIAS)); TICK(9);

        /* lenet.tn:16  loss      = softmax_cross_entropy */
        /* (N) */
        rt_labels(LOCAL(int32_t, LABEL), r, first, CHUNK, 1); TEAM_BARRIER; TICK(10);
        /* (N, 10) -> (N) */
        softmax_cross_entropy_1(LOCAL(real, SOFTMAX_CROSS_ENTROPY), LOCAL(real, DENSE2),
            LOCAL(int32_t, LABEL)); TICK(11);
        /* (N, 10) -> (N) */
        accuracy_1(LOCAL(real, ACCURACY), LOCAL(real, DENSE2), LOCAL(int32_t, LABEL)); TICK(12);
        /* (N, 10) -> (N, 10) */
        softmax_cross_entropy_dx_1(BATCH(real, DDENSE2, 40), LOCAL(real, DENSE2),
            LOCAL(int32_t, LABEL)); TEAM_BARRIER; TICK(13);

        /* backward of lenet.tn:11  return dense(h, classes) */
        /* ddense2.bias: (N, 10) -> (10) */
        sum_to_1(PARTIAL(real, DDENSE2_BIAS, 128), BATCH(real, DDENSE2, 40)); TICK(14);
        /* (N, 10) -> (N, 500)   10.0 kFLOP a sample, 60 % of peak expected */
        dense_dx_transposed_1(BATCH(real, DH, 2000), FIXED(real, DENSE2_WEIGHT_TRANSPOSED),
            BATCH(real, DDENSE2, 40), BATCH(real, DENSE1, 2000)); TEAM_BARRIER; TICK(15);

        /* backward of lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
        /* ddense1.bias: (N, 500) -> (500) */
        sum_to_2(PARTIAL(real, DDENSE1_BIAS, 2112), BATCH(real, DH, 2000)); TEAM_BARRIER; TICK(16);

        ALONE(rt_metric(r, unit, 0, first, CHUNK, LOCAL(real, SOFTMAX_CROSS_ENTROPY))); /* loss */
        ALONE(rt_metric(r, unit, 1, first, CHUNK, LOCAL(real, ACCURACY))); /* accuracy */
        TEAM_BARRIER;
    }
}

/* After a loss that is not finite: the forward pass again, up to the first value that is not finite. */
static int nonfinite_1(const Rt *r, char *t, int unit)
{
    const int slice = unit % SLICES;
    char *const shard = r->shard + unit / SLICES * r->shard_bytes;

    (void)shard;
    (void)t;
    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {
        const int first = (r->first_shard + unit / SLICES) * SHARD + row;
        (void)first;
        if (!rt_finite(BATCH(real, DENSE1, 2000), CHUNK * 500))
            return 3;
        dense_1(LOCAL(real, DENSE2), BATCH(real, DENSE1, 2000), FIXED(real, DENSE2_WEIGHT), FIXED(real, DENSE2_BIAS));
        if (!rt_finite(LOCAL(real, DENSE2), CHUNK * 10))
            return 4;
        rt_labels(LOCAL(int32_t, LABEL), r, first, CHUNK, 1);
        softmax_cross_entropy_1(LOCAL(real, SOFTMAX_CROSS_ENTROPY), LOCAL(real, DENSE2), LOCAL(int32_t, LABEL));
        if (!rt_finite(LOCAL(real, SOFTMAX_CROSS_ENTROPY), CHUNK * 1))
            return 5;
        accuracy_1(LOCAL(real, ACCURACY), LOCAL(real, DENSE2), LOCAL(int32_t, LABEL));
        if (!rt_finite(LOCAL(real, ACCURACY), CHUNK * 1))
            return 6;
    }
    return -1;
}

/* All samples at once.  A unit is a few panels of the weights; pointers point to the first sample of the first shard. */
static void train_wide_2(const Rt *r, char *t, int unit)
{
    enum { row = 0 };
    char *const shard = r->shard;

    (void)t;

    /* backward of lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
    /* (N, 500) -> (N, 800)   all samples at once   800.0 kFLOP a sample, 87 % of peak expected */
    dense_wide_dx_1(BATCH(real, D_DENSE_DX, 3200), FIXED(real, DENSE1_WEIGHT),
        BATCH(real, DH, 2000), BATCH(real, CONV2, 3200), r, unit); TICK(17);
}

/* Forward, loss and backward of one slice, a chunk at a time: part 3 of 3. */
static RT_FLATTEN void train_slice_3(const Rt *r, char *t, int unit)
{
    const int slice = unit % SLICES;
    char *const shard = r->shard + unit / SLICES * r->shard_bytes;

    (void)shard;
    (void)t;
    rt_team_clear(PARTIAL(real, DCONV2_BIAS, 320), 320);
    rt_team_clear(PARTIAL(real, DCONV2_WEIGHT, 100096), 100096);
    rt_team_clear(PARTIAL(real, DCONV1_BIAS, 192), 192);
    rt_team_clear(PARTIAL(real, DCONV1_WEIGHT, 2112), 2112);
    TEAM_BARRIER;
    TICK(18);
    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {
        const int first = (r->first_shard + unit / SLICES) * SHARD + row;
        (void)first;

        /* backward of lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
        /* dconv2.bias: (N, 50, 4, 4) -> (50) */
        sum_to_3(PARTIAL(real, DCONV2_BIAS, 320), BATCH(real, D_DENSE_DX, 3200)); TICK(19);
        /* (N, 50, 4, 4) -> (N, 20, 12, 12)
         *   sparse after the pool   3.20 MFLOP a sample, 172 % of peak expected */
        conv2d_pool_dx_1(LOCAL(real, DH_2), FIXED(real, CONV2_WEIGHT_PACKED_DX),
            BATCH(real, D_DENSE_DX, 3200), BATCH(uint8_t, CONV2_INDEX, 800),
            BATCH(real, CONV1, 11520)); TICK(20);
        /* dconv2.weight: (N, 20, 12, 12) -> (50, 20, 5, 5)
         *   sparse after the pool   3.20 MFLOP a sample, 185 % of peak expected */
        conv2d_pool_dw_1(PARTIAL(real, DCONV2_WEIGHT, 100096), BATCH(real, CONV1, 11520),
            BATCH(real, D_DENSE_DX, 3200),
            BATCH(uint8_t, CONV2_INDEX, 800)); TEAM_BARRIER; TICK(21);

        /* backward of lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
        /* dconv1.bias: (N, 20, 12, 12) -> (20) */
        sum_to_4(PARTIAL(real, DCONV1_BIAS, 192), LOCAL(real, DH_2)); TICK(22);
        /* dconv1.weight: (N, 1, 28, 28) -> (20, 1, 5, 5)
         *   sparse after the pool, patch by patch   576.0 kFLOP a sample, 134 % of peak expected */
        conv2d_pool_dw_2(PARTIAL(real, DCONV1_WEIGHT, 2112), BATCH(real, IMAGE, 3136),
            LOCAL(real, DH_2), BATCH(uint8_t, CONV1_INDEX, 2880)); TEAM_BARRIER; TICK(23);
    }
}

/* Sums over slices and shards in the fixed tree, and the update unless a reduction comes between. */
static void train_gradient(const Rt *r, char *t, int unit)
{
    (void)t;
    if (unit < 1) { /* dense2.bias */
        reduce_update_1(r, unit, 1, 0, FIXED(real, DENSE2_BIAS), FIXED(real, DENSE2_BIAS_STATE0),
            NULL, 10, r->shard + DDENSE2_BIAS, 128); TICK(24);
        return;
    }
    unit -= 1;
    if (unit < DENSE_UNITS(500, 10)) { /* dense2.weight */
        dense_dw_update_1(r, unit, 64, FIXED(real, DENSE2_WEIGHT),
            FIXED(real, DENSE2_WEIGHT_STATE0), NULL, r->shard + DENSE1,
            r->shard + DDENSE2); TICK(25);
        return;
    }
    unit -= DENSE_UNITS(500, 10);
    if (unit < 1) { /* dense1.bias */
        reduce_update_1(r, unit, 1, 32064, FIXED(real, DENSE1_BIAS),
            FIXED(real, DENSE1_BIAS_STATE0), NULL, 500, r->shard + DDENSE1_BIAS, 2112); TICK(26);
        return;
    }
    unit -= 1;
    if (unit < DENSE_UNITS(800, 500)) { /* dense1.weight */
        dense_dw_update_2(r, unit, 34112, FIXED(real, DENSE1_WEIGHT),
            FIXED(real, DENSE1_WEIGHT_STATE0), NULL, r->shard + CONV2, r->shard + DH); TICK(27);
        return;
    }
    unit -= DENSE_UNITS(800, 500);
    if (unit < 1) { /* conv2.bias */
        reduce_update_1(r, unit, 1, 1672512, FIXED(real, CONV2_BIAS),
            FIXED(real, CONV2_BIAS_STATE0), NULL, 50, r->shard + DCONV2_BIAS, 320); TICK(28);
        return;
    }
    unit -= 1;
    if (unit < 7) { /* conv2.weight */
        reduce_update_2(r, unit, 7, 1672768, FIXED(real, CONV2_WEIGHT),
            FIXED(real, CONV2_WEIGHT_STATE0), NULL, 25000, r->shard + DCONV2_WEIGHT,
            100096); TICK(29);
        return;
    }
    unit -= 7;
    if (unit < 1) { /* conv1.bias */
        reduce_update_1(r, unit, 1, 1772800, FIXED(real, CONV1_BIAS),
            FIXED(real, CONV1_BIAS_STATE0), NULL, 20, r->shard + DCONV1_BIAS, 192); TICK(30);
        return;
    }
    unit -= 1;
    if (unit < 1) { /* conv1.weight */
        reduce_update_2(r, unit, 1, 1772928, FIXED(real, CONV1_WEIGHT),
            FIXED(real, CONV1_WEIGHT_STATE0), NULL, 500, r->shard + DCONV1_WEIGHT, 2112); TICK(31);
        return;
    }
    unit -= 1;
}

/* The update from reduced gradients: for ranks, groups and clipping by norm. */
static void train_update(const Rt *r, char *t, int unit)
{
    (void)t;
    if (unit < 1) { /* dense2.bias */
        grad_update_1(r, unit, 1, 0, FIXED(real, DENSE2_BIAS), FIXED(real, DENSE2_BIAS_STATE0),
            NULL, 10); TICK(32);
        return;
    }
    unit -= 1;
    if (unit < 2) { /* dense2.weight */
        grad_update_2(r, unit, 2, 64, FIXED(real, DENSE2_WEIGHT), FIXED(real, DENSE2_WEIGHT_STATE0),
            NULL, 8000); TICK(33);
        return;
    }
    unit -= 2;
    if (unit < 1) { /* dense1.bias */
        grad_update_1(r, unit, 1, 32064, FIXED(real, DENSE1_BIAS), FIXED(real, DENSE1_BIAS_STATE0),
            NULL, 500); TICK(34);
        return;
    }
    unit -= 1;
    if (unit < 64) { /* dense1.weight */
        grad_update_2(r, unit, 64, 34112, FIXED(real, DENSE1_WEIGHT),
            FIXED(real, DENSE1_WEIGHT_STATE0), NULL, 409600); TICK(35);
        return;
    }
    unit -= 64;
    if (unit < 1) { /* conv2.bias */
        grad_update_1(r, unit, 1, 1672512, FIXED(real, CONV2_BIAS), FIXED(real, CONV2_BIAS_STATE0),
            NULL, 50); TICK(36);
        return;
    }
    unit -= 1;
    if (unit < 7) { /* conv2.weight */
        grad_update_2(r, unit, 7, 1672768, FIXED(real, CONV2_WEIGHT),
            FIXED(real, CONV2_WEIGHT_STATE0), NULL, 25000); TICK(37);
        return;
    }
    unit -= 7;
    if (unit < 1) { /* conv1.bias */
        grad_update_1(r, unit, 1, 1772800, FIXED(real, CONV1_BIAS), FIXED(real, CONV1_BIAS_STATE0),
            NULL, 20); TICK(38);
        return;
    }
    unit -= 1;
    if (unit < 1) { /* conv1.weight */
        grad_update_2(r, unit, 1, 1772928, FIXED(real, CONV1_WEIGHT),
            FIXED(real, CONV1_WEIGHT_STATE0), NULL, 500); TICK(39);
        return;
    }
    unit -= 1;
}

/* Once in each step: what depends only on parameters. */
static void test_prepare(const Rt *r, char *t, int unit)
{
    (void)t;

    /* lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
    /* (800) */
    conv2d_pack_1(FIXED(real, TEST_CONV1_WEIGHT_PACKED), FIXED(real, CONV1_WEIGHT), unit);

    /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
    /* (46080) */
    wino_pack_1(FIXED(real, TEST_CONV2_WEIGHT_PACKED), FIXED(real, CONV2_WEIGHT), unit);
}

/* Forward of one slice of an evaluation batch. */
static RT_FLATTEN void test_slice(const Rt *r, char *t, int unit)
{
    const int slice = unit % SLICES;
    char *const shard = r->shard + unit / SLICES * r->shard_bytes;

    (void)shard;
    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {
        const int first = (r->first_shard + unit / SLICES) * SHARD + row;

        /* lenet.tn:7  model lenet(image: f32[1, 28, 28], classes: int = 10) { */
        /* (N, 1, 28, 28) */
        rt_input(LOCAL(real, TEST_IMAGE), r, first, CHUNK, 1, 784, true); TEAM_BARRIER;

        /* lenet.tn:8  h = conv2d(image, 20, kernel = 5) |> tanh |> max_pool(2) */
        /* (N, 1, 28, 28) -> (N, 20, 12, 12)
         *   samples in lanes, pooled before tanh   576.0 kFLOP a sample, 60 % of peak expected */
        conv2d_pool_1(LOCAL(real, TEST_CONV1), LOCAL(uint8_t, TEST_CONV1_INDEX),
            LOCAL(real, TEST_IMAGE), FIXED(real, TEST_CONV1_WEIGHT_PACKED),
            FIXED(real, CONV1_BIAS)); TEAM_BARRIER;

        /* lenet.tn:9  h = conv2d(h, 50, kernel = 5) |> tanh |> max_pool(2) */
        /* (N, 20, 12, 12) -> (N, 50, 4, 4)
         *   Winograd F(2x2, 5x5), pooled before tanh   3.20 MFLOP a sample, 145 % of peak expected */
        conv2d_winograd_pool_1(LOCAL(real, TEST_CONV2), LOCAL(uint8_t, TEST_CONV2_INDEX),
            LOCAL(real, TEST_CONV1), FIXED(real, TEST_CONV2_WEIGHT_PACKED),
            FIXED(real, CONV2_BIAS)); TEAM_BARRIER;

        /* lenet.tn:10  h = flatten(h) |> dense(500) |> tanh */
        /* (N, 800) -> (N, 500)   800.0 kFLOP a sample, 85 % of peak expected */
        dense_2(LOCAL(real, TEST_DENSE1), LOCAL(real, TEST_CONV2), FIXED(real, DENSE1_WEIGHT),
            FIXED(real, DENSE1_BIAS)); TEAM_BARRIER;

        /* lenet.tn:11  return dense(h, classes) */
        /* (N, 500) -> (N, 10)   10.0 kFLOP a sample, 62 % of peak expected */
        dense_1(LOCAL(real, TEST_DENSE2), LOCAL(real, TEST_DENSE1), FIXED(real, DENSE2_WEIGHT),
            FIXED(real, DENSE2_BIAS)); TEAM_BARRIER;

        /* lenet.tn:16  loss      = softmax_cross_entropy */
        /* (N) */
        rt_labels(LOCAL(int32_t, TEST_LABEL), r, first, CHUNK, 1); TEAM_BARRIER;
        /* (N, 10) -> (N) */
        softmax_cross_entropy_1(LOCAL(real, TEST_SOFTMAX_CROSS_ENTROPY), LOCAL(real, TEST_DENSE2),
            LOCAL(int32_t, TEST_LABEL));
        /* (N, 10) -> (N) */
        accuracy_1(LOCAL(real, TEST_ACCURACY), LOCAL(real, TEST_DENSE2),
            LOCAL(int32_t, TEST_LABEL)); TEAM_BARRIER;

        ALONE(rt_metric(r, unit, 0, first, CHUNK, LOCAL(real, TEST_SOFTMAX_CROSS_ENTROPY))); /* loss */
        ALONE(rt_metric(r, unit, 1, first, CHUNK, LOCAL(real, TEST_ACCURACY))); /* accuracy */
        ALONE(rt_output(r, first, CHUNK, 10, LOCAL(real, TEST_DENSE2)));
        TEAM_BARRIER;
    }
}

static const RtPhase train[] = {
    {.run = train_prepare, .per_slice = false, .count = 64, .from_grad = false, .what = "pack weights",
     .bytes = 4.34e+05, .local_bytes = 0},
    {.run = train_slice_1, .per_slice = true, .count = 0, .from_grad = false, .what = "forward and backward of a slice", .unit_us = 513.7, .alone_us = 0, .barriers = 2,
     .bytes = 2.944e+06, .local_bytes = 0},
    {.run = train_wide_1, .per_slice = false, .count = DENSE_WIDE_UNITS(500), .from_grad = false, .what = "a dense layer for all samples",
     .bytes = 2.268e+06, .local_bytes = 0},
    {.run = train_slice_2, .per_slice = true, .count = 0, .from_grad = false, .what = "forward and backward of a slice", .unit_us = 7.574, .alone_us = 0, .barriers = 4,
     .bytes = 5.74e+05, .local_bytes = 1.331e+04},
    {.run = train_wide_2, .per_slice = false, .count = DENSE_WIDE_UNITS_DX(800), .from_grad = false, .what = "a dense layer for all samples",
     .bytes = 2.675e+06, .local_bytes = 0},
    {.run = train_slice_3, .per_slice = true, .count = 0, .from_grad = false, .what = "forward and backward of a slice", .unit_us = 671.3, .alone_us = 0, .barriers = 2,
     .bytes = 3.679e+06, .local_bytes = 2.949e+06},
    {.run = train_gradient, .per_slice = false, .count = 1 + DENSE_UNITS(500, 10) + 1 + DENSE_UNITS(800, 500) + 1 + 7 + 1 + 1, .from_grad = false, .what = "sum gradients, update", .to_grad = true,
     .bytes = 8.86e+06, .local_bytes = 0},
    {.run = train_update, .per_slice = false, .count = 1 + 2 + 1 + 64 + 1 + 7 + 1 + 1, .from_grad = true, .what = "update",
     .bytes = 8.86e+06, .local_bytes = 0},
};

static const RtPhase test[] = {
    {.run = test_prepare, .per_slice = false, .count = 64, .from_grad = false, .what = "pack weights"},
    {.run = test_slice, .per_slice = true, .count = 0, .from_grad = false, .what = "forward of a slice", .unit_us = 668.6, .alone_us = 0, .barriers = 7},
};

static const char *const layers[] = {
    "image (lenet.tn:7)",
    "conv1 (lenet.tn:8)",
    "conv2 (lenet.tn:9)",
    "dense1 (lenet.tn:10)",
    "dense2 (lenet.tn:11)",
    "softmax_cross_entropy (lenet.tn:16)",
    "accuracy (lenet.tn:16)",
};

static int (*const nonfinite[])(const Rt *r, char *t, int unit) = {nonfinite_0, nonfinite_1};

static const RtCall calls[] = {
    {"conv1", "conv2d_pack_1", "lenet.tn:8", 0, "", 0, 0.3097, 5200},
    {"conv2", "wino_pack_1", "lenet.tn:9", 0, "", 0, 11.93, 2.843e+05},
    {"dense2", "dense_transpose_1", "lenet.tn:11", 0, "", 0, 1.183, 4e+04},
    {"conv2", "conv2d_pack_dx_1", "lenet.tn:9", 0, "", 0, 2.669, 2.04e+05},
    {"image", "rt_input", "lenet.tn:7", 0, "", 0, 32.37, 8.028e+05},
    {"conv1", "conv2d_pool_1", "lenet.tn:8", 576000, "samples in lanes, pooled before tanh", 5.76e+05, 1232, 2.27e+06},
    {"conv2", "conv2d_winograd_pool_1", "lenet.tn:9", 3200000, "Winograd F(2x2, 5x5), pooled before tanh", 1.413e+06, 2845, 1.378e+07},
    {"dense1", "dense_wide_1", "lenet.tn:10", 800000, "all samples at once", 8.064e+05, 1215, 1.377e+07},
    {"sums over samples", "memset", "", 0, "", 0, 0.1806, 1.792e+04},
    {"dense2", "dense_1", "lenet.tn:11", 10000, "", 1.6e+04, 20.84, 5.171e+05},
    {"label", "rt_labels", "lenet.tn:16", 0, "", 0, 0.04129, 1024},
    {"softmax_cross_entropy", "softmax_cross_entropy_1", "lenet.tn:16", 0, "", 0, 3.071, 5632},
    {"accuracy", "accuracy_1", "lenet.tn:16", 0, "", 0, 0.2581, 5632},
    {"ddense2", "softmax_cross_entropy_dx_1", "lenet.tn:16", 0, "", 0, 3.071, 1.024e+04},
    {"ddense2.bias", "sum_to_1", "lenet.tn:11", 0, "", 10, 1.208, 5440},
    {"dh", "dense_dx_transposed_1", "lenet.tn:11", 10000, "", 1.008e+04, 21.65, 5.171e+05},
    {"ddense1.bias", "sum_to_2", "lenet.tn:10", 0, "", 500, 10.46, 2.72e+05},
    {"dense1", "dense_wide_dx_1", "lenet.tn:10", 800000, "all samples at once", 8e+05, 1182, 1.377e+07},
    {"sums over samples", "memset", "", 0, "", 0, 16.57, 8.218e+05},
    {"dconv2.bias", "sum_to_3", "lenet.tn:9", 0, "", 800, 18.55, 4.112e+05},
    {"dh", "conv2d_pool_dx_1", "lenet.tn:9", 3200000, "sparse after the pool", 8.32e+05, 2394, 1.677e+07},
    {"dconv2.weight", "conv2d_pool_dw_1", "lenet.tn:9", 3200000, "sparse after the pool", 8.32e+05, 2235, 2.759e+07},
    {"dconv1.bias", "sum_to_4", "lenet.tn:8", 0, "", 2880, 166.5, 1.475e+06},
    {"dconv1.weight", "conv2d_pool_dw_2", "lenet.tn:8", 576000, "sparse after the pool, patch by patch", 1.843e+05, 556, 2.757e+06},
    {"dense2.bias", "reduce_update_1", "lenet.tn:11", 0, "", 0, 0.02452, 480},
    {"dense2.weight", "dense_dw_update_1", "lenet.tn:11", 10000, "", 1.6e+04, 35.57, 1.072e+06},
    {"dense1.bias", "reduce_update_1", "lenet.tn:10", 0, "", 0, 0.7723, 2.4e+04},
    {"dense1.weight", "dense_dw_update_2", "lenet.tn:10", 800000, "", 8.064e+05, 2058, 5.479e+07},
    {"conv2.bias", "reduce_update_1", "lenet.tn:9", 0, "", 0, 0.08581, 2400},
    {"conv2.weight", "reduce_update_2", "lenet.tn:9", 0, "", 0, 50.4, 1.2e+06},
    {"conv1.bias", "reduce_update_1", "lenet.tn:8", 0, "", 0, 0.03677, 960},
    {"conv1.weight", "reduce_update_2", "lenet.tn:8", 0, "", 0, 0.7723, 2.4e+04},
    {"dense2.bias", "grad_update_1", "lenet.tn:11", 0, "", 0, 0.006452, 200},
    {"dense2.weight", "grad_update_2", "lenet.tn:11", 0, "", 0, 4.086, 1.6e+05},
    {"dense1.bias", "grad_update_1", "lenet.tn:10", 0, "", 0, 0.2032, 1e+04},
    {"dense1.weight", "grad_update_2", "lenet.tn:10", 0, "", 0, 247.7, 8.192e+06},
    {"conv2.bias", "grad_update_1", "lenet.tn:9", 0, "", 0, 0.02258, 1000},
    {"conv2.weight", "grad_update_2", "lenet.tn:9", 0, "", 0, 12.77, 5e+05},
    {"conv1.bias", "grad_update_1", "lenet.tn:8", 0, "", 0, 0.009677, 400},
    {"conv1.weight", "grad_update_2", "lenet.tn:8", 0, "", 0, 0.2032, 1e+04},
};

/* ---- parameters: shape in files (first line), layout in memory (second line) ---- */

static const RtParam params[] = {
    {.name = "conv1.weight", .rank = 4, .dim = {20, 1, 5, 5},
     .naxis = 4, .axis = {{20, 1, 25, 0}, {1, 1, 1, 0}, {5, 1, 5, 0}, {5, 1, 1, 0}}, .count_memory = 500,
     .offset = CONV1_WEIGHT, .state = {CONV1_WEIGHT_STATE0, -1}, .fan_in = 25, .fan_out = 500,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "conv1.bias", .rank = 1, .dim = {20},
     .naxis = 1, .axis = {{20, 20, 0, 1}}, .count_memory = 20,
     .offset = CONV1_BIAS, .state = {CONV1_BIAS_STATE0, -1}, .fan_in = 20, .fan_out = 20,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "conv2.weight", .rank = 4, .dim = {50, 20, 5, 5},
     .naxis = 4, .axis = {{50, 1, 500, 0}, {20, 1, 1, 0}, {5, 1, 100, 0}, {5, 1, 20, 0}}, .count_memory = 25000,
     .offset = CONV2_WEIGHT, .state = {CONV2_WEIGHT_STATE0, -1}, .fan_in = 500, .fan_out = 1250,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "conv2.bias", .rank = 1, .dim = {50},
     .naxis = 1, .axis = {{50, 50, 0, 1}}, .count_memory = 50,
     .offset = CONV2_BIAS, .state = {CONV2_BIAS_STATE0, -1}, .fan_in = 50, .fan_out = 50,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "dense1.weight", .rank = 2, .dim = {500, 800},
     .naxis = 4, .axis = {{500, 16, 12800, 1}, {50, 1, 16, 0}, {4, 1, 3200, 0}, {4, 1, 800, 0}}, .count_memory = 409600,
     .offset = DENSE1_WEIGHT, .state = {DENSE1_WEIGHT_STATE0, -1}, .fan_in = 800, .fan_out = 500,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "dense1.bias", .rank = 1, .dim = {500},
     .naxis = 1, .axis = {{500, 500, 0, 1}}, .count_memory = 500,
     .offset = DENSE1_BIAS, .state = {DENSE1_BIAS_STATE0, -1}, .fan_in = 500, .fan_out = 500,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
    {.name = "dense2.weight", .rank = 2, .dim = {10, 500},
     .naxis = 2, .axis = {{10, 16, 8000, 1}, {500, 1, 16, 0}}, .count_memory = 8000,
     .offset = DENSE2_WEIGHT, .state = {DENSE2_WEIGHT_STATE0, -1}, .fan_in = 500, .fan_out = 10,
     .init = {RT_XAVIER, true, RT_FAN_IN, 2, 0}},
    {.name = "dense2.bias", .rank = 1, .dim = {10},
     .naxis = 1, .axis = {{10, 10, 0, 1}}, .count_memory = 10,
     .offset = DENSE2_BIAS, .state = {DENSE2_BIAS_STATE0, -1}, .fan_in = 10, .fan_out = 10,
     .init = {RT_CONSTANT, false, RT_FAN_IN, 0, 0}},
};

static const RtSum sums[] = {
    {.offset = 0, .count = 10, .param = 7},
    {.offset = 64, .count = 8000, .param = 6},
    {.offset = 32064, .count = 500, .param = 5},
    {.offset = 34112, .count = 409600, .param = 4},
    {.offset = 1672512, .count = 50, .param = 3},
    {.offset = 1672768, .count = 25000, .param = 2},
    {.offset = 1772800, .count = 20, .param = 1},
    {.offset = 1772928, .count = 500, .param = 0},
};

/* ---- buckets of gradients, which ranks add beside the backward pass: complete after train[ready]; updated before train[due] of the next step ---- */

static const RtBucket buckets[] = {
    /* 0: dense2.bias .. conv1.weight */
    {.offset = 0, .bytes = 1774976, .ready = 5, .due = 0,
     .units = 1 + DENSE_UNITS(500, 10) + 1 + DENSE_UNITS(800, 500) + 1 + 7 + 1 + 1,
     .updates = 1 + 2 + 1 + 64 + 1 + 7 + 1 + 1},
};

/* ---- ranges of sums: number of units, predicted time of all of them in us ---- */

static const RtRange ranges[] = {
    {1, 0.02452}, /* dense2.bias */
    {DENSE_UNITS(500, 10), 35.57}, /* dense2.weight */
    {1, 0.7723}, /* dense1.bias */
    {DENSE_UNITS(800, 500), 2058}, /* dense1.weight */
    {1, 0.08581}, /* conv2.bias */
    {7, 50.4}, /* conv2.weight */
    {1, 0.03677}, /* conv1.bias */
    {1, 0.7723}, /* conv1.weight */
};

static const char *const data_dirs[] = {NULL};

const RtProgram rt_program = {
    .model = "lenet", .source = "models/lenet.tn", .source_hash = "5bdae5c3c785ac48",
    .compiler = "tenon 0.1.0", .flags = "--cpu x86-64-v3", .target = "cpu", .cpu = "x86-64-v3", .isa = RT_ISA_X86_V3, .real_bytes = sizeof(real),
    .batch = 128, .shards = 8, .slices = SLICES, .chunk = CHUNK,
    .parameters = 431080, .flops_per_sample = 13182000,
    .fixed_bytes = 3863232, .shard_bytes = 565952, .thread_bytes = 280768, .grad_bytes = 1774976, .fused_update = true,
    .input_rank = 3, .input_dim = {1, 28, 28}, .classes = 10, .labels = 1, .outputs = 10, .softmax_output = true,
    .nmetric = 2, .metric = {"loss", "accuracy"},
    .param = params, .nparam = 8, .sum = sums, .nsum = 8, .ngradient = 8,
    .bucket = buckets, .nbucket = 1,
    .range = ranges, .nrange = sizeof ranges / sizeof *ranges,
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
    .core = "Zen 3", .core_gflops = 99.2, .call = calls, .ncall = sizeof calls / sizeof *calls,
    .data_dirs = data_dirs,
};

int main(int argc, char **argv)
{
    return rt_main(&rt_program, argc, argv);
}
