/* pytorch_ops.c -- each operation in PyTorch's words. */
#include "scripts/pytorch.h"
#include "ops/op.h"
#include "ops/window.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers: what keeps weights */

static void option(Text *t, const char *name, const int64_t v[2], int64_t usual)
{
    if (v[0] != usual || v[1] != usual)
        text_printf(t, ", %s=%s", name, python_pair(t->arena, v));
}

static const char *conv_layer(Arena *a, const Node *n, bool bias)
{
    const Window v = python_window(n);
    int64_t after[2];
    const int64_t none[2] = {0, 0}, groups[2] = {node_int(n, "groups"), node_int(n, "groups")};
    Text t = text_new(a);
    text_printf(&t, "nn.Conv2d(%lld, %lld, %s", (long long)n->in[0]->shape.dim[0],
                (long long)node_int(n, "filters"), python_pair(a, v.kernel));
    option(&t, "stride", v.stride, 1);
    option(&t, "padding", python_lopsided(&v, after) ? none : v.before, 0);
    option(&t, "dilation", v.dilation, 1);
    option(&t, "groups", groups, 1);
    text_add(&t, bias ? ")" : ", bias=False)");
    return t.s;
}

static const char *norm_layer(Arena *a, const Node *n)
{
    const Shape *x = &n->shape;
    const bool batch = node_is(n, "batch_norm"), rms = node_is(n, "rms_norm");
    const char *name = rms            ? "RMSNorm"
                       : !batch       ? "LayerNorm"
                       : x->rank == 3 ? "BatchNorm2d"
                                      : "BatchNorm1d";
    Text t = text_new(a);
    text_printf(&t, "nn.%s(%lld", name, (long long)x->dim[batch ? 0 : x->rank - 1]);
    if (rms || node_float(n, "epsilon") != 1e-5)
        text_printf(&t, ", eps=%s", python_number(a, node_float(n, "epsilon")));
    if (batch && node_float(n, "momentum") != 0.9)
        text_printf(&t, ", momentum=1 - %s", python_number(a, node_float(n, "momentum")));
    const bool scale = node_bool(n, "scale"), shift = !rms && node_bool(n, "shift");
    if (!scale && !shift)
        text_add(&t, batch ? ", affine=False" : ", elementwise_affine=False");
    text_add(&t, ")");
    if (rms || scale == shift)
        return t.s;
    return arena_printf(a, "without_%s(%s)", scale ? "shift" : "scale", t.s);
}

/* Of one layer without first states, the gru's reset behind its product. */
static bool is_plain_recurrent(const Node *n)
{
    if (node_is(n, "gru") && strcmp(node_string(n, "reset"), "after") != 0)
        return false;
    return (node_is(n, "lstm") || node_is(n, "gru") || node_is(n, "rnn")) && n->nin == 1 &&
           node_float(n, "recurrent_dropout") == 0;
}

static const char *recurrent_layer(Arena *a, const Node *n)
{
    const char *relu = node_is(n, "rnn") && strcmp(node_string(n, "activation"), "relu") == 0
                           ? ", nonlinearity=\"relu\""
                           : "";
    return arena_printf(a, "%s(nn.%s(%lld, %lld, batch_first=True%s))",
                        node_is(n, "gru") ? "candidate_bias" : "one_bias",
                        node_is(n, "lstm")  ? "LSTM"
                        : node_is(n, "gru") ? "GRU"
                                            : "RNN",
                        (long long)n->in[0]->shape.dim[1], (long long)node_int(n, "width"), relu);
}

static const char *embedding_layer(Arena *a, const Node *n)
{
    const Attr *padding = node_attr(n, "padding");
    const char *more = padding ? arena_printf(a, ", %lld", (long long)padding->i) : "";
    return arena_printf(a, "%s(%lld, %lld%s)", padding ? "PaddedEmbedding" : "nn.Embedding",
                        (long long)node_int(n, "vocab"), (long long)node_int(n, "width"), more);
}

