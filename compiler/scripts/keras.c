/* keras.c -- templates of Keras 3, for the backends TensorFlow, JAX and PyTorch.
 *
 * A sample of three dimensions is H, W, C in Keras, and C, H, W in Tenon.  Other samples have the
 * same order.  Before operations that depend on the order (flatten, reshape), the script transposes
 * the image, so that the weights of the next layer are the same.
 */
#include "ops/op.h"
#include "scripts/python.h"

/* ---- layers */

static const PyWord layers[] = {
    {"embedding if padding", "PaddedEmbedding(@vocab, @width, @padding)"},
    {"embedding", "layers.Embedding(@vocab, @width)"},
    /* Keras's own GRU has a second bias for each gate; the cell of the script has one bias. */
    {"gru if plain and not weighted", "layers.RNN(GRUCell(@width), return_sequences=True)"},
    {"lstm if plain and not weighted",
     "layers.LSTM(@width@(zero_forget_bias?, unit_forget_bias=False), return_sequences=True)"},
    {"rnn if plain and not weighted",
     "layers.SimpleRNN(@width, \"@activation\", return_sequences=True)"},
    {"conv2d", "layers.Conv2D(@filters, @kernel@(strided?, strides=@stride)"
               "@(same?, padding=\"same\")@(dilated?, dilation_rate=@dilation)"
               "@(grouped?, groups=@groups)@(biased?|, use_bias=False))"},
    {"conv2d_dx if simple", "layers.Conv2DTranspose(@made, @kernel@(strided?, strides=@stride)"
                            "@(biased?|, use_bias=False))"},
    {"dense if not image and not volume", "layers.Dense(@units@(biased?|, use_bias=False))"},
    {"batch_norm", "layers.BatchNormalization(momentum=@momentum, epsilon=@epsilon"
                   "@(scale?|, scale=False)@(shift?|, center=False))"},
    {"layer_norm", "layers.LayerNormalization(@(image?axis=2, )epsilon=@epsilon"
                   "@(scale?|, scale=False)@(shift?|, center=False))"}, /* axis 2 is W in Keras */
    {"group_norm", "layers.GroupNormalization(@groups, epsilon=@epsilon"
                   "@(scale?|, scale=False)@(shift?|, center=False))"},
    {"rms_norm if not image and not volume", "layers.RMSNormalization(epsilon=@epsilon)"},
    {"prelu", "PReLU(@count)"},
    {"bias if not matrix", "Bias()"},
    {"dropout", "layers.Dropout(@rate)"},
    {"dropout2d", "layers.SpatialDropout2D(@rate)"},
    {NULL, NULL},
};

static const PyWord calls[] = {
    {"scan_last if masked", "masked(@layer, @x, @mask@(reversed?, True))[:, @(reversed?0|-1)]"},
    {"scan_stack if masked", "masked(@layer, @x, @mask@(reversed?, True))"},
    {"scan_last", "@layer(@(reversed?ops.flip(@x, 1)|@x))[:, -1]"},
    {"scan_stack", "@(reversed?ops.flip(@layer(ops.flip(@x, 1)), 1)|@layer(@x))"},
    {"conv2d_dx if padded", "@layer(@x)[:, @top:@rows_end, @left:@columns_end]"},
    {"batch_norm", "@layer(@x, training=training)"},
    {"dropout", "@layer(@x, training=training)"},
    {"dropout2d", "@layer(@x, training=training)"},
    {NULL, NULL},
};

/* ---- expressions */

#define WINDOW                                                                                     \
    "(@x, (@kernel_rows, @kernel_columns), (@stride_rows, @stride_columns)@(same?, \"same\"))"

#define COMPARED(sign) "ops.cast(@x " sign " @y, keras.config.floatx())"

