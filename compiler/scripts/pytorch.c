/* pytorch.c -- templates of PyTorch. */
#include "scripts/python.h"

/* ---- layers */

#define BATCH_NORM                                                                                 \
    "nn.BatchNorm@(image?2|1)d(@channels@(other_epsilon?, eps=@epsilon)"                           \
    "@(other_momentum?, momentum=1 - @momentum)@(scale or shift?|, affine=False))"
#define LAYER_NORM                                                                                 \
    "nn.LayerNorm(@features@(other_epsilon?, eps=@epsilon)"                                        \
    "@(scale or shift?|, elementwise_affine=False))"

#define GROUP_NORM                                                                                 \
    "nn.GroupNorm(@groups, @(image?@channels|@features)@(other_epsilon?, eps=@epsilon)"            \
    "@(scale or shift?|, affine=False))"

static const PyWord layers[] = {
    {"embedding if padding", "PaddedEmbedding(@vocab, @width, @padding)"},
    {"embedding", "nn.Embedding(@vocab, @width)"},
    {"lstm if plain", "one_bias(nn.LSTM(@features, @width, batch_first=True))"},
    {"gru if plain", "candidate_bias(nn.GRU(@features, @width, batch_first=True))"},
    {"rnn if plain",
     "one_bias(nn.RNN(@features, @width, batch_first=True@(relu?, nonlinearity=\"relu\")))"},
    {"conv2d", "nn.Conv2d(@channels, @filters, @kernel@(strided?, stride=@stride)"
               "@(padded?, padding=@padding)@(dilated?, dilation=@dilation)"
               "@(grouped?, groups=@groups)@(biased?|, bias=False))"},
    {"conv2d_dx", "nn.ConvTranspose2d(@filters, @made, @kernel@(strided?, stride=@stride)"
                  "@(padded?, padding=@padding)@(more?, output_padding=@output_padding)"
                  "@(dilated?, dilation=@dilation)@(grouped?, groups=@groups)"
                  "@(biased?|, bias=False))"},
    {"dense", "nn.Linear(@features, @units@(biased?|, bias=False))"},
    {"batch_norm if scale and not shift", "without_shift(" BATCH_NORM ")"},
    {"batch_norm if shift and not scale", "without_scale(" BATCH_NORM ")"},
    {"batch_norm", BATCH_NORM},
    {"layer_norm if scale and not shift", "without_shift(" LAYER_NORM ")"},
    {"layer_norm if shift and not scale", "without_scale(" LAYER_NORM ")"},
    {"layer_norm", LAYER_NORM},
    {"group_norm if scale and not shift", "without_shift(" GROUP_NORM ")"},
    {"group_norm if shift and not scale", "without_scale(" GROUP_NORM ")"},
    {"group_norm", GROUP_NORM},
    {"rms_norm", "nn.RMSNorm(@features, eps=@epsilon@(scale?|, elementwise_affine=False))"},
    {"prelu", "nn.PReLU(@count)"},
    {"bias", "Bias(@count)"},
    {NULL, NULL},
};

/* A layer returns the states of all steps, and the last states. */
static const PyWord calls[] = {
    {"scan_last if masked",
     "masked(@layer, @x, @mask@(reversed?, backwards=True))[:, @(reversed?0|-1)]"},
    {"scan_stack if masked", "masked(@layer, @x, @mask@(reversed?, backwards=True))"},
    {"scan_last", "@layer(@(reversed?@x.flip(1)|@x))[0][:, -1]"},
    {"prelu if matrix", "@layer(@x.transpose(1, 2)).transpose(1, 2)"},
    {"group_norm if matrix", "@layer(@x.transpose(1, 2)).transpose(1, 2)"},
    {"scan_stack", "@(reversed?@layer(@x.flip(1))[0].flip(1)|@layer(@x)[0])"},
    {NULL, NULL},
};

/* ---- expressions */

#define BROADCAST(fn)                                                                              \
    "torch." fn "(*torch.broadcast_tensors(torch.as_tensor(@x), torch.as_tensor(@y)))"
#define CROSS_ENTROPY(x, more)                                                                     \
    "F.cross_entropy(" x ", @y, reduction=\"none\"" more                                           \
    "@(smoothing?, label_smoothing=@smoothing))"

#define COMPARED(sign) "(@x " sign " @y).to(torch.get_default_dtype())"

#define WEIGHTS "torch.tensor([@class_weights], dtype=@x.dtype)"