static const char *layer(Arena *a, const Node *n, bool with_bias)
{
    if (node_is(n, "embedding"))
        return embedding_layer(a, n);
    if (is_plain_recurrent(n))
        return recurrent_layer(a, n);
    if (node_is(n, "conv2d"))
        return conv_layer(a, n, with_bias);
    if (node_is(n, "dense"))
        return arena_printf(a, "nn.Linear(%lld, %lld%s)",
                            (long long)n->in[0]->shape.dim[n->in[0]->shape.rank - 1],
                            (long long)node_int(n, "units"), with_bias ? "" : ", bias=False");
    if (node_is(n, "batch_norm") || node_is(n, "layer_norm") || node_is(n, "rms_norm"))
        return norm_layer(a, n);
    if (node_is(n, "bias"))
        return arena_printf(a, "Bias(%lld)", (long long)n->in[1]->shape.dim[0]);
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
    {"exp", "torch.exp($0)", PY_ATOM},
    {"log", "torch.log($0)", PY_ATOM},
    {"sqrt", "torch.sqrt($0)", PY_ATOM},
    {"abs", "torch.abs($0)", PY_ATOM},
    {"square", "torch.square($0)", PY_ATOM},
    {"reciprocal", "torch.reciprocal($0)", PY_ATOM},
    {"min", "torch.minimum(*torch.broadcast_tensors(torch.as_tensor($0), torch.as_tensor($1)))",
     PY_ATOM},
    {"max", "torch.maximum(*torch.broadcast_tensors(torch.as_tensor($0), torch.as_tensor($1)))",
     PY_ATOM},
    {"sign", "torch.sign($0)", PY_ATOM},
    {"step", "($0 > 0).to($0.dtype)", PY_ATOM},
    {"relu", "torch.relu($0)", PY_ATOM},
    {"relu6", "F.relu6($0)", PY_ATOM},
    {"leaky_relu", "F.leaky_relu($0, #slope)", PY_ATOM},
    {"sigmoid", "torch.sigmoid($0)", PY_ATOM},
    {"tanh", "torch.tanh($0)", PY_ATOM},
    {"softplus", "F.softplus($0)", PY_ATOM},
    {"gelu", "F.gelu($0)", PY_ATOM},
    {"silu", "F.silu($0)", PY_ATOM},
    {"hard_sigmoid", "F.hardsigmoid($0)", PY_ATOM},
    {"hard_swish", "F.hardswish($0)", PY_ATOM},
    {"erf", "torch.erf($0)", PY_ATOM},
    {"flatten", "$0.flatten(1)", PY_ATOM},
    {"global_avg_pool", "$0.mean((2, 3))", PY_ATOM},
    {"dropout", "F.dropout($0, #rate, self.training)", PY_ATOM},
    {"dropout2d", "F.dropout2d($0, #rate, self.training)", PY_ATOM},

    {"mse", "($0 - $1).square().flatten(1).mean(1)", PY_ATOM},
    {"l2", "0.5 * $0.square().flatten(1).sum(1)", PY_PRODUCT},
    {"sigmoid_cross_entropy",
     "F.binary_cross_entropy_with_logits($0[:, 0], $1.to($0.dtype), reduction=\"none\")", PY_ATOM},
    {"dense", "F.linear($0, $1)", PY_ATOM}, /* with another layer's weights */
    {"one_hot", "F.one_hot($0, #classes).to(torch.get_default_dtype())", PY_ATOM},
    {NULL, NULL, 0},
};

/* A dimension of a sample as one of the batch. */
static int axis(const Node *n, int64_t axis)
{
    return (int)(axis < 0 ? axis + n->in[0]->shape.rank : axis) + 1;
}

static const char *padded(Arena *a, const char *x, const int64_t *before, const int64_t *after,
                          double value)
{
    Text t = text_new(a);
    text_printf(&t, "F.pad(%s, (%lld, %lld, %lld, %lld)", x, (long long)before[1],
                (long long)after[1], (long long)before[0], (long long)after[0]);
    if (value != 0)
        text_printf(&t, ", value=%s", python_number(a, value));
    text_add(&t, ")");
    return t.s;
}

