/* mxnet_ops.c -- each operation in the words of MXNet's Gluon, version 1.9, as hybrid blocks: F is mx.nd, or mx.sym once hybridized.
 *
 * Symbols have no shapes yet and their operators do not broadcast, so where operands differ there are other words (`unlike`).
 * Images lie as ours, N, C, H, W: MXNet's oneDNN turns weights and values into its own layouts from there.
 */
#include "scripts/mxnet.h"
#include "ops/op.h"
#include <math.h>
#include <string.h>

/* ---- layers: what keeps weights or draws */

static void option(Text *t, const char *name, const int64_t v[2], int64_t usual)
{
    if (v[0] != usual || v[1] != usual)
        text_printf(t, ", %s=%s", name, python_pair(t->arena, v));
}

static const char *conv_layer(Arena *a, const Node *n, bool bias)
{
    const Window v = python_window(n);
    const int64_t none[2] = {0, 0}, groups[2] = {node_int(n, "groups"), node_int(n, "groups")};
    int64_t after[2];
    Text t = text_new(a);
    text_printf(&t, "nn.Conv2D(%lld, %s, in_channels=%lld", (long long)node_int(n, "filters"),
                python_pair(a, v.kernel), (long long)n->in[0]->shape.dim[0]);
    option(&t, "strides", v.stride, 1);
    option(&t, "padding", python_lopsided(&v, after) ? none : v.before, 0);
    option(&t, "dilation", v.dilation, 1);
    option(&t, "groups", groups, 1);
    text_add(&t, bias ? ")" : ", use_bias=False)");
    return t.s;
}

static const char *dense_layer(Arena *a, const Node *n, bool bias)
{
    const Shape *x = &n->in[0]->shape;
    return arena_printf(a, "nn.Dense(%lld%s%s, in_units=%lld)", (long long)node_int(n, "units"),
                        x->rank > 1 ? ", flatten=False" : "", bias ? "" : ", use_bias=False",
                        (long long)x->dim[x->rank - 1]);
}

static const char *norm_layer(Arena *a, const Node *n)
{
    const bool batch = node_is(n, "batch_norm");
    const double epsilon = node_float(n, "epsilon");
    Text t = text_new(a);
    text_printf(&t, "nn.%s(", batch ? "BatchNorm" : "LayerNorm");
    if (batch && node_float(n, "momentum") != 0.9)
        text_printf(&t, "momentum=%s, ", python_number(a, node_float(n, "momentum")));
    if (epsilon != 1e-5)
        text_printf(&t, "epsilon=%s, ", python_number(a, epsilon));
    if (!node_bool(n, "scale"))
        text_add(&t, "scale=False, ");
    if (!node_bool(n, "shift"))
        text_add(&t, "center=False, ");
    text_printf(&t, "in_channels=%lld)", (long long)n->shape.dim[batch ? 0 : n->shape.rank - 1]);
    return t.s;
}

/* Of one layer without first states, the gru's reset behind its product. */
static const char *recurrent_layer(Arena *a, const Node *n)
{
    const bool gru = node_is(n, "gru"), lstm = node_is(n, "lstm");
    if (n->nin != 1 || node_float(n, "recurrent_dropout") != 0 ||
        (gru && strcmp(node_string(n, "reset"), "after") != 0))
        return NULL;
    Text t = text_new(a);
    text_printf(&t, "rnn.%s(%lld, ",
                lstm  ? "LSTM"
                : gru ? "GRU"
                      : "RNN",
                (long long)node_int(n, "width"));
    if (!gru && !lstm)
        text_printf(&t, "activation=\"%s\", ", node_string(n, "activation"));
    text_printf(&t, "layout=\"NTC\", input_size=%lld, ", (long long)n->in[0]->shape.dim[1]);
    if (lstm)
        text_printf(&t, "i2h_bias_initializer=mx.init.LSTMBias(%s), ",
                    python_number(a, node_float(n, "forget_bias")));
    text_add(&t, "h2h_weight_initializer=mx.init.Orthogonal(1), dtype=DTYPE)");
    return t.s;
}

static const char *embedding_layer(Arena *a, const Node *n)
{
    const Attr *padding = node_attr(n, "padding");
    const char *more = padding ? arena_printf(a, ", %lld", (long long)padding->i) : "";
    return arena_printf(a, "%s(%lld, %lld%s, dtype=DTYPE)",
                        padding ? "PaddedEmbedding" : "nn.Embedding",
                        (long long)node_int(n, "vocab"), (long long)node_int(n, "width"), more);
}

