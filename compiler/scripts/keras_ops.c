/* keras_ops.c -- each operation in Keras 3's words, for TensorFlow, JAX and PyTorch behind it.
 *
 * Images lie with their channels last, as Keras has them: a sample of three dimensions, ours C, H, W, is theirs H, W, C.  Others lie as
 * ours.  Where ours are read in order (flatten, reshape) they are turned first, so that the weights behind are the same.
 */
#include "scripts/keras.h"
#include "ops/op.h"
#include <string.h>

enum { IMAGE = 3 }; /* dimensions of a sample that is an image */

/* ---- layers: what keeps weights or draws */

static void option(Text *t, const char *name, const int64_t v[2])
{
    if (v[0] != 1 || v[1] != 1)
        text_printf(t, ", %s=%s", name, python_pair(t->arena, v));
}

/* What Keras means by "same": ceil(in / stride) outputs, the odd row or column of padding behind. */
static bool is_same(const Window *v)
{
    for (int i = 0; i < 2; i++) {
        const int64_t out = (v->in[i] + v->stride[i] - 1) / v->stride[i];
        const int64_t reach =
            (out - 1) * v->stride[i] + (v->kernel[i] - 1) * v->dilation[i] + 1 - v->in[i];
        if (v->out[i] != out || v->before[i] != (reach > 0 ? reach / 2 : 0))
            return false;
    }
    return true;
}

static bool is_padded(const Window *v)
{
    int64_t after[2];
    python_lopsided(v, after);
    return v->before[0] || v->before[1] || after[0] || after[1];
}

static const char *conv_layer(Arena *a, const Node *n, bool bias)
{
    const Window v = python_window(n);
    Text t = text_new(a);
    text_printf(&t, "layers.Conv2D(%lld, %s", (long long)node_int(n, "filters"),
                python_pair(a, v.kernel));
    option(&t, "strides", v.stride);
    if (is_padded(&v) && is_same(&v))
        text_add(&t, ", padding=\"same\"");
    option(&t, "dilation_rate", v.dilation);
    if (node_int(n, "groups") != 1)
        text_printf(&t, ", groups=%lld", (long long)node_int(n, "groups"));
    text_add(&t, bias ? ")" : ", use_bias=False)");
    return t.s;
}

static const char *norm_layer(Arena *a, const Node *n)
{
    const bool batch = node_is(n, "batch_norm"), rms = node_is(n, "rms_norm");
    Text t = text_new(a);
    text_printf(&t, "layers.%s(",
                batch ? "BatchNormalization"
                : rms ? "RMSNormalization"
                      : "LayerNormalization");
    if (batch)
        text_printf(&t, "momentum=%s, ", python_number(a, node_float(n, "momentum")));
    else if (n->shape.rank == IMAGE)
        text_add(&t, "axis=2, "); /* ours is the last, W */
    text_printf(&t, "epsilon=%s", python_number(a, node_float(n, "epsilon")));
    if (!rms && !node_bool(n, "scale"))
        text_add(&t, ", scale=False");
    if (!rms && !node_bool(n, "shift"))
        text_add(&t, ", center=False");
    text_add(&t, ")");
    return t.s;
}

/* All steps' states; the last one is taken of them.  The gru's cell is the script's own: Keras's has a second bias for every gate. */
static const char *recurrent_layer(Arena *a, const Node *n)
{
    if (n->nin != 1 || node_float(n, "recurrent_dropout") != 0 ||
        (node_is(n, "gru") && strcmp(node_string(n, "reset"), "after") != 0))
        return NULL;
    if (node_is(n, "gru"))
        return arena_printf(a, "layers.RNN(GRUCell(%lld), return_sequences=True)",
                            (long long)node_int(n, "width"));
    if (node_is(n, "lstm"))
        return arena_printf(a, "layers.LSTM(%lld%s, return_sequences=True)",
                            (long long)node_int(n, "width"),
                            node_float(n, "forget_bias") == 0 ? ", unit_forget_bias=False" : "");
    return arena_printf(a, "layers.SimpleRNN(%lld, \"%s\", return_sequences=True)",
                        (long long)node_int(n, "width"), node_string(n, "activation"));
}