static const char *pool(Arena *a, const Node *n, const char *x)
{
    const Window v = python_window(n);
    const Attr *count = node_attr(n, "count_include_pad");
    const bool max = node_is(n, "max_pool"),
               wide = 2 * v.before[0] > v.kernel[0] || 2 * v.before[1] > v.kernel[1];
    const int64_t none[2] = {0, 0};
    int64_t after[2];
    const bool by_hand = python_lopsided(&v, after) || wide;
    Text t = text_new(a);
    if (by_hand && !max && !(count && count->i))
        return NULL; /* PyTorch would count what is padded by hand */
    if (by_hand)
        x = padded(a, x, v.before, after, max ? -INFINITY : 0);
    text_printf(&t, "F.%s_pool2d(%s, %s", max ? "max" : "avg", x, python_pair(a, v.kernel));
    if (memcmp(v.stride, v.kernel, sizeof v.stride) != 0)
        text_printf(&t, ", %s", python_pair(a, v.stride));
    option(&t, "padding", by_hand ? none : v.before, 0);
    if (!max && !by_hand && (v.before[0] || v.before[1]) && !(count && count->i))
        text_add(&t, ", count_include_pad=False");
    text_add(&t, ")");
    return t.s;
}

static const char *joined(Arena *a, const Node *n, const PyValue *in, const char *fn)
{
    Text t = text_new(a);
    text_printf(&t, "torch.%s([", fn);
    for (int i = 0; i < n->nin; i++)
        text_printf(&t, "%s%s", i ? ", " : "", in[i].s);
    text_printf(&t, "], %d)", axis(n, node_int(n, "axis")));
    return t.s;
}

static const char *cropped(Arena *a, const Node *n, const char *x)
{
    const int64_t *size = node_attr(n, "size")->list, *have = n->in[0]->shape.dim + 1;
    const Attr *given = node_attr(n, "at");
    int64_t at[2];
    for (int i = 0; i < 2; i++)
        at[i] = given ? given->list[i] : (have[i] - size[i]) / 2;
    return arena_printf(a, "%s[:, :, %lld:%lld, %lld:%lld]", x, (long long)at[0],
                        (long long)(at[0] + size[0]), (long long)at[1],
                        (long long)(at[1] + size[1]));
}

static const char *smoothed(Arena *a, const Node *n, const PyValue *in)
{
    const Attr *s = node_attr(n, "smoothing");
    const char *more =
        s && s->f > 0 ? arena_printf(a, ", label_smoothing=%s", python_number(a, s->f)) : "";
    if (n->in[0]->shape.rank == 1)
        return arena_printf(a, "F.cross_entropy(%s, %s, reduction=\"none\"%s)", in[0].s, in[1].s,
                            more);
    return arena_printf(a, /* a class a position; -1: it is not scored */
                        "F.cross_entropy(%s.transpose(1, 2), %s, reduction=\"none\", "
                        "ignore_index=-1%s).sum(1) / (%s >= 0).sum(1)",
                        python_inside(a, in[0], PY_ATOM), in[1].s, more, in[1].s);
}

static const char *attention(Arena *a, const Node *n, const char *x)
{
    return arena_printf(a, "attention(%s, %lld, %s, %s)", x, (long long)node_int(n, "heads"),
                        strcmp(node_string(n, "mask"), "causal") == 0 ? "True" : "False",
                        python_number(a, node_float(n, "scale")));
}