static const char *layer(Arena *a, const Node *n, bool with_bias)
{
    const Node *mask = python_dropout2d(n);
    if (node_is(n, "embedding"))
        return embedding_layer(a, n);
    if (node_is(n, "lstm") || node_is(n, "gru") || node_is(n, "rnn"))
        return recurrent_layer(a, n);
    if (node_is(n, "conv2d"))
        return conv_layer(a, n, with_bias);
    if (node_is(n, "dense"))
        return dense_layer(a, n, with_bias);
    if (node_is(n, "batch_norm") || node_is(n, "layer_norm"))
        return norm_layer(a, n);
    if (node_is(n, "bias"))
        return arena_printf(a, "Bias(%lld)", (long long)n->in[1]->shape.dim[0]);
    if (mask || node_is(n, "dropout"))
        return arena_printf(a, "nn.Dropout(%s%s)",
                            python_number(a, node_float(mask ? mask : n, "rate")),
                            mask ? ", axes=(2, 3)" : "");
    return NULL;
}

/* ---- expressions */

static const PyWord words[] = {
    {"add", "$0 + $1", PY_SUM},
    {"sub", "$0 - $1", PY_SUM},
    {"mul", "$0 * $1", PY_PRODUCT},
    {"div", "$0 / $1", PY_PRODUCT},
    {"neg", "-$0", PY_SIGN},
    {"pow", "$0 ** $1", PY_POWER},
    {"exp", "F.exp($0)", PY_ATOM},
    {"log", "F.log($0)", PY_ATOM},
    {"sqrt", "F.sqrt($0)", PY_ATOM},
    {"abs", "F.abs($0)", PY_ATOM},
    {"square", "F.square($0)", PY_ATOM},
    {"reciprocal", "F.reciprocal($0)", PY_ATOM},
    {"min", "F.minimum($0, $1)", PY_ATOM},
    {"max", "F.maximum($0, $1)", PY_ATOM},
    {"sign", "F.sign($0)", PY_ATOM},
    {"relu", "F.relu($0)", PY_ATOM},
    {"relu6", "F.clip($0, 0, 6)", PY_ATOM},
    {"leaky_relu", "F.LeakyReLU($0, slope=#slope)", PY_ATOM},
    {"sigmoid", "F.sigmoid($0)", PY_ATOM},
    {"tanh", "F.tanh($0)", PY_ATOM},
    {"softplus", "F.Activation($0, act_type=\"softrelu\")", PY_ATOM},
    {"gelu", "F.LeakyReLU($0, act_type=\"gelu\")", PY_ATOM},
    {"hard_sigmoid", "F.hard_sigmoid($0, alpha=1 / 6)", PY_ATOM},
    {"erf", "F.erf($0)", PY_ATOM},
    {"flatten", "F.flatten($0)", PY_ATOM},
    {"global_avg_pool",
     "F.flatten(F.Pooling($0, kernel=(1, 1), global_pool=True, pool_type=\"avg\"))", PY_ATOM},
    {"mse", "F.mean(F.square(F.flatten($0 - $1)), axis=1)", PY_ATOM},
    {"l2", "0.5 * F.sum(F.square(F.flatten($0)), axis=1)", PY_PRODUCT},
    {"sigmoid_cross_entropy", "binary_cross_entropy(F, F.reshape($0, shape=(-1,)), $1)", PY_ATOM},
    {"one_hot", "F.one_hot($0, #classes, dtype=DTYPE)", PY_ATOM},
    {NULL, NULL, 0},
};

static const PyWord unlike[] = {
    {"add", "F.broadcast_add($0, $1)", PY_ATOM},
    {"sub", "F.broadcast_sub($0, $1)", PY_ATOM},
    {"mul", "F.broadcast_mul($0, $1)", PY_ATOM},
    {"div", "F.broadcast_div($0, $1)", PY_ATOM},
    {"pow", "F.broadcast_power($0, $1)", PY_ATOM},
    {"min", "F.broadcast_minimum($0, $1)", PY_ATOM},
    {"max", "F.broadcast_maximum($0, $1)", PY_ATOM},
    {NULL, NULL, 0},
};

/* A dimension of a sample as one of the batch. */
static int axis(const Node *n, int64_t axis)
{
    return (int)(axis < 0 ? axis + n->in[0]->shape.rank : axis) + 1;
}