static const char *embedding_layer(Arena *a, const Node *n)
{
    const Attr *padding = node_attr(n, "padding");
    const char *more = padding ? arena_printf(a, ", %lld", (long long)padding->i) : "";
    return arena_printf(a, "%s(%lld, %lld%s)", padding ? "PaddedEmbedding" : "layers.Embedding",
                        (long long)node_int(n, "vocab"), (long long)node_int(n, "width"), more);
}

static const char *layer(Arena *a, const Node *n, bool with_bias)
{
    if (node_is(n, "embedding"))
        return embedding_layer(a, n);
    if (node_is(n, "lstm") || node_is(n, "gru") || node_is(n, "rnn"))
        return recurrent_layer(a, n);
    if (node_is(n, "conv2d"))
        return conv_layer(a, n, with_bias);
    if (node_is(n, "dense") && n->in[0]->shape.rank < IMAGE)
        return arena_printf(a, "layers.Dense(%lld%s)", (long long)node_int(n, "units"),
                            with_bias ? "" : ", use_bias=False");
    if (node_is(n, "batch_norm") || node_is(n, "layer_norm") ||
        (node_is(n, "rms_norm") && n->shape.rank < IMAGE))
        return norm_layer(a, n);
    if (node_is(n, "bias") && n->shape.rank != 2)
        return "Bias()";
    const Node *mask = python_dropout2d(n);
    if (mask || node_is(n, "dropout"))
        return arena_printf(a, "layers.%s(%s)", mask ? "SpatialDropout2D" : "Dropout",
                            python_number(a, node_float(mask ? mask : n, "rate")));
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
    {"exp", "ops.exp($0)", PY_ATOM},
    {"log", "ops.log($0)", PY_ATOM},
    {"sqrt", "ops.sqrt($0)", PY_ATOM},
    {"abs", "ops.abs($0)", PY_ATOM},
    {"square", "ops.square($0)", PY_ATOM},
    {"reciprocal", "ops.reciprocal($0)", PY_ATOM},
    {"min", "ops.minimum($0, $1)", PY_ATOM},
    {"max", "ops.maximum($0, $1)", PY_ATOM},
    {"sign", "ops.sign($0)", PY_ATOM},
    {"step", "ops.cast($0 > 0, keras.config.floatx())", PY_ATOM},
    {"relu", "ops.relu($0)", PY_ATOM},
    {"relu6", "ops.relu6($0)", PY_ATOM},
    {"leaky_relu", "ops.leaky_relu($0, #slope)", PY_ATOM},
    {"sigmoid", "ops.sigmoid($0)", PY_ATOM},
    {"tanh", "ops.tanh($0)", PY_ATOM},
    {"softplus", "ops.softplus($0)", PY_ATOM},
    {"gelu", "ops.gelu($0, False)", PY_ATOM},
    {"silu", "ops.silu($0)", PY_ATOM},
    {"hard_sigmoid", "ops.hard_sigmoid($0)", PY_ATOM},
    {"hard_swish", "ops.hard_swish($0)", PY_ATOM},
    {"erf", "ops.erf($0)", PY_ATOM},
    {"global_avg_pool", "ops.mean($0, (1, 2))", PY_ATOM},
    {"dense", "ops.matmul($0, ops.transpose($1))", PY_ATOM}, /* with another layer's weights */
    {"sigmoid_cross_entropy",
     "ops.binary_crossentropy(ops.cast(ops.reshape($1, (-1,)), $0.dtype), ops.reshape($0, (-1,)), "
     "from_logits=True)",
     PY_ATOM},
    {"one_hot", "ops.one_hot($0, #classes, dtype=keras.config.floatx())", PY_ATOM},
    {NULL, NULL, 0},
};

/* Where dimension `axis` of a sample of `rank` stands in theirs, the batch being 0. */
static int place(int64_t axis, int rank)
{
    if (axis < 0)
        axis += rank;
    return rank != IMAGE ? (int)axis + 1 : axis == 0 ? IMAGE : (int)axis;
}

/* An image in our order. */
static const char *turned(Arena *a, const char *x, int rank)
{
    return rank == IMAGE ? arena_printf(a, "ops.transpose(%s, (0, 3, 1, 2))", x) : x;
}

/* What lies in our order in theirs. */
static const char *turned_back(Arena *a, const char *x, int rank)
{
    return rank == IMAGE ? arena_printf(a, "ops.transpose(%s, (0, 2, 3, 1))", x) : x;
}

