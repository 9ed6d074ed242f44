/* mini.h -- a small generated program, written by hand, with which the runtime is tested.
 *
 *   x (16) -> dense 8, tanh -> dense 4 -> softmax cross-entropy
 *   batch 16 = 4 shards of 2 slices of 2 samples
 *
 * Momentum SGD.  The first weight is transposed in memory, so that file order and memory order
 * differ.  It has every phase of a real program: sums of slices, then sums over slices and shards
 * with the update inside, or into a gradient buffer with the update after it.  Include it once,
 * with RT_F64 defined before or not.
 */
#include "rt.h"
#include <math.h>
#include <string.h>

enum { X = 16, H = 8, O = 4, BATCH = 16, SHARDS = 4, SLICES = 2, SLICE = 2 };

/* All parameters in a row, in reals; momentum follows them in `fixed`, sums of slices stand in the shard's region. */
enum { W1 = 0, B1 = W1 + X * H, W2 = B1 + H, B2 = W2 + O * H, PARAMETERS = B2 + O, PADDED = 192 };
enum { FIXED_BYTES = 2 * PADDED * sizeof(real), PARTIAL_BYTES = PADDED * sizeof(real) };

static void (*mini_watch)(const Rt *r, int unit);     /* called before a slice of training, for tests */

static void mini_forward(const real *p, const real *x, real *h, real *y)
{
    for (int j = 0; j < H; j++) {
        real s = p[B1 + j];
        for (int i = 0; i < X; i++)
            s += p[W1 + i * H + j] * x[i];
        h[j] = (real)tanh((double)s);
    }
    for (int k = 0; k < O; k++) {
        y[k] = p[B2 + k];
        for (int j = 0; j < H; j++)
            y[k] += p[W2 + k * H + j] * h[j];
    }
}

static void mini_input(const Rt *r, int sample, real *x)
{
    const char *row = (const char *)r->x + (int64_t)r->index[sample] * r->x_stride;
    for (int i = 0; i < X; i++)
        x[i] = r->x_type == RT_U8    ? (real)((const uint8_t *)row)[i] * (real)r->x_scale
               : r->x_type == RT_F32 ? (real)((const float *)row)[i]
                                     : (real)((const double *)row)[i];
}

/* Probabilities into y; returns the loss. */
static double mini_loss(real *y, int label)
{
    double top = y[0], sum = 0, at = (double)y[label];
    for (int k = 1; k < O; k++)
        top = fmax(top, (double)y[k]);
    for (int k = 0; k < O; k++)
        sum += exp((double)y[k] - top);
    for (int k = 0; k < O; k++)
        y[k] = (real)(exp((double)y[k] - top) / sum);
    return log(sum) + top - at;
}

static void mini_metrics(const Rt *r, int unit, int sample, const real *y, int label, double loss)
{
    int best = 0;
    for (int k = 1; k < O; k++)
        best = y[k] > y[best] ? k : best;
    if (sample < r->valid) {
        r->metric[unit * RT_METRICS] += loss;
        r->metric[unit * RT_METRICS + 1] += best == label;
    }
}

static void mini_backward(real *g, const real *p, const real *x, const real *h, const real *dy)
{
    for (int k = 0; k < O; k++) {
        g[B2 + k] += dy[k];
        for (int j = 0; j < H; j++)
            g[W2 + k * H + j] += dy[k] * h[j];
    }
    for (int j = 0; j < H; j++) {
        real d = 0;
        for (int k = 0; k < O; k++)
            d += dy[k] * p[W2 + k * H + j];
        d *= 1 - h[j] * h[j];
        g[B1 + j] += d;
        for (int i = 0; i < X; i++)
            g[W1 + i * H + j] += d * x[i];
    }
}