static const PyWord words[] = {
    {"min", "ops.minimum(@x, @y)"},
    {"max", "ops.maximum(@x, @y)"},
    {"step", "ops.cast(@x > 0, keras.config.floatx())"},
    PY_COMPARISONS(COMPARED),
    {"where_true", "ops.where(@y != 0, @x, 0.)"},
    {"where_false", "ops.where(@y != 0, 0., @x)"},
    {"clamp", "ops.clip(@x, @low, @high)"},
    {"stop_gradient", "ops.stop_gradient(@x)"},
    {"cumsum",
     "@(backwards?ops.flip(ops.cumsum(ops.flip(@x, @axis), @axis), @axis)|ops.cumsum(@x, @axis))"},
    {"argmax if not image", "ops.cast(ops.argmax(@x, @axis), keras.config.floatx())"},
    {"normal_like", "keras.random.normal(ops.shape(@x))"},
    {"relu6", "ops.relu6(@x)"},
    {"leaky_relu", "ops.leaky_relu(@x, @slope)"},
    {"softplus", "ops.softplus(@x)"},
    {"gelu", "ops.gelu(@x, False)"},
    {"silu", "ops.silu(@x)"},
    {"hard_sigmoid", "ops.hard_sigmoid(@x)"},
    {"hard_swish", "ops.hard_swish(@x)"},
    {"slice", "@x[@colons@start:@end]"},
    {"crop", "@x[:, @top:@bottom, @left:@right]"},
    {"pad", "ops.pad(@x, ((0, 0), (@top, @bottom), (@left, @right), (0, 0))"
            "@(value?, constant_values=@value))"},
    {"concat if not volume", "ops.concatenate([@all], @axis)"},
    {"stack if not image_result and not volume", "ops.stack([@all], @axis)"},
    {"sum_to if batched", "ops.sum(@x, (@reduced), keepdims=True)"},
    {"amax_to if batched", "ops.amax(@x, (@reduced), keepdims=True)"},
    {"global_avg_pool", "ops.mean(@x, (1, 2))"},
    {"global_max_pool", "ops.max(@x, (1, 2))"},
    {"max_pool if tiles", "max_pool(@x, @kernel_rows, @kernel_columns)"},
    {"max_pool", "ops.max_pool" WINDOW},
    {"avg_pool if tiles", "average_pool(@x, @kernel_rows, @kernel_columns)"},
    {"avg_pool", "ops.average_pool" WINDOW},
    {"resize if bilinear", "ops.image.resize(@x, (@resized), interpolation=\"bilinear\", "
                           "data_format=\"channels_last\")"},
    /* Keras's "nearest" takes the centre of a pixel; Tenon and PyTorch take its corner. */
    {"resize",
     "ops.take(ops.take(@x, np.arange(@resized_rows) * @rows_before // @resized_rows, 1), "
     "np.arange(@resized_columns) * @columns_before // @resized_columns, 2)"},
    {"softmax if causal",
     "ops.softmax(@bare + ops.triu(ops.full((@rows, @rows), -1e30), 1)@(image?[:, :, None]), "
     "@axis)"},
    {"softmax", "ops.softmax(@x, @axis)"},
    {"attention", "attention(@x, @heads, @(causal?True|False), @scale)"},
    /* a product with the weights of another layer */
    {"dense", "ops.matmul(@x, ops.transpose(@y))"},
    {"mask", "ops.cast(@x != @padding, keras.config.floatx())"},
    {"one_hot", "ops.one_hot(@x, @classes, dtype=keras.config.floatx())"},
    {"sigmoid_cross_entropy if labelled",
     "ops.binary_crossentropy(ops.cast(ops.reshape(@y, (-1,)), @x.dtype), "
     "ops.reshape(@x, (-1,)), from_logits=True)"},
    {"softmax_cross_entropy if not smoothing",
     "ops.sparse_categorical_crossentropy(@y, @x, from_logits=True)"},
    {"softmax_cross_entropy if vector",
     "ops.categorical_crossentropy(ops.one_hot(@y, @features) * (1 - @smoothing) + "
     "@smoothing / @features, @x, from_logits=True)"},
    {NULL, NULL},
};

/* ---- images in another order */

enum { IMAGE = 3 }; /* dimensions of a sample that is an image */

static const char *in_our_order(Arena *a, const char *x, int rank)
{
    return rank == IMAGE ? arena_printf(a, "ops.transpose(%s, (0, 3, 1, 2))", x) : x;
}

static const char *in_keras_order(Arena *a, const char *x, int rank)
{
    return rank == IMAGE ? arena_printf(a, "ops.transpose(%s, (0, 2, 3, 1))", x) : x;
}

static const char *flat_text(Arena *a, const Shape *s, const char *x)
{
    return s->rank == 1 ? x
                        : arena_printf(a, "ops.reshape(%s, (-1, %lld))",
                                       in_our_order(a, x, s->rank), (long long)shape_count(s));
}

static const char *reshaped(Arena *a, const Node *n, const char *x)
{
    const char *y =
        arena_printf(a, "ops.reshape(%s, (-1, %s))", in_our_order(a, x, n->in[0]->shape.rank),
                     python_list(a, n->shape.dim, n->shape.rank, 0));
    return in_keras_order(a, y, n->shape.rank);
}

/* Stacks samples of two dimensions.  The result has three dimensions, in Tenon's order, so it is
 * transposed. */
static const char *stacked(Arena *a, const Node *n, const PyValue *in)
{
    const int64_t axis = node_int(n, "axis");
    Text t = text_new(a);
    text_add(&t, "ops.stack([");
    for (int i = 0; i < n->nin; i++)
        text_printf(&t, "%s%s", i ? ", " : "", in[i].s);
    text_printf(&t, "], %d)", (int)(axis < 0 ? axis + IMAGE : axis) + 1);
    return in_keras_order(a, t.s, IMAGE);
}

/* The index in Keras of dimension i of a sample in Tenon: Keras counts the batch, and C, H, W are
 * 3, 1, 2. */
static int keras_axis(int64_t i, int rank)
{
    return rank != IMAGE ? (int)i + 1 : i == 0 ? IMAGE : (int)i;
}

