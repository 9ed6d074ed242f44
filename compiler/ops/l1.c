/* l1.c -- mean absolute error, per sample.
 *
 *   y = 1/K sum over i of |x[i] - t[i]|;   dx[i] = 1/K sign(x[i] - t[i]) dy,  dt = -dx
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

const Op op_l1[] =
    {{.name = "l1",
      .brief = "mean absolute error of each sample",
      .shapes = "x, t (N, ..) of equal shape, K numbers a sample   y (N)",
      .formula = "y = 1/K sum over i of |x[i] - t[i]|",
      .derivative = "dx[i] = 1/K sign(x[i] - t[i]) dy   sign(0) = 0\n"
                    "dt = -dx",
      .note = "loss = l1 compares the output with the recipe's target. PyTorch calls this loss "
              "L1Loss, Keras mean_absolute_error.",
      .arg = {LOSS_NUMBERS},
      .shape = loss_of_numbers,
      .gradient = loss_numbers_gradient,
      .kernel = loss_kernel,
      .example = "model example(x: f32[6]) {\n"
                 "    return dense(x, 3)\n"
                 "}\n" EXAMPLE_TARGET("y: f32[3]", "l1")},
     {.name = "l1_dx",
      .brief = "gradient of l1 for its first operand",
      .arg = {LOSS_NUMBERS_DX},
      .flags = OP_HIDDEN,
      .shape = check_like_first,
      .kernel = loss_kernel},
     {0}};
