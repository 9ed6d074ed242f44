/* conv_transpose2d.c -- transposed convolution: makes images larger with learned filters.
 *
 *   y = conv2d_dx(w, x): the gradient that conv2d with the filters w has for its images
 *   y[o][i a + r d - p][j a + s d - p] += w[c][o][r][s] x[c][i][j]     stride a, dilation d, pad p
 *   H' = (H - 1) a - 2 p + d (R - 1) + output_pad + 1, W' likewise
 *
 *   x (N, C, H, W)   w (C, O/groups, R, S)   y (N, O, H', W')
 *
 * So its own gradients are dx = conv2d(dy, w) and dw = conv2d_dw(dy, x), and it has the kernels and
 * prices of these operations.  The file of weights is that of PyTorch's ConvTranspose2d.  Source:
 * Dumoulin & Visin 2016, "A guide to convolution arithmetic for deep learning".
 */
#include "ops/bias.h"
#include "ops/check.h"
#include "ops/example.h"

static int64_t get(const Node *n, const char *key, int i)
{
    return node_attr(n, key)->list[i];
}

/* Reports an output_pad that is not below the stride: conv2d of the result would have more rows
 * than x. */
static bool check_output_pad(const Node *n, Diag *d)
{
    for (int i = 0; i < 2; i++) {
        const int64_t more = get(n, "output_pad", i), stride = get(n, "stride", i);
        if (more < stride)
            continue;
        diag_error(d, node_span(n, "output_pad"), "%s output_pad %lld is not below its stride %lld",
                   n->op->name, (long long)more, (long long)stride);
        diag_help(d, "pad(x, ..) adds any number of rows and columns");
        return false;
    }
    return true;
}

static bool conv_transpose2d_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d) || !check_int(n, "filters", 1, d) || !check_int(n, "groups", 1, d) ||
        !check_int(n, "kernel", 1, d) || !check_int(n, "stride", 1, d) ||
        !check_int(n, "pad", 0, d) || !check_int(n, "output_pad", 0, d) ||
        !check_int(n, "dilation", 1, d) ||
        !check_groups(n, n->in[0]->shape.dim[0], "input channels", d) || !check_output_pad(n, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    int64_t y[3] = {node_int(n, "filters")};
    for (int i = 0; i < 2; i++) {
        const int64_t all = (x->dim[i + 1] - 1) * get(n, "stride", i) +
                            get(n, "dilation", i) * (get(n, "kernel", i) - 1) +
                            get(n, "output_pad", i) + 1;
        y[i + 1] = all - 2 * get(n, "pad", i);
        if (y[i + 1] >= 1)
            continue;
        diag_error(d, node_span(n, "pad"), "%s pad %lld leaves nothing of a result of %lld %s",
                   n->op->name, (long long)get(n, "pad", i), (long long)all,
                   i ? "columns" : "rows");
        check_note(n, 0, d);
        diag_help(d, "use pad <= %lld, or a larger kernel", (long long)(all - 1) / 2);
        return false;
    }
    return check_result(n, shape_make(x->batched, "CHW", y, 3), d);
}

static Node *conv_transpose2d_build(Graph *g, Node *const *x, int nx, const Node *attrs,
                                    const char *path, Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    Node like = {.op = op_find("conv2d"), .span = attrs->span};
    node_copy_attrs(g, &probe, attrs);
    if (!conv_transpose2d_shape(&probe, d))
        return NULL;
    const int64_t *kernel = node_attr(attrs, "kernel")->list, c = x[0]->shape.dim[0];
    const int64_t dim[4] = {c, node_int(attrs, "filters") / node_int(attrs, "groups"), kernel[0],
                            kernel[1]};
    Node *w = graph_param(g, d, arena_printf(g->arena, "%s.weight", path),
                          shape_make(false, "OIRS", dim, 4), NULL, attrs->span);
    if (!w)
        return NULL;
    node_copy_attrs(g, &like, attrs);
    node_drop_attr(g->arena, &like, "output_pad");
    node_set_int(g, &like, "filters", c);
    node_set_ints(g, &like, "pad_before", node_attr(attrs, "pad")->list, 2);
    node_set_ints(g, &like, "x_shape", probe.shape.dim, 3);
    Node *y = op_make_like(g, "conv2d_dx", &like, 2, w, x[0]);
    y->name = path;
    return node_bool(attrs, "bias") ? bias_build(g, y, path, attrs->span, d) : y;
}

const Op op_conv_transpose2d[] =
    {{.name = "conv_transpose2d",
      .brief = "transposed convolution: larger images with learned filters",
      .shapes = "x (N, C, H, W)   weight (C, O / groups, R, S)   bias (O)   y (N, O, H', W')\n"
                "O = filters   (R, S) = kernel\n"
                "H' = (H - 1) stride - 2 pad + dilation (R - 1) + output_pad + 1   W' likewise",
      .formula =
          "y[o][i'][j'] = bias[o] + sum of weight[c][o][r][s] x[c][i][j] over c, r, s, i, j\n"
          "with i' = i stride + r dilation - pad and j' = j stride + s dilation - pad",
      .derivative = "dx = convolution of dy with weight\n"
                    "dweight[c][o][r][s] = sum over samples, i, j of x[c][i][j] dy[o][i'][j']\n"
                    "dbias[o] = sum over samples, i', j' of dy[o][i'][j']",
      .note =
          "It is the gradient of conv2d for its images, as a layer, and has the kernels of this "
          "gradient. The weights have the shape of PyTorch's ConvTranspose2d. Source: Dumoulin "
          "& Visin 2016, \"A guide to convolution arithmetic for deep learning\".",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"},
              {"filters", ARG_INT, NULL, "channels of the result, at least 1"},
              {"kernel", ARG_PAIR, NULL, "rows and columns of a filter, at least 1"},
              {"stride", ARG_PAIR, "1", "pixels of y from one pixel of x to the next, at least 1"},
              {"pad", ARG_PAIR, "0", "rows and columns that are cut off on each side, at least 0"},
              {"output_pad", ARG_PAIR, "0",
               "rows below and columns on the right that y has in addition; below the stride"},
              {"dilation", ARG_PAIR, "1",
               "pixels from one tap of a filter to the next, at least 1"},
              {"groups", ARG_INT, "1",
               "number of groups of channels; it divides the channels of x and `filters`"},
              {"bias", ARG_BOOL, "true", "add a learned number to each channel of the result"}},
      .layer = "conv",
      .shape = conv_transpose2d_shape,
      .build = conv_transpose2d_build,
      .example =
          "# Twice as large, as at the end of an autoencoder; then two groups of filters.\n"
          "model example(image: f32[2, 5, 4]) {\n"
          "    h = conv_transpose2d(image, 4, kernel = 3, stride = 2, pad = 1, output_pad = 1)\n"
          "    h = conv_transpose2d(tanh(h), 6, kernel = [2, 3], groups = 2, dilation = 2)\n"
          "    return flatten(h) |> dense(3)\n"
          "}\n" EXAMPLE_TRAIN},
     {0}};