static void mini_slice(const Rt *r, char *thread, int unit)
{
    const real *p = (const real *)r->fixed;
    real *x = (real *)thread, *h = x + X, *y = h + H;
    real *g = (real *)(r->shard + unit / SLICES * r->shard_bytes + unit % SLICES * PARTIAL_BYTES);
    if (mini_watch)
        mini_watch(r, unit);
    memset(g, 0, PARTIAL_BYTES);
    for (int i = 0; i < SLICE; i++) {
        const int sample = (r->first_shard * SLICES + unit) * SLICE + i;
        const int label = ((const int32_t *)r->label)[r->index[sample]];
        mini_input(r, sample, x);
        mini_forward(p, x, h, y);
        const double loss = mini_loss(y, label);
        mini_metrics(r, unit, sample, y, label, loss);
        y[label] -= 1;
        for (int k = 0; k < O; k++)
            y[k] *= (real)r->loss_scale;
        mini_backward(g, p, x, h, y);
    }
}

static void mini_update(const Rt *r, int i, real g)
{
    real *w = (real *)r->fixed + i, *v = (real *)(r->fixed + PADDED * sizeof(real)) + i;
    *v = r->opt.momentum * *v + (g + r->opt.decay * *w);
    *w -= r->opt.lr * *v;
}

/* Unit u: eight parameters, summed over slices, then over shards: neighbours first. */
static void mini_sum(const Rt *r, char *thread, int unit)
{
    (void)thread;
    for (int i = unit * 8; i < unit * 8 + 8 && i < PARAMETERS; i++) {
        real sum[SHARDS];
        for (int s = 0; s < r->shards; s++) {
            const real *g = (const real *)(r->shard + s * r->shard_bytes);
            sum[s] = g[i] + g[PADDED + i];
        }
        for (int step = 1; step < r->shards; step *= 2)
            for (int s = 0; s + step < r->shards; s += 2 * step)
                sum[s] += sum[s + step];
        if (r->grad)
            ((real *)r->grad)[i] = sum[0];
        else
            mini_update(r, i, sum[0]);
    }
}

static void mini_from_grad(const Rt *r, char *thread, int unit)
{
    (void)thread;
    for (int i = unit * 8; i < unit * 8 + 8 && i < PARAMETERS; i++)
        mini_update(r, i, ((const real *)r->grad)[i]);
}

static void mini_test(const Rt *r, char *thread, int unit)
{
    real *x = (real *)thread, *h = x + X, *y = h + H;
    for (int i = 0; i < SLICE; i++) {
        const int sample = (r->first_shard * SLICES + unit) * SLICE + i;
        mini_input(r, sample, x);
        mini_forward((const real *)r->fixed, x, h, y);
        if (r->output)
            memcpy(r->output + sample * O, y, O * sizeof(real));
        if (!r->label)
            continue;
        const int label = ((const int32_t *)r->label)[r->index[sample]];
        const double loss = mini_loss(y, label);
        mini_metrics(r, unit, sample, y, label, loss);
    }
}

static int mini_nonfinite(const Rt *r, char *thread, int unit)
{
    real *x = (real *)thread, *h = x + X, *y = h + H;
    int first = -1;
    for (int i = 0; i < SLICE; i++) {
        mini_input(r, unit * SLICE + i, x);
        mini_forward((const real *)r->fixed, x, h, y);
        for (int k = X + H + O - 1; k >= 0; k--)
            if (!isfinite((double)x[k])) {
                const int layer = k < X ? 0 : k < X + H ? 1 : 2;
                first = first < 0 || layer < first ? layer : first;
            }
    }
    return first;
}

