/* mxnet.c -- templates of MXNet's Gluon, version 1.9, as hybrid blocks.
 *
 * F is mx.nd, or mx.sym after hybridize().  Symbols have no shapes, and their operators do not
 * broadcast.  So operands of different shapes have templates of their own (`unlike`).  Images are
 * N, C, H, W as in Tenon; MXNet's oneDNN reorders weights and values itself.
 */
#include "scripts/python.h"

/* ---- layers */

#define NORM                                                                                       \
    "@(other_epsilon?epsilon=@epsilon, )@(scale?|scale=False, )"                                   \
    "@(shift?|center=False, )"
#define RECURRENT  "layout=\"NTC\", input_size=@features, "
#define ORTHOGONAL "h2h_weight_initializer=mx.init.Orthogonal(1), dtype=DTYPE)"

static const PyWord layers[] = {
    {"embedding if padding", "PaddedEmbedding(@vocab, @width, @padding, dtype=DTYPE)"},
    {"embedding", "nn.Embedding(@vocab, @width, dtype=DTYPE)"},
    {"lstm if plain and not masked",
     "rnn.LSTM(@width, " RECURRENT
     "i2h_bias_initializer=mx.init.LSTMBias(@forget_bias), " ORTHOGONAL},
    {"gru if plain and not masked", "rnn.GRU(@width, " RECURRENT ORTHOGONAL},
    {"rnn if plain and not masked",
     "rnn.RNN(@width, activation=\"@activation\", " RECURRENT ORTHOGONAL},
    {"conv2d", "nn.Conv2D(@filters, @kernel, in_channels=@channels@(strided?, strides=@stride)"
               "@(padded?, padding=@padding)@(dilated?, dilation=@dilation)"
               "@(grouped?, groups=@groups)@(biased?|, use_bias=False))"},
    {"dense", "nn.Dense(@units@(vector?|, flatten=False)@(biased?|, use_bias=False), "
              "in_units=@features)"},
    {"batch_norm",
     "nn.BatchNorm(@(other_momentum?momentum=@momentum, )" NORM "in_channels=@channels)"},
    {"layer_norm", "nn.LayerNorm(" NORM "in_channels=@features)"},
    {"bias", "Bias(@count)"},
    {"dropout", "nn.Dropout(@rate)"},
    {"dropout2d", "nn.Dropout(@rate, axes=(2, 3))"},
    {NULL, NULL},
};

/* These calls avoid SequenceLast, which crashes in the backward pass of MXNet 1.9.1. */
static const PyWord calls[] = {
    {"scan_last", "F.squeeze(F.slice_axis(@layer(@(reversed?F.flip(@x, 1)|@x)), 1, -1, None), "
                  "axis=1)"},
    {"scan_stack", "@(reversed?F.flip(@layer(F.flip(@x, 1)), 1)|@layer(@x))"},
    {NULL, NULL},
};

/* ---- expressions */

#define POOLING(type)                                                                              \
    "F.Pooling(@x, kernel=(@kernel_rows, @kernel_columns), stride=(@stride_rows, @stride_columns)" \
    "@(padded?, pad=(@top, @left)), pool_type=\"" type "\""

#define COMPARED(sign) "(@x " sign " @y)"

