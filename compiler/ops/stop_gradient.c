/* stop_gradient.c -- the same numbers as a constant: the gradient of the result does not reach x.
 *
 *   y = x;   dx = 0
 */
#include "ops/check.h"
#include "ops/example.h"

static bool stop_gradient_shape(Node *n, Diag *d)
{
    return check_real(n, 0, d) && check_result(n, n->in[0]->shape, d);
}

const Op op_stop_gradient[] = {
    {.name = "stop_gradient",
     .brief = "the same numbers as a constant: no gradient goes back",
     .shapes = "x, y (N, ..)",
     .formula = "y = x",
     .note =
         "Layers that only the result depends on are not trained. The differences of gradcheck see "
         "what it keeps away from gradients, so gradcheck reports such weights as wrong. It takes "
         "no time.",
     .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape, no tokens or labels"}},
     .flags = OP_VIEW,
     .shape = stop_gradient_shape,
     .example = "# The second layer is not pushed to make its own mean smaller.\n"
                "model example(x: f32[6]) {\n"
                "    h = dense(x, 5) |> tanh\n"
                "    return dense(h - stop_gradient(mean(h, axes = [0])), 3)\n"
                "}\n" EXAMPLE_TRAIN},
    {0}};