#define MINI_STATE(at) {((at) + PADDED) * (int)sizeof(real), -1}
static const RtParam mini_params[] = {
    {.name = "hidden.weight", .rank = 2, .dim = {H, X}, .naxis = 2, .axis = {{H, H, 0, 1}, {X, X, 0, H}},
     .offset = W1 * sizeof(real), .state = MINI_STATE(W1), .count_memory = X * H, .fan_in = X, .fan_out = H,
     .init = {RT_GLOROT, true, RT_FAN_AVG, 0, 0}},
    {.name = "hidden.bias", .rank = 1, .dim = {H}, .naxis = 1, .axis = {{H, 1, 1, 0}},
     .offset = B1 * sizeof(real), .state = MINI_STATE(B1), .count_memory = H, .fan_in = H, .fan_out = H,
     .init = {RT_CONSTANT, false, 0, 0, 0}},
    {.name = "out.weight", .rank = 2, .dim = {O, H}, .naxis = 2, .axis = {{O, 1, H, 0}, {H, H, 0, 1}},
     .offset = W2 * sizeof(real), .state = MINI_STATE(W2), .count_memory = O * H, .fan_in = H, .fan_out = O,
     .init = {RT_HE, false, RT_FAN_IN, 0, 0}},
    {.name = "out.bias", .rank = 1, .dim = {O}, .naxis = 1, .axis = {{O, 1, 1, 0}},
     .offset = B2 * sizeof(real), .state = MINI_STATE(B2), .count_memory = O, .fan_in = O, .fan_out = O,
     .init = {RT_CONSTANT, false, 0, 0, 0}},
};
static const RtSum mini_sums[] = {
    {.offset = W1 * sizeof(real), .count = X * H, .param = 0},
    {.offset = B1 * sizeof(real), .count = H, .param = 1},
    {.offset = W2 * sizeof(real), .count = O * H, .param = 2},
    {.offset = B2 * sizeof(real), .count = O, .param = 3}};
enum { MINI_UNITS = (PARAMETERS + 7) / 8 };
static const RtPhase mini_train[] = {{.run = mini_slice, .per_slice = true, .what = "forward and backward"},
                                     {.run = mini_sum, .count = MINI_UNITS, .what = "sum and update", .to_grad = true},
                                     {.run = mini_from_grad, .count = MINI_UNITS, .from_grad = true, .what = "update"}};
enum { MINI_HIDDEN = W2 / 8 };                        /* units of the first layer */
static const RtBucket mini_buckets[] = {
    {0, W2 * sizeof(real), 0, 0, MINI_HIDDEN, MINI_HIDDEN},
    {W2 * sizeof(real), (PADDED - W2) * sizeof(real), 0, 0, MINI_UNITS - MINI_HIDDEN, MINI_UNITS - MINI_HIDDEN}};
static const RtPhase mini_tests[] = {{.run = mini_test, .per_slice = true, .what = "forward"}};
static int (*const mini_checks[])(const Rt *r, char *thread, int unit) = {mini_nonfinite};
static const char *const mini_layers[] = {"input (mini.tn:1)", "hidden (mini.tn:2)", "out (mini.tn:3)"};

static const RtProgram mini = {
    .model = "mini", .source = "mini.tn", .source_hash = "0123456789abcdef", .compiler = "by hand", .flags = "",
    .target = "cpu", .cpu = "generic", .isa = RT_ISA_ANY, .real_bytes = sizeof(real), .batch = BATCH,
    .shards = SHARDS, .slices = SLICES, .chunk = SLICE, .parameters = PARAMETERS, .flops_per_sample = 960,
    .fixed_bytes = FIXED_BYTES, .shard_bytes = SLICES * PARTIAL_BYTES,
    .thread_bytes = (X + H + O) * sizeof(real), .grad_bytes = PARTIAL_BYTES, .fused_update = true,
    .input_rank = 3, .input_dim = {1, 4, 4}, .classes = O, .labels = 1, .outputs = O, .softmax_output = true,
    .nmetric = 2, .metric = {"loss", "accuracy"}, .param = mini_params, .nparam = 4, .sum = mini_sums, .nsum = 4, .ngradient = 4,
    .bucket = mini_buckets, .nbucket = 2,
    .train = mini_train, .ntrain = 3, .test = mini_tests, .ntest = 1,
    .recipe = {.data = "synthetic", .samples = 200, .test_samples = 40, .x_scale = 1.0 / 255, .optimizer = RT_SGD,
               .lr = 0.2, .momentum = 0.9, .weight_decay = 1e-4, .schedule = RT_SCHED_STEP, .nat = 1, .at = {6},
               .factor = 0.1, .epochs = 8, .seed = 1, .expect_metric = "test_accuracy", .expect_op = ">=",
               .expect_value = 0.9},
    .layer = mini_layers, .nlayer = 3, .nonfinite = mini_checks, .nforward = 1,
};