static const char *flat(Arena *a, const Shape *s, const char *x)
{
    return s->rank == 1 ? x
                        : arena_printf(a, "ops.reshape(%s, (-1, %lld))", turned(a, x, s->rank),
                                       (long long)shape_count(s));
}

static const char *padded(Arena *a, const char *x, const int64_t *before, const int64_t *after,
                          const char *value)
{
    Text t = text_new(a);
    text_printf(&t, "ops.pad(%s, ((0, 0), (%lld, %lld), (%lld, %lld), (0, 0))", x,
                (long long)before[0], (long long)after[0], (long long)before[1],
                (long long)after[1]);
    if (value)
        text_printf(&t, ", constant_values=%s", value);
    text_add(&t, ")");
    return t.s;
}

static const char *pool(Arena *a, const Node *n, const char *x)
{
    const Window v = python_window(n);
    const Attr *count = node_attr(n, "count_include_pad");
    const bool max = node_is(n, "max_pool"), with_pad = max || (count && count->i);
    const bool same = is_padded(&v) && is_same(&v) && (max || !with_pad);
    int64_t after[2];
    python_lopsided(&v, after);
    if (!is_padded(&v) && memcmp(v.stride, v.kernel, sizeof v.stride) == 0)
        return arena_printf(a, "%s_pool(%s, %lld, %lld)", max ? "max" : "average", x,
                            (long long)v.kernel[0], (long long)v.kernel[1]);
    if (is_padded(&v) && !same && !with_pad)
        return NULL; /* Keras divides by all of a window, or pads by its own rule */
    if (is_padded(&v) && !same)
        x = padded(a, x, v.before, after, max ? "-math.inf" : NULL);
    return arena_printf(a, "ops.%s_pool(%s, (%lld, %lld), (%lld, %lld)%s)", max ? "max" : "average",
                        x, (long long)v.kernel[0], (long long)v.kernel[1], (long long)v.stride[0],
                        (long long)v.stride[1], same ? ", \"same\"" : "");
}

static const char *joined(Arena *a, const Node *n, const PyValue *in)
{
    const bool stack = node_is(n, "stack");
    Text t = text_new(a);
    if (n->shape.rank > IMAGE)
        return NULL;
    text_printf(&t, "ops.%s([", stack ? "stack" : "concatenate");
    for (int i = 0; i < n->nin; i++)
        text_printf(&t, "%s%s", i ? ", " : "", in[i].s);
    const int64_t axis = node_int(n, "axis");
    if (!stack || n->shape.rank != IMAGE) {
        text_printf(&t, "], %d)", place(axis, n->shape.rank));
        return t.s;
    }
    text_printf(&t, "], %d)",
                (int)(axis < 0 ? axis + n->shape.rank : axis) + 1); /* of what are no images yet */
    return turned_back(a, t.s, IMAGE);
}

static const char *transposed(Arena *a, const Node *n, const char *x)
{
    const int64_t *axes = node_attr(n, "axes")->list;
    const int rank = n->shape.rank;
    Text t = text_new(a);
    text_printf(&t, "ops.transpose(%s, (0", x);
    for (int i = 0; i < rank; i++) /* theirs: rows, columns, channels */
        text_printf(&t, ", %d", place(axes[rank == IMAGE ? (i + 1) % IMAGE : i], rank));
    text_add(&t, "))");
    return t.s;
}

static const char *sliced(Arena *a, const Node *n, const char *x)
{
    const int64_t start = node_int(n, "start");
    Text t = text_new(a);
    text_printf(&t, "%s[", x);
    for (int i = place(node_int(n, "axis"), n->shape.rank); i > 0; i--)
        text_add(&t, ":, ");
    text_printf(&t, "%lld:%lld]", (long long)start, (long long)(start + node_int(n, "size")));
    return t.s;
}

static const char *cropped(Arena *a, const Node *n, const char *x)
{
    const int64_t *size = node_attr(n, "size")->list, *have = n->in[0]->shape.dim + 1;
    const Attr *given = node_attr(n, "at");
    int64_t at[2];
    for (int i = 0; i < 2; i++)
        at[i] = given ? given->list[i] : (have[i] - size[i]) / 2;
    return arena_printf(a, "%s[:, %lld:%lld, %lld:%lld]", x, (long long)at[0],
                        (long long)(at[0] + size[0]), (long long)at[1],
                        (long long)(at[1] + size[1]));
}

