/* mse.c -- mean squared error, per sample.
 *
 *   y = 1/K sum over i of (x[i] - t[i])^2;   dx[i] = 2/K (x[i] - t[i]) dy,  dt = -dx
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

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
      .arg = {LOSS_NUMBERS},
      .shape = loss_of_numbers,
      .gradient = loss_numbers_gradient,
      .kernel = loss_kernel,
      .example = "# With class labels, the target is 1 at the class and 0 elsewhere.\n"
                 "model example(x: f32[6]) {\n"
                 "    return dense(x, 3) |> sigmoid\n"
                 "}\n" EXAMPLE_RECIPE("mse(output, one_hot(label, 3))")},
     {.name = "mse_dx",
      .brief = "gradient of mse for its first operand",
      .arg = {LOSS_NUMBERS_DX},
      .flags = OP_HIDDEN,
      .shape = check_like_first,
      .kernel = loss_kernel},
     {0}};