static const PyWord words[] = {
    {"min", BROADCAST("minimum")},
    {"max", BROADCAST("maximum")},
    {"step", "(@x > 0).to(@x.dtype)"},
    PY_COMPARISONS(COMPARED),
    {"where_true", "torch.where(@y != 0, @x, 0.)"},
    {"where_false", "torch.where(@y != 0, 0., @x)"},
    {"clamp", "@x.clamp(@low, @high)"},
    {"stop_gradient", "@x.detach()"},
    {"relu6", "F.relu6(@x)"},
    {"leaky_relu", "F.leaky_relu(@x, @slope)"},
    {"softplus", "F.softplus(@x)"},
    {"gelu", "F.gelu(@x)"},
    {"silu", "F.silu(@x)"},
    {"hard_sigmoid", "F.hardsigmoid(@x)"},
    {"hard_swish", "F.hardswish(@x)"},
    {"flatten", "@x.flatten(1)"},
    {"reshape", "@x.reshape(-1, @shape)"},
    {"transpose", "@x.permute(0, @axes)"},
    {"slice", "@x.narrow(@axis, @start, @size)"},
    {"crop", "@x[:, :, @top:@bottom, @left:@right]"},
    {"pad", "F.pad(@x, (@left, @right, @top, @bottom)@(value?, value=@value))"},
    {"concat", "torch.cat([@all], @axis)"},
    {"stack", "torch.stack([@all], @axis)"},
    {"sum_to if batched", "@x.sum((@reduced), keepdim=True)"},
    {"amax_to if batched", "@x.amax((@reduced), keepdim=True)"},
    {"global_avg_pool", "@x.mean((2, 3))"},
    {"global_max_pool", "F.adaptive_max_pool2d(@x, 1).flatten(1)"},
    {"max_pool", "F.max_pool2d(@x, @kernel@(other_stride?, @stride)@(padded?, padding=@padding))"},
    {"avg_pool", "F.avg_pool2d(@x, @kernel@(other_stride?, @stride)@(padded?, padding=@padding)"
                 "@(uncounted?, count_include_pad=False))"},
    {"resize if bilinear", "F.interpolate(@x, (@resized), mode=\"bilinear\", align_corners=False)"},
    {"resize", "F.interpolate(@x, (@resized), mode=\"nearest\")"},
    {"softmax if causal",
     "F.softmax(@bare + torch.full((@rows, @rows), -math.inf).triu(1), @axis)"},
    {"softmax", "F.softmax(@x, @axis)"},
    {"matmul", "torch.matmul(@x@(transpose_a?.mT), @y@(transpose_b?.mT))"},
    {"attention", "attention(@x, @heads, @(causal?True|False), @scale)"},
    {"cumsum", "@(backwards?@x.flip(@axis).cumsum(@axis).flip(@axis)|@x.cumsum(@axis))"},
    {"argmax", "@x.argmax(@axis).to(torch.get_default_dtype())"},
    {"normal_like", "torch.randn_like(@x)"},
    {"dropout", "F.dropout(@x, @rate, self.training)"},
    {"dropout2d", "F.dropout2d(@x, @rate, self.training)"},
    {"dense", "F.linear(@x, @y)"}, /* a product with the weights of another layer */
    {"one_hot", "F.one_hot(@x, @classes).to(torch.get_default_dtype())"},
    {"mask", "(@x != @padding).to(torch.get_default_dtype())"},
    {"mse", "(@x - @y).square().flatten(1).mean(1)"},
    {"l1", "(@x - @y).abs().flatten(1).mean(1)"},
    {"huber", "F.huber_loss(@x, @y, reduction=\"none\", delta=@delta).flatten(1).mean(1)"},
    {"l2", "0.5 * @x.square().flatten(1).sum(1)"},
    {"sigmoid_cross_entropy if labelled",
     "F.binary_cross_entropy_with_logits(@x[:, 0], @y.to(@x.dtype), reduction=\"none\")"},
    {"sigmoid_cross_entropy",
     "F.binary_cross_entropy_with_logits(@x, @y, reduction=\"none\"@(positive_weight?, "
     "pos_weight=torch.tensor(@positive_weight, dtype=@x.dtype))).flatten(1).mean(1)"},
    {"softmax_cross_entropy if class_weights and vector",
     CROSS_ENTROPY("@x", ", weight=" WEIGHTS) " * len(@y) / " WEIGHTS "[@y].sum()"},
    {"softmax_cross_entropy if class_weights and pixels",
     CROSS_ENTROPY("@x.transpose(1, 2)",
                   ", ignore_index=-1, weight=" WEIGHTS) ".sum(1) * len(@y) / (" WEIGHTS
                                                         "[@y.clamp(min=0)] * (@y >= 0)).sum()"},
    {"softmax_cross_entropy if vector", CROSS_ENTROPY("@x", "")},
    /* a class for each position or pixel; -1: it is not scored */
    {"softmax_cross_entropy if pixels",
     CROSS_ENTROPY("@x.transpose(1, 2)",
                   ", ignore_index=-1") ".sum(1) * len(@y) / (@y >= 0).sum().clamp(min=1)"},
    {"softmax_cross_entropy",
     CROSS_ENTROPY("@x.transpose(1, 2)", ", ignore_index=-1") ".sum(1) / (@y >= 0).sum(1)"},
    {NULL, NULL},
};

static const PlaceText places[] = {
    {"likeliest", "output.argmax(-1)"},
    {"threads",
     "    a.add_argument(\"--threads\", type=int, default=len(os.sched_getaffinity(0)))"},
    {"fills_windows", ""},
    {NULL, NULL},
};

const Dialect pytorch = {
    .to = "pytorch",
    .script = template_pytorch,
    .place = places,
    .model = "nn.Module",
    .block = "nn.Module",
    .call = "forward(self",
    .more = "",
    .passed = "",
    .math = "torch",
    .losses = "losses(output, label)",
    .table = "weight",
    .wider = "@x.reshape(-1, @widened)",
    .lowest = "float('-inf')",
    .pads_half = true,
    .layer = layers,
    .called = calls,
    .word = words,
    .taken = "T_destination add_module apply bfloat16 buffers call_super_init children compile cpu "
             "cuda double dump_patches eval extra_repr float forward get_buffer get_extra_state "
             "get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers "
             "named_children named_modules named_parameters parameters register_backward_hook "
             "register_buffer register_forward_hook register_forward_pre_hook "
             "register_full_backward_hook register_full_backward_pre_hook "
             "register_load_state_dict_post_hook register_load_state_dict_pre_hook "
             "register_module register_parameter register_state_dict_post_hook "
             "register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule "
             "share_memory state_dict to to_empty train training type xpu zero_grad",
};
