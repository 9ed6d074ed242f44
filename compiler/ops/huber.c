/* huber.c -- squared error of small errors and absolute error of large ones, per sample.
 *
 *   d = x[i] - t[i],  m = min(|d|, delta)
 *   y = 1/K sum over i of m^2 / 2 + delta (|d| - m);   dx[i] = 1/K clamp(d, -delta, delta) dy
 *
 * Source: Huber 1964, "Robust estimation of a location parameter".
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static double delta_of(const Node *n)
{
    return node_attr(n, "delta") ? node_float(n, "delta") : 1;
}

static bool huber_shape(Node *n, Diag *d)
{
    if (delta_of(n) <= 0) {
        diag_error(d, node_span(n, "delta"), "huber delta is %g, not above 0", delta_of(n));
        diag_help(d, "errors below delta are squared: delta = 1");
        return false;
    }
    return loss_of_numbers(n, d);
}

static void huber_kernel(const Node *n, Call *c)
{
    loss_kernel(n, c);
    call_text(c, "%.17g", delta_of(n));
}

const Op op_huber[] =
    {{.name = "huber",
      .brief = "squared error of small errors, absolute error of large ones, of each sample",
      .shapes = "x, t (N, ..) of equal shape, K numbers a sample   y (N)",
      .formula = "y = 1/K sum over i of m^2 / 2 + delta (|d| - m)   d = x[i] - t[i]   m = min(|d|, "
                 "delta)",
      .derivative = "dx[i] = 1/K max(-delta, min(delta, d)) dy\n"
                    "dt = -dx",
      .note = "loss = huber compares the output with the recipe's target; so does "
              "huber(delta = 2). Source: Huber 1964, \"Robust estimation of a location "
              "parameter\". The formula is that of PyTorch's HuberLoss.",
      .arg = {LOSS_NUMBERS, {"delta", ARG_FLOAT, "1.0", "errors up to delta are squared; above 0"}},
      .shape = huber_shape,
      .gradient = loss_numbers_gradient,
      .kernel = huber_kernel,
      .example = "model example(x: f32[6]) {\n"
                 "    return dense(x, 3)\n"
                 "}\n" EXAMPLE_TARGET("y: f32[3]", "huber(delta = 0.5)")},
     {.name = "huber_dx",
      .brief = "gradient of huber for its first operand",
      .arg = {LOSS_NUMBERS_DX, {"delta", ARG_FLOAT, "1.0", "as above"}},
      .flags = OP_HIDDEN,
      .shape = check_like_first,
      .kernel = huber_kernel},
     {0}};