/* Over the dimensions of which 1 is left: what sum, mean and amax are made of. */
static const char *reduced(Arena *a, const Node *n, const char *x)
{
    const Shape *from = &n->in[0]->shape, *to = &n->shape;
    Text t = text_new(a);
    text_printf(&t, "%s.%s((", x, node_is(n, "sum_to") ? "sum" : "amax");
    for (int i = 0; i < from->rank; i++) {
        const int there = i - (from->rank - to->rank);
        if (there < 0 || to->dim[there] != from->dim[i])
            text_printf(&t, "%d, ", i + 1);
    }
    text_add(&t, "), keepdim=True)");
    return t.s;
}

static const char *softmax(Arena *a, const Node *n, PyValue x)
{
    const long long rows = n->shape.dim[n->shape.rank - 1];
    if (python_causal(n))
        x.s = arena_printf(a, "%s + torch.full((%lld, %lld), -math.inf).triu(1)",
                           python_inside(a, x, PY_SUM), rows, rows);
    return arena_printf(a, "F.softmax(%s, %d)", x.s, axis(n, node_int(n, "axis")));
}

/* Ops whose words depend on more than their operands; NULL: none of them. */
static const char *shaped(Arena *a, const Node *n, const PyValue *in)
{
    const char *x = python_inside(a, in[0], PY_ATOM);
    if (node_is(n, "max_pool") || node_is(n, "avg_pool"))
        return pool(a, n, in[0].s);
    if ((node_is(n, "sum_to") || node_is(n, "amax_to")) && n->shape.batched)
        return reduced(a, n, x);
    if (node_is(n, "concat") || node_is(n, "stack"))
        return joined(a, n, in, node_is(n, "stack") ? "stack" : "cat");
    if (node_is(n, "reshape"))
        return arena_printf(a, "%s.reshape(-1, %s)", x,
                            python_list(a, n->shape.dim, n->shape.rank, 0));
    if (node_is(n, "transpose"))
        return arena_printf(a, "%s.permute(0, %s)", x,
                            python_list(a, node_attr(n, "axes")->list, n->shape.rank, 1));
    if (node_is(n, "slice"))
        return arena_printf(a, "%s.narrow(%d, %lld, %lld)", x, axis(n, node_int(n, "axis")),
                            (long long)node_int(n, "start"), (long long)node_int(n, "size"));
    if (node_is(n, "softmax_cross_entropy"))
        return smoothed(a, n, in);
    if (node_is(n, "attention"))
        return attention(a, n, in[0].s);
    if (node_is(n, "softmax"))
        return softmax(a, n, in[0]);
    if (node_is(n, "crop"))
        return cropped(a, n, x);
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
        return arena_printf(a, "%s(%s%s)[0]%s", layer, back ? python_inside(a, x, PY_ATOM) : x.s,
                            back ? ".flip(1)" : "",
                            last   ? "[:, -1]"
                            : back ? ".flip(1)"
                                   : "");
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
    return arena_printf(a, "%s.reshape(-1, %s)", x, python_widened(a, from, rank));
}

const Dialect pytorch = {.to = "pytorch",
                         .model = "nn.Module",
                         .block = "nn.Module",
                         .call = "forward(self",
                         .more = "",
                         .passed = "",
                         .losses = "losses(output, label)",
                         .table = "weight",
                         .taken =
                             "T_destination add_module apply bfloat16 buffers call_super_init "
                             "children compile cpu cuda double dump_patches eval extra_repr "
                             "float forward get_buffer get_extra_state get_parameter "
                             "get_submodule half ipu load_state_dict modules mtia named_buffers "
                             "named_children named_modules named_parameters parameters "
                             "register_backward_hook register_buffer register_forward_hook "
                             "register_forward_pre_hook register_full_backward_hook "
                             "register_full_backward_pre_hook register_load_state_dict_post_hook "
                             "register_load_state_dict_pre_hook register_module "
                             "register_parameter register_state_dict_post_hook "
                             "register_state_dict_pre_hook requires_grad_ set_extra_state "
                             "set_submodule share_memory state_dict to to_empty train training "
                             "type xpu zero_grad",
                         .word = words,
                         .layer = layer,
                         .called = called,
                         .wider = wider,
                         .shaped = shaped};
