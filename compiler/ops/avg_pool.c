/* avg_pool.c -- the mean of each window.
 *
 *   y[c][i][j] = mean over r, s of x[c][i stride + r - pad][j stride + s - pad]
 *   dx: each dy is divided evenly among the pixels of its mean
 *
 * The mean excludes padding.  With count_include_pad, padding counts as zeros.
 */
#include "ops/example.h"
#include "ops/pooling.h"

static void avg_pool_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "avg_pool_dx", n, 1, dy));
}

static void avg_pool_kernel(const Node *n, Call *c)
{
    call_kernel(c, "avg_pool");
    call_in_parts(c, n);
    pooling_literal(n, n, c);
}

static void avg_pool_kernel_dx(const Node *n, Call *c)
{
    call_kernel(c, "avg_pool_dx");
    call_in_parts(c, n);
    pooling_literal(n, n->in[0], c);
}

const Op op_avg_pool[] =
    {{.name = "avg_pool",
      .brief = "the mean of each window of an image",
      .shapes = "x (N, C, H, W)   y (N, C, H', W')   (R, S) = kernel\n"
                "H' = floor((H + pad above + pad below - R) / stride) + 1   W' likewise",
      .formula = "y[c][i][j] = mean over r, s of x[c][i stride + r - pad][j stride + s - pad]",
      .derivative = "dx: each dy is divided evenly among the pixels of its mean",
      .note = "Padding is not counted in the mean, unless count_include_pad = true: then it counts "
              "as zeros.",
      .arg = {POOLING_ARGS,
              {"count_include_pad", ARG_BOOL, "false", "padding counts as zeros in the mean"}},
      .flags = OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .strided = STRIDED_OUT,
      .shape = pooling_shape,
      .gradient = avg_pool_gradient,
      .cost = pooling_cost,
      .kernel = avg_pool_kernel,
      .example = "model example(image: f32[1, 8, 8]) {\n"
                 "    h = conv2d(image, 3, kernel = 3) |> tanh |> avg_pool(2)\n"
                 "    h = avg_pool(h, 3, stride = 2, pad = \"same\")\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "avg_pool_dx",
      .brief = "gradient of avg_pool: spread over each window",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .strided = 1 << 0,
      .shape = pooling_shape_dx,
      .cost = pooling_cost,
      .kernel = avg_pool_kernel_dx},
     {0}};