static const char *pair(Arena *a, const int64_t v[2])
{
    return arena_printf(a, "(%lld, %lld)", (long long)v[0], (long long)v[1]);
}

static const char *padded(Arena *a, const char *x, const int64_t *before, const int64_t *after,
                          double value)
{
    return arena_printf(a,
                        "F.pad(%s, \"constant\", (0, 0, 0, 0, %lld, %lld, %lld, %lld), "
                        "constant_value=%s)",
                        x, (long long)before[0], (long long)after[0], (long long)before[1],
                        (long long)after[1], python_number(a, value));
}

static const char *pool(Arena *a, const Node *n, const char *x)
{
    const Window v = python_window(n);
    const Attr *count = node_attr(n, "count_include_pad");
    const bool max = node_is(n, "max_pool");
    int64_t after[2];
    const bool by_hand = python_lopsided(&v, after), padding = v.before[0] || v.before[1];
    Text t = text_new(a);
    if (by_hand && !max && !(count && count->i))
        return NULL; /* MXNet would count what is padded by hand */
    if (by_hand)
        x = padded(a, x, v.before, after, max ? -INFINITY : 0);
    text_printf(&t, "F.Pooling(%s, kernel=%s, stride=%s", x, pair(a, v.kernel), pair(a, v.stride));
    if (padding && !by_hand)
        text_printf(&t, ", pad=%s", pair(a, v.before));
    text_printf(&t, ", pool_type=\"%s\"", max ? "max" : "avg");
    if (!max && padding && !(count && count->i))
        text_add(&t, ", count_include_pad=False");
    text_add(&t, ")");
    return t.s;
}

static const char *joined(Arena *a, const Node *n, const PyValue *in)
{
    const bool stack = node_is(n, "stack");
    Text t = text_new(a);
    text_printf(&t, "F.%s(", stack ? "stack" : "concat");
    for (int i = 0; i < n->nin; i++)
        text_printf(&t, "%s, ", in[i].s);
    text_printf(&t, "%s=%d)", stack ? "axis" : "dim", axis(n, node_int(n, "axis")));
    return t.s;
}

static const char *cropped(Arena *a, const Node *n, const char *x)
{
    const int64_t *size = node_attr(n, "size")->list, *have = n->in[0]->shape.dim + 1;
    const Attr *given = node_attr(n, "at");
    int64_t at[2];
    for (int i = 0; i < 2; i++)
        at[i] = given ? given->list[i] : (have[i] - size[i]) / 2;
    return arena_printf(a, "F.slice(%s, (None, None, %lld, %lld), (None, None, %lld, %lld))", x,
                        (long long)at[0], (long long)at[1], (long long)(at[0] + size[0]),
                        (long long)(at[1] + size[1]));
}

static const char *cross_entropy(Arena *a, const Node *n, const PyValue *in)
{
    const Attr *s = node_attr(n, "smoothing");
    const bool smooth = s && s->f > 0, each = n->in[0]->shape.rank != 1;
    if (smooth)
        return each ? NULL
                    : arena_printf(a, "smoothed(F, %s, %s, %s)", in[0].s, in[1].s,
                                   python_number(a, s->f));
    const char *loss = arena_printf(a, "-F.pick(F.log_softmax(%s), %s)", in[0].s, in[1].s);
    return each ? arena_printf(a, /* a class a position; -1: it is not scored */
                               "(F.sum(%s * (%s >= 0), axis=1) / F.sum(%s >= 0, axis=1))", loss,
                               in[1].s, in[1].s)
                : loss;
}

/* Over the dimensions of which 1 is left: what sum, mean and amax are made of. */
static const char *reduced(Arena *a, const Node *n, const char *x)
{
    const Shape *from = &n->in[0]->shape, *to = &n->shape;
    Text t = text_new(a);
    text_printf(&t, "F.%s(%s, axis=(", node_is(n, "sum_to") ? "sum" : "max", x);
    for (int i = 0; i < from->rank; i++) {
        const int there = i - (from->rank - to->rank);
        if (there < 0 || to->dim[there] != from->dim[i])
            text_printf(&t, "%d, ", i + 1);
    }
    text_add(&t, "), keepdims=True)");
    return t.s;
}