static const char *transposed(Arena *a, const Node *n, const char *x)
{
    const int64_t *axes = node_attr(n, "axes")->list;
    const int rank = n->shape.rank;
    Text t = text_new(a);
    text_printf(&t, "ops.transpose(%s, (0", x);
    for (int i = 0; i < rank; i++) /* in Keras's order: H, W, C */
        text_printf(&t, ", %d", keras_axis(axes[rank == IMAGE ? (i + 1) % IMAGE : i], rank));
    text_add(&t, "))");
    return t.s;
}

static const char *mean_square(Arena *a, const Node *n, const PyValue *in)
{
    const char *x = flat_text(a, &n->in[0]->shape, in[0].s);
    const char *y = flat_text(a, &n->in[1]->shape, python_inside(a, in[1], PY_PRODUCT));
    return arena_printf(a, "ops.mean(ops.square(%s - %s), 1)", x, y);
}

/* The product of two matrices, or of the matrices of two tensors of three dimensions, whose first
 * dimension is the last one in Keras. */
static const char *product(Arena *a, const Node *n, const PyValue *in)
{
    const int rank = n->shape.rank;
    for (int i = 0; i < 2; i++)
        if (!n->in[i]->shape.batched || n->in[i]->shape.rank != rank || rank > IMAGE)
            return NULL;
    const char *last = rank == IMAGE ? "h" : "";
    return arena_printf(a, "ops.einsum(\"n%s%s,n%s%s->nij%s\", %s, %s)",
                        node_bool(n, "transpose_a") ? "ki" : "ik", last,
                        node_bool(n, "transpose_b") ? "jk" : "kj", last, last, in[0].s, in[1].s);
}

static const char *special(Arena *a, const Node *n, const PyValue *in)
{
    if (node_is(n, "flatten"))
        return flat_text(a, &n->in[0]->shape, in[0].s);
    if (node_is(n, "reshape"))
        return reshaped(a, n, in[0].s);
    if (node_is(n, "transpose"))
        return transposed(a, n, in[0].s);
    if (node_is(n, "stack") && n->shape.rank == IMAGE)
        return stacked(a, n, in);
    if (node_is(n, "matmul"))
        return product(a, n, in);
    if (node_is(n, "mse"))
        return mean_square(a, n, in);
    if (node_is(n, "l2"))
        return arena_printf(a, "(0.5 * ops.sum(ops.square(%s), 1))",
                            flat_text(a, &n->in[0]->shape, in[0].s));
    return NULL;
}

static const PlaceText places[] = {
    {"likeliest", ""},
    {"threads", NULL},
    {"fills_windows", NULL},
    {NULL, NULL},
};

const Dialect keras = {
    .to = "keras",
    .script = template_keras,
    .place = places,
    .model = "keras.Model",
    .block = "layers.Layer",
    .call = "call(self",
    .more = ", training=None",
    .passed = ", training=training",
    .math = "ops",
    .losses = "losses(label, output)",
    .table = "embeddings",
    .wider = "ops.reshape(@x, (-1, @widened))",
    .lowest = "-math.inf",
    .channels_last = true,
    .pads_same = true,
    .layer = layers,
    .called = calls,
    .word = words,
    .special = special,
    .taken = "T_destination activity_regularizer add_loss add_metric add_module add_variable "
             "add_weight apply autocast bfloat16 buffers build build_from_config built call "
             "call_signature_parameters call_super_init children compile compile_from_config "
             "compiled compute_dtype compute_loss compute_mask compute_metrics "
             "compute_output_shape compute_output_spec count_params cpu cuda double dtype "
             "dtype_policy dump_patches eval evaluate export extra_repr fit float forward "
             "from_config get_buffer get_build_config get_compile_config get_config "
             "get_extra_state get_layer get_metrics_result get_parameter "
             "get_quantization_layer_structure get_state_tree get_submodule get_weights half input "
             "input_dtype input_spec ipu jit_compile layers load_own_variables load_state_dict "
             "load_weights loss losses make_predict_function make_test_function "
             "make_train_function metrics metrics_names metrics_variables modules mtia name "
             "named_buffers named_children named_modules named_parameters non_trainable_variables "
             "non_trainable_weights output parameters path predict predict_function "
             "predict_on_batch predict_step quantization_mode quantize quantized_build "
             "quantized_call register_backward_hook register_buffer register_forward_hook "
             "register_forward_pre_hook register_full_backward_hook "
             "register_full_backward_pre_hook register_load_state_dict_post_hook "
             "register_load_state_dict_pre_hook register_module register_parameter "
             "register_state_dict_post_hook register_state_dict_pre_hook rematerialized_call "
             "requires_grad_ reset_metrics run_eagerly save save_own_variables save_weights "
             "set_extra_state set_state_tree set_submodule set_weights share_memory state_dict "
             "stateless_call stateless_compute_loss steps_per_execution summary supports_jit "
             "supports_masking symbolic_call test_function test_on_batch test_step to to_empty "
             "to_json torch_params train train_function train_on_batch train_step trainable "
             "trainable_variables trainable_weights training type variable_dtype variables weights "
             "xpu zero_grad",
};
