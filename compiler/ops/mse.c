/* mse.c -- mean squared error, per sample.
 *
 *   y = 1/K sum over i of (x[i] - t[i])^2;   dx[i] = 2/K (x[i] - t[i]) dy,  dt = -dx
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

/* Rejects a single class: its one-hot vector is 1 for every sample, so there is nothing to
 * learn. */
static bool check_target(const Node *n, Diag *d)
{
    if (!node_is(n->in[1], "one_hot") || node_int(n->in[1], "classes") > 1)
        return true;
    diag_error(d, n->span, "mse compares %s with a one-hot vector of 1 class, which is always 1",
               shape_text(diag_arena(d), &n->in[0]->shape));
    check_note(n, 0, d);
    diag_help(d, "end the model with a number for each class: dense(10); for a yes or no keep "
                 "dense(1) and use loss = sigmoid_cross_entropy");
    return false;
}

static bool mse_shape(Node *n, Diag *d)
{
    if (!check_real(n, 0, d) || !check_real(n, 1, d) || !check_target(n, d))
        return false;
    if (shape_same(&n->in[0]->shape, &n->in[1]->shape))
        return loss_result(n, d);
    diag_error(d, n->span, "mse of %s and %s: the shapes differ",
               shape_text(diag_arena(d), &n->in[0]->shape),
               shape_text(diag_arena(d), &n->in[1]->shape));
    check_note(n, 0, d);
    check_note(n, 1, d);
    diag_help(d, "reshape one to the shape of the other");
    return false;
}

static void mse_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node *dx = op_make(g, "mse_dx", n->span, 3, n->in[0], n->in[1], dy);
    grad_add(gr, n->in[0], dx);
    if (grad_wanted(gr, n->in[1]))
        grad_add(gr, n->in[1], op_make(g, "neg", n->span, 1, dx));
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
      .note = "loss = mse compares the output with the one-hot vector of the label, which "
              "needs two classes or more.",
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
