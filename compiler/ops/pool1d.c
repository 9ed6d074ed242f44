/* pool1d.c -- the largest number and the mean of windows over the steps of a sequence.
 *
 *   max_pool1d   y[i][c] = max over r of x[i stride + r - pad][c]
 *   avg_pool1d   y[i][c] = mean over r of x[i stride + r - pad][c]
 *
 *   x (N, T, F)   y (N, T', F)
 *
 * They are max_pool and avg_pool over an image with a row for each step and one column
 * (window1d.h), so they have the kernels, gradients and prices of these.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/window.h"
#include "ops/window1d.h"

/* Rejects a padding so large that a window lies wholly in it. */
static bool check_pad(const Node *n, const Node *window, Diag *d)
{
    const Window v = window_of(window, n->in[0]->shape.dim[0], 1);
    if (v.before[0] < v.kernel[0])
        return true;
    diag_error(d, node_span(n, "pad"), "%s pad %lld leaves windows of %lld without a step",
               n->op->name, (long long)v.before[0], (long long)v.kernel[0]);
    diag_help(d, "use pad <= %lld, or a larger kernel", (long long)v.kernel[0] - 1);
    return false;
}

static bool pool1d_window(const Node *n, Node *window, int64_t *steps, Diag *d)
{
    return window1d_check(n, window, steps, d) && check_pad(n, window, d);
}

static bool pool1d_shape(Node *n, Diag *d)
{
    Node window;
    int64_t steps;
    if (!pool1d_window(n, &window, &steps, d))
        return false;
    const int64_t dim[2] = {steps, n->in[0]->shape.dim[1]};
    return check_result(n, shape_make(n->in[0]->shape.batched, "TF", dim, 2), d);
}

static Node *pool1d_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                          Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span}, window;
    int64_t steps;
    (void)path; /* pooling has no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (!pool1d_window(&probe, &window, &steps, d))
        return NULL;
    const bool average = attrs->op == op_find("avg_pool1d");
    Node *image = window1d_image(g, x[0], attrs->span);
    Node *y = op_make_like(g, average ? "avg_pool" : "max_pool", &window, 1, image);
    return window1d_sequence(g, y, attrs->span);
}

#define ARGS                                                                                       \
    {"x", ARG_TENSOR, NULL, "sequences (N, T, F)"},                                                \
        {"kernel", ARG_INT, NULL, "steps of the window, at least 1"},                              \
        {"stride", ARG_INT, "none",                                                                \
         "steps from one window to the next, at least 1; default: the kernel"},                    \
    {                                                                                              \
        "pad", ARG_PAD_STEPS, "0",                                                                 \
            "steps of padding at both ends, 0 to kernel - 1; \"same\" or \"valid\""                \
    }
#define SHAPES                                                                                     \
    "x (N, T, F)   y (N, T', F)   K = kernel\n"                                                    \
    "T' = floor((T + pad before + pad behind - K) / stride) + 1"

const Op op_pool1d[] =
    {{.name = "max_pool1d",
      .brief = "the largest number of each window over the steps of a sequence",
      .shapes = SHAPES,
      .formula = "y[i][c] = max over r of x[i stride + r - pad][c]",
      .derivative = "dx: each dy is added at the first maximum of its window",
      .note = "Padding is never the maximum. amax(x, axes = [0]) is the maximum over all steps.",
      .arg = {ARGS},
      .shape = pool1d_shape,
      .build = pool1d_build,
      .example = "model example(x: f32[9, 4]) {\n"
                 "    h = dense(x, 5) |> max_pool1d(3, stride = 2, pad = 1)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "avg_pool1d",
      .brief = "the mean of each window over the steps of a sequence",
      .shapes = SHAPES,
      .formula = "y[i][c] = mean over r of x[i stride + r - pad][c]",
      .derivative = "dx: each dy is divided evenly among the steps of its mean",
      .note = "Padding is not counted in the mean, unless count_include_pad = true: then it counts "
              "as zeros. mean(x, axes = [0]) is the mean of all steps.",
      .arg = {ARGS,
              {"count_include_pad", ARG_BOOL, "false", "padding counts as zeros in the mean"}},
      .shape = pool1d_shape,
      .build = pool1d_build,
      .example = "model example(x: f32[9, 4]) {\n"
                 "    h = dense(x, 5) |> tanh |> avg_pool1d(2)\n"
                 "    h = avg_pool1d(h, 3, stride = 1, pad = \"same\")\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
