/* l1.c -- mean absolute error, per sample.
 *
 *   y = 1/K sum over i of |x[i] - t[i]|;   dx[i] = 1/K sign(x[i] - t[i]) dy,  dt = -dx
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static bool l1_shape(Node *n, Diag *d)
{
    return loss_of_numbers(n, d);
}

static void l1_gradient(Grad *gr, Node *n, Node *dy)
{
    loss_gradient(gr, n, op_make(grad_graph(gr), "l1_dx", n->span, 3, n->in[0], n->in[1], dy));
}

static bool l1_shape_dx(Node *n, Diag *d)
{
    return check_result(n, n->in[0]->shape, d);
}

static void l1_kernel(const Node *n, Call *c)
{
    loss_call(n, c, "l1");
}

static void l1_kernel_dx(const Node *n, Call *c)
{
    loss_call(n, c, "l1_dx");
}

const Op op_l1[] =
    {{.name = "l1",
      .brief = "mean absolute error of each sample",
      .shapes = "x, t (N, ..) of equal shape, K numbers a sample   y (N)",
      .formula = "y = 1/K sum over i of |x[i] - t[i]|",
      .derivative = "dx[i] = 1/K sign(x[i] - t[i]) dy   sign(0) = 0\n"
                    "dt = -dx",
      .note = "loss = l1 compares the output with the recipe's target. PyTorch calls this loss "
              "L1Loss, Keras mean_absolute_error.",
      .arg = {{"x", ARG_TENSOR, NULL, "the output"},
              {"t", ARG_TENSOR, NULL, "the target, of the same shape"}},
      .shape = l1_shape,
      .gradient = l1_gradient,
      .kernel = l1_kernel,
      .example = "model example(x: f32[6]) {\n"
                 "    return dense(x, 3)\n"
                 "}\n" EXAMPLE_TARGET("y: f32[3]", "l1")},
     {.name = "l1_dx",
      .brief = "gradient of l1 for its first operand",
      .arg = {{"x", ARG_TENSOR, NULL, "what the network says"},
              {"t", ARG_TENSOR, NULL, "what it should say"},
              {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"}},
      .flags = OP_HIDDEN,
      .shape = l1_shape_dx,
      .kernel = l1_kernel_dx},
     {0}};
