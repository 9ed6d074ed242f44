/* conv1d.c -- convolution over the steps of a sequence.
 *
 *   y[i][o] = b[o] + sum over r, c of w[o][c][r][0] x[i a + r d - p][c]
 *             stride a, dilation d, pad p; x is 0 outside
 *
 *   x (N, T, F)   w (O, F/groups, K, 1)   b (O)   y (N, T', O)
 *   T' = floor((T + padding - d (K - 1) - 1) / a) + 1
 *
 * It is conv2d over an image with a row for each step and one column (window1d.h), so it has the
 * kernels, gradients and prices of conv2d.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/window1d.h"

static bool conv1d_window(const Node *n, Node *window, int64_t *steps, Diag *d)
{
    return window1d_check(n, window, steps, d) && check_int(n, "filters", 1, d) &&
           check_int(n, "groups", 1, d) &&
           check_groups(n, n->in[0]->shape.dim[1], "input features", d);
}

static bool conv1d_shape(Node *n, Diag *d)
{
    Node window;
    int64_t steps;
    if (!conv1d_window(n, &window, &steps, d))
        return false;
    const int64_t dim[2] = {steps, node_int(n, "filters")};
    return check_result(n, shape_make(n->in[0]->shape.batched, "TF", dim, 2), d);
}

static Node *conv1d_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                          Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span}, window;
    int64_t steps;
    node_copy_attrs(g, &probe, attrs);
    if (!conv1d_window(&probe, &window, &steps, d))
        return NULL;
    Node *image = window1d_image(g, x[0], attrs->span);
    const Op *conv = op_find("conv2d");
    window.op = conv;
    Node *y = conv->build(g, &image, 1, &window, path, d);
    return y ? window1d_sequence(g, y, attrs->span) : NULL;
}

const Op op_conv1d[] =
    {{.name = "conv1d",
      .brief = "convolution over the steps of sequences with learned filters",
      .shapes = "x (N, T, F)   weight (O, F / groups, K, 1)   bias (O)   y (N, T', O)\n"
                "O = filters   K = kernel\n"
                "T' = floor((T + pad before + pad behind - dilation (K - 1) - 1) / stride) + 1",
      .formula = "y[i][o] = bias[o] + sum over r, c of weight[o][c][r][0] x[i'][c]\n"
                 "i' = i stride + r dilation - pad before   x is 0 outside",
      .derivative = "dx = transposed convolution of dy with weight\n"
                    "dweight[o][c][r][0] = sum over samples, i of dy[i][o] x[i'][c]\n"
                    "dbias[o] = sum over samples, i of dy[i][o]",
      .note = "A sample is a sequence of steps, as for lstm and dense: PyTorch's Conv1d takes "
              "(N, F, T). It is computed as conv2d over an image with one column, without a copy "
              "on a processor; so weights are those of a conv2d with kernel = [K, 1]. pad = "
              "\"same\" gives ceil(T / stride) steps; an odd step of padding is added behind.",
      .arg = {{"x", ARG_TENSOR, NULL, "sequences (N, T, F)"},
              {"filters", ARG_INT, NULL, "number of filters, at least 1: features of the result"},
              {"kernel", ARG_INT, NULL, "steps of a filter, at least 1"},
              {"stride", ARG_INT, "1", "steps from one window to the next, at least 1"},
              {"pad", ARG_PAD_STEPS, "0",
               "steps of zeros at both ends, at least 0; \"same\" or \"valid\""},
              {"dilation", ARG_INT, "1", "steps from one tap of a filter to the next, at least 1"},
              {"groups", ARG_INT, "1",
               "number of groups of features; it divides the features of x and `filters`"},
              {"bias", ARG_BOOL, "true", "add a learned number to each feature of the result"}},
      .layer = "conv",
      .shape = conv1d_shape,
      .build = conv1d_build,
      .example = "# Three steps at a time, then every second pair of steps with a gap.\n"
                 "model example(x: f32[9, 4]) {\n"
                 "    h = conv1d(x, 6, kernel = 3, pad = \"same\") |> tanh\n"
                 "    h = conv1d(h, 4, kernel = 2, stride = 2, dilation = 2, groups = 2, pad = 1)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
