/* max_pool.c -- the largest number of each window.
 *
 *   y[c][i][j] = max over r, s of x[c][i stride + r - pad][j stride + s - pad]
 *   dx: each dy goes to the first maximum of its window in row-major order
 *
 * The number of windows is rounded down; padding is never the maximum.
 */
#include "ops/example.h"
#include "ops/pooling.h"

static void max_pool_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "max_pool_dx", n, 2, n->in[0], dy));
}

static void max_pool_kernel(const Node *n, Call *c)
{
    call_kernel(c, "max_pool");
    call_in_parts(c, n);
    pooling_literal(n, n, c);
}

static void max_pool_kernel_dx(const Node *n, Call *c)
{
    call_kernel(c, "max_pool_dx");
    call_in_parts(c, n);
    pooling_literal(n, n->in[1], c);
}

const Op op_max_pool[] =
    {{.name = "max_pool",
      .brief = "the largest number of each window of an image",
      .shapes = "x (N, C, H, W)   y (N, C, H', W')   (R, S) = kernel\n"
                "H' = floor((H + pad above + pad below - R) / stride) + 1   W' likewise",
      .formula = "y[c][i][j] = max over r, s of x[c][i stride + r - pad][j stride + s - pad]",
      .derivative = "dx: each dy is added at the first maximum of its window, in row-major order",
      .note = "Padding is never the maximum.",
      .arg = {POOLING_ARGS},
      .flags = OP_SPATIAL,
      .epilogue = EPILOGUE_POOL,
      .half = HALF_USE_IN_OUT,
      .strided = STRIDED_OUT,
      .shape = pooling_shape,
      .gradient = max_pool_gradient,
      .cost = pooling_cost,
      .kernel = max_pool_kernel,
      .example = "# Overlapping windows, as in AlexNet.\n"
                 "model example(image: f32[1, 9, 8]) {\n"
                 "    h = conv2d(image, 3, kernel = 3) |> max_pool(3, stride = 2, pad = 1)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "max_pool_dx",
      .brief = "gradient of max_pool: to the first maximum of each window",
      .arg = {{"x", ARG_TENSOR, NULL, "images"},
              {"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .strided = 1 << 1,
      .shape = pooling_shape_dx,
      .cost = pooling_cost,
      .kernel = max_pool_kernel_dx},
     {0}};
