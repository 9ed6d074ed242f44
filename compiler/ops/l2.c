/* l2.c -- half the sum of squares, per sample: a penalty on large activations.
 *
 *   y = 1/2 sum over i of x[i]^2;   dx[i] = x[i] dy
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static bool l2_shape(Node *n, Diag *d)
{
    return check_real(n, 0, d) && loss_result(n, d);
}

static void l2_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make(grad_graph(gr), "l2_dx", n->span, 2, n->in[0], dy));
}

const Op op_l2[] =
    {{.name = "l2",
      .brief = "half the sum of squares of each sample",
      .shapes = "x (N, ..)   y (N)",
      .formula = "y = 1/2 sum over i of x[i]^2",
      .derivative = "dx[i] = x[i] dy",
      .note = "As a term of a loss it penalises large activations. The decay of weights is an "
              "argument of the optimizer.",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape"}},
      .shape = l2_shape,
      .gradient = l2_gradient,
      .kernel = loss_kernel,
      .example = "model example(x: f32[6]) {\n"
                 "    return dense(x, 3)\n"
                 "}\n" EXAMPLE_RECIPE("softmax_cross_entropy(output, label) + 0.01 * l2(output)")},
     {.name = "l2_dx",
      .brief = "gradient of l2",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape"},
              {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"}},
      .flags = OP_HIDDEN,
      .shape = check_like_first,
      .kernel = loss_kernel},
     {0}};