static const PyWord words[] = {
    {"min", "F.minimum(@x, @y)"},
    {"max", "F.maximum(@x, @y)"},
    PY_COMPARISONS(COMPARED),
    {"clamp", "F.clip(@x, @low, @high)"},
    {"argmax", "F.argmax(@x, axis=@axis)"},
    {"stop_gradient", "F.BlockGrad(@x)"},
    {"relu6", "F.clip(@x, 0, 6)"},
    {"leaky_relu", "F.LeakyReLU(@x, slope=@slope)"},
    {"softplus", "F.Activation(@x, act_type=\"softrelu\")"},
    {"gelu", "F.LeakyReLU(@x, act_type=\"gelu\")"},
    {"hard_sigmoid", "F.hard_sigmoid(@x, alpha=1 / 6)"},
    {"flatten", "F.flatten(@x)"},
    {"reshape", "F.reshape(@x, (-1, @shape))"},
    {"transpose", "F.transpose(@x, (0, @axes))"},
    {"slice", "F.slice_axis(@x, @axis, @start, @end)"},
    {"crop", "F.slice(@x, (None, None, @top, @left), (None, None, @bottom, @right))"},
    {"pad", "F.pad(@x, \"constant\", (0, 0, 0, 0, @top, @bottom, @left, @right), "
            "constant_value=@(value?@value|0))"},
    {"concat", "F.concat(@all, dim=@axis)"},
    {"stack", "F.stack(@all, axis=@axis)"},
    {"sum_to if batched", "F.sum(@x, axis=(@reduced), keepdims=True)"},
    {"amax_to if batched", "F.max(@x, axis=(@reduced), keepdims=True)"},
    {"global_avg_pool",
     "F.flatten(F.Pooling(@x, kernel=(1, 1), global_pool=True, pool_type=\"avg\"))"},
    {"global_max_pool",
     "F.flatten(F.Pooling(@x, kernel=(1, 1), global_pool=True, pool_type=\"max\"))"},
    {"max_pool", POOLING("max") ")"},
    {"avg_pool", POOLING("avg") "@(uncounted?, count_include_pad=False))"},
    {"softmax", "F.softmax(@(causal?causal(F, @x, @rank, @rows)|@x), axis=@axis)"},
    {"attention", "attention(F, @x, @heads, @(causal?True|False), @scale)"},
    {"one_hot", "F.one_hot(@x, @classes, dtype=DTYPE)"},
    {"mse", "F.mean(F.square(F.flatten(@x - @y)), axis=1)"},
    {"l2", "0.5 * F.sum(F.square(F.flatten(@x)), axis=1)"},
    {"sigmoid_cross_entropy if labelled",
     "binary_cross_entropy(F, F.reshape(@x, shape=(-1,)), @y)"},
    {"softmax_cross_entropy if smoothing and vector", "smoothed(F, @x, @y, @smoothing)"},
    {"softmax_cross_entropy if vector", "-F.pick(F.log_softmax(@x), @y)"},
    /* a class for each position; -1: the position is not scored */
    {"softmax_cross_entropy if not smoothing",
     "(F.sum(-F.pick(F.log_softmax(@x), @y) * (@y >= 0), axis=1) / F.sum(@y >= 0, axis=1))"},
    {NULL, NULL},
};

static const PyWord unlike[] = {
    {"add", "F.broadcast_add(@x, @y)"},          {"sub", "F.broadcast_sub(@x, @y)"},
    {"mul", "F.broadcast_mul(@x, @y)"},          {"div", "F.broadcast_div(@x, @y)"},
    {"pow", "F.broadcast_power(@x, @y)"},        {"min", "F.broadcast_minimum(@x, @y)"},
    {"max", "F.broadcast_maximum(@x, @y)"},      {"gt", "F.broadcast_greater(@x, @y)"},
    {"ge", "F.broadcast_greater_equal(@x, @y)"}, {"lt", "F.broadcast_lesser(@x, @y)"},
    {"le", "F.broadcast_lesser_equal(@x, @y)"},  {"eq", "F.broadcast_equal(@x, @y)"},
    {"ne", "F.broadcast_not_equal(@x, @y)"},     {NULL, NULL},
};

static const PlaceText places[] = {
    {"likeliest", "output.argmax(axis=-1)"},
    {"threads", NULL},
    {"fills_windows", ""},
    {NULL, NULL},
};

const Dialect mxnet = {
    .to = "mxnet",
    .script = template_mxnet,
    .place = places,
    .model = "nn.HybridBlock",
    .block = "nn.HybridBlock",
    .call = "hybrid_forward(self, F",
    .more = "",
    .passed = "",
    .math = "F",
    .losses = "losses(F, output, label)",
    .wider = "F.reshape(@x, (-1, @widened))",
    .lowest = "float('-inf')",
    .layer = layers,
    .called = calls,
    .word = words,
    .unlike = unlike,
    .taken = "apply cast collect_params export forward hybrid_forward hybridize infer_shape "
             "infer_type initialize load load_parameters load_params name name_scope optimize_for "
             "params prefix register_child register_forward_hook register_forward_pre_hook "
             "register_op_hook save save_parameters save_params summary",
};