/* Over the dimensions of which 1 is left: what sum, mean and amax are made of. */
static const char *reduced(Arena *a, const Node *n, const char *x)
{
    const Shape *from = &n->in[0]->shape, *to = &n->shape;
    Text t = text_new(a);
    text_printf(&t, "ops.%s(%s, (", node_is(n, "sum_to") ? "sum" : "amax", x);
    for (int i = 0; i < from->rank; i++) {
        const int there = i - (from->rank - to->rank);
        if (there < 0 || to->dim[there] != from->dim[i])
            text_printf(&t, "%d, ", place(i, from->rank));
    }
    text_add(&t, "), keepdims=True)");
    return t.s;
}

static const char *cross_entropy(Arena *a, const Node *n, const PyValue *in)
{
    const Attr *s = node_attr(n, "smoothing");
    const int64_t classes = n->in[0]->shape.dim[0];
    if (n->in[0]->shape.rank != 1 && s && s->f > 0)
        return NULL;
    if (!s || s->f <= 0)
        return arena_printf(a, "ops.sparse_categorical_crossentropy(%s, %s, from_logits=True)",
                            in[1].s, in[0].s);
    return arena_printf(a,
                        "ops.categorical_crossentropy(ops.one_hot(%s, %lld) * (1 - %s) + %s / "
                        "%lld, %s, from_logits=True)",
                        in[1].s, (long long)classes, python_number(a, s->f), python_number(a, s->f),
                        (long long)classes, in[0].s);
}

static const char *per_sample(Arena *a, const Node *n, const PyValue *in)
{
    const Shape *s = &n->in[0]->shape;
    if (node_is(n, "mse"))
        return arena_printf(a, "ops.mean(ops.square(%s - %s), %s)", flat(a, s, in[0].s),
                            flat(a, &n->in[1]->shape, python_inside(a, in[1], PY_PRODUCT)), "1");
    return arena_printf(a, "(0.5 * ops.sum(ops.square(%s), 1))", flat(a, s, in[0].s));
}

static const char *softmax(Arena *a, const Node *n, PyValue x)
{
    const int rank = n->shape.rank;
    const long long rows = n->shape.dim[rank - 1];
    if (python_causal(n))
        x.s = arena_printf(a, "%s + ops.triu(ops.full((%lld, %lld), -1e30), 1)%s",
                           python_inside(a, x, PY_SUM), rows, rows,
                           rank == IMAGE ? "[:, :, None]" : "");
    return arena_printf(a, "ops.softmax(%s, %d)", x.s, place(node_int(n, "axis"), rank));
}

static const char *shaped(Arena *a, const Node *n, const PyValue *in)
{
    const char *x = python_inside(a, in[0], PY_ATOM);
    const int rank = n->nin ? n->in[0]->shape.rank : 0;
    if (node_is(n, "flatten"))
        return flat(a, &n->in[0]->shape, in[0].s);
    if (node_is(n, "max_pool") || node_is(n, "avg_pool"))
        return pool(a, n, in[0].s);
    if ((node_is(n, "sum_to") || node_is(n, "amax_to")) && n->shape.batched)
        return reduced(a, n, in[0].s);
    if (node_is(n, "concat") || node_is(n, "stack"))
        return joined(a, n, in);
    if (node_is(n, "reshape"))
        return turned_back(a,
                           arena_printf(a, "ops.reshape(%s, (-1, %s))", turned(a, in[0].s, rank),
                                        python_list(a, n->shape.dim, n->shape.rank, 0)),
                           n->shape.rank);
    if (node_is(n, "transpose"))
        return transposed(a, n, in[0].s);
    if (node_is(n, "slice"))
        return sliced(a, n, x);
    if (node_is(n, "softmax_cross_entropy"))
        return cross_entropy(a, n, in);
    if (node_is(n, "attention"))
        return arena_printf(a, "attention(%s, %lld, %s, %s)", in[0].s,
                            (long long)node_int(n, "heads"),
                            strcmp(node_string(n, "mask"), "causal") == 0 ? "True" : "False",
                            python_number(a, node_float(n, "scale")));
    if (node_is(n, "softmax"))
        return softmax(a, n, in[0]);
    if (node_is(n, "mse") || node_is(n, "l2"))
        return per_sample(a, n, in);
    if (node_is(n, "crop"))
        return cropped(a, n, x);
    if (node_is(n, "pad")) {
        const Attr *after = node_attr(n, "after"), *before = node_attr(n, "before");
        const double value = node_float(n, "value");
        return padded(a, in[0].s, before->list, (after ? after : before)->list,
                      value != 0 ? python_number(a, value) : NULL);
    }
    return NULL;
}

