/* mse.c -- mean squared error, per sample.
 *
 *   y = 1/K sum over i of (x[i] - t[i])^2;   dx[i] = 2/K (x[i] - t[i]) dy,  dt = -dx
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static bool mse_shape(Node *n, Diag *d)
{
    return loss_of_numbers(n, d);
}

static void mse_gradient(Grad *gr, Node *n, Node *dy)
{
    loss_gradient(gr, n, op_make(grad_graph(gr), "mse_dx", n->span, 3, n->in[0], n->in[1], dy));
}

static bool mse_shape_dx(Node *n, Diag *d)
{
    return check_result(n, n->in[0]->shape, d);
}

static void mse_kernel(const Node *n, Call *c)
{
    loss_call(n, c, "mse");
}

static void mse_kernel_dx(const Node *n, Call *c)
{
    loss_call(n, c, "mse_dx");
}

const Op op_mse[] =
    {{.name = "mse",
      .brief = "mean squared error of each sample",
      .shapes = "x, t (N, ..) of equal shape, K numbers a sample   y (N)",
      .formula = "y = 1/K sum over i of (x[i] - t[i])^2",
      .derivative = "dx[i] = 2/K (x[i] - t[i]) dy\n"
                    "dt = -dx",
      .note = "loss = mse compares the output with the recipe's target. Without a target, it "
              "compares the output with the one-hot vector of the label, which needs two classes "
              "or more.",
      .arg = {{"x", ARG_TENSOR, NULL, "the output"},
              {"t", ARG_TENSOR, NULL, "the target, of the same shape"}},
      .shape = mse_shape,
      .gradient = mse_gradient,
      .kernel = mse_kernel,
      .example = "# With class labels, the target is 1 at the class and 0 elsewhere.\n"
                 "model example(x: f32[6]) {\n"
                 "    return dense(x, 3) |> sigmoid\n"
                 "}\n" EXAMPLE_RECIPE("mse(output, one_hot(label, 3))")},
     {.name = "mse_dx",
      .brief = "gradient of mse for its first operand",
      .arg = {{"x", ARG_TENSOR, NULL, "what the network says"},
              {"t", ARG_TENSOR, NULL, "what it should say"},
              {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"}},
      .flags = OP_HIDDEN,
      .shape = mse_shape_dx,
      .kernel = mse_kernel_dx},
     {0}};