static const char *attention(Arena *a, const Node *n, const char *x)
{
    return arena_printf(a, "attention(F, %s, %lld, %s, %s)", x, (long long)node_int(n, "heads"),
                        strcmp(node_string(n, "mask"), "causal") == 0 ? "True" : "False",
                        python_number(a, node_float(n, "scale")));
}

/* Scores without those of positions behind a row's own. */
static const char *causal(Arena *a, const Node *n, const char *x)
{
    return arena_printf(a, "causal(F, %s, %d, %lld)", x, n->shape.rank,
                        (long long)n->shape.dim[n->shape.rank - 1]);
}

/* Ops whose words depend on more than their operands; NULL: none of them. */
static const char *shaped(Arena *a, const Node *n, const PyValue *in)
{
    if (node_is(n, "max_pool") || node_is(n, "avg_pool"))
        return pool(a, n, in[0].s);
    if ((node_is(n, "sum_to") || node_is(n, "amax_to")) && n->shape.batched)
        return reduced(a, n, in[0].s);
    if (node_is(n, "concat") || node_is(n, "stack"))
        return joined(a, n, in);
    if (node_is(n, "reshape"))
        return arena_printf(a, "F.reshape(%s, (-1, %s))", in[0].s,
                            python_list(a, n->shape.dim, n->shape.rank, 0));
    if (node_is(n, "transpose"))
        return arena_printf(a, "F.transpose(%s, (0, %s))", in[0].s,
                            python_list(a, node_attr(n, "axes")->list, n->shape.rank, 1));
    if (node_is(n, "slice"))
        return arena_printf(a, "F.slice_axis(%s, %d, %lld, %lld)", in[0].s,
                            axis(n, node_int(n, "axis")), (long long)node_int(n, "start"),
                            (long long)(node_int(n, "start") + node_int(n, "size")));
    if (node_is(n, "softmax_cross_entropy"))
        return cross_entropy(a, n, in);
    if (node_is(n, "attention"))
        return attention(a, n, in[0].s);
    if (node_is(n, "softmax"))
        return arena_printf(a, "F.softmax(%s, axis=%d)",
                            python_causal(n) ? causal(a, n, in[0].s) : in[0].s,
                            axis(n, node_int(n, "axis")));
    if (node_is(n, "crop"))
        return cropped(a, n, in[0].s);
    if (node_is(n, "pad")) {
        const Attr *after = node_attr(n, "after"), *before = node_attr(n, "before");
        return padded(a, in[0].s, before->list, (after ? after : before)->list,
                      node_float(n, "value"));
    }
    return NULL;
}

static const char *called(Arena *a, const Node *n, const char *layer, PyValue x)
{
    int64_t after[2];
    if (python_recurrent(n)) {
        const bool last = node_is(n, "scan_last"), back = n->in[0]->loop->reversed;
        const char *all =
            arena_printf(a, "%s(%s)", layer, back ? arena_printf(a, "F.flip(%s, 1)", x.s) : x.s);
        return last   ? arena_printf(a, /* SequenceLast ends MXNet 1.9.1 on the way back */
                                     "F.squeeze(F.slice_axis(%s, 1, -1, None), axis=1)", all)
               : back ? arena_printf(a, "F.flip(%s, 1)", all)
                      : all;
    }
    if (node_is(n, "conv2d")) {
        const Window v = python_window(n);
        if (python_lopsided(&v, after))
            x.s = padded(a, x.s, v.before, after, 0);
    }
    return arena_printf(a, "%s(%s)", layer, x.s);
}

static const char *wider(Arena *a, const char *x, const Shape *from, int rank)
{
    return arena_printf(a, "F.reshape(%s, (-1, %s))", x, python_widened(a, from, rank));
}

const Dialect mxnet = {.to = "mxnet",
                       .model = "nn.HybridBlock",
                       .block = "nn.HybridBlock",
                       .call = "hybrid_forward(self, F",
                       .more = "",
                       .passed = "",
                       .losses = "losses(F, output, label)",
                       .taken =
                           "apply cast collect_params export forward hybrid_forward hybridize "
                           "infer_shape infer_type initialize load load_parameters load_params "
                           "name name_scope optimize_for params prefix register_child "
                           "register_forward_hook register_forward_pre_hook register_op_hook save "
                           "save_parameters save_params summary",
                       .word = words,
                       .unlike = unlike,
                       .layer = layer,
                       .called = called,
                       .wider = wider,
                       .shaped = shaped};