static const char *called(Arena *a, const Node *n, const char *layer, PyValue x)
{
    int64_t after[2];
    if (node_is(n, "conv2d")) {
        const Window v = python_window(n);
        python_lopsided(&v, after);
        if (is_padded(&v) && !is_same(&v))
            x.s = padded(a, x.s, v.before, after, NULL);
    }
    if (python_recurrent(n)) {
        const bool last = node_is(n, "scan_last"), back = n->in[0]->loop->reversed;
        const char *all =
            arena_printf(a, "%s(%s)", layer, back ? arena_printf(a, "ops.flip(%s, 1)", x.s) : x.s);
        return last   ? arena_printf(a, "%s[:, -1]", all)
               : back ? arena_printf(a, "ops.flip(%s, 1)", all)
                      : all;
    }
    const bool differs = node_is(n, "batch_norm") || node_is(n, "dropout") || python_dropout2d(n);
    return arena_printf(a, "%s(%s%s)", layer, x.s, differs ? ", training=training" : "");
}

static const char *wider(Arena *a, const char *x, const Shape *from, int rank)
{
    int64_t ours[SHAPE_MAX];
    Text t = text_new(a);
    for (int i = 0; i < rank; i++)
        ours[i] = i < rank - from->rank ? 1 : from->dim[i - (rank - from->rank)];
    text_printf(&t, "ops.reshape(%s, (-1", x);
    for (int i = 0; i < rank; i++)
        text_printf(&t, ", %lld", (long long)ours[rank == IMAGE ? (i + 1) % IMAGE : i]);
    text_add(&t, "))");
    return t.s;
}

const Dialect keras = {.to = "keras",
                       .model = "keras.Model",
                       .block = "layers.Layer",
                       .call = "call(self",
                       .more = ", training=None",
                       .passed = ", training=training",
                       .losses = "losses(label, output)",
                       .table = "embeddings",
                       .taken =
                           "T_destination activity_regularizer add_loss add_metric add_module "
                           "add_variable add_weight apply autocast bfloat16 buffers build "
                           "build_from_config built call call_signature_parameters "
                           "call_super_init children compile compile_from_config compiled "
                           "compute_dtype compute_loss compute_mask compute_metrics "
                           "compute_output_shape compute_output_spec count_params cpu cuda "
                           "double dtype dtype_policy dump_patches eval evaluate export "
                           "extra_repr fit float forward from_config get_buffer "
                           "get_build_config get_compile_config get_config get_extra_state "
                           "get_layer get_metrics_result get_parameter "
                           "get_quantization_layer_structure get_state_tree get_submodule "
                           "get_weights half input input_dtype input_spec ipu jit_compile "
                           "layers load_own_variables load_state_dict load_weights loss losses "
                           "make_predict_function make_test_function make_train_function "
                           "metrics metrics_names metrics_variables modules mtia name "
                           "named_buffers named_children named_modules named_parameters "
                           "non_trainable_variables non_trainable_weights output parameters "
                           "path predict predict_function predict_on_batch predict_step "
                           "quantization_mode quantize quantized_build quantized_call "
                           "register_backward_hook register_buffer register_forward_hook "
                           "register_forward_pre_hook register_full_backward_hook "
                           "register_full_backward_pre_hook register_load_state_dict_post_hook "
                           "register_load_state_dict_pre_hook register_module "
                           "register_parameter register_state_dict_post_hook "
                           "register_state_dict_pre_hook rematerialized_call requires_grad_ "
                           "reset_metrics run_eagerly save save_own_variables save_weights "
                           "set_extra_state set_state_tree set_submodule set_weights "
                           "share_memory state_dict stateless_call stateless_compute_loss "
                           "steps_per_execution summary supports_jit supports_masking "
                           "symbolic_call test_function test_on_batch test_step to to_empty "
                           "to_json torch_params train train_function train_on_batch "
                           "train_step trainable trainable_variables trainable_weights "
                           "training type variable_dtype variables weights xpu zero_grad",
                       .word = words,
                       .layer = layer,
                       .called = called,
                       .wider = wider,
                       .shaped = shaped};
